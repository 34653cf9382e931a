//! Packets of a host: tcpdump there, its file here.
//!
//! The file is pulled in pieces while the capture runs, so that a crash loses little, and in base64, so that nothing on
//! the way can change it; at the end the host tells size and hash of the whole. On the host there is one folder, gone
//! with the session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::Ssh;
use super::script;
use super::session::{Hold, Session};
use crate::time;
use crate::world::cluster::error;
use crate::world::port::{Capture, CaptureEnd, ErrorKind, WorldError};

/// SYN, FIN and RST, IPv6 too: `tcp[...]` looks at IPv4 only, so its flags are found by offset.
const FILTER: &str = "(tcp[tcpflags] & (tcp-syn|tcp-fin|tcp-rst) != 0) or (ip6 and ip6[6] = 6 and (ip6[53] & 7) != 0)";

/// Options: every interface, no names, written packet by packet (`-U`) as soon as the kernel has it (immediate mode,
/// else the last ones are lost when it is stopped), headers only, to standard output: the file is then the user's and
/// tcpdump may drop its rights.
const TCPDUMP: [&str; 11] = [
    "tcpdump",
    "-i",
    "any",
    "-n",
    "-U",
    "--immediate-mode",
    "-s",
    "192",
    "-w",
    "-",
    FILTER,
];

/// `$0`: the marker. `$1`: limit of tcpdump in seconds, `$2`: `root` or `user`, then the command.
///
/// Speaks a protocol of lines: `begin`; then, asked with `get FROM`, `part SIZE STATE base64 DATA` or
/// `part SIZE STATE raw LENGTH` and the bytes; asked with `stop`, `end SIZE HASH`. STATE is `runs` or `ended`. The end of
/// its input ends everything, as does TERM. tcpdump ends without reading what the kernel still holds for it: it is given
/// time to catch up before.
///
/// Where the user may start tcpdump as root but may not end it (a narrow sudoers), the pipe it writes to is closed: it
/// ends at the next packet, and one is sent to a port on loopback where nobody listens.
const SCRIPT: &str = r#"exec 3<&0 </dev/null
m=$0; l=$1; who=$2; shift 2
umask 077
d=$(mktemp -d "${TMPDIR:-/tmp}/$m.XXXXXX") || exit 1
ended() { i=0; while [ ! -e "$d/exit" ]; do [ "$i" -lt "$1" ] || return 1; i=$((i + 1)); sleep 0.1; done; }
halt() {
  [ ! -e "$d/exit" ] && p=$(cat "$d/pid") && [ -n "$p" ] || return 0
  kill -- "-$p" || kill "$p" || { [ "$who" = root ] && setsid -w sudo -n kill "$p"; } && ended 30 && return
  kill "$c"; bash -c 'exec 4<>/dev/tcp/127.0.0.1/9'; ended 50
} >/dev/null 2>&1
trap 'halt; rm -rf -- "$d"' EXIT
trap 'exit 1' TERM HUP INT PIPE
f=$d/rst.pcap; : >"$f"; mkfifo "$d/pipe" || exit 1
t=; if command -v timeout >/dev/null 2>&1; then t="timeout -k 5 $l"; fi
if [ "$who" = root ] && [ "$(id -u)" != 0 ]; then set -- sudo -n -p "$m" $t "$@"; else set -- $t "$@"; fi
cat 3<&- <"$d/pipe" >"$f" & c=$!
{ "$@" 3<&- >"$d/pipe" & echo "$!" >"$d/pid"; wait "$!"; echo "$?" >"$d/exit"; } &
b=raw; if command -v base64 >/dev/null 2>&1; then b=base64; fi
size() { wc -c <"$f" | tr -d ' '; }
hash() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum <"$f"
  elif command -v shasum >/dev/null 2>&1; then shasum -a 256 <"$f"
  else openssl dgst -sha256 -r <"$f" || echo none; fi 2>/dev/null | cut -d ' ' -f 1
}
echo begin
while read -r verb from <&3; do
  case $verb in
    get)
      s=runs; if [ -e "$d/exit" ] && ! kill -0 "$c" 2>/dev/null; then s=ended; fi
      n=$(size); r=$((n - from)); if [ "$r" -gt 4194304 ]; then r=4194304; s=runs; fi
      if [ "$r" = 0 ]; then echo "part $n $s base64 "
      elif [ "$b" = base64 ]; then echo "part $n $s base64 $(tail -c +$((from + 1)) "$f" | head -c "$r" | base64 | tr -d '\n')"
      else echo "part $n $s raw $r"; tail -c +$((from + 1)) "$f" | head -c "$r"; fi ;;
    stop)
      sleep 0.5; halt; i=0
      while kill -0 "$c" 2>/dev/null && [ "$i" -lt 20 ]; do sleep 0.1; i=$((i + 1)); done
      echo "end $(size) $(hash)" ;;
  esac
done"#;

/// How often a piece is pulled.
const PULL: Duration = Duration::from_secs(1);
/// Longest wait for tcpdump to listen, and for an answer of the script.
const PATIENCE: Duration = Duration::from_secs(15);

