//! Commands inside a container.

use std::io;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use super::super::kubelet::PodProcesses;
use super::super::kubelet::container::{Container, Run, exit_code};
use super::channel::{Frame, Protocol, Receiver, Sender};
use super::request::Query;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Longest piece of output in one frame.
const PIECE: usize = 32 * 1024;

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Exec {
    container: String,
    command: Vec<String>,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Exec {
    /// Reads the query.
    pub(super) fn of(query: &Query, container: String) -> Self {
        Self {
            container,
            command: query.all("command").map(str::to_owned).collect(),
            stdin: query.flag("stdin"),
            stdout: query.flag("stdout"),
            stderr: query.flag("stderr"),
            tty: query.flag("tty"),
        }
    }

    /// Runs the command and speaks the protocol to its end.
    pub(super) async fn serve(
        self,
        processes: Option<Arc<PodProcesses>>,
        protocol: Protocol,
        mut sender: Sender,
        receiver: Receiver,
    ) {
        let alive = processes
            .and_then(|p| p.container(&self.container))
            .filter(|c| c.run() == Run::Running);
        let status = match alive {
            None => {
                let message = format!(
                    "unable to upgrade connection: container not found (\"{}\")",
                    self.container
                );
                failure(&message, &message)
            }
            Some(container) => {
                // The first frame is always an empty one of stdout.
                if sender.send(STDOUT, b"").await.is_err() {
                    return;
                }
                match self.run(&container, &mut sender, receiver).await {
                    Outcome::ClientGone => return,
                    Outcome::Ended(0) => json!({"metadata": {}, "status": "Success"}),
                    Outcome::Ended(code) => self.non_zero(protocol, code),
                    Outcome::NotStarted(error) => self.not_started(protocol, &container, &error),
                }
            }
        };
        let last = if protocol.version >= 4 {
            status.to_string()
        } else {
            status["message"].as_str().unwrap_or_default().to_owned()
        };
        if sender.send(ERROR, last.as_bytes()).await.is_ok() {
            sender.close().await;
        }
    }

    async fn run(&self, container: &Container, sender: &mut Sender, receiver: Receiver) -> Outcome {
        let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        // `script` gives a terminal to a command without any unsafe code of ours.
        let command = if self.tty {
            in_terminal(&self.command)
        } else {
            self.command.clone()
        };
        let started = container.execute(
            &command,
            pipe(self.stdin),
            pipe(self.stdout),
            pipe(self.stderr && !self.tty),
        );
        let mut guest = match started {
            Ok(guest) => guest,
            Err(error) => return Outcome::NotStarted(error),
        };
        let (output, mut pieces) = mpsc::channel(4);
        let readers = [
            guest
                .child
                .stdout
                .take()
                .map(|s| tokio::spawn(pump(STDOUT, s, output.clone()))),
            guest
                .child
                .stderr
                .take()
                .map(|s| tokio::spawn(pump(STDERR, s, output.clone()))),
        ];
        drop((output, readers));
        let writer = tokio::spawn(feed(receiver, guest.child.stdin.take()));
        while let Some((channel, piece)) = pieces.recv().await {
            if sender.send(channel, &piece).await.is_err() {
                // The command is left to itself, as a real runtime leaves it.
                return Outcome::ClientGone;
            }
        }
        let code = guest.child.wait().await.map_or(-1, exit_code);
        container.forget(&guest);
        writer.abort();
        Outcome::Ended(code)
    }

    fn non_zero(&self, protocol: Protocol, code: i32) -> Value {
        let detail = if protocol.version == 5 {
            format!("command terminated with exit code {code}")
        } else {
            format!("error executing command [{}], exit code {code}", self.command.join(" "))
        };
        json!({
            "metadata": {}, "status": "Failure",
            "message": format!("command terminated with non-zero exit code: {detail}"), "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
        })
    }

    fn not_started(&self, protocol: Protocol, container: &Container, error: &io::Error) -> Value {
        let what = match self.command.first() {
            None => "args must not be empty".to_owned(),
            Some(program) if error.kind() == io::ErrorKind::NotFound && program.contains('/') => format!(
                "unable to start container process: exec: \"{program}\": stat {program}: no such file or directory"
            ),
            Some(program) if error.kind() == io::ErrorKind::NotFound => {
                format!("unable to start container process: exec: \"{program}\": executable file not found in $PATH")
            }
            Some(program) => format!("unable to start container process: exec: \"{program}\": {error}"),
        };
        let cause = format!(
            "error executing command in container: failed to exec in container: failed to start exec \"{}\": OCI runtime \
             exec failed: exec failed: {what}: unknown",
            container.id
        );
        let cause = if protocol.version == 5 {
            format!("Internal error occurred: {cause}")
        } else {
            cause
        };
        failure(&format!("Internal error occurred: {cause}"), &cause)
    }
}

enum Outcome {
    Ended(i32),
    NotStarted(io::Error),
    ClientGone,
}

fn failure(message: &str, cause: &str) -> Value {
    json!({
        "metadata": {}, "status": "Failure", "message": message, "reason": "InternalError",
        "details": {"causes": [{"message": cause}]}, "code": 500,
    })
}

fn in_terminal(command: &[String]) -> Vec<String> {
    let quoted: Vec<String> = command
        .iter()
        .map(|w| format!("'{}'", w.replace('\'', r"'\''")))
        .collect();
    ["script", "-qefc", &quoted.join(" "), "/dev/null"]
        .map(str::to_owned)
        .to_vec()
}

async fn pump(channel: u8, mut from: impl AsyncRead + Unpin, to: mpsc::Sender<(u8, Vec<u8>)>) {
    let mut piece = vec![0; PIECE];
    while let Ok(size) = from.read(&mut piece).await {
        if size == 0 || to.send((channel, piece[..size].to_vec())).await.is_err() {
            return;
        }
    }
}

/// Writes what the client sends to the command, until the client closes the channel. Reads on after that: the client's
/// own close must be seen.
async fn feed(mut receiver: Receiver, mut stdin: Option<ChildStdin>) {
    while let Some(frame) = receiver.next().await {
        match frame {
            Frame::Data(STDIN, bytes) => {
                if let Some(pipe) = &mut stdin
                    && (pipe.write_all(&bytes).await.is_err() || pipe.flush().await.is_err())
                {
                    stdin = None;
                }
            }
            Frame::Closed(STDIN) => stdin = None,
            Frame::Data(..) | Frame::Closed(_) => {}
        }
    }
}
