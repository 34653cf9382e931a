//! HAProxy's log from a file, by `tail -F`.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::follow::{Read, Source};
use crate::world::cluster::ssh::{Session, Ssh};
use crate::world::port::{ErrorKind, WorldError};

/// A log file on a host.
pub(super) struct FileLog {
    host: String,
    path: String,
    /// It needs root to be read.
    root: bool,
    position: Option<Position>,
}

/// Where the next line begins.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    /// Number of the file; a file that was rotated has another one.
    inode: String,
    offset: u64,
}

/// `$1`: the file, `$2` and `$3`: inode and offset of the position, or `-`. Says where it begins, then gives lines. A line
/// that is half written at that moment is given whole.
const SCRIPT: &str = r#"f=$1
i=$(ls -Ldi -- "$f") || exit 1
i=$(echo "$i" | { read -r i rest; echo "$i"; })
z=$(wc -c <"$f") && z=$((z)) || exit 1
how=fresh; s=$z
if [ "$2" != - ]; then
  if [ "$i" = "$2" ] && [ "$z" -ge "$3" ]; then how=resumed; s=$3; else how=rotated; s=0; fi
elif [ "$z" -gt 0 ] && [ -n "$(tail -c 1 -- "$f")" ]; then
  p=$(tail -n 1 -- "$f" | wc -c); p=$((p)); if [ "$p" -le "$s" ]; then s=$((s - p)); fi
fi
printf '%s %s %s %s\n' "$0" "$how" "$i" "$s"
exec tail -c "+$((s + 1))" -F -- "$f""#;

const BEGIN: &str = "gtrun-follow-file";

impl FileLog {
    /// Finds out how the file can be read.
    pub(super) async fn new(ssh: &Ssh, host: &str, path: &str) -> Result<Self, WorldError> {
        let doing = format!("follow {path} on {host}");
        let readable = ["test".to_owned(), "-r".to_owned(), path.to_owned()];
        let mut root = false;
        if ssh.command(host, &readable, false).await?.exit != 0 {
            root = ssh.sudo(host);
            if !root || ssh.command(host, &readable, true).await?.exit != 0 {
                let error = WorldError::new(ErrorKind::Unsupported, doing, "it is not there or cannot be read");
                return Err(error.with_help(
                    "correct `log: { file: ... }`, or let the ssh user read it (group `adm` on Debian, or `sudo: true`)",
                ));
            }
        }
        Ok(Self {
            host: host.to_owned(),
            path: path.to_owned(),
            root,
            position: None,
        })
    }
}

impl Source for FileLog {
    fn doing(&self) -> String {
        format!("follow {} on {}", self.path, self.host)
    }

    fn open<'a>(&'a mut self, ssh: &'a Ssh) -> BoxFuture<'a, Result<Session, WorldError>> {
        async move {
            let (inode, offset) = match &self.position {
                Some(position) => (position.inode.clone(), position.offset.to_string()),
                None => ("-".to_owned(), "-".to_owned()),
            };
            let argv = ["sh", "-c", SCRIPT, BEGIN, &self.path, &inode, &offset].map(str::to_owned);
            ssh.stream(&self.host, &argv, self.root).await
        }
        .boxed()
    }

    fn read(&mut self, line: &[u8]) -> Read {
        if let Some((how, position)) = begin(line) {
            self.position = Some(position);
            return Read::Begin((how == "rotated").then(|| {
                "the file was rotated while the session was lost: lines at the end of the old one are missing"
                    .to_owned()
            }));
        }
        if let Some(position) = &mut self.position {
            position.offset += line.len() as u64 + 1;
        }
        Read::Line(line.to_vec())
    }

    fn heard(&mut self, words: &str) -> Option<String> {
        // GNU tail's own words for each.
        let what = if words.contains("file truncated") {
            "truncated"
        } else if words.contains("has been replaced") || words.contains("has appeared") {
            "rotated"
        } else {
            return None;
        };
        // Neither the number of the new file nor how much of it was read is known.
        self.position = Some(Position {
            inode: "unknown".to_owned(),
            offset: 0,
        });
        Some(format!(
            "the file was {what}: lines that its writer still put into the old one are missing"
        ))
    }
}

/// `gtrun-follow-file HOW INODE OFFSET`.
fn begin(line: &[u8]) -> Option<(&str, Position)> {
    let mut parts = std::str::from_utf8(line)
        .ok()?
        .strip_prefix(BEGIN)?
        .strip_prefix(' ')?
        .split(' ');
    let (how, inode, offset) = (parts.next()?, parts.next()?, parts.next()?);
    let position = Position {
        inode: inode.to_owned(),
        offset: offset.parse().ok()?,
    };
    parts.next().is_none().then_some((how, position))
}
