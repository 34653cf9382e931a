//! HAProxy's own messages: states of servers, health checks, proxies. The words are those of `server.c` and
//! `check.c` of versions 1.8 to 3.4.

use std::sync::Arc;

use super::{HaproxyEvent, HealthCheck, ServerChange, ServerState};
use crate::evidence::reading::{Reading, excerpt, number};
use crate::time::Duration;

/// Reads a message that is no access line; `None` for any other.
pub(crate) fn parse(message: &[u8], names: &mut Reading) -> Option<HaproxyEvent> {
    // Access lines begin with a digit, a quote or a brace; only few letters begin a message.
    let text = match message.first()? {
        b'S' | b'B' | b'H' | b'A' | b'P' | b'b' | b'p' => std::str::from_utf8(message).ok()?,
        _ => return None,
    };
    let text = text.trim_end();
    let server = text.strip_prefix("Backup ").unwrap_or(text);
    if let Some(rest) = server.strip_prefix("Server ") {
        return server_state(rest, names);
    }
    if let Some(rest) = text.strip_prefix("Health check for ") {
        return health_check(rest, false, names);
    }
    if let Some(rest) = text.strip_prefix("Agent check for ") {
        return health_check(rest, true, names);
    }
    if let Some(rest) = text.strip_prefix("Proxy ").or_else(|| text.strip_prefix("proxy ")) {
        let (name, rest) = rest.split_once(' ')?;
        return if rest.starts_with("stopped") {
            Some(HaproxyEvent::ProxyStopped(names.name(name)))
        } else if rest.starts_with("started") {
            Some(HaproxyEvent::ProxyStarted(names.name(name)))
        } else if rest.starts_with("has no server available") {
            Some(HaproxyEvent::NoServer(names.name(name)))
        } else {
            None
        };
    }
    if let Some(rest) = text.strip_prefix("backend ") {
        let name = rest.strip_suffix(" has no server available!")?;
        return Some(HaproxyEvent::NoServer(names.name(name)));
    }
    None
}

/// `be/w1 is DOWN, ...`.
fn server_state(text: &str, names: &mut Reading) -> Option<HaproxyEvent> {
    let (name, rest) = text.split_once(' ')?;
    let (backend, server) = name.split_once('/')?;
    let to = change(rest)?;
    // The reason ends where the counts of servers begin.
    let reason = rest
        .split_once(", ")
        .filter(|(head, _)| !head.contains('.'))
        .map(|(_, r)| r)
        .or_else(|| rest.split_once('(').map(|(_, r)| r.split(')').next().unwrap_or(r)))
        .map(|r| r.strip_prefix("reason: ").unwrap_or(r))
        .map(|r| {
            let end = counts(r).unwrap_or(r.len());
            r[..end].trim_end_matches(['.', ' '])
        })
        .filter(|r| !r.is_empty())
        .map(|r| names.name(r));
    let sessions = rest.find(" sessions active").and_then(|at| {
        let before = &rest[..at];
        number(before.rsplit(' ').next()?.as_bytes())
    });
    Some(HaproxyEvent::ServerState(ServerState {
        backend: names.name(backend),
        server: names.name(server),
        to,
        reason,
        sessions,
    }))
}

