//! A whole watch file: what lies between an event and the last contact before it.

use std::io::{self, BufRead};

use super::parse::{ParsedEvent, parse_event};
use super::{Watch, WatchChange, WatchEvent};
use crate::evidence::lines::Lines;
use crate::evidence::reading::Reading;
use crate::evidence::thinning::room;
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Duration, Instant};

/// Events of a list arrive together; a longer pause ends the list.
const LIST_PAUSE: Duration = Duration::from_secs(1);
/// No list takes longer than this.
const LIST_LONGEST: Duration = Duration::from_secs(5);

/// Reads a watch file.
pub(crate) fn read<R: BufRead>(source: R, file: FileId, reading: &mut Reading) -> io::Result<Watch> {
    let mut watch = Watch {
        file,
        events: Vec::new(),
    };
    let mut contact = Contact::default();
    let mut lines = Lines::new(source);
    let mut foreign = 0u32;
    let mut lost = 0;
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("a line of {length} bytes was skipped; an object of the API is never so large"),
            );
            continue;
        }
        if line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let event = match parse_event(line.bytes) {
            Ok(e) => e,
            Err(_) if line.unterminated => {
                reading.note(
                    file,
                    line.number,
                    NoteKind::Incomplete,
                    "the last line is cut and was not used",
                );
                continue;
            }
            Err(e) => {
                foreign += 1;
                reading.note(
                    file,
                    line.number,
                    NoteKind::Incomplete,
                    format!("not a watch event: {e}"),
                );
                continue;
            }
        };
        let arrival = event.arrival;
        let last_contact = contact.before(&event);
        if let Some(mut what) = event.change {
            if watch.events.len() == room::WATCH {
                lost += 1;
                continue;
            }
            if let WatchChange::Event(e) = &mut what {
                for text in [&mut e.reason, &mut e.message, &mut e.about] {
                    *text = reading.name(text);
                }
                e.about_uid = e.about_uid.as_deref().map(|uid| reading.name(uid));
            }
            if let WatchChange::Gap(reason) = &what {
                reading.note(
                    file,
                    line.number,
                    NoteKind::Incomplete,
                    format!(
                        "the watch broke ({reason}): what changed until the next list is known by its outcome only"
                    ),
                );
            }
            watch.events.push(WatchEvent {
                last_contact,
                arrival,
                place: Place {
                    file,
                    line: line.number,
                },
                what,
            });
        }
    }
    reading.thinned(file, "events", 0, lost);
    if watch.events.is_empty() && foreign > 0 {
        reading.note_file(
            file,
            NoteKind::Unreadable,
            "no line is a watch event; record them as JSON with an arrival stamp, not as kubectl's table",
        );
    }
    Ok(watch)
}

/// Follows when the watch was last known to be in contact.
#[derive(Default)]
struct Contact {
    /// Arrival of the latest event.
    latest: Option<Instant>,
    /// The latest arrival before that: events of one arrival came in one piece.
    before_latest: Option<Instant>,
    /// While the state of things comes in at the start or after a gap.
    catching_up: Option<CatchingUp>,
    started: bool,
}

/// A list, or the events that were missed, come in one after the other: each tells of a change since `since`.
#[derive(Clone, Copy, Default)]
struct CatchingUp {
    /// Last contact before; `None` at the start of the file.
    since: Option<Instant>,
    /// Arrival of its first event.
    begun: Option<Instant>,
}

