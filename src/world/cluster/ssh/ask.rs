//! A remote loop that answers one question at a time over one session.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use super::Ssh;
use super::script;
use super::session::{Hold, Session, word};
use crate::time::Instant;
use crate::world::cluster::error;
use crate::world::port::WorldError;

/// A kept session. The loop reads a number a line, and answers with any text, then a line of its word (`$0`), that
/// number and an exit code. So an answer that comes late is told from the next one.
pub(in crate::world::cluster) struct Asker {
    stdin: openssh::ChildStdin,
    replies: mpsc::UnboundedReceiver<Numbered>,
    number: u64,
    _reader: AbortOnDropHandle<()>,
    _hold: Hold,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::world::cluster) struct Reply {
    /// When its last line was there.
    pub(in crate::world::cluster) received: Instant,
    /// What came before its last line.
    pub(in crate::world::cluster) text: Vec<u8>,
    /// Exit code of whatever the loop ran.
    pub(in crate::world::cluster) exit: i32,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::world::cluster) enum NoReply {
    /// Not in time; it may still come and is then passed over.
    Late,
    /// The session is lost, with its last words.
    Lost(String),
}

enum Numbered {
    Reply(u64, Reply),
    End(String),
}

/// What one answer may hold at most.
const MAX_REPLY: usize = 16 * 1024 * 1024;

impl Asker {
    /// Starts the loop. Nothing is asked yet, and a loop that cannot work says so at the first question.
    pub(in crate::world::cluster) async fn start(
        ssh: &Ssh,
        host: &str,
        loop_script: &str,
        arguments: &[&str],
    ) -> Result<Self, WorldError> {
        let word = word();
        let line = script::shell_within(ssh.limit(), loop_script, &word, arguments);
        let Session {
            stdin,
            stdout,
            stderr,
            hold,
        } = ssh.open(host, &line).await?;
        let (sender, replies) = mpsc::unbounded_channel();
        let clock = std::sync::Arc::clone(ssh.clock());
        let reader = tokio::spawn(async move {
            let (mut lines, mut text) = (BufReader::new(stdout), Vec::new());
            loop {
                let begin = text.len();
                match lines.read_until(b'\n', &mut text).await {
                    Ok(1..) if text.len() <= MAX_REPLY => (),
                    Ok(_) | Err(_) => break,
                }
                let Some((number, exit)) = trailer(&word, &text[begin..]) else {
                    continue;
                };
                let received = clock.now();
                text.truncate(begin);
                // The line feed that parts the text from the last line.
                text.pop();
                let text = std::mem::take(&mut text);
                if sender
                    .send(Numbered::Reply(number, Reply { received, text, exit }))
                    .is_err()
                {
                    return;
                }
            }
            let (mut words, mut stderr) = (Vec::new(), stderr.take(4096));
            let _ = tokio::time::timeout(Duration::from_millis(500), stderr.read_to_end(&mut words)).await;
            let _ = sender.send(Numbered::End(String::from_utf8_lossy(&words).trim().to_owned()));
        });
        Ok(Self {
            stdin,
            replies,
            number: 0,
            _reader: AbortOnDropHandle::new(reader),
            _hold: hold,
        })
    }

    /// Asks once and waits for the answer until `limit` is over.
    pub(in crate::world::cluster) async fn ask(&mut self, limit: Duration) -> Result<Reply, NoReply> {
        self.number += 1;
        let question = format!("{}\n", self.number);
        let answer = async {
            if let Err(error) = self.stdin.write_all(question.as_bytes()).await {
                return Err(NoReply::Lost(error.to_string()));
            }
            loop {
                match self.replies.recv().await {
                    Some(Numbered::Reply(number, reply)) if number == self.number => return Ok(reply),
                    Some(Numbered::Reply(..)) => continue,
                    Some(Numbered::End(words)) => return Err(NoReply::Lost(words)),
                    None => return Err(NoReply::Lost(String::new())),
                }
            }
        };
        tokio::time::timeout(limit, answer).await.unwrap_or(Err(NoReply::Late))
    }
}

/// `word number exit` as a whole line.
fn trailer(word: &str, line: &[u8]) -> Option<(u64, i32)> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (number, exit) = line.strip_prefix(word)?.strip_prefix(' ')?.split_once(' ')?;
    Some((number.parse().ok()?, exit.parse().ok()?))
}

impl NoReply {
    /// For a person, in a sample that failed.
    pub(in crate::world::cluster) fn reason(&self) -> String {
        match self {
            Self::Late => "timeout".to_owned(),
            Self::Lost(words) if words.is_empty() => "the ssh session was lost".to_owned(),
            Self::Lost(words) => format!("the ssh session ended: {words}"),
        }
    }

    /// As an error of a call.
    pub(in crate::world::cluster) fn into_error(self, doing: &str) -> WorldError {
        match self {
            Self::Late => error::late(doing),
            Self::Lost(words) => error::session_lost(doing, words.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_line_ends_an_answer() {
        assert_eq!(trailer("w-1", b"w-1 7 0\n"), Some((7, 0)));
        for line in [
            &b"w-1 7 0"[..],
            b"w-1 7\n",
            b"w-12 7 0\n",
            b"x w-1 7 0\n",
            b"w-1 7 0 \n",
            b"\xff\n",
        ] {
            assert_eq!(trailer("w-1", line), None, "{line:?}");
        }
    }
}
