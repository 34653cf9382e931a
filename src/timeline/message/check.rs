//! Health checks seen by both ends, and the flips of the page.

use super::*;

/// Checks that were answered with another status than before: HAProxy logs each while the server is UP, Envoy has a
/// line of each. The first with a status on one side is the first with it on the other, and so on while both go on
/// with the same status.
pub(super) fn health_checks(evidence: &Evidence, site: &Site, log: Option<usize>, clocks: &Clocks, c: &mut Collector) {
    let Some(log) = log.map(|i| &evidence.haproxy_logs[i]) else {
        return;
    };
    for server in &site.servers {
        let pods: Vec<&SitePod> = site.pods_of(&server.name).filter(|p| p.envoy.is_some()).collect();
        let [pod] = pods[..] else { continue };
        let Some(envoy) = pod.envoy.map(|i| &evidence.envoy_logs[i]) else {
            continue;
        };
        let mut checks: Vec<&EnvoyRequest> = envoy
            .requests
            .iter()
            .filter(|r| site.is_check(r.path.as_deref()))
            .filter(|r| r.downstream.is_some_and(|d| site.lb_addresses.contains(&d.ip())))
            .collect();
        checks.sort_by_key(|r| (r.started.lo, r.place.line));
        let peers: BTreeSet<_> = checks.iter().filter_map(|r| r.downstream.map(|d| d.ip())).collect();
        if peers.len() != 1 {
            continue;
        }
        // Another proxy with a server of this name may check the same page.
        if checked_by_others(site, log, &server.name) {
            continue;
        }
        let answered = logged_checks(site, log, &server.name);
        let mut codes: Vec<u16> = answered.iter().filter_map(|(_, h)| h.code).collect();
        codes.dedup();
        for code in codes {
            // A status that comes twice could be another time of it.
            let of_code = |r: &&EnvoyRequest| r.status == Some(code);
            let Some(first) = checks.iter().position(of_code).filter(|i| *i > 0) else {
                continue;
            };
            let run = checks[first..].iter().take_while(|r| of_code(r)).count();
            if checks[first + run..].iter().any(|r| r.status == Some(code)) {
                continue;
            }
            let logged: Vec<_> = answered.iter().filter(|(_, h)| h.code == Some(code)).collect();
            // The first must be the change itself: health one below full, or the conditional success.
            let is_change = logged.first().is_some_and(|(_, h)| {
                h.ok || h
                    .status
                    .as_ref()
                    .is_some_and(|(n, of, word)| &**word == "UP" && *n == of - 1)
            });
            if !is_change {
                continue;
            }
            let exact = if logged[0].1.ok { 1 } else { logged.len() };
            for ((line, h), check) in logged.iter().take(exact).zip(&checks[first..first + run]) {
                let ended = clocks.sight(log.file, line.place.line, line.at);
                let took = h.duration.unwrap_or(Duration::ZERO) + Duration::from_millis(1);
                let begun = h.duration.and_then(|_| {
                    clocks.sight(
                        log.file,
                        line.place.line,
                        Bracket {
                            lo: line.at.lo.map(|t| t - took),
                            hi: line.at.hi,
                        },
                    )
                });
                let e = |at| clocks.sight(envoy.file, check.place.line, at);
                c.before(MessageKind::HealthCheck, begun, e(check.started), SCHEDULING);
                c.before(MessageKind::HealthCheck, e(check.ended), ended, SCHEDULING);
            }
        }
    }
}

/// A server of the same name in another proxy is told of in the log.
fn checked_by_others(site: &Site, log: &HaproxyLog, server: &str) -> bool {
    log.lines.iter().any(|l| match &l.what {
        HaproxyEvent::HealthCheck(h) => &*h.server == server && Some(&h.backend) != site.proxy.as_ref(),
        HaproxyEvent::ServerState(s) => &*s.server == server && Some(&s.backend) != site.proxy.as_ref(),
        HaproxyEvent::Request(_)
        | HaproxyEvent::ProxyStopped(_)
        | HaproxyEvent::ProxyStarted(_)
        | HaproxyEvent::NoServer(_) => false,
    })
}

/// A server's logged checks that were answered with another status than 200, from when its health was last full up
/// to its DOWN.
pub(super) fn logged_checks<'e>(
    site: &Site,
    log: &'e HaproxyLog,
    server: &str,
) -> Vec<(&'e HaproxyLine, &'e HealthCheck)> {
    let mut answered = Vec::new();
    let mut down = false;
    for line in &log.lines {
        match &line.what {
            HaproxyEvent::HealthCheck(h) if &*h.server == server && Some(&h.backend) == site.proxy.as_ref() => {
                if h.ok && h.code.is_none_or(|code| code < 400) {
                    answered.clear();
                    down = false;
                } else if !down && h.answered() && !h.agent {
                    answered.push((line, h));
                }
            }
            HaproxyEvent::ServerState(s) if &*s.server == server && Some(&s.backend) == site.proxy.as_ref() => {
                match s.to {
                    ServerChange::Down => down = true,
                    ServerChange::Up => {
                        answered.clear();
                        down = false;
                    }
                    ServerChange::DownByTracking
                    | ServerChange::Stopping
                    | ServerChange::Running
                    | ServerChange::Maint
                    | ServerChange::LeavingMaint
                    | ServerChange::Drain
                    | ServerChange::LeavingDrain => {}
                }
            }
            HaproxyEvent::HealthCheck(_)
            | HaproxyEvent::ServerState(_)
            | HaproxyEvent::Request(_)
            | HaproxyEvent::ProxyStopped(_)
            | HaproxyEvent::ProxyStarted(_)
            | HaproxyEvent::NoServer(_) => {}
        }
    }
    answered
}

/// The page answered 200 after the request for it began, and with a failure before that answer ended.
pub(super) fn health_flips(evidence: &Evidence, site: &Site, clocks: &Clocks, c: &mut Collector) {
    for pod in &site.pods {
        let (Some(envoy), Some(hc)) = (pod.envoy, pod.hc) else {
            continue;
        };
        let (envoy, hc) = (&evidence.envoy_logs[envoy], &evidence.hc_logs[hc]);
        let mut checks: Vec<_> = envoy
            .requests
            .iter()
            .filter(|r| site.is_check(r.path.as_deref()))
            .collect();
        checks.sort_by_key(|r| (r.started.lo, r.place.line));
        for line in &hc.lines {
            let HcEvent::Health { from: Some(from), to } = line.what else {
                continue;
            };
            // Once each way, else it could be another flip.
            let same = hc
                .lines
                .iter()
                .filter(|l| matches!(l.what, HcEvent::Health { to: t, .. } if t == to))
                .count();
            let first_new = checks.iter().position(|r| r.status == Some(to)).filter(|_| same == 1);
            let Some(first_new) = first_new else { continue };
            let flipped = clocks.sight(hc.file, line.place.line, line.at);
            let e = |r: &EnvoyRequest, at| clocks.sight(envoy.file, r.place.line, at);
            let new = checks[first_new];
            c.before(MessageKind::HealthFlip, flipped, e(new, new.ended), SCHEDULING);
            if let Some(old) = checks[..first_new].iter().rev().find(|r| r.status == Some(from)) {
                c.before(MessageKind::HealthFlip, e(old, old.started), flipped, SCHEDULING);
            }
        }
    }
}
