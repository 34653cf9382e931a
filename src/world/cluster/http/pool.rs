//! Which connection a request goes over.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::client::conn::{http1, http2};
use tokio::sync::OwnedMutexGuard;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;

use super::connect::{self, Attempt, Body, Sender};
use super::entry::Entry;
use super::fault::Fault;
use super::wire::Wire;
use crate::world::port::{Clock, ConnectionUse, HttpRequest, Protocol};

/// The connections of one run.
pub(super) struct Connections {
    entry: Entry,
    tls: Option<Connectors>,
    clock: Arc<dyn Clock>,
    /// Number of the last one opened.
    count: AtomicU32,
    /// Idle HTTP/1.1 connections of the pools; the last one used is taken first.
    idle: Mutex<HashMap<String, Vec<Kept>>>,
    /// Named HTTP/1.1 connections: whoever holds the slot uses it.
    named: Mutex<HashMap<String, Slot<Kept>>>,
    /// HTTP/2 connections of pools and names: shared, opened by one at a time.
    h2: Mutex<HashMap<ConnectionUse, Slot<Arc<Shared>>>>,
}

type Slot<T> = Arc<tokio::sync::Mutex<Option<T>>>;

/// TLS with the ALPN of either protocol.
pub(super) struct Connectors {
    pub(super) h1: TlsConnector,
    pub(super) h2: TlsConnector,
}

/// What names a connection in the evidence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// Number in this run, from 1.
    pub(super) id: u32,
    pub(super) local_port: u16,
    pub(super) remote: SocketAddr,
}

/// An HTTP/1.1 connection between requests.
struct Kept {
    sender: http1::SendRequest<Body>,
    wire: Arc<Wire>,
    name: Name,
    served: u32,
    driver: AbortOnDropHandle<()>,
}

/// An HTTP/2 connection with several requests at once.
pub(super) struct Shared {
    sender: http2::SendRequest<Body>,
    wire: Arc<Wire>,
    name: Name,
    served: AtomicU32,
    _driver: AbortOnDropHandle<()>,
}

/// A connection lent to one request. Dropped before [`Connections::give_back`], an HTTP/1.1 connection is closed.
pub(super) struct Lent {
    pub(super) sender: Sender,
    pub(super) wire: Arc<Wire>,
    pub(super) name: Name,
    /// Which request on it, from 1.
    pub(super) ordinal: u32,
    /// Opened for this request.
    pub(super) fresh: bool,
    home: Home,
}

/// Where a connection goes afterwards; also what keeps it open.
enum Home {
    /// Closed.
    Nowhere { _driver: AbortOnDropHandle<()> },
    /// Back to the pool of that name.
    Pool {
        name: String,
        driver: AbortOnDropHandle<()>,
    },
    /// Back to its slot.
    Named {
        slot: OwnedMutexGuard<Option<Kept>>,
        driver: AbortOnDropHandle<()>,
    },
    /// It stays where it is.
    Shared { _held: Arc<Shared> },
}

impl Connections {
    pub(super) fn new(entry: Entry, tls: Option<Connectors>, clock: Arc<dyn Clock>) -> Self {
        Self {
            entry,
            tls,
            clock,
            count: AtomicU32::new(0),
            idle: Mutex::default(),
            named: Mutex::default(),
            h2: Mutex::default(),
        }
    }

    pub(super) fn entry(&self) -> &Entry {
        &self.entry
    }

