//! The health checker: the page that the load balancer asks, and the state machine behind it.
//!
//! ```text
//! OPEN -- preStop --> DRAINING -- nothing in flight, or drain_max --> CLOSING -- lb_wait --> CLOSED
//! current:   503 from DRAINING on
//! improved:  200 until CLOSING, then 503
//! nolb:      404 from DRAINING on, 503 from CLOSING on
//! ```
//!
//! preStop hooks call `/terminate` and `/wait`; the latter answers once the machine is CLOSED.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use super::{AGENT_PORT, HC_PORT, admin, log, sigterm};
use crate::world::lab::world::{DrainListeners, Mode};

/// Time between two looks at Envoy's gauges.
const POLL: Duration = Duration::from_secs(1);
/// How far into the drain `drain_listeners: at_draining` strikes.
const EARLY_DRAIN: Duration = Duration::from_secs(2);

/// What the container's environment says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HcSettings {
    /// What the page says while draining.
    pub(crate) mode: Mode,
    /// Between CLOSING and CLOSED.
    pub(crate) lb_wait: Duration,
    /// The longest wait for zero.
    pub(crate) drain_max: Option<Duration>,
    /// When Envoy is told to drain its listeners.
    pub(crate) drain_listeners: DrainListeners,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fsm {
    Open,
    Draining,
    Closing,
    Closed,
}

impl Fsm {
    fn as_str(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Draining => "DRAINING",
            Self::Closing => "CLOSING",
            Self::Closed => "CLOSED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Page {
    state: Fsm,
    status: u16,
}

/// The machine. The page is a watch channel: requests read it, hooks wait for CLOSED on it.
struct HealthChecker {
    settings: HcSettings,
    page: watch::Sender<Page>,
    started: Mutex<bool>,
}

impl HealthChecker {
    fn new(settings: HcSettings) -> Self {
        Self {
            settings,
            page: watch::Sender::new(Page {
                state: Fsm::Open,
                status: 200,
            }),
            started: Mutex::new(false),
        }
    }

    fn transition(&self, to: Fsm) {
        log(&format!(
            "event=transition from={} to={}",
            self.page.borrow().state.as_str(),
            to.as_str()
        ));
        self.page.send_modify(|p| p.state = to);
    }

    fn flip(&self, to: u16) {
        let from = self.page.borrow().status;
        if from != to {
            log(&format!("event=health from={from} to={to}"));
            self.page.send_modify(|p| p.status = to);
        }
    }

    async fn drain_listeners(&self) {
        match admin::drain_listeners().await {
            Ok((status, said)) => log(&format!("event=drain_listeners status={status} body='{}'", said.trim())),
            Err(why) => log(&format!("event=drain_listeners_error err='{why}'")),
        }
    }

    /// From OPEN to CLOSED.
    async fn drain(&self) {
        let settings = self.settings;
        self.transition(Fsm::Draining);
        match settings.mode {
            Mode::Current => self.flip(503),
            Mode::Improved => {}
            Mode::Nolb => self.flip(404),
        }
        let begun = Instant::now();
        let mut early = settings.drain_listeners == DrainListeners::AtDraining;
        loop {
            if early && begun.elapsed() >= EARLY_DRAIN {
                early = false;
                self.drain_listeners().await;
            }
            match admin::in_flight().await {
                Ok(now) => {
                    log(&format!(
                        "event=poll downstream={} upstream={}",
                        now.downstream, now.upstream
                    ));
                    if now.downstream + now.upstream == 0 {
                        break;
                    }
                }
                Err(why) => log(&format!("event=poll_error err='{why}'")),
            }
            if settings.drain_max.is_some_and(|max| begun.elapsed() >= max) {
                log("event=drain_timeout");
                break;
            }
            sleep(POLL).await;
        }
        self.transition(Fsm::Closing);
        self.flip(503);
        if settings.drain_listeners == DrainListeners::AtClosing {
            self.drain_listeners().await;
        }
        sleep(settings.lb_wait).await;
        self.transition(Fsm::Closed);
    }

    /// What HAProxy's agent check hears.
    fn agent_word(&self) -> &'static str {
        match self.page.borrow().state {
            Fsm::Open => "ready\n",
            Fsm::Draining | Fsm::Closing | Fsm::Closed => "drain\n",
        }
    }
}

type Shared = Arc<HealthChecker>;

async fn page(State(hc): State<Shared>) -> (StatusCode, String) {
    let page = *hc.page.borrow();
    (
        StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        format!("{}\n", page.state.as_str()),
    )
}

fn who(query: &HashMap<String, String>) -> &str {
    query.get("who").map_or("unknown", String::as_str)
}

async fn terminate(State(hc): State<Shared>, Query(query): Query<HashMap<String, String>>) -> &'static str {
    let mut started = hc.started.lock().await;
    log(&format!("event=prestop who={}", who(&query)));
    if !*started {
        *started = true;
        let hc = Arc::clone(&hc);
        tokio::spawn(async move { hc.drain().await });
    }
    "draining\n"
}

/// Holds whoever asks until the machine is CLOSED. The container that began the drain has said so already.
async fn wait(State(hc): State<Shared>, Query(query): Query<HashMap<String, String>>) -> &'static str {
    if who(&query) != "hc" {
        log(&format!("event=hold who={}", who(&query)));
    }
    let mut page = hc.page.subscribe();
    let _ = page.wait_for(|p| p.state == Fsm::Closed).await;
    "closed\n"
}

async fn agent(hc: Shared, listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let word = hc.agent_word();
        tokio::spawn(async move { stream.write_all(word.as_bytes()).await });
    }
}

/// Serves until SIGTERM.
///
/// # Errors
/// A port is taken.
pub(crate) async fn run(settings: HcSettings) -> std::io::Result<()> {
    let hc: Shared = Arc::new(HealthChecker::new(settings));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, HC_PORT)).await?;
    tokio::spawn(agent(
        Arc::clone(&hc),
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, AGENT_PORT)).await?,
    ));
    let routes = Router::new()
        .route("/health_check.html", get(page))
        .route("/terminate", post(terminate))
        .route("/wait", get(wait))
        .with_state(hc);
    log(&format!("event=start state=OPEN mode={}", settings.mode.as_str()));
    tokio::select! {
        served = axum::serve(listener, routes).into_future() => served,
        () = sigterm() => {
            log("event=sigterm");
            Ok(())
        }
    }
}