/// Starts tcpdump and waits until it listens.
pub(super) async fn start(
    ssh: &Ssh,
    host: &str,
    marker: &str,
    limit: time::Duration,
) -> Result<Box<dyn Capture>, WorldError> {
    let doing = format!("capture packets on {host}");
    if marker.is_empty() || !marker.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        let message = format!("`{marker}` is no word for a command line");
        return Err(WorldError::new(ErrorKind::Failed, doing, message));
    }
    let seconds = limit.to_std().as_secs().max(1);
    let text = seconds.to_string();
    let mut arguments = vec![text.as_str(), if ssh.sudo(host) { "root" } else { "user" }];
    arguments.extend(TCPDUMP);
    // The script itself outlives tcpdump a little, to hand over the file.
    let line = script::shell_within(seconds.saturating_add(120), SCRIPT, marker, &arguments);
    let Session {
        stdin,
        stdout,
        stderr,
        hold,
    } = ssh.open(host, &line).await?;
    let words = Arc::<Mutex<Vec<u8>>>::default();
    let (heard, news) = (Arc::clone(&words), Arc::new(tokio::sync::Notify::new()));
    let told = Arc::clone(&news);
    let listener = tokio::spawn(async move {
        let (mut stderr, mut buffer) = (stderr, [0; 4096]);
        while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
            heard
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(&buffer[..n]);
            told.notify_one();
        }
        told.notify_one();
    });
    let mut running = Running {
        stdin,
        stdout: BufReader::new(stdout),
        words,
        listener: AbortOnDropHandle::new(listener),
        hash: Sha256::new(),
        got: 0,
        fault: None,
        _hold: hold,
    };
    running
        .line()
        .await
        .map_err(|why| failure(&doing, &running.words(), &why))?;
    let listening = async {
        loop {
            if running.words().contains("listening on") {
                return Ok(());
            }
            // Also asks whether it has ended: a capture that cannot start says so and is gone.
            tokio::select! {
                () = news.notified() => (),
                () = tokio::time::sleep(Duration::from_millis(100)) => {
                    let piece = running.get().await?;
                    if piece.ended {
                        return Err("tcpdump has ended".to_owned());
                    }
                    running.take(piece.data);
                }
            }
        }
    };
    match tokio::time::timeout(PATIENCE, listening).await {
        // Bytes that came meanwhile are the file's header: they are pulled again, from the beginning.
        Ok(Ok(())) => {
            running.hash = Sha256::new();
            running.got = 0;
            Ok(Box::new(Handle::new(running)))
        }
        Ok(Err(why)) => {
            // Its last words may still be on their way.
            tokio::time::sleep(Duration::from_millis(200)).await;
            Err(failure(&doing, &running.words(), &why))
        }
        Err(_) => Err(failure(&doing, &running.words(), "tcpdump does not listen")),
    }
}

/// Why a capture did not start. What a host lacks is `Unsupported`: the capture is then skipped.
fn failure(doing: &str, words: &str, why: &str) -> WorldError {
    if let Err(refused) = error::sudo_refused(doing, words.as_bytes()) {
        return refused;
    }
    let message = match words.trim() {
        "" => why.to_owned(),
        words => format!("{why}: {words}"),
    };
    let lacking = [
        ("not found", "install tcpdump there"),
        ("No such file or directory", "install tcpdump there"),
        (
            "permission to capture",
            "allow it by `sudo: true` with sudoers as in docs/cluster.md",
        ),
        (
            "Operation not permitted",
            "allow it by `sudo: true` with sudoers as in docs/cluster.md",
        ),
        ("any: No such device", "its tcpdump cannot listen on every interface"),
    ];
    match lacking.iter().find(|(pattern, _)| words.contains(pattern)) {
        Some((_, help)) => WorldError::new(ErrorKind::Unsupported, doing, message).with_help(*help),
        None => WorldError::new(ErrorKind::Failed, doing, message),
    }
}

struct Running {
    stdin: openssh::ChildStdin,
    stdout: BufReader<openssh::ChildStdout>,
    words: Arc<Mutex<Vec<u8>>>,
    listener: AbortOnDropHandle<()>,
    /// Of the bytes given so far.
    hash: Sha256,
    /// How many they are.
    got: u64,
    fault: Option<String>,
    _hold: Hold,
}

struct Piece {
    data: Vec<u8>,
    /// tcpdump has ended and this is the rest.
    ended: bool,
}

