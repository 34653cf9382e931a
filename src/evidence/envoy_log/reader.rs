//! A whole `envoy[-node].log`.

use std::io::{self, BufRead};

use super::access::{self, AccessLine, JsonKeys};
use super::{EnvoyEvent, EnvoyLine, EnvoyLog, EnvoyRequest, application};
use crate::evidence::arrival::Arrivals;
use crate::evidence::container_line::{self, FollowerNoise, Joiner};
use crate::evidence::json_object::Fields;
use crate::evidence::lines::Lines;
use crate::evidence::pattern::Matcher;
use crate::evidence::reading::Reading;
use crate::evidence::stamp::{self, Resolution, Stamp};
use crate::evidence::thinning::Keeper;
use crate::evidence::{FileId, LogMatch, NoteKind, Place};
use crate::time::{Bracket, Duration, Instant};

/// One line, read by itself.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedLine {
    /// An access line; `place` is not set.
    Request(Box<EnvoyRequest>),
    /// An application line that means something, with its stamp.
    Event(Bracket, EnvoyEvent),
}

/// Reads one line as it comes from the container's log; `None` for one of no interest.
pub fn parse_line(line: &[u8], keys: &JsonKeys) -> Option<ParsedLine> {
    let unwrapped = container_line::unwrap(line);
    if unwrapped.partial {
        return None;
    }
    match classify(&unwrapped.text, keys, &mut Reading::default()) {
        Class::Access(a) => {
            let mut request = a.request;
            complete(&mut request, a.stamp.resolution());
            Some(ParsedLine::Request(Box::new(request)))
        }
        Class::Application(stamp, Some(event)) => {
            Some(ParsedLine::Event(Bracket::floored(stamp.at, stamp.resolution()), event))
        }
        Class::Application(_, None) | Class::Other => None,
    }
}

enum Class {
    Access(AccessLine),
    Application(Stamp, Option<EnvoyEvent>),
    Other,
}

fn classify(text: &[u8], keys: &JsonKeys, names: &mut Reading) -> Class {
    if text.first() == Some(&b'{') {
        let Some(fields) = Fields::parse(text) else {
            return Class::Other;
        };
        if let Some(a) = access::json(&fields, keys, names) {
            return Class::Access(a);
        }
        return match application::json(&fields) {
            Some(l) => Class::Application(l.stamp, application::event(&l.message)),
            None => Class::Other,
        };
    }
    if let Some(a) = access::text(text, names) {
        return Class::Access(a);
    }
    match application::parse(text) {
        Some(l) => Class::Application(l.stamp, application::event(&l.message)),
        None => Class::Other,
    }
}

/// Start and end once the resolution is known. The duration is in milliseconds and cut, so the end lies within the
/// resolution of the start and one more millisecond.
fn complete(request: &mut EnvoyRequest, resolution: Duration) {
    stamp::widen(&mut request.started, resolution);
    if let (Some(d), Some(lo), Some(hi)) = (request.duration, request.started.lo, request.started.hi) {
        request.ended = Bracket::new(lo + d, hi + d + Duration::from_millis(1));
    } else {
        request.ended.lo = request.started.lo;
    }
}

/// Reads a log; `arrivals` is the file beside it.
pub(crate) fn read<R: BufRead, A: BufRead>(
    source: R,
    mut arrivals: Option<Arrivals<A>>,
    file: FileId,
    subject: Option<String>,
    keys: &JsonKeys,
    matcher: Matcher,
    room: usize,
    reading: &mut Reading,
) -> io::Result<(EnvoyLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, keys, matcher, room);
    let mut lines = Lines::new(source);
    let mut joiner = Joiner::default();
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("a line of {length} bytes was skipped; an access line is never so long"),
            );
            continue;
        }
        let Some((text, runtime)) = joiner.add(container_line::unwrap(line.bytes)) else {
            continue;
        };
        let arrived = match &mut arrivals {
            Some(a) if !text.is_empty() => a.find(line.bytes)?,
            _ => None,
        };
        let arrival = arrived.as_ref().map(|a| a.arrival);
        let runtime = runtime.map(|r| r.at).or(arrived.and_then(|a| a.runtime));
        log.add(line.number, &text, runtime, arrival, line.unterminated, reading);
    }
    Ok(log.finish(reading))
}