impl Contact {
    /// The last contact before this event, which then is one itself.
    fn before(&mut self, event: &ParsedEvent) -> Option<Instant> {
        if !self.started {
            self.started = true;
            self.catching_up = Some(CatchingUp::default());
        }
        if matches!(event.change, Some(WatchChange::Gap(_))) {
            // An error is no contact with the state of things. A list that broke off did not show everything, so
            // that what counts is the contact before it; at the start there is only what it showed.
            self.catching_up = Some(CatchingUp {
                since: self.catching_up.and_then(|c| c.since).or(self.latest),
                begun: None,
            });
            return self.latest;
        }
        if let Some(mut list) = self.catching_up {
            let begun = *list.begun.get_or_insert(event.arrival);
            let flowing =
                self.latest.is_none_or(|t| event.arrival - t <= LIST_PAUSE) && event.arrival - begun <= LIST_LONGEST;
            let of_a_list = event.arrival == begun
                || match event.kind.as_str() {
                    "LISTED" => true,
                    "ADDED" | "CONTACT" | "BOOKMARK" => flowing,
                    // A list has none of these, but a watch that is resumed repeats those it has missed.
                    _ => flowing && list.since.is_some(),
                };
            if of_a_list {
                self.catching_up = Some(list);
                self.arrived(event.arrival);
                return list.since;
            }
            self.catching_up = None;
        }
        let last = if self.latest == Some(event.arrival) {
            self.before_latest
        } else {
            self.latest
        };
        self.arrived(event.arrival);
        last
    }

    fn arrived(&mut self, at: Instant) {
        if self.latest != Some(at) {
            self.before_latest = self.latest;
            self.latest = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn watch(text: &str) -> Watch {
        read(text.as_bytes(), FileId(0), &mut Reading::default()).expect("memory cannot fail")
    }

    fn contacts(text: &str) -> Vec<(Option<String>, String)> {
        let seconds = |t: Instant| t.to_rfc3339()[14..].to_owned();
        watch(text)
            .events
            .iter()
            .map(|e| (e.last_contact.map(seconds), seconds(e.arrival)))
            .collect()
    }

    fn line(at: &str, kind: &str) -> String {
        format!(
            "{{\"arrival\":\"2026-11-29T16:{at}Z\",\"type\":\"{kind}\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"name\":\"p\"}}}}}}\n"
        )
    }

    #[test]
    fn what_is_listed_at_the_start_is_older_than_the_watch() {
        let text = [
            line("56:30.1", "ADDED"),
            line("56:30.1", "ADDED"),
            line("56:30.2", "ADDED"),
            line("56:38", "MODIFIED"),
            line("56:38", "MODIFIED"),
            line("56:39", "ADDED"),
        ]
        .concat();
        let t = |s: &str| s.to_owned();
        assert_eq!(
            contacts(&text),
            [
                (None, t("56:30.100Z")),
                (None, t("56:30.100Z")),
                (None, t("56:30.200Z")),
                (Some(t("56:30.200Z")), t("56:38Z")),
                (Some(t("56:30.200Z")), t("56:38Z")),
                (Some(t("56:38Z")), t("56:39Z")),
            ]
        );
    }

    #[test]
    fn after_a_gap_the_last_good_event_counts() {
        let gap = "{\"arrival\":\"2026-11-29T16:56:40Z\",\"type\":\"GAP\",\"reason\":\"silent end\"}\n";
        let contact = "{\"arrival\":\"2026-11-29T16:56:41Z\",\"type\":\"CONTACT\"}\n";
        let text = [
            line("56:30", "ADDED"),
            line("56:38", "MODIFIED"),
            gap.to_owned(),
            contact.to_owned(),
            line("56:41.1", "MODIFIED"),
            line("56:45", "MODIFIED"),
        ]
        .concat();
        let t = |s: &str| s.to_owned();
        assert_eq!(
            contacts(&text)[2..],
            [
                (Some(t("56:38Z")), t("56:40Z")),
                (Some(t("56:38Z")), t("56:41.100Z")),
                (Some(t("56:41.100Z")), t("56:45Z")),
            ]
        );
    }

    #[test]
    fn a_table_of_kubectl_is_unreadable() {
        let mut reading = Reading::default();
        let text = "EVENT NAME READY\nADDED p 3/3\n";
        assert!(
            read(text.as_bytes(), FileId(0), &mut reading)
                .expect("io")
                .events
                .is_empty()
        );
        assert!(reading.into_notes().iter().any(|n| n.kind == NoteKind::Unreadable));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&text[..], FileId(0), &mut Reading::default());
        }
    }
}
