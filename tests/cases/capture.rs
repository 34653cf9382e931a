use gtrun::evidence::capture::Capture;
use gtrun::evidence::{Evidence, NoteKind};

use crate::{notes, read, stamp};

fn only(evidence: &Evidence) -> &Capture {
    assert_eq!(evidence.captures.len(), 1);
    &evidence.captures[0]
}

fn resets(capture: &Capture) -> Vec<(String, String)> {
    capture
        .packets
        .iter()
        .filter(|p| p.flags.rst)
        .map(|p| (stamp(p.at), format!("{}>{}", p.from, p.to)))
        .collect()
}

#[test]
fn case_34_every_reset_is_there_with_its_flow() {
    let broken = read(&[("34-health-check-resets/broken.pcap", "rst-lb.pcap")]);
    let found = resets(only(&broken));
    assert_eq!(found.len(), 15);
    assert_eq!(
        found[0],
        (
            "2026-11-29T16:07:32.788022Z".into(),
            "127.0.0.1:59652>127.0.0.1:18102".into()
        )
    );
    assert_eq!(
        found[9],
        (
            "2026-11-29T16:07:34.800154Z".into(),
            "127.0.0.1:59636>127.0.0.1:18102".into()
        )
    );
    // The flow of a check begins and ends within the capture; that of a request in flight began before.
    let opened = |port: u16| {
        only(&broken)
            .packets
            .iter()
            .any(|p| p.flags.syn && p.from.port() == port)
    };
    assert!(opened(59_652));
    let graceful = read(&[("34-health-check-resets/graceful-like.pcap", "rst-lb.pcap")]);
    assert_eq!(resets(only(&graceful)).len(), 12);
}

#[test]
fn case_36_one_capture_in_four_containers() {
    let expected = resets(only(&read(&[(
        "36-pcapng-nanosecond-bigendian/le-us.pcap",
        "rst-lb.pcap",
    )])));
    assert_eq!(expected.len(), 15);
    assert_eq!(expected[0].0, "2026-11-29T16:07:32.788022Z");
    assert_eq!(expected[14].0, "2026-11-29T16:07:35.802176Z");
    for file in ["le-ns.pcap", "be-us.pcap", "ng-named.pcap"] {
        let evidence = read(&[(&format!("36-pcapng-nanosecond-bigendian/{file}"), "rst-lb.pcap")]);
        assert_eq!(resets(only(&evidence)), expected, "{file}");
        assert!(
            !only(&evidence).losses.cut && evidence.notes.is_empty(),
            "{file}: {:?}",
            evidence.notes
        );
    }
}

#[test]
fn case_38_a_capture_through_a_terminal_is_damaged() {
    let evidence = read(&[("38-capture-through-a-tty/crlf.pcap", "rst-lb.pcap")]);
    let capture = only(&evidence);
    assert!(
        capture.packets.is_empty() && capture.losses.cut,
        "nothing of it can be trusted"
    );
    let said = notes(&evidence, NoteKind::Unreadable);
    assert!(
        said.iter().any(|n| n.contains("CR/LF") && n.contains("base64")),
        "{said:?}"
    );

    let evidence = read(&[("38-capture-through-a-tty/banner.pcap", "rst-lb.pcap")]);
    assert!(!only(&evidence).packets.is_empty());
    assert!(notes(&evidence, NoteKind::Remark).iter().any(|n| n.contains("text")));
}

#[test]
fn case_40_what_tcpdump_says_of_its_losses() {
    let losses = |err: &str| {
        let evidence = read(&[
            ("36-pcapng-nanosecond-bigendian/le-us.pcap", "rst-lb.pcap"),
            (&format!("40-kernel-drops-and-no-rst/{err}"), "rst-lb.err"),
        ]);
        let said = evidence
            .notes
            .iter()
            .map(|n| n.text.clone())
            .collect::<Vec<_>>()
            .join("; ");
        (only(&evidence).losses.clone(), said)
    };
    let (clean, said) = losses("clean.err");
    assert_eq!(
        (clean.listening, clean.captured, clean.dropped_by_kernel),
        (Some(true), Some(616), Some(0))
    );
    assert_eq!(said, "");
    let (dropped, said) = losses("dropped.err");
    assert_eq!((dropped.captured, dropped.dropped_by_kernel), (Some(7), Some(1)));
    assert!(said.contains("dropped"));
    let (wrapped, said) = losses("wrapped.err");
    assert_eq!((wrapped.captured, wrapped.dropped_by_kernel), (Some(0), Some(0)));
    assert!(said.contains("nonsense"), "{said}");
    // Killed: it listened, and said nothing of its losses.
    let (killed, _) = losses("killed.err");
    assert_eq!(
        (killed.listening, killed.captured, killed.dropped_by_kernel),
        (Some(true), None, None)
    );
}
