use gtrun::evidence::NoteKind;
use gtrun::evidence::pod_watch::WatchChange;
use gtrun::time::Duration;

use crate::{at, notes, read};

#[test]
fn case_41_a_pod_is_its_name_and_its_uid() {
    let evidence = read(&[("41-same-name-new-uid/watch.jsonl", "pod-watch.jsonl")]);
    let events = &evidence.watches[0].events;
    let gone: Vec<_> = events
        .iter()
        .filter_map(|e| match &e.what {
            WatchChange::PodDeleted(p) => Some((e.arrival, p.uid.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(gone, [(at("2026-05-31T07:13:32.951Z"), "aaaa-1")]);
    let of_the_new: Vec<_> = events
        .iter()
        .filter(|e| matches!(&e.what, WatchChange::Pod(p) if p.uid == "bbbb-2"))
        .collect();
    assert_eq!(of_the_new.len(), 2);
    let names: std::collections::BTreeSet<_> = events
        .iter()
        .filter_map(|e| match &e.what {
            WatchChange::Pod(p) | WatchChange::PodDeleted(p) => Some(p.name.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(names.len(), 1, "both have one name");
}

#[test]
fn case_48_what_changed_in_a_gap_is_not_stamped_by_the_list_after_it() {
    let evidence = read(&[("48-watch-gap-410/watch.jsonl", "pod-watch.jsonl")]);
    let events = &evidence.watches[0].events;
    assert!(matches!(&events[1].what, WatchChange::Gap(why) if why.contains("410")));
    let listed = &events[2];
    let WatchChange::Pod(pod) = &listed.what else {
        panic!("{listed:?}")
    };
    assert_eq!(listed.last_contact, Some(at("2026-05-31T07:12:29.200Z")));
    assert_eq!(listed.arrival, at("2026-05-31T07:12:36.000Z"));
    // The better source: deletionTimestamp is the request plus the grace period.
    let requested = pod.deletion.expect("terminating") - pod.grace.expect("grace");
    assert_eq!(
        (requested, pod.grace),
        (at("2026-05-31T07:12:30Z"), Some(Duration::from_secs(210)))
    );
    assert_eq!(notes(&evidence, NoteKind::Incomplete).len(), 1);
}