impl Running {
    fn words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&words).into_owned()
    }

    /// The next line of the script.
    async fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match tokio::time::timeout(PATIENCE, self.stdout.read_line(&mut line)).await {
            Ok(Ok(1..)) => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
            Ok(Ok(0)) => Err("the ssh session was lost".to_owned()),
            Ok(Err(error)) => Err(format!("the ssh session was lost: {error}")),
            Err(_) => Err("no answer from the host".to_owned()),
        }
    }

    async fn say(&mut self, line: &str) -> Result<(), String> {
        let written = self.stdin.write_all(line.as_bytes()).await;
        written.map_err(|error| format!("the ssh session was lost: {error}"))
    }

    /// What the file holds beyond what was taken.
    async fn get(&mut self) -> Result<Piece, String> {
        self.say(&format!("get {}\n", self.got)).await?;
        let line = self.line().await?;
        let garbled = || format!("not the answer of a capture: `{line}`");
        let mut parts = line.splitn(5, ' ');
        let (Some("part"), Some(size), Some(state), Some(coding), Some(rest)) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(garbled());
        };
        let size: u64 = size.parse().map_err(|_| garbled())?;
        let data = match coding {
            "base64" => BASE64_STANDARD.decode(rest).map_err(|_| garbled())?,
            "raw" => {
                let mut data = vec![0; rest.parse().map_err(|_| garbled())?];
                let read = tokio::time::timeout(PATIENCE, self.stdout.read_exact(&mut data)).await;
                read.map_err(|_| "no answer from the host".to_owned())?
                    .map_err(|e| e.to_string())?;
                data
            }
            _ => return Err(garbled()),
        };
        let ended = state == "ended" && self.got + data.len() as u64 == size;
        Ok(Piece { data, ended })
    }

    /// Counts bytes that are handed on.
    fn take(&mut self, data: Vec<u8>) -> Vec<u8> {
        self.hash.update(&data);
        self.got += data.len() as u64;
        data
    }

    async fn stop(&mut self) -> Result<Vec<u8>, String> {
        self.say("stop\n").await?;
        let line = self.line().await?;
        let mut parts = line.split(' ');
        let (Some("end"), Some(size), Some(hash)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("not the answer of a capture: `{line}`"));
        };
        let size: u64 = size.parse().map_err(|_| format!("not a size: `{size}`"))?;
        let mut rest = Vec::new();
        while self.got < size {
            let data = self.get().await?.data;
            if data.is_empty() {
                break;
            }
            rest.extend(self.take(data));
        }
        let ours: String = self
            .hash
            .clone()
            .finalize()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        if self.got != size {
            self.fault = Some(format!("{} bytes came of {size}", self.got));
        } else if hash == "none" {
            self.fault = Some("the host has no sha256sum, shasum or openssl to compare with".to_owned());
        } else if hash != ours {
            self.fault = Some("what came differs from the file on the host".to_owned());
        }
        Ok(rest)
    }
}

/// What the caller holds. The protocol runs in a task, so that a `next` that is given up leaves it whole.
struct Handle {
    pieces: mpsc::UnboundedReceiver<Vec<u8>>,
    stop: oneshot::Sender<()>,
    task: AbortOnDropHandle<Ended>,
}

/// What is left when the session is over.
struct Ended {
    rest: Vec<u8>,
    words: String,
    fault: Option<String>,
}

impl Handle {
    fn new(running: Running) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let task = AbortOnDropHandle::new(tokio::spawn(pull(running, sender, stopped)));
        Self { pieces, stop, task }
    }
}

/// Pulls pieces until it is told to stop, then the rest.
async fn pull(
    mut running: Running,
    pieces: mpsc::UnboundedSender<Vec<u8>>,
    mut stopped: oneshot::Receiver<()>,
) -> Ended {
    // Closed when the capture has ended by itself, or can be pulled no more: then there is no next piece.
    let mut pieces = Some(pieces);
    let mut fault = None;
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            () = tokio::time::sleep(PULL), if pieces.is_some() => (),
        }
        match running.get().await {
            Ok(piece) => {
                let data = running.take(piece.data);
                if let Some(pieces) = pieces.as_ref().filter(|_| !data.is_empty()) {
                    // Nobody listens only when this task is about to be stopped.
                    let _ = pieces.send(data);
                }
                if piece.ended {
                    pieces = None;
                }
            }
            Err(why) => {
                fault = Some(why);
                pieces = None;
            }
        }
    }
    let mut rest = Vec::new();
    if fault.is_none() {
        match running.stop().await {
            Ok(bytes) => {
                rest = bytes;
                fault = running.fault.take();
            }
            Err(why) => fault = Some(why),
        }
    }
    let Running {
        stdin,
        stdout: _stdout,
        words,
        listener,
        hash: _,
        got: _,
        fault: _,
        _hold,
    } = running;
    // The script ends with its input, and its words end with it.
    drop(stdin);
    let _ = tokio::time::timeout(Duration::from_secs(2), listener).await;
    let words = words.lock().unwrap_or_else(PoisonError::into_inner);
    Ended {
        rest,
        words: String::from_utf8_lossy(&words).into_owned(),
        fault,
    }
}

impl Capture for Handle {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        self.pieces.recv().boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, CaptureEnd> {
        async move {
            let Self { mut pieces, stop, task } = *self;
            let _ = stop.send(());
            let ended = task.await.unwrap_or_else(|error| Ended {
                rest: Vec::new(),
                words: String::new(),
                fault: Some(error.to_string()),
            });
            let mut rest = Vec::new();
            while let Ok(piece) = pieces.try_recv() {
                rest.extend(piece);
            }
            rest.extend(ended.rest);
            CaptureEnd {
                rest,
                words: ended.words,
                fault: ended.fault,
            }
        }
        .boxed()
    }
}
