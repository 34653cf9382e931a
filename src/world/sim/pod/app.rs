//! The application: what its paths answer, and how it ends.
//!
//! `/` answers at once, `/sleep?seconds=N` after N seconds, `/stream?seconds=N` begins at once and ends after N seconds,
//! `/download?mb=N` is a large body (64 MB), `/events` is an event stream that the application ends when its pod
//! drains. Everything else is 404.

use super::super::model::Model;
use super::exchange::{Event, ExchangeId};
use super::{PodId, Role};
use crate::time::Duration;

/// How a path is answered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Plan {
    status: u16,
    /// The response begins after this time, if not together with its end.
    head: Option<Duration>,
    /// The response ends after this time; `None`: when the pod drains, or when the client has taken the body.
    end: Option<Duration>,
    body: u64,
}

/// A number in a query: `seconds=1.5`. What is no number counts as missing.
fn number(path: &str, key: &str) -> Option<f64> {
    let (_, query) = path.split_once('?')?;
    let value = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))?;
    value.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0)
}

fn plan(path: &str) -> Plan {
    let route = path.split('?').next().unwrap_or_default();
    let seconds = Duration::from_secs_f64(number(path, "seconds").unwrap_or(0.0));
    let whole = |status, end, body| Plan {
        status,
        head: None,
        end: Some(end),
        body,
    };
    match route {
        "/" => whole(200, Duration::ZERO, 12),
        "/sleep" => whole(200, seconds, 25 + path.len() as u64),
        "/stream" => {
            let body = 64 * (seconds.as_secs_f64() as u64).max(1);
            Plan {
                status: 200,
                head: Some(Duration::ZERO),
                end: Some(seconds),
                body,
            }
        }
        "/download" => {
            let megabytes = number(path, "mb").unwrap_or(64.0);
            Plan {
                status: 200,
                head: Some(Duration::ZERO),
                end: None,
                body: (megabytes * 1e6) as u64,
            }
        }
        "/events" => Plan {
            status: 200,
            head: Some(Duration::ZERO),
            end: None,
            body: 0,
        },
        "/ready" => whole(200, Duration::ZERO, 3),
        _ => whole(404, Duration::ZERO, 10),
    }
}

impl Model {
    /// The application begins to work on a request.
    pub(super) fn app_serves(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let (pod, path, rate) = (e.pod, e.path.clone(), e.drained_at);
        let plan = plan(&path);
        self.exchanges[id.0].status = plan.status;
        self.exchanges[id.0].body = plan.body;
        self.pods[pod.0].working.push(id);
        let work = self.dice.spread(60, 300, 1_500);
        if let Some(head) = plan.head {
            self.exchange_soon(id, head + work, Event::Head);
        }
        if let Some(seconds) = path.strip_prefix("/sleep").and(number(&path, "seconds")) {
            self.write_stamped(pod, Role::App, &format!("event=sleep_start seconds={seconds}"));
        }
        let end = match plan.end {
            Some(end) => end,
            // The last byte leaves Envoy when all but what the buffers hold was taken.
            None if plan.body > 0 => {
                let rate = rate.unwrap_or(200e6);
                Duration::from_secs_f64((plan.body as f64 - 1_500_000.0).max(0.0) / rate)
            }
            None => {
                if self.pods[pod.0].closing {
                    self.app_ends_stream(id);
                }
                return;
            }
        };
        let overhead = self.dice.spread(100, 1_000, 9_000);
        self.exchange_soon(id, end + work + overhead, Event::Answered);
    }

    /// The application has answered.
    pub(super) fn app_answered(&mut self, id: ExchangeId) {
        let e = &self.exchanges[id.0];
        let (pod, path) = (e.pod, e.path.clone());
        if let Some(seconds) = path.strip_prefix("/sleep").and(number(&path, "seconds")) {
            let closing = if self.pods[pod.0].closing { "True" } else { "False" };
            self.write_stamped(
                pod,
                Role::App,
                &format!("event=sleep_end seconds={seconds} closing={closing}"),
            );
        }
        if path.starts_with("/events") {
            self.exchange_body_so_far(id);
            let sent = self.exchanges[id.0].body_sent;
            self.exchanges[id.0].body = sent;
        }
        self.app_may_leave(pod);
    }

    /// The pod drains: the application ends its event streams at their next event, within a second.
    pub(super) fn app_drains(&mut self, pod: PodId) {
        self.pods[pod.0].closing = true;
        for id in self.pods[pod.0].working.clone() {
            if self.exchanges[id.0].path.starts_with("/events") {
                self.app_ends_stream(id);
            }
        }
    }

    fn app_ends_stream(&mut self, id: ExchangeId) {
        let wait = self.dice.micros(5_000, 1_000_000);
        self.exchange_soon(id, wait, Event::Answered);
    }

    /// The application's process ends with work in hand: Envoy answers for it.
    pub(super) fn app_exits(&mut self, pod: PodId) {
        for id in std::mem::take(&mut self.pods[pod.0].working) {
            self.exchange_fails(
                id,
                "UC",
                "upstream_reset_before_response_started{connection_termination}",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(plan("/sleep?seconds=1.5&id=r1").end, Some(Duration::from_millis(1_500)));
        assert_eq!(plan("/sleep?seconds=x").end, Some(Duration::ZERO));
        assert_eq!(plan("/events").end, None);
        assert_eq!(plan("/nothing").status, 404);
        assert_eq!(plan("/download?mb=2").body, 2_000_000);
    }
}
