//! One session: a remote command line with its three streams.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use openssh::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::OwnedSemaphorePermit;

use super::master::Master;
use crate::world::cluster::error;
use crate::world::port::{ErrorKind, WorldError};

/// A session that is open. Dropping it ends its standard input, and with that what runs remotely.
pub(in crate::world::cluster) struct Session {
    pub(in crate::world::cluster) stdin: ChildStdin,
    pub(in crate::world::cluster) stdout: ChildStdout,
    pub(in crate::world::cluster) stderr: ChildStderr,
    /// What keeps the streams alive.
    pub(in crate::world::cluster) hold: Hold,
}

/// What keeps the streams of a session alive.
pub(in crate::world::cluster) struct Hold {
    child: Child<Arc<openssh::Session>>,
    _permit: Option<OwnedSemaphorePermit>,
    _master: Option<Arc<Master>>,
}

/// What a command wrote.
pub(in crate::world::cluster) struct Output {
    pub(in crate::world::cluster) stdout: Vec<u8>,
    pub(in crate::world::cluster) stderr: Vec<u8>,
}

/// More than this is not kept in memory.
const MAX_OUTPUT: u64 = 64 * 1024 * 1024;

/// Longest wait for a session over a standing connection.
const OPEN: Duration = Duration::from_secs(10);

/// A word that no output holds by chance.
pub(in crate::world::cluster) fn word() -> String {
    format!("gtrun-{:016x}", random())
}

/// A number that nobody can foresee, from the keys of the standard library's hash maps.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Session {
    pub(super) async fn open(host: &str, master: &Master, line: &str) -> Result<Self, openssh::Error> {
        let mut command = master.session().arc_raw_command(line);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let opened = tokio::time::timeout(OPEN, command.spawn()).await;
        let mut child = opened.map_err(|_| {
            let text = format!("no session on {host} within {} s", OPEN.as_secs());
            openssh::Error::Master(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
        })??;
        match (child.stdin().take(), child.stdout().take(), child.stderr().take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self {
                stdin,
                stdout,
                stderr,
                hold: Hold {
                    child,
                    _permit: None,
                    _master: None,
                },
            }),
            _ => Err(openssh::Error::Disconnected),
        }
    }

    /// The same, keeping its place among the host's sessions and its connection.
    pub(super) fn holding(mut self, permit: OwnedSemaphorePermit, master: Arc<Master>) -> Self {
        self.hold._permit = Some(permit);
        self.hold._master = Some(master);
        self
    }

    /// Reads both streams to their ends, and waits for the end of the command.
    pub(in crate::world::cluster) async fn output(self, doing: &str) -> Result<Output, WorldError> {
        // Its end would end the command.
        let _stdin = self.stdin;
        let (stdout, stderr) = tokio::try_join!(all(self.stdout), all(self.stderr))
            .map_err(|e| error::session_lost(doing, e.to_string().as_bytes()))?;
        // How it ended is told by its own last line; the library's word for it cannot be trusted (127, signals).
        let _ = tokio::time::timeout(OPEN, self.hold.child.wait()).await;
        if stdout.len() as u64 > MAX_OUTPUT || stderr.len() as u64 > MAX_OUTPUT {
            let message = format!("it wrote more than {} MiB", MAX_OUTPUT / 1024 / 1024);
            return Err(WorldError::new(ErrorKind::Failed, doing, message));
        }
        Ok(Output { stdout, stderr })
    }
}

async fn all(stream: impl AsyncRead + Unpin) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(MAX_OUTPUT + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}
