//! `show stat` by the admin socket, asked for by a loop within one ssh session.
//!
//! Each question is a connection of its own to the socket: one that is kept would stay with the old process over a
//! reload, show a load balancer that does not balance any more, and keep that process from ending.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::language::plan;
use crate::world::cluster::kept::{Kept, SAMPLE};
use crate::world::cluster::ssh::{Asker, NoReply, Reply, Ssh};
use crate::world::port::{Clock, ErrorKind, Sample, Sampler, WorldError};

/// `$1`: the socket, `$2`: `root` when sudo may be used. Only `show stat` is ever sent, a command of the lowest level.
const LOOP: &str = r#"s=$1; r=
if [ ! -w "$s" ] && [ "$2" = root ] && [ "$(id -u)" != 0 ]; then r="sudo -n"; fi
if command -v socat >/dev/null 2>&1; then
  q() { printf 'show stat\n' | $r socat -t 5 - "UNIX-CONNECT:$s"; }
elif command -v nc >/dev/null 2>&1 && nc -h 2>&1 | grep -q -e -U; then
  q() { printf 'show stat\n' | $r nc -U "$s"; }
elif command -v perl >/dev/null 2>&1; then
  q() { $r perl -MIO::Socket::UNIX -e '$s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "$ARGV[0]: $!\n"; print $s "show stat\n"; $s->flush; print while <$s>' "$s"; }
elif command -v python3 >/dev/null 2>&1; then
  q() { $r python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b"show stat\n")
for b in iter(lambda: s.recv(65536), b""): sys.stdout.buffer.write(b)' "$s"; }
else
  q() { echo 'no socat, nc -U, perl or python3 there'; return 127; }
fi
while read -r n; do q 2>&1; printf '\n%s %s %s\n' "$0" "$n" "$?"; done"#;

/// Opens the session and asks once, so that what cannot work says so now.
pub(super) async fn open(ssh: &Ssh, spec: &Arc<plan::LoadBalancer>) -> Result<Box<dyn Sampler>, WorldError> {
    let doing = format!("read HAProxy's statistics from {} on {}", spec.socket, spec.host);
    let mut asker = start(ssh, spec).await?;
    let reply = asker
        .ask(Duration::from_secs(10))
        .await
        .map_err(|none| none.into_error(&doing))?;
    if let Err(words) = csv(reply) {
        let kind = if words.contains("No such file") {
            ErrorKind::NotFound
        } else {
            ErrorKind::Failed
        };
        let help = [
            (
                "ermission denied",
                "add the ssh user to the socket's group, or write `sudo: true` (docs/cluster.md)",
            ),
            ("sudo:", "allow it without a password in sudoers (docs/cluster.md)"),
            (
                "No such file",
                "correct `socket:`; HAProxy needs `stats socket <path> mode 660 level user`",
            ),
            ("Connection refused", "is HAProxy running?"),
            ("no socat", "install socat there"),
        ];
        let error = WorldError::new(kind, doing, words.clone());
        return Err(match help.iter().find(|(pattern, _)| words.contains(pattern)) {
            Some((_, help)) => error.with_help(*help),
            None => error,
        });
    }
    let clock = Arc::clone(ssh.clock());
    let (ssh, spec) = (ssh.clone(), Arc::clone(spec));
    let kept = Kept::new(asker, move || {
        let (ssh, spec) = (ssh.clone(), Arc::clone(&spec));
        async move { start(&ssh, &spec).await.map_err(|error| error.to_string()) }.boxed()
    });
    Ok(Box::new(Statistics { clock, kept, late: 0 }))
}

async fn start(ssh: &Ssh, spec: &plan::LoadBalancer) -> Result<Asker, WorldError> {
    let who = if ssh.sudo(&spec.host) { "root" } else { "user" };
    Asker::start(ssh, &spec.host, LOOP, &[&spec.socket, who]).await
}

/// The CSV, or what came in its place.
fn csv(reply: Reply) -> Result<String, String> {
    let text = String::from_utf8_lossy(&reply.text).into_owned();
    if reply.exit == 0 && text.starts_with("# ") {
        return Ok(text);
    }
    let words = text.trim();
    Err(match (words, reply.exit) {
        ("", 0) => "empty reply".to_owned(),
        ("", exit) => format!("exit {exit}"),
        (words, 0) => format!("not statistics: {}", words.lines().next().unwrap_or_default()),
        (words, _) => words.replace('\n', "; "),
    })
}

struct Statistics {
    clock: Arc<dyn Clock>,
    kept: Kept<Asker>,
    /// How many answers in a row did not come in time.
    late: u32,
}

/// So many late answers in a row, and the session is taken for dead.
const TOO_LATE: u32 = 10;

impl Sampler for Statistics {
    fn sample(&mut self) -> BoxFuture<'_, Sample> {
        async move {
            let deadline = Instant::now() + SAMPLE;
            let mut sent = self.clock.now();
            let reply = match self.kept.get(deadline).await {
                Err(why) => Err(why),
                Ok(asker) => {
                    sent = self.clock.now();
                    match asker.ask(deadline - Instant::now()).await {
                        Ok(reply) => {
                            self.late = 0;
                            let received = reply.received;
                            let reply = csv(reply);
                            self.kept.proved();
                            return Sample { sent, received, reply };
                        }
                        Err(none) => {
                            self.late += 1;
                            // A late answer is told from the next one by its number: the session can stay.
                            if !matches!(none, NoReply::Late) || self.late >= TOO_LATE {
                                self.kept.give_up(&none.reason());
                                self.late = 0;
                            }
                            Err(none.reason())
                        }
                    }
                }
            };
            let received = self.clock.now();
            Sample { sent, received, reply }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_is_statistics() {
        let reply = |text: &str, exit| {
            csv(Reply {
                received: crate::time::Instant::from_nanos(0),
                text: text.as_bytes().to_vec(),
                exit,
            })
        };
        assert_eq!(
            reply("# pxname,svname\na,b\n\n", 0),
            Ok("# pxname,svname\na,b\n\n".to_owned())
        );
        assert_eq!(reply("# pxname", 1), Err("# pxname".to_owned()));
        assert_eq!(reply("", 0), Err("empty reply".to_owned()));
        assert_eq!(reply("", 124), Err("exit 124".to_owned()));
        assert_eq!(
            reply("Permission denied\n", 0),
            Err("not statistics: Permission denied".to_owned())
        );
    }
}
