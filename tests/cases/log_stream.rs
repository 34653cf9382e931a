use gtrun::evidence::hc_log::HcEvent;
use gtrun::evidence::{Evidence, NoteKind};

use crate::{notes, read, stamp};

fn transitions(evidence: &Evidence) -> Vec<(String, String, String)> {
    evidence.hc_logs[0]
        .lines
        .iter()
        .filter_map(|l| match &l.what {
            HcEvent::Transition { from, to } => Some((stamp(l.at), from.clone(), to.clone())),
            _ => None,
        })
        .collect()
}

fn owned(list: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    list.iter()
        .map(|(t, a, b)| ((*t).to_owned(), (*a).to_owned(), (*b).to_owned()))
        .collect()
}

#[test]
fn case_50_a_followers_words_are_not_the_applications() {
    let evidence = read(&[("50-follower-noise-in-the-stream/hc.log", "hc.log")]);
    assert_eq!(
        transitions(&evidence),
        owned(&[("2026-05-31T07:12:34Z", "OPEN", "CLOSING")])
    );
    assert_eq!(evidence.hc_logs[0].lines.len(), 1);
    assert!(evidence.hc_logs[0].follow_ended_early);
    assert_eq!(evidence.notes.len(), 4);
}

#[test]
fn case_51_one_fact_in_ten_costumes() {
    let evidence = read(&[("51-hc-line-shapes/hc.log", "hc.log")]);
    assert_eq!(
        transitions(&evidence),
        owned(&[
            ("2026-05-31T07:12:34.120Z", "OPEN", "CLOSING"),
            ("2026-05-31T07:12:35Z", "CLOSING", "CLOSED"),
            ("2026-05-31T07:12:36Z", "CLOSED", "OPEN"),
            ("2026-05-31T07:12:37.500Z", "OPEN", "CLOSING"),
            ("2026-05-31T07:12:38.250Z", "CLOSING", "CLOSED"),
            ("2026-05-31T07:12:39Z", "CLOSED", "OPEN"),
            ("2026-05-31T07:12:40Z", "OPEN", "CLOSING"),
            // Old names are kept as they are, and said.
            ("2026-05-31T07:12:42Z", "READY", "DRAINED_WAIT_LB"),
        ])
    );
    let unknown = notes(&evidence, NoteKind::UnknownName);
    assert!(unknown.iter().any(|n| n.contains("READY")) && unknown.iter().any(|n| n.contains("DRAINED_WAIT_LB")));
    // The message about a transition is none, and the cut last line is not CLOSED.
    let lines = &evidence.hc_logs[0].lines;
    assert!(
        lines
            .iter()
            .any(|l| l.place.line == 8 && matches!(l.what, HcEvent::Other(_)))
    );
    assert!(lines.iter().all(|l| l.place.line != 10));
    assert!(notes(&evidence, NoteKind::Incomplete).iter().any(|n| n.contains("cut")));
}