/// Reads a log of which only the file with the arrivals is left.
pub(crate) fn read_arrivals<A: BufRead>(
    mut arrivals: Arrivals<A>,
    file: FileId,
    subject: Option<String>,
    keys: &JsonKeys,
    matcher: Matcher,
    room: usize,
    reading: &mut Reading,
) -> io::Result<(EnvoyLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, keys, matcher, room);
    let mut number = 0;
    while let Some(a) = arrivals.next_arrived()? {
        number += 1;
        log.add(number, &a.text, a.runtime, Some(a.arrival), false, reading);
    }
    Ok(log.finish(reading))
}

struct Builder<'k> {
    log: EnvoyLog,
    matcher: Matcher,
    keys: &'k JsonKeys,
    access: Resolution,
    requests: Keeper<(EnvoyRequest, u8)>,
    lines: Resolution,
    line_digits: Vec<u8>,
    zoneless: bool,
    cut: u32,
}

impl<'k> Builder<'k> {
    fn new(file: FileId, subject: Option<String>, keys: &'k JsonKeys, matcher: Matcher, room: usize) -> Self {
        Self {
            matcher,
            log: EnvoyLog {
                file,
                subject,
                requests: Vec::new(),
                omitted: 0,
                lines: Vec::new(),
                ended: false,
            },
            keys,
            access: Resolution::default(),
            requests: Keeper::new(room),
            lines: Resolution::default(),
            line_digits: Vec::new(),
            zoneless: false,
            cut: 0,
        }
    }

    fn add(
        &mut self,
        number: u32,
        text: &[u8],
        runtime: Option<Instant>,
        arrival: Option<Instant>,
        unterminated: bool,
        reading: &mut Reading,
    ) {
        let file = self.log.file;
        let place = Place { file, line: number };
        match classify(text, self.keys, reading) {
            Class::Access(mut a) => {
                // A number at the end of a cut line may have lost digits.
                if unterminated && a.request.duration.is_none_or(|_| a.request.downstream.is_none()) {
                    reading.note(
                        file,
                        number,
                        NoteKind::Incomplete,
                        "the last access line is cut and was not used",
                    );
                    return;
                }
                let end = a.stamp.at + a.request.duration.unwrap_or(Duration::ZERO);
                self.matcher.line(text, Some((end, a.stamp.digits)), place);
                a.request.place = place;
                a.request.runtime = runtime;
                a.request.arrival = arrival;
                self.access.saw(a.stamp.digits);
                let regular = a.request.flags.is_empty() && a.request.status.is_some_and(|s| s < 400);
                self.requests.push((a.request, a.stamp.digits), Some(end), regular);
            }
            Class::Application(stamp, event) => {
                self.matcher.line(text, Some((stamp.at, stamp.digits)), place);
                let Some(what) = event else { return };
                self.zoneless |= stamp.zone.is_none();
                self.lines.saw(stamp.digits);
                self.line_digits.push(stamp.digits);
                if what == EnvoyEvent::Exiting {
                    self.log.ended = true;
                }
                self.log.lines.push(EnvoyLine {
                    at: stamp::pending(stamp.at),
                    place,
                    what,
                });
            }
            Class::Other => match container_line::follower_noise(text) {
                Some(FollowerNoise::Ended) => {
                    let text = String::from_utf8_lossy(text);
                    reading.note(
                        file,
                        number,
                        NoteKind::Incomplete,
                        format!("the follow of this log ended early: `{text}`; what came later is not here"),
                    );
                }
                Some(FollowerNoise::Harmless) => {}
                None if text.starts_with(b"[") && memchr::memmem::find(text, b" HTTP/").is_some() => {
                    self.cut += 1;
                    if self.cut <= 3 {
                        reading.note(
                            file,
                            number,
                            NoteKind::Incomplete,
                            "an access line in a format that is not known was not used",
                        );
                    }
                }
                // Continuation lines of a dump, blank lines.
                None => self.matcher.line(text, None, place),
            },
        }
    }