    /// A connection for this request. `attempt` says how far an attempt got that fails.
    pub(super) async fn lend(&self, request: &HttpRequest, attempt: &mut Attempt) -> Result<Lent, Fault> {
        match (&request.connection, request.protocol) {
            (ConnectionUse::New, _) => {
                let (sender, wire, name, driver) = self.open(request, attempt).await?;
                let home = Home::Nowhere { _driver: driver };
                Ok(Lent::first(sender, wire, name, home))
            }
            (ConnectionUse::Pool(pool), Protocol::H1) => {
                if let Some(kept) = self.idle(pool) {
                    return Ok(Lent::again(kept, |driver| Home::Pool {
                        name: pool.clone(),
                        driver,
                    }));
                }
                let (sender, wire, name, driver) = self.open(request, attempt).await?;
                let home = Home::Pool {
                    name: pool.clone(),
                    driver,
                };
                Ok(Lent::first(sender, wire, name, home))
            }
            (ConnectionUse::Named(named), Protocol::H1) => {
                let slot = Arc::clone(lock(&self.named).entry(named.clone()).or_default());
                let mut slot = slot.lock_owned().await;
                match slot
                    .take()
                    .filter(|kept| !kept.sender.is_closed() && !kept.wire.spent())
                {
                    Some(kept) => Ok(Lent::again(kept, |driver| Home::Named { slot, driver })),
                    None => {
                        let (sender, wire, name, driver) = self.open(request, attempt).await?;
                        Ok(Lent::first(sender, wire, name, Home::Named { slot, driver }))
                    }
                }
            }
            (key @ (ConnectionUse::Pool(_) | ConnectionUse::Named(_)), Protocol::H2) => {
                let slot = Arc::clone(lock(&self.h2).entry(key.clone()).or_default());
                let mut slot = slot.lock().await;
                let standing = slot.as_ref().filter(|c| !c.sender.is_closed() && !c.wire.spent());
                let (shared, fresh) = match standing {
                    Some(shared) => (Arc::clone(shared), false),
                    None => {
                        let (sender, wire, name, driver) = self.open(request, attempt).await?;
                        let Sender::H2(sender) = sender else {
                            return Err(Fault::new(crate::evidence::client::Outcome::TlsError, "no HTTP/2"));
                        };
                        let shared = Arc::new(Shared {
                            sender,
                            wire,
                            name,
                            served: AtomicU32::new(0),
                            _driver: driver,
                        });
                        *slot = Some(Arc::clone(&shared));
                        (shared, true)
                    }
                };
                Ok(Lent {
                    sender: Sender::H2(shared.sender.clone()),
                    wire: Arc::clone(&shared.wire),
                    name: shared.name,
                    ordinal: shared.served.fetch_add(1, Ordering::Relaxed) + 1,
                    fresh,
                    home: Home::Shared { _held: shared },
                })
            }
        }
    }

    /// The response was whole: a connection that can be used again goes back.
    pub(super) fn give_back(&self, lent: Lent) {
        let Lent {
            sender,
            wire,
            name,
            ordinal,
            home,
            fresh: _,
        } = lent;
        let Sender::H1(sender) = sender else { return };
        if sender.is_closed() || wire.spent() {
            return;
        }
        let kept = |driver| Kept {
            sender,
            wire,
            name,
            served: ordinal,
            driver,
        };
        match home {
            Home::Nowhere { _driver } => (),
            Home::Pool { name, driver } => lock(&self.idle).entry(name).or_default().push(kept(driver)),
            Home::Named { mut slot, driver } => *slot = Some(kept(driver)),
            Home::Shared { _held } => (),
        }
    }

    fn idle(&self, pool: &str) -> Option<Kept> {
        let mut idle = lock(&self.idle);
        let kept = idle.get_mut(pool)?;
        kept.retain(|kept| !kept.sender.is_closed() && !kept.wire.spent());
        kept.pop()
    }

    async fn open(
        &self,
        request: &HttpRequest,
        attempt: &mut Attempt,
    ) -> Result<(Sender, Arc<Wire>, Name, AbortOnDropHandle<()>), Fault> {
        let tls = self.tls.as_ref().map(|connectors| match request.protocol {
            Protocol::H1 => &connectors.h1,
            Protocol::H2 => &connectors.h2,
        });
        let slow = request.read_rate.is_some();
        let opened = connect::open(&self.entry, tls, request.protocol, slow, &self.clock, attempt).await?;
        let name = Name {
            id: self.count.fetch_add(1, Ordering::Relaxed) + 1,
            local_port: opened.local_port,
            remote: opened.remote,
        };
        Ok((opened.sender, opened.wire, name, opened.driver))
    }
}

impl Lent {
    fn first(sender: Sender, wire: Arc<Wire>, name: Name, home: Home) -> Self {
        Self {
            sender,
            wire,
            name,
            ordinal: 1,
            fresh: true,
            home,
        }
    }

    fn again(kept: Kept, home: impl FnOnce(AbortOnDropHandle<()>) -> Home) -> Self {
        Self {
            sender: Sender::H1(kept.sender),
            wire: kept.wire,
            name: kept.name,
            ordinal: kept.served.saturating_add(1),
            fresh: false,
            home: home(kept.driver),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
