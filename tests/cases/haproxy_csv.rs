use gtrun::evidence::NoteKind;
use gtrun::evidence::haproxy_csv::{ServerStatus, StatRow, StatusClass};

use crate::{case, notes, read};

fn rows(file: &str) -> Vec<StatRow> {
    let evidence = read(&[(file, "haproxy-stat-before.csv")]);
    evidence
        .haproxy_csv
        .iter()
        .flat_map(|s| &s.samples)
        .flat_map(|s| s.rows.clone())
        .collect()
}

#[test]
fn case_01_columns_are_found_by_name() {
    let only = |file: &str| {
        let rows = rows(&format!("01-csv-header-by-name/{file}"));
        assert_eq!(rows.len(), 1, "{file}");
        rows[0].clone()
    };
    let old = only("old-1.4.csv");
    assert_eq!(
        (&*old.server, old.status.class, old.scur),
        ("worker2", StatusClass::Up, Some(3))
    );
    assert_eq!(
        (old.lastchg, old.check_status.clone(), old.addr.clone()),
        (Some(254_029), None, None)
    );
    for file in ["haproxy-2.6.csv", "future.csv", "wrapped.csv"] {
        let row = only(file);
        assert_eq!(
            (&*row.server, row.status.class, row.scur),
            ("worker2", StatusClass::Up, Some(0)),
            "{file}"
        );
        assert_eq!(row.lastchg, Some(3), "{file}");
        assert_eq!(row.check_status.as_deref(), Some("L7OK"), "{file}");
        assert_eq!(row.addr.as_deref(), Some("127.0.0.1:18102"), "{file}");
    }
}

#[test]
fn case_04_an_empty_status_is_unknown() {
    let evidence = read(&[("04-csv-empty-status/empty-status.csv", "haproxy-stat-before.csv")]);
    let rows = &evidence.haproxy_csv[0].samples[0].rows;
    let found: Vec<_> = rows.iter().map(|r| (&*r.proxy, &*r.server, r.status.class)).collect();
    assert_eq!(
        found,
        [
            ("istio-ingress", "worker1", StatusClass::Up),
            ("istio-ingress", "worker2", StatusClass::Unknown),
        ]
    );
    assert!(!StatusClass::Unknown.is_down());
    assert_eq!(
        notes(&evidence, NoteKind::Incomplete).len(),
        1,
        "the row without a name is said"
    );
    assert_eq!(
        notes(&evidence, NoteKind::UnknownName).len(),
        1,
        "the row without a status is said"
    );
}

#[test]
fn case_05_every_status_word_has_a_class() {
    let words = std::fs::read_to_string(case("05-status-vocabulary/statuses.txt")).expect("statuses");
    let classes: Vec<_> = words.lines().map(|w| ServerStatus::parse(w).class).collect();
    use StatusClass::{ComingUp, Down, Drain, GoingDown, Maint, NoCheck, Nolb, NotAServer, Unknown, Up};
    assert_eq!(
        classes,
        [
            NotAServer, NotAServer, NotAServer, Up, GoingDown, GoingDown, NoCheck, Down, ComingUp, Down, Nolb, Nolb,
            Drain, Drain, Drain, Maint, Maint, Maint, Unknown,
        ]
    );
    // Neither of these looks like what it is: no new traffic, and a part of it.
    let weight0 = &rows("05-status-vocabulary/weight0.csv")[0];
    assert_eq!((weight0.status.class, weight0.weight), (StatusClass::Up, Some(0)));
    let slow = &rows("05-status-vocabulary/slowstart.csv")[0];
    assert_eq!((slow.status.class, slow.throttle), (StatusClass::Up, Some(7)));
}

#[test]
fn case_07_rows_are_told_apart_by_proxy_server_and_type() {
    let rows = rows("07-which-row-is-my-server/rows.csv");
    let down: Vec<_> = rows
        .iter()
        .filter(|r| !r.is_backend && r.status.class.is_down())
        .map(|r| (&*r.proxy, &*r.server))
        .collect();
    assert_eq!(
        down,
        [
            ("istio-http", "worker10"),
            ("istio-https", "worker1"),
            ("ssh", "worker1")
        ]
    );
    let of = |proxy: &str, server: &str| {
        rows.iter()
            .filter(|r| &*r.proxy == proxy && &*r.server == server)
            .map(|r| r.status.class)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("istio-http", "worker1"), [StatusClass::Up]);
    assert_eq!(of("istio-https", "worker1"), [StatusClass::Down]);
    assert!(rows.iter().all(|r| r.is_backend == (&*r.server == "BACKEND")));
}

#[test]
fn case_10_routing_goes_by_status_and_not_by_the_check() {
    let row = &rows("10-agent-up-masks-failed-check/agent.csv")[0];
    assert_eq!(row.status.class, StatusClass::Up);
    assert_eq!(row.check_status.as_deref(), Some("L4TOUT"));
    assert_eq!(row.agent_status.as_deref(), Some("L7OK"));
}
