//! One connection to a host, over which all of its sessions run.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssh::Session;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStdin, Command};

use super::config::Route;
use crate::world::cluster::error;
use crate::world::port::WorldError;

/// `ssh` in master mode, as a child of gtrun that ends with it.
pub(super) struct Master {
    session: Arc<Session>,
    process: Mutex<Child>,
    /// Its end ends the connection.
    _leash: ChildStdin,
}

/// Ends `ssh` when standard input ends. Signals of the terminal are for gtrun alone to decide about.
const LEASH: &str = r#"trap '' INT HUP QUIT
exec 3<&0 </dev/null
"$@" 3<&- & p=$!
{ cat <&3; kill "$p"; } >/dev/null 2>&1 & w=$!
wait "$p"; s=$?
kill "$w" 2>/dev/null
exit "$s""#;

/// Longest wait for a connection, jump hosts included; each hop has 10 s of its own.
const CONNECT: Duration = Duration::from_secs(25);

impl Master {
    /// Connects to a host. `socket`: where the control socket will be.
    pub(super) async fn connect(host: &str, config: &Path, socket: &Path, route: &Route) -> Result<Self, WorldError> {
        let doing = format!("connect to host {host} by ssh");
        let mut child = Command::new("sh")
            .args(["-c", LEASH, "gtrun-ssh", "ssh", "-F"])
            .arg(config)
            .args(["-M", "-N", "-o", "ControlPersist=no", "-S"])
            .arg(socket)
            .args(route.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| error::ssh_start(&doing, &e))?;
        let (Some(leash), Some(stderr)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(error::ssh_words(&doing, "no pipes to ssh"));
        };
        let words = Arc::<Mutex<String>>::default();
        let heard = Arc::clone(&words);
        let listener = tokio::spawn(async move {
            let (mut stderr, mut buffer) = (stderr, [0; 1024]);
            while let Ok(n @ 1..) = stderr.read(&mut buffer).await {
                let mut words = heard.lock().unwrap_or_else(PoisonError::into_inner);
                // Enough for any error; a chatty server must not fill the memory.
                if words.len() < 4096 {
                    words.push_str(&String::from_utf8_lossy(&buffer[..n]));
                }
            }
        });
        let session = Session::resume_mux(socket.into(), None);
        let established = async {
            loop {
                if socket.exists() && session.check().await.is_ok() {
                    return true;
                }
                tokio::select! {
                    _ = child.wait() => return false,
                    () = tokio::time::sleep(Duration::from_millis(10)) => (),
                }
            }
        };
        let standing = tokio::time::timeout(CONNECT, established).await;
        let said = || words.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned();
        match standing {
            Ok(true) => Ok(Self {
                session: Arc::new(session),
                process: Mutex::new(child),
                _leash: leash,
            }),
            Ok(false) => {
                // The last words may still be on their way.
                let _ = tokio::time::timeout(Duration::from_secs(1), listener).await;
                Err(error::ssh_words(&doing, &said()))
            }
            Err(_) => Err(error::ssh_words(&doing, &format!("Connection timed out\n{}", said()))),
        }
    }

    pub(super) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// `ssh` still runs.
    pub(super) fn standing(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(process.try_wait(), Ok(None))
    }
}