    fn finish(mut self, reading: &mut Reading) -> (EnvoyLog, Vec<LogMatch>) {
        let (kept, omitted, lost) = self.requests.finish();
        self.log.omitted = omitted;
        reading.thinned(self.log.file, "access lines", omitted, lost);
        self.log.requests = kept
            .into_iter()
            .map(|(mut request, digits)| {
                complete(&mut request, self.access.of(digits));
                request
            })
            .collect();
        for (line, digits) in self.log.lines.iter_mut().zip(&self.line_digits) {
            stamp::widen(&mut line.at, self.lines.of(*digits));
        }
        if self.zoneless {
            reading.note_file(
                self.log.file,
                NoteKind::Remark,
                "Envoy's stamps in brackets carry no zone; they were read as UTC, the usual zone of a container",
            );
        }
        if self.log.requests.is_empty() && self.log.lines.is_empty() {
            reading.note_file(
                self.log.file,
                NoteKind::Incomplete,
                "no access line and no line of Envoy's life was found",
            );
        }
        // An access line is written at its end, whose milliseconds are cut as well.
        let mut both = self.access;
        both.include(self.lines);
        let matches = self.matcher.finish(both, Duration::from_millis(1));
        (self.log, matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::pattern::Matcher;
    use proptest::prelude::*;

    fn read_text(text: &str) -> (EnvoyLog, Vec<String>) {
        let mut reading = Reading::default();
        let none: Option<Arrivals<&[u8]>> = None;
        let keys = JsonKeys::default();
        let (log, _) = read(
            text.as_bytes(),
            none,
            FileId(0),
            None,
            &keys,
            Matcher::default(),
            1000,
            &mut reading,
        )
        .expect("memory cannot fail");
        (log, reading.into_notes().into_iter().map(|n| n.text).collect())
    }

    const TEXT: &str = "[2026-11-29T16:12:45.704Z] \"GET /sleep?seconds=60 HTTP/1.1\" 0 DC downstream_remote_disconnect 0 0 8952 down=10.77.0.211:47866 local=10.77.0.11:8080 up=127.0.0.1:8000 cluster=inbound|8000||";
    const JSON: &str = r#"{"start_time":"2026-11-29T16:12:45.704Z","method":"GET","path":"/sleep?seconds=60","protocol":"HTTP/1.1","response_code":"0","response_flags":"DC","response_code_details":"downstream_remote_disconnect","bytes_sent":0,"duration":8952,"upstream_host":"127.0.0.1:8000","upstream_cluster":"inbound|8000||","downstream_local_address":"10.77.0.11:8080","downstream_remote_address":"10.77.0.211:47866","request_id":null}"#;

    #[test]
    fn text_and_json_tell_the_same() {
        let one = |line: &str| match parse_line(line.as_bytes(), &JsonKeys::default()) {
            Some(ParsedLine::Request(r)) => *r,
            other => panic!("{other:?}"),
        };
        let (text, json) = (one(TEXT), one(JSON));
        assert_eq!(text, json);
        assert_eq!((text.status, text.flags.len(), text.bytes_sent), (None, 1, Some(0)));
        assert_eq!(
            text.downstream.map(|d| d.to_string()).as_deref(),
            Some("10.77.0.211:47866")
        );
        // Start and duration are each cut to a millisecond.
        let end = Instant::parse("2026-11-29T16:12:54.656Z").expect("stamp");
        assert_eq!(
            text.ended,
            Bracket::new(end - Duration::from_nanos(1), end + Duration::from_nanos(1_999_999))
        );
        // Wrapped by the kubelet and by the runtime.
        for wrapped in [
            format!("2026-11-29T16:12:54.657593447Z {TEXT}"),
            format!("2026-11-29T16:12:54.657593447Z stdout F {JSON}"),
        ] {
            assert_eq!(one(&wrapped), text, "{wrapped}");
        }
    }

    #[test]
    fn keys_of_a_site() {
        let keys = JsonKeys::new(&[
            ("start_time".into(), "begin".into()),
            ("response_code".into(), "st".into()),
            ("duration".into(), "took".into()),
            ("path".into(), "p".into()),
        ]);
        let line = br#"{"begin":"2026-11-29T16:12:45.704Z","st":200,"took":"12","p":"/a","path":"/not-this"}"#;
        match parse_line(line, &keys) {
            Some(ParsedLine::Request(r)) => {
                assert_eq!(
                    (r.status, r.path.as_deref(), r.duration),
                    (Some(200), Some("/a"), Some(Duration::from_millis(12)))
                );
                assert_eq!((r.downstream, r.cluster), (None, None));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(parse_line(line, &JsonKeys::default()), None);
    }

    #[test]
    fn lines_of_a_life() {
        let (log, notes) = read_text(&format!(
            "2026-11-29T16:12:40.139545Z\tinfo\tenvoy main source/server/server.cc:900\tstarting main dispatch loop\n{TEXT}\n\
             2026-11-29T16:13:00.785Z\twarning\tenvoy main source/server/server.cc:1\tcaught ENVOY_SIGTERM\n\
             2026-11-29T16:13:00.786Z\tinfo\tenvoy main source/server/server.cc:1\texiting\n{TEXT}\n[2026-11-29T16:12:45.704Z] \"GET /cut HTTP/1.1\" 200 - via_ups"
        ));
        let events: Vec<_> = log.lines.iter().map(|l| l.what.clone()).collect();
        assert_eq!(events, [EnvoyEvent::Started, EnvoyEvent::Sigterm, EnvoyEvent::Exiting]);
        assert!(log.ended);
        assert_eq!(log.requests.len(), 2, "an access line may come after the last word");
        assert!(notes.iter().any(|n| n.contains("cut")), "{notes:?}");
    }

    #[test]
    fn parts_of_a_long_line_are_one() {
        let (head, tail) = TEXT.split_at(100);
        let (log, notes) = read_text(&format!(
            "2026-11-29T16:12:54.657593447Z stdout P {head}\n2026-11-29T16:12:54.657593448Z stdout F {tail}\n"
        ));
        assert_eq!(notes, Vec::<String>::new());
        assert_eq!(log.requests[0].cluster.as_deref(), Some("inbound|8000||"));
        assert_eq!(
            log.requests[0].runtime.map(|t| t.to_rfc3339()).as_deref(),
            Some("2026-11-29T16:12:54.657593447Z")
        );
    }

    #[test]
    fn patterns_find_lines_with_their_times() {
        let mut reading = Reading::default();
        let patterns = [(
            "envoy".to_owned(),
            regex::Regex::new("SIGTERM|/sleep").expect("a pattern"),
        )];
        let text = format!("2026-11-29T16:13:00.785123Z\twarning\tmain\tcaught ENVOY_SIGTERM\n{TEXT}\n");
        let none: Option<Arrivals<&[u8]>> = None;
        let matcher = Matcher::new("envoy", &patterns);
        let (_, found) = read(
            text.as_bytes(),
            none,
            FileId(0),
            None,
            &JsonKeys::default(),
            matcher,
            1000,
            &mut reading,
        )
        .expect("io");
        assert_eq!(found.len(), 2);
        assert!(
            found[0]
                .at
                .contains(Instant::parse("2026-11-29T16:13:00.785123Z").expect("stamp"))
        );
        // An access line is written at its end.
        assert!(
            found[1]
                .at
                .contains(Instant::parse("2026-11-29T16:12:54.657Z").expect("stamp")),
            "{}",
            found[1].at
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_line(&line, &JsonKeys::default());
        }

        #[test]
        fn no_cut_line_panics(cut in 0usize..200, json in any::<bool>(), more in "[ -~]{0,10}") {
            let line = if json { JSON } else { TEXT };
            let _ = parse_line(format!("{}{more}", &line[..cut.min(line.len())]).as_bytes(), &JsonKeys::default());
        }
    }
}
