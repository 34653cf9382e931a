use gtrun::evidence::envoy_stats::{GaugeValues, Reading, parse_reply};
use gtrun::time::Duration;

use crate::{at, case, read};

fn reply(file: &str) -> Reading {
    parse_reply(&std::fs::read_to_string(case(file)).expect(file))
}

/// The two gauges of the application in Istio's names.
fn application(values: &GaugeValues) -> (Option<u64>, Option<u64>) {
    (
        values.get("http.inbound_0.0.0.0_8080;.downstream_rq_active").copied(),
        values.get("cluster.inbound|8080||.upstream_rq_active").copied(),
    )
}

#[test]
fn case_17_what_the_proxy_counts_of_itself_is_apart() {
    let Reading::Values(idle) = reply("17-admin-counts-itself/idle.txt") else {
        panic!("a reply");
    };
    assert_eq!(application(&idle), (Some(0), Some(0)));
    assert_eq!(idle.get("http.admin.downstream_rq_active"), Some(&1));
    assert_eq!(idle.get("cluster.xds-grpc.upstream_rq_active"), Some(&1));
    assert!(idle.keys().all(|k| !k.ends_with("_overflow")));
    // The scrape of another port has no gauge of the application: absent, not zero.
    let Reading::Values(scrape) = reply("17-admin-counts-itself/scrape-15090.prom") else {
        panic!("a reply");
    };
    assert_eq!(application(&scrape), (None, None));
}

#[test]
fn case_20_text_json_and_prometheus_agree() {
    for file in ["busy.txt", "busy.json", "busy.prom", "hist.txt", "hist.json"] {
        let Reading::Values(values) = reply(&format!("20-text-json-prometheus-agree/{file}")) else {
            panic!("{file}");
        };
        assert_eq!(application(&values), (Some(3), Some(3)), "{file}");
        assert_eq!(values.get("http.admin.downstream_rq_active"), Some(&1), "{file}");
    }
}

#[test]
fn case_21_a_record_has_one_stamp_and_many_lines() {
    let evidence = read(&[("21-multi-line-stat-in-tsv/envoy-active.tsv", "envoy-active.tsv")]);
    let found: Vec<_> = evidence.envoy_stats[0]
        .samples
        .iter()
        .map(|s| match &s.reading {
            Reading::Values(v) => (s.when.stamp.expect("a stamp"), s.when.resolution, application(v)),
            Reading::Unknown(why) => panic!("{why}"),
        })
        .collect();
    assert_eq!(
        found,
        [
            (at("2026-05-31T07:12:49Z"), Duration::from_secs(1), (Some(3), Some(3))),
            (at("2026-05-31T07:12:51Z"), Duration::from_secs(1), (Some(0), Some(0))),
        ]
    );
}
