//! The client's side: requests over connections that are known one by one.
//!
//! Built on hyper's connections and not on a client library, because evidence needs what those hide: the local port of
//! an attempt that failed too, which request was the how-manyeth on which connection, when a GOAWAY came in, and that
//! nothing is ever sent twice. No proxies, no redirects, no decompression.

mod connect;
mod entry;
mod exchange;
mod fault;
mod frames;
mod pool;
mod wire;

pub use entry::Entry;

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_rustls::TlsConnector;

use self::exchange::Record;
use self::pool::{Connections, Connectors};
use super::tls::{Trust, client_config};
use crate::evidence::client::Outcome;
use crate::world::port::{Clock, ErrorKind, HttpClient, HttpRequest, HttpResult, HttpWatcher, WorldError};

/// Sends requests to one entry point.
pub struct Client {
    connections: Arc<Connections>,
    clock: Arc<dyn Clock>,
}

impl Client {
    /// A client without connections; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// `Unsupported` when the certificate authorities cannot be used.
    pub fn new(entry: Entry, clock: Arc<dyn Clock>) -> Result<Self, WorldError> {
        let connectors = if entry.tls {
            let trust = entry.ca_pem.as_deref().map_or(Trust::System, Trust::Pem);
            let config = |alpn: &[&[u8]]| {
                client_config(trust, alpn).map(TlsConnector::from).map_err(|message| {
                    WorldError::new(
                        ErrorKind::Unsupported,
                        "read the certificate authorities of `entry`",
                        message,
                    )
                    .with_help("`ca_file` must hold the authority that signed the entry's certificate, as PEM")
                })
            };
            Some(Connectors {
                h1: config(&[b"http/1.1"])?,
                h2: config(&[b"h2"])?,
            })
        } else {
            None
        };
        Ok(Self {
            connections: Arc::new(Connections::new(entry, connectors, Arc::clone(&clock))),
            clock,
        })
    }
}

impl HttpClient for Client {
    fn send(&self, request: Arc<HttpRequest>, watcher: Option<HttpWatcher>) -> BoxFuture<'static, HttpResult> {
        let (connections, clock) = (Arc::clone(&self.connections), Arc::clone(&self.clock));
        async move {
            let started = clock.now();
            let mut record = Record::new(started);
            let outcome = {
                let exchange = exchange::exchange(&connections, &*clock, &request, watcher.as_ref(), &mut record);
                tokio::pin!(exchange);
                tokio::select! {
                    biased;
                    end = &mut exchange => end.map_err(|fault| (fault.outcome, fault.text)),
                    () = request.cancel.cancelled() => Err((Outcome::Aborted, "given up by gtrun".to_owned())),
                    () = clock.sleep_until(started + request.timeout) => {
                        Err((Outcome::Timeout, format!("not whole within its timeout of {}", request.timeout)))
                    }
                }
            };
            let ended = clock.now();
            match outcome {
                Ok(outcome) => record.end(ended, outcome, None),
                Err((outcome, text)) => record.end(ended, outcome, Some(text)),
            }
        }
        .boxed()
    }
}