/// Where `. 1 active and 0 backup servers left` begins.
fn counts(text: &str) -> Option<usize> {
    text.match_indices(". ").map(|(i, _)| i).find(|i| {
        let rest = &text[i + 2..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with(" active and ")
    })
}

fn change(rest: &str) -> Option<ServerChange> {
    if let Some(state) = rest.strip_prefix("is ") {
        // `UP/READY (leaving forced maintenance)`: the state by checks, and that of the administrator.
        if state.starts_with("going DOWN for maintenance") {
            return Some(ServerChange::Maint);
        }
        if state.starts_with("stopping") {
            return Some(ServerChange::Stopping);
        }
        if state.starts_with("running") {
            return Some(ServerChange::Running);
        }
        let leaving = |what: &str| state.contains("(leaving ") && state.contains(what);
        return match state.split([' ', ',', '.', '(']).next()? {
            "UP/DRAIN" | "DOWN/DRAIN" => Some(ServerChange::Drain),
            "UP/READY" => Some(ServerChange::Up),
            "DOWN/READY" => Some(ServerChange::LeavingMaint),
            "UP" | "DOWN" if leaving("drain") => Some(ServerChange::LeavingDrain),
            "UP" => Some(ServerChange::Up),
            "DOWN" if leaving("maintenance") => Some(ServerChange::LeavingMaint),
            "DOWN" if state.starts_with("DOWN via ") => Some(ServerChange::DownByTracking),
            "DOWN" => Some(ServerChange::Down),
            _ => None,
        };
    }
    if rest.starts_with("was DOWN and now enters maintenance") || rest.starts_with("enters maintenance") {
        return Some(ServerChange::Maint);
    }
    if rest.starts_with("enters drain state") || rest.starts_with("remains in forced drain") {
        return Some(ServerChange::Drain);
    }
    if rest.starts_with("administratively READY") {
        return Some(ServerChange::LeavingMaint);
    }
    None
}

/// `[backup ]server be/w1 failed, reason: ..., code: 503, info: "...", check duration: 1ms, status: 1/2 UP.`
fn health_check(text: &str, agent: bool, names: &mut Reading) -> Option<HaproxyEvent> {
    let text = text.strip_prefix("backup ").unwrap_or(text).strip_prefix("server ")?;
    let (name, rest) = text.split_once(' ')?;
    let (backend, server) = name.split_once('/')?;
    let (verdict, rest) = rest.split_once(',').unwrap_or((rest, ""));
    let ok = match verdict.trim_end_matches('.') {
        "failed" => false,
        "succeeded" | "conditionally succeeded" => true,
        _ => return None,
    };
    // `info` is text from outside: what follows it is found from the end.
    let (rest, status) = match rest.rfind(", status: ") {
        Some(at) => (&rest[..at], status(&rest[at + 10..], names)),
        None => (rest, None),
    };
    let (rest, duration) = match rest.rfind(", check duration: ") {
        Some(at) => (&rest[..at], rest[at + 18..].strip_suffix("ms")),
        None => (rest, None),
    };
    let (rest, _info) = rest.split_once(", info: ").unwrap_or((rest, ""));
    let (rest, code) = match rest.split_once(", code: ") {
        Some((rest, code)) => (rest, code.parse::<u16>().ok()),
        None => (rest, None),
    };
    let reason = rest.trim().strip_prefix("reason: ");
    Some(HaproxyEvent::HealthCheck(HealthCheck {
        backend: names.name(backend),
        server: names.name(server),
        ok,
        agent,
        reason: reason.map(|r| names.name(&excerpt(r.as_bytes(), 200))),
        // 0 is what an agent has.
        code: code.filter(|c| *c != 0),
        duration: duration
            .and_then(|d| d.parse::<i64>().ok())
            .filter(|d| (0..=86_400_000).contains(d))
            .map(Duration::from_millis),
        status,
    }))
}

/// `1/2 UP.`
fn status(text: &str, names: &mut Reading) -> Option<(i32, i32, Arc<str>)> {
    let (health, word) = text.split_once(' ')?;
    let (n, d) = health.split_once('/')?;
    Some((n.parse().ok()?, d.parse().ok()?, names.name(word.trim_end_matches('.'))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(text: &str) -> Option<HaproxyEvent> {
        parse(text.as_bytes(), &mut Reading::default())
    }

    fn state(text: &str) -> ServerState {
        match event(text) {
            Some(HaproxyEvent::ServerState(s)) => s,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_wording_of_a_servers_state() {
        for (text, to) in [
            (
                "is DOWN. 0 active and 0 backup servers left. 3 sessions active, 0 requeued",
                ServerChange::Down,
            ),
            (
                "is DOWN, reason: Layer4 timeout, check duration: 1001ms. 0 active",
                ServerChange::Down,
            ),
            ("is DOWN, changed from CLI. 1 active", ServerChange::Down),
            ("is DOWN via be/w2. 1 active", ServerChange::DownByTracking),
            ("is UP. 2 active", ServerChange::Up),
            (
                "is UP, reason: Layer7 check passed, code: 200, check duration: 3ms. 2 active",
                ServerChange::Up,
            ),
            ("is UP/READY (leaving forced maintenance).", ServerChange::Up),
            (
                "is DOWN/READY (leaving forced maintenance).",
                ServerChange::LeavingMaint,
            ),
            ("is UP/DRAIN (leaving forced maintenance).", ServerChange::Drain),
            ("is UP (leaving forced drain).", ServerChange::LeavingDrain),
            ("is DOWN (leaving forced drain).", ServerChange::LeavingDrain),
            ("is stopping. 0 active", ServerChange::Stopping),
            ("is going DOWN for maintenance. 1 active", ServerChange::Maint),
            ("is going DOWN for maintenance via be/w1. 1 active", ServerChange::Maint),
            ("was DOWN and now enters maintenance.", ServerChange::Maint),
            ("enters drain state. 1 active", ServerChange::Drain),
            ("remains in forced drain mode.", ServerChange::Drain),
            (
                "administratively READY thanks to valid DNS answer.",
                ServerChange::LeavingMaint,
            ),
        ] {
            assert_eq!(state(&format!("Server be/w1 {text}")).to, to, "{text}");
        }
        assert_eq!(event("Server be/w1 changed its IP from 10.0.0.1 to 10.0.0.2"), None);
        assert_eq!(state("Backup Server be/w1 is DOWN.").to, ServerChange::Down);
    }

    #[test]
    fn reason_and_sessions() {
        let s = state(
            "Server misc/agt is DOWN, reason: Layer7 wrong status, code: 0, info: \"via agent : down (app, draining \
             <22>v2<22>)\", check duration: 2ms. 3 active and 1 backup servers left. 7 sessions active, 0 requeued",
        );
        assert_eq!(s.sessions, Some(7));
        assert_eq!(
            s.reason.as_deref(),
            Some(
                "Layer7 wrong status, code: 0, info: \"via agent : down (app, draining <22>v2<22>)\", check duration: 2ms"
            )
        );
        let s = state(
            "Server be/w1 is DOWN. 0 active and 0 backup servers left. 1 sessions active, 0 requeued, 0 remaining in queue.",
        );
        assert_eq!((s.reason, s.sessions), (None, Some(1)));
    }

    #[test]
    fn health_checks() {
        let check = |text: &str| match event(text) {
            Some(HaproxyEvent::HealthCheck(c)) => c,
            other => panic!("{text}: {other:?}"),
        };
        let c = check(
            "Health check for server be/w1 failed, reason: Layer7 wrong status, code: 503, info: \"a, code: 1, status: 9/9 \
             X\", check duration: 12ms, status: 1/2 UP.",
        );
        assert_eq!(
            (c.ok, c.agent, c.code, c.duration),
            (false, false, Some(503), Some(Duration::from_millis(12)))
        );
        assert_eq!(c.reason.as_deref(), Some("Layer7 wrong status"));
        assert_eq!(
            c.status.map(|(a, b, w)| (a, b, w.to_string())),
            Some((1, 2, "UP".to_owned()))
        );
        assert!(
            check(
                "Health check for backup server be/w1 conditionally succeeded, reason: x, code: 404, status: 2/2 UP."
            )
            .ok
        );
        let c = check(
            "Health check for server be/w1 failed, reason: Socket error, info: \"Connection reset by peer\", check duration: 1ms, status: 1/2 UP.",
        );
        assert_eq!((c.code, c.answered()), (None, false));
    }

    #[test]
    fn proxies() {
        assert_eq!(
            event("Proxy istio-http-frontend stopped (cumulated conns: FE: 1, BE: 0)."),
            Some(HaproxyEvent::ProxyStopped("istio-http-frontend".into()))
        );
        assert_eq!(
            event("backend be has no server available!"),
            Some(HaproxyEvent::NoServer("be".into()))
        );
        assert_eq!(event("backend be was here"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(Server b/s |Health check for server b/s |Proxy |backend )?\\PC{0,80}") {
            let _ = event(&text);
        }
    }
}
