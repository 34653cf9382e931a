use gtrun::evidence::haproxy_log::{HaproxyEvent, HaproxyRequest, ServerChange};
use gtrun::evidence::{Evidence, FileClock};
use gtrun::time::Duration;

use crate::{at, read, stamp};

fn requests(evidence: &Evidence) -> Vec<&HaproxyRequest> {
    evidence
        .haproxy_logs
        .iter()
        .flat_map(|l| &l.lines)
        .filter_map(|l| match &l.what {
            HaproxyEvent::Request(r) => Some(&**r),
            _ => None,
        })
        .collect()
}

#[test]
fn case_13_down_in_six_lines_is_down_in_three() {
    let evidence = read(&[("13-haproxy-down-line-variants/haproxy.log", "haproxy.log")]);
    let lines = &evidence.haproxy_logs[0].lines;
    let found: Vec<(String, String)> = lines
        .iter()
        .map(|l| match &l.what {
            HaproxyEvent::ServerState(s) => (format!("{:?}", s.to), format!("{}/{}", s.backend, s.server)),
            HaproxyEvent::HealthCheck(c) => (
                (if c.ok { "check passed" } else { "check failed" }).to_owned(),
                format!("{}/{}", c.backend, c.server),
            ),
            HaproxyEvent::NoServer(b) => ("no server".to_owned(), b.to_string()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [
        ("Drain", "misc/agdr"),
        ("check failed", "logchk/lc"),
        ("check failed", "logchk/lc"),
        ("Down", "logchk/lc"),
        ("no server", "logchk"),
        ("Down", "istio-ingress/worker2"),
        ("check passed", "logchk/lc"),
        ("Up", "logchk/lc"),
        ("Up", "istio-ingress/worker2"),
        ("Maint", "istio-ingress/worker2"),
        ("Maint", "misc/trk"),
        ("Up", "istio-ingress/worker1"),
        ("LeavingDrain", "istio-ingress/worker2"),
        ("Drain", "istio-ingress/worker2"),
        ("Stopping", "nolb/n1"),
        ("Down", "misc/agt"),
        ("Maint", "misc/bkp"),
        ("Maint", "dyn/w1"),
    ];
    assert_eq!(found, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let sessions: Vec<_> = lines
        .iter()
        .filter_map(|l| match &l.what {
            HaproxyEvent::ServerState(s) if s.to == ServerChange::Down && &*s.server == "worker2" => s.sessions,
            _ => None,
        })
        .collect();
    assert_eq!(sessions, [3]);
    assert!(lines.iter().all(|l| l.pid == Some(10_819)));
}

#[test]
fn case_15_the_end_is_the_start_and_the_total_time() {
    let evidence = read(&[("15-termination-state-and-end-time/haproxy.log", "haproxy.log")]);
    let found: Vec<_> = requests(&evidence)
        .iter()
        .map(|r| {
            (
                r.server.as_deref().expect("a server"),
                r.status,
                r.termination.to_string(),
                stamp(r.accepted),
                r.time_total.expect("Ta").as_nanos() / 1_000_000,
                r.termination.cut_by_down(),
            )
        })
        .collect();
    let expected = [
        ("worker2", 502, "DH--", "2026-11-29T16:07:32.521Z", 2277, true),
        ("worker2", 200, "DD--", "2026-11-29T16:07:32.521Z", 2277, true),
        ("worker2", 502, "DH--", "2026-11-29T16:07:32.517Z", 2280, true),
        ("worker1", 200, "----", "2026-11-29T16:07:32.517Z", 12_002, false),
        ("worker1", 200, "----", "2026-11-29T16:07:32.520Z", 12_001, false),
        ("worker1", 200, "----", "2026-11-29T16:07:32.520Z", 12_002, false),
    ]
    .map(|(server, status, term, start, ta, cut)| (server, Some(status), term.to_owned(), start.to_owned(), ta, cut));
    assert_eq!(found, expected);
    // The end, 34.798, lies in the second of the line's own stamp.
    let line = &evidence.haproxy_logs[0].lines[0];
    let end = requests(&evidence)[0].accepted.hi.expect("a stamp") + Duration::from_millis(2277);
    assert!(line.at.contains(end), "{} {end}", line.at);
    assert!(line.at.contains(at("2026-11-29T16:07:34.798Z")));
    // No zone is given anywhere: said, not assumed.
    assert_eq!(evidence.files[0].clock, FileClock::OwnUnknownZone);
}
