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
    reading: &mut Reading,
) -> io::Result<(EnvoyLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, keys, matcher);
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
    reading: &mut Reading,
) -> io::Result<(EnvoyLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, keys, matcher);
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
    access_digits: Vec<u8>,
    lines: Resolution,
    line_digits: Vec<u8>,
    zoneless: bool,
    cut: u32,
}

impl<'k> Builder<'k> {
    fn new(file: FileId, subject: Option<String>, keys: &'k JsonKeys, matcher: Matcher) -> Self {
        Self {
            matcher,
            log: EnvoyLog {
                file,
                subject,
                requests: Vec::new(),
                lines: Vec::new(),
                ended: false,
            },
            keys,
            access: Resolution::default(),
            access_digits: Vec::new(),
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
                self.access_digits.push(a.stamp.digits);
                self.log.requests.push(a.request);
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
        for (request, digits) in self.log.requests.iter_mut().zip(&self.access_digits) {
            complete(request, self.access.of(*digits));
        }
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
