//! The supervisor's own socket: what a test asks of a lab beyond what its parts offer.
//!
//! One line in, one line out (`ok`, or `error: ...`):
//! `api-down` closes the API server's port and every connection, `api-up` opens it again on the same port,
//! `compact` forgets the history of the watches, `reload-haproxy` reloads HAProxy.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::LabError;
use super::error::IoContext;
use super::kubernetes::api::Api;
use super::process::ProcessId;
use super::state::StateDir;

/// Runs the API server and does what is asked.
pub(crate) struct Control {
    api: Arc<Api>,
    address: SocketAddr,
    tls: TlsAcceptor,
    haproxy: ProcessId,
    socket: UnixListener,
    /// Stops the API server that runs now.
    running: Mutex<Option<watch::Sender<bool>>>,
}

impl Control {
    /// Starts the API server and listens.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub(crate) fn new(
        state: &StateDir,
        api: Arc<Api>,
        listener: TcpListener,
        tls: TlsAcceptor,
        haproxy: ProcessId,
    ) -> Result<Self, LabError> {
        let path = state.join("control.sock");
        let socket = UnixListener::bind(&path).context("cannot listen on", path)?;
        let address = listener.local_addr().context("cannot listen on", "127.0.0.1")?;
        let control = Self {
            api,
            address,
            tls,
            haproxy,
            socket,
            running: Mutex::default(),
        };
        control.start(listener);
        Ok(control)
    }

    fn start(&self, listener: TcpListener) {
        let stop = watch::Sender::new(false);
        tokio::spawn(Arc::clone(&self.api).serve(listener, self.tls.clone(), stop.subscribe()));
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
    }

    /// Answers requests for as long as the lab is up.
    pub(crate) async fn serve(&self) {
        while let Ok((stream, _)) = self.socket.accept().await {
            let _ = tokio::time::timeout(Duration::from_secs(10), self.talk(stream)).await;
        }
    }

    async fn talk(&self, stream: UnixStream) -> std::io::Result<()> {
        let (read, mut write) = stream.into_split();
        let mut line = String::new();
        BufReader::new(read).read_line(&mut line).await?;
        let answer = match self.obey(line.trim()).await {
            Ok(()) => "ok\n".to_owned(),
            Err(why) => format!("error: {why}\n"),
        };
        write.write_all(answer.as_bytes()).await
    }

    async fn obey(&self, wish: &str) -> Result<(), String> {
        match wish {
            "api-down" => {
                let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
                running.ok_or("the API server is down already")?.send_replace(true);
                Ok(())
            }
            "api-up" => {
                if self.running.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
                    return Err("the API server is up already".into());
                }
                self.start(TcpListener::bind(self.address).await.map_err(|e| e.to_string())?);
                Ok(())
            }
            "compact" => {
                self.api.store.compact();
                Ok(())
            }
            "reload-haproxy" => {
                if !self.haproxy.is_alive() {
                    return Err("HAProxy is gone".into());
                }
                self.haproxy.signal(Signal::SIGUSR2);
                Ok(())
            }
            other => Err(format!("no such wish: {other}")),
        }
    }
}
