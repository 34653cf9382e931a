//! A log that is followed over a session, and taken up again where it was when the session breaks.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::task::AbortOnDropHandle;

use crate::world::cluster::error;
use crate::world::cluster::ssh::{Session, Ssh};
use crate::world::port::{LogEnd, LogItem, WorldError};

/// Where a log comes from.
pub(super) trait Source: Send + Sync + 'static {
    /// For messages: `follow /var/log/haproxy.log on lb`.
    fn doing(&self) -> String;

    /// Opens a session that writes lines, from the position on. An error of the kind `Unreachable` or `Interrupted` is
    /// worth another try.
    fn open<'a>(&'a mut self, ssh: &'a Ssh) -> futures::future::BoxFuture<'a, Result<Session, WorldError>>;

    /// A line as it came, without its line feed.
    fn read(&mut self, line: &[u8]) -> Read;

    /// A line of the session's standard error: why lines may be missing, when that is what it says.
    fn heard(&mut self, words: &str) -> Option<String>;
}

/// What a line is.
pub(super) enum Read {
    /// One of the log.
    Line(Vec<u8>),
    /// The source's own word that it stands; with a reason when lines are missing before it.
    Begin(Option<String>),
    /// Nothing.
    Nothing,
}

/// Lines that are longer are cut: HAProxy's own limit is 64 KiB.
const MAX_LINE: u64 = 1024 * 1024;
/// How long a source may need to say that it stands.
const BEGIN: Duration = Duration::from_secs(20);

/// Follows a source; ready when it stands.
pub(super) async fn start(ssh: &Ssh, mut source: impl Source) -> Result<BoxStream<'static, LogItem>, WorldError> {
    let session = source.open(ssh).await?;
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut follower = Follower {
        ssh: ssh.clone(),
        source,
        sender,
    };
    let mut open = Open::new(session);
    follower.begin(&mut open).await?;
    let task = AbortOnDropHandle::new(tokio::spawn(async move { follower.run(open).await }));
    let items = UnboundedReceiverStream::new(receiver);
    // The task lives as long as somebody reads.
    Ok(items.map(move |item| (item, &task).0).boxed())
}

struct Follower<S> {
    ssh: Ssh,
    source: S,
    sender: mpsc::UnboundedSender<LogItem>,
}

/// A session with its lines.
struct Open {
    stdout: tokio::io::Take<BufReader<openssh::ChildStdout>>,
    stderr: tokio::io::Take<BufReader<openssh::ChildStderr>>,
    line: Vec<u8>,
    words: Vec<u8>,
    /// All that was heard, for messages.
    heard: String,
    _stdin: openssh::ChildStdin,
    _hold: crate::world::cluster::ssh::Hold,
}

impl Open {
    fn new(session: Session) -> Self {
        Self {
            stdout: BufReader::new(session.stdout).take(MAX_LINE),
            stderr: BufReader::new(session.stderr).take(MAX_LINE),
            line: Vec::new(),
            words: Vec::new(),
            heard: String::new(),
            _stdin: session.stdin,
            _hold: session.hold,
        }
    }
}

/// What a session said next.
enum Said {
    Line(Vec<u8>),
    Words(String),
    End,
}

impl Open {
    /// The next line of either stream. May be given up and called again.
    async fn next(&mut self) -> Said {
        let mut quiet = false;
        loop {
            tokio::select! {
                biased;
                read = self.stderr.read_until(b'\n', &mut self.words), if !quiet => {
                    self.stderr.set_limit(MAX_LINE);
                    if !matches!(read, Ok(1..)) {
                        quiet = true;
                        continue;
                    }
                    let words = String::from_utf8_lossy(&std::mem::take(&mut self.words)).trim().to_owned();
                    if !words.is_empty() && self.heard.len() < 4096 {
                        self.heard = format!("{}{words}; ", self.heard);
                    }
                    return Said::Words(words);
                }
                read = self.stdout.read_until(b'\n', &mut self.line) => {
                    self.stdout.set_limit(MAX_LINE);
                    // A line without its end is one that the break cut: it comes again when the log is taken up.
                    if !matches!(read, Ok(1..)) || (self.line.last() != Some(&b'\n') && (self.line.len() as u64) < MAX_LINE) {
                        return Said::End;
                    }
                    let mut line = std::mem::take(&mut self.line);
                    if line.last() == Some(&b'\n') {
                        line.pop();
                    }
                    return Said::Line(line);
                }
            }
        }
    }
}

impl<S: Source> Follower<S> {
    fn say(&self, item: LogItem) -> bool {
        self.sender.send(item).is_ok()
    }

    fn gap(&self, reason: String) -> bool {
        let arrival = self.ssh.clock().now();
        self.say(LogItem::Gap { arrival, reason })
    }

    /// Waits until the source stands.
    async fn begin(&mut self, open: &mut Open) -> Result<(), WorldError> {
        let doing = self.source.doing();
        let begin = async {
            loop {
                match open.next().await {
                    Said::Line(line) => match self.source.read(&line) {
                        Read::Begin(None) => return Ok(()),
                        Read::Begin(Some(reason)) => {
                            self.gap(reason);
                            return Ok(());
                        }
                        Read::Line(_) | Read::Nothing => (),
                    },
                    Said::Words(_) => (),
                    Said::End => return Err(error::session_lost(&doing, open.heard.as_bytes())),
                }
            }
        };
        tokio::time::timeout(BEGIN, begin)
            .await
            .unwrap_or_else(|_| Err(error::late(&doing)))
    }

    async fn run(&mut self, mut open: Open) {
        loop {
            while let Some(alive) = self.step(&mut open).await {
                if !alive {
                    return;
                }
            }
            let lost = open.heard.trim_end_matches("; ").to_owned();
            drop(open);
            match self.again(lost).await {
                Some(next) => open = next,
                None => return,
            }
        }
    }

    /// One line; `None` at the end of the session, false when nobody reads any more.
    async fn step(&mut self, open: &mut Open) -> Option<bool> {
        match open.next().await {
            Said::End => None,
            Said::Words(words) => Some(match self.source.heard(&words) {
                Some(reason) => self.gap(reason),
                None => !self.sender.is_closed(),
            }),
            Said::Line(line) => {
                let arrival = self.ssh.clock().now();
                Some(match self.source.read(&line) {
                    Read::Line(text) => self.say(LogItem::Line {
                        arrival,
                        runtime: None,
                        text,
                    }),
                    Read::Begin(Some(reason)) => self.gap(reason),
                    Read::Begin(None) | Read::Nothing => !self.sender.is_closed(),
                })
            }
        }
    }

    /// Opens the source again; ends the stream when that cannot be done.
    async fn again(&mut self, lost: String) -> Option<Open> {
        let until = tokio::time::Instant::now() + self.ssh.patience();
        let mut pause = Duration::from_millis(200);
        let why = loop {
            if self.sender.is_closed() {
                return None;
            }
            let result = match self.source.open(&self.ssh).await {
                Ok(session) => {
                    let mut open = Open::new(session);
                    self.begin(&mut open).await.map(|()| open)
                }
                Err(error) => Err(error),
            };
            match result {
                Ok(open) => return Some(open),
                Err(error) if tokio::time::Instant::now() + pause > until => break error.to_string(),
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(Duration::from_secs(5));
        };
        let arrival = self.ssh.clock().now();
        let lost = if lost.is_empty() {
            "the ssh session was lost".to_owned()
        } else {
            lost
        };
        self.say(LogItem::End {
            arrival,
            why: LogEnd::Lost(format!("{lost}; {why}")),
        });
        None
    }
}
