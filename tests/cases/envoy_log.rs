use gtrun::evidence::NoteKind;
use gtrun::evidence::envoy_log::{EnvoyEvent, EnvoyRequest};

use crate::{at, notes, read, stamp};

fn requests(file: &str) -> Vec<EnvoyRequest> {
    read(&[(file, "envoy.log")]).envoy_logs.remove(0).requests
}

#[test]
fn case_24_istios_line_and_its_flags() {
    let found: Vec<_> = requests("24-istio-text-line-and-flags/access.log")
        .iter()
        .map(|r| {
            (
                stamp(r.started),
                r.path.as_deref().expect("a path").to_owned(),
                r.status.unwrap_or(0),
                r.flags.iter().map(|f| f.to_string()).collect::<Vec<_>>().join(" "),
                r.details.as_deref().expect("details").to_owned(),
                r.bytes_sent.expect("bytes"),
                r.duration.expect("a duration").as_nanos() / 1_000_000,
            )
        })
        .collect();
    let refused =
        "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}";
    let expected = [
        ("09:08.695", "/to?seconds=3", 504, "UT", "response_timeout", 24, 1000),
        ("09:43.049", "/sleep?seconds=1", 200, "", "via_upstream", 6, 1003),
        (
            "09:44.364",
            "/sleep?seconds=20",
            0,
            "DC",
            "downstream_remote_disconnect",
            0,
            995,
        ),
        ("09:46.385", "/s", 200, "", "via_upstream", 3, 1),
        (
            "09:44.367",
            "/stream?seconds=20",
            200,
            "UPE",
            "upstream_reset_after_response_started{protocol_error}",
            10,
            2024,
        ),
        (
            "09:44.365",
            "/sleep?seconds=20",
            503,
            "UC",
            "upstream_reset_before_response_started{connection_termination}",
            95,
            2025,
        ),
        ("09:47.438", "/nohost", 503, "UH", "no_healthy_upstream", 19, 0),
        ("09:47.449", "/refused", 503, "URX UF", refused, 121, 8),
        ("09:47.470", "/nope", 404, "NR", "route_not_found", 0, 0),
        ("09:47.478", "/s", 503, "UF", refused, 98, 0),
    ]
    .map(|(t, path, code, flags, details, bytes, ms)| {
        let t = format!("2026-11-29T16:{t}Z");
        (
            t,
            path.to_owned(),
            code,
            flags.to_owned(),
            details.to_owned(),
            bytes,
            ms,
        )
    });
    assert_eq!(found, expected);
    let first = &requests("24-istio-text-line-and-flags/access.log")[0];
    assert_eq!(
        first.downstream.map(|e| e.to_string()).as_deref(),
        Some("127.0.0.1:54908")
    );
    assert_eq!(first.local.map(|e| e.to_string()).as_deref(), Some("127.0.0.1:15006"));
    assert_eq!(
        first.upstream.map(|e| e.to_string()).as_deref(),
        Some("127.0.0.1:18105")
    );
    assert_eq!(first.cluster.as_deref(), Some("inbound|8080||"));
    assert_eq!(
        first.request_id.as_deref(),
        Some("fb7025d3-e337-4468-88ad-a2bce13ecd71")
    );
}

#[test]
fn case_24_envoys_own_default_line() {
    let r = &requests("24-istio-text-line-and-flags/envoy-default.log")[0];
    assert_eq!(
        (r.status, r.flags.len(), r.protocol.as_deref()),
        (Some(204), 0, Some("HTTP/2"))
    );
    assert_eq!(r.duration.map(|d| d.as_nanos()), Some(31_000_000));
    assert_eq!(r.upstream.map(|e| e.to_string()).as_deref(), Some("198.51.100.7:80"));
    assert_eq!(
        (r.method.as_deref(), r.path.as_deref()),
        (Some("POST"), Some("/v1/orders"))
    );
    // It has no peer, so that nothing is matched by a port.
    assert_eq!((r.downstream, r.details.as_deref()), (None, None));
}

#[test]
fn case_26_the_stamp_is_the_start() {
    let r = &requests("26-stamp-is-start-not-end/access.log")[0];
    assert_eq!(stamp(r.started), "2026-05-31T07:12:00Z");
    assert!(r.ended.contains(at("2026-05-31T07:13:00.008Z")), "{}", r.ended);
    let delete = gtrun::time::Bracket::new(at("2026-05-31T07:12:04.999Z"), at("2026-05-31T07:12:05Z"));
    let down = gtrun::time::Bracket::new(at("2026-05-31T07:13:01.999Z"), at("2026-05-31T07:13:02Z"));
    assert!(r.started.surely_before(delete) && delete.surely_before(r.ended) && r.ended.surely_before(down));
}

#[test]
fn case_28_both_cuts_are_read_and_none_is_judged() {
    let found: Vec<_> = requests("28-dc-may-be-the-lb/access.log")
        .iter()
        .map(|r| {
            (
                stamp(r.ended),
                r.status,
                r.flags[0].to_string(),
                r.downstream.map(|e| e.ip().to_string()),
            )
        })
        .collect();
    let ip = |t: &str| Some(t.to_owned());
    assert_eq!(
        found,
        [
            (
                "2026-05-31T07:12:09.020Z".into(),
                None,
                "DC".into(),
                ip("203.0.113.211")
            ),
            ("2026-05-31T07:12:36.001Z".into(), None, "DC".into(), ip("203.0.113.9")),
        ]
    );
}

#[test]
fn case_30_agent_lines_in_any_order() {
    let evidence = read(&[("30-agent-drain-lines-newest-first/istio-proxy.log", "istio-proxy.log")]);
    let mut lines: Vec<_> = evidence.envoy_logs[0]
        .lines
        .iter()
        .map(|l| (stamp(l.at), l.what.clone()))
        .collect();
    lines.sort_by_key(|(t, _)| at(t));
    let first = |what: &EnvoyEvent| lines.iter().find(|(_, w)| w == what).map(|(t, _)| t.as_str());
    assert_eq!(first(&EnvoyEvent::AgentDrain), Some("2026-05-31T07:12:41.874190Z"));
    assert_eq!(
        first(&EnvoyEvent::AgentActive(Some(0))),
        Some("2026-05-31T07:12:58.880417Z")
    );
    assert_eq!(
        lines.last().map(|(t, w)| (t.as_str(), w.clone())),
        Some(("2026-05-31T07:12:58.881102Z", EnvoyEvent::Exiting))
    );
    // Connections are not requests: no access line, so nothing to read active_zero from.
    assert!(evidence.envoy_logs[0].requests.is_empty());
}

#[test]
fn case_32_three_layouts_and_a_dump_in_one_log() {
    let evidence = read(&[("32-proxy-log-three-layouts/mixed.log", "envoy.log")]);
    let lines: Vec<_> = evidence.envoy_logs[0]
        .lines
        .iter()
        .map(|l| (stamp(l.at), l.what.clone()))
        .collect();
    assert_eq!(
        lines,
        [
            ("2026-05-31T07:12:41.882Z".to_owned(), EnvoyEvent::AgentDrain),
            ("2026-05-31T07:12:41.883Z".to_owned(), EnvoyEvent::Sigterm),
        ]
    );
    // The bracket layout has no zone: UTC is assumed and said; the dump's lines are no errors.
    assert!(notes(&evidence, NoteKind::Remark).iter().any(|n| n.contains("UTC")));
    assert!(notes(&evidence, NoteKind::Incomplete).is_empty());
}
