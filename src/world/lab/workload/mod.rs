//! The programs inside a pod: the application, the health checker with its state machine, and Envoy's configuration.
//! They are small and real: they listen, log, and end at SIGTERM.

pub(crate) mod admin;
pub(crate) mod app;
pub(crate) mod envoy;
pub(crate) mod hc;
pub(crate) mod hook;

use std::io::Write;

use chrono::{SecondsFormat, Utc};
use tokio::signal::unix::{SignalKind, signal};

/// The application, on loopback: requests reach it through Envoy only.
pub(crate) const APP_PORT: u16 = 8000;
/// The health checker, on loopback.
pub(crate) const HC_PORT: u16 = 8001;
/// HAProxy's agent check.
pub(crate) const AGENT_PORT: u16 = 8002;
/// Envoy's listener for requests and health checks.
pub(crate) const INGRESS_PORT: u16 = 8080;
/// Envoy's admin interface, on loopback: gauges and `drain_listeners`.
pub(crate) const ENVOY_ADMIN_PORT: u16 = 15000;
/// The sidecar's own readiness.
pub(crate) const ENVOY_READY_PORT: u16 = 15021;
/// The Host header of the health checks.
pub(crate) const SERVICE_HOST: &str = "service-a";

/// Writes a line of a workload's log: a stamp in UTC with milliseconds, a space, `key=value` words.
pub(crate) fn log(line: &str) {
    let stamp = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    // Nobody reads any more: the pod is being taken apart.
    let _ = writeln!(std::io::stdout().lock(), "{stamp} {line}");
}

/// Waits for SIGTERM, which is how the kubelet asks a container to end.
pub(crate) async fn sigterm() {
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    }
}
