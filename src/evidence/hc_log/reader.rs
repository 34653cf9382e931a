//! A whole `hc[-node].log`, or another container's log that is read line by line in the same way.

use std::collections::BTreeSet;
use std::io::{self, BufRead};

use super::parse::{FsmNames, ParsedLine, parse_text};
use super::{HcEvent, HcLine, HcLog};
use crate::evidence::arrival::Arrivals;
use crate::evidence::container_line::{self, FollowerNoise, Joiner};
use crate::evidence::lines::Lines;
use crate::evidence::pattern::Matcher;
use crate::evidence::reading::Reading;
use crate::evidence::stamp::{self, Resolution};
use crate::evidence::thinning::{Thinning, retain};
use crate::evidence::{FileId, LogMatch, NoteKind, Place};
use crate::time::{Bracket, Duration, Instant};

/// Other lines that are kept of one file.
const OTHER_LINES: usize = 20_000;

/// Reads a log; `arrivals` is the file beside it.
pub(crate) fn read<R: BufRead, A: BufRead>(
    source: R,
    mut arrivals: Option<Arrivals<A>>,
    file: FileId,
    subject: Option<String>,
    names: &FsmNames,
    matcher: Matcher,
    room: usize,
    reading: &mut Reading,
) -> io::Result<(HcLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, names, matcher, room);
    let mut lines = Lines::new(source);
    let mut joiner = Joiner::default();
    while let Some(line) = lines.next_line()? {
        if let Some(length) = line.too_long {
            reading.note(
                file,
                line.number,
                NoteKind::Incomplete,
                format!("a line of {length} bytes was skipped; cut such lines where they are collected"),
            );
            continue;
        }
        let Some((text, runtime)) = joiner.add(container_line::unwrap(line.bytes)) else {
            continue;
        };
        if text.trim_ascii().is_empty() {
            continue;
        }
        let arrived = match &mut arrivals {
            Some(a) => a.find(line.bytes)?,
            None => None,
        };
        let mut parsed = parse_text(&text, runtime, names);
        let arrival = arrived.as_ref().map(|a| a.arrival);
        parsed.runtime = parsed.runtime.or(arrived.and_then(|a| a.runtime));
        log.add(line.number, &text, parsed, arrival, line.unterminated, reading);
    }
    let exit = match &mut arrivals {
        Some(a) => a.exit()?,
        None => None,
    };
    Ok(log.finish(exit, reading))
}

/// Reads a log of which only the file with the arrivals is left.
pub(crate) fn read_arrivals<A: BufRead>(
    mut arrivals: Arrivals<A>,
    file: FileId,
    subject: Option<String>,
    names: &FsmNames,
    matcher: Matcher,
    room: usize,
    reading: &mut Reading,
) -> io::Result<(HcLog, Vec<LogMatch>)> {
    let mut log = Builder::new(file, subject, names, matcher, room);
    let mut number = 0;
    while let Some(a) = arrivals.next_arrived()? {
        number += 1;
        let mut parsed = parse_text(&a.text, None, names);
        parsed.runtime = a.runtime;
        log.add(number, &a.text, parsed, Some(a.arrival), false, reading);
    }
    let exit = arrivals.exit()?;
    Ok(log.finish(exit, reading))
}

struct Builder<'n> {
    log: HcLog,
    matcher: Matcher,
    room: usize,
    digits: Vec<u8>,
    own: Resolution,
    names: &'n FsmNames,
    unknown: BTreeSet<String>,
    others: usize,
    lost: u64,
    zoneless: bool,
    thinning: Thinning,
}

impl<'n> Builder<'n> {
    fn new(file: FileId, subject: Option<String>, names: &'n FsmNames, matcher: Matcher, room: usize) -> Self {
        Self {
            matcher,
            room,
            log: HcLog {
                file,
                subject,
                lines: Vec::new(),
                follow_ended_early: false,
            },
            digits: Vec::new(),
            own: Resolution::default(),
            names,
            unknown: BTreeSet::new(),
            others: 0,
            lost: 0,
            zoneless: false,
            thinning: Thinning::default(),
        }
    }

    fn add(
        &mut self,
        number: u32,
        text: &[u8],
        mut parsed: ParsedLine,
        arrival: Option<Instant>,
        unterminated: bool,
        reading: &mut Reading,
    ) {
        let file = self.log.file;
        if parsed.at.is_none() || parsed.runtime == parsed.at {
            match container_line::follower_noise(text) {
                Some(FollowerNoise::Ended) => {
                    self.log.follow_ended_early = true;
                    let text = String::from_utf8_lossy(text);
                    reading.note(
                        file,
                        number,
                        NoteKind::Incomplete,
                        format!("the follow of this log ended early: `{text}`; what came later is not here"),
                    );
                    return;
                }
                Some(FollowerNoise::Harmless) => {
                    reading.note(
                        file,
                        number,
                        NoteKind::Remark,
                        "a line of the follower, not of the application",
                    );
                    return;
                }
                None => {}
            }
        }
        if unterminated && self.is_cut(&parsed.what) {
            reading.note(
                file,
                number,
                NoteKind::Incomplete,
                "the last line is cut and was not used; the log was taken while it was written",
            );
            return;
        }
        if let HcEvent::Transition { from, to } = &parsed.what {
            for name in [from, to] {
                if !self.names.knows(name) && self.unknown.len() < 100 && self.unknown.insert(name.clone()) {
                    reading.note(
                        file,
                        number,
                        NoteKind::UnknownName,
                        format!(
                            "FSM state `{name}` is neither a known state nor an alias and is kept as it is; map it under \
                             `fsm: {{ aliases: ... }}` in the environment file"
                        ),
                    );
                }
            }
        }
        if parsed.zoneless
            && let Some(at) = &mut parsed.at
        {
            // Local time: the runtime's stamp of the same line tells the zone, in quarters of an hour.
            match parsed.runtime {
                Some(runtime) => *at = *at - stamp::quarter_hours(*at - runtime),
                None => self.zoneless = true,
            }
        }
        self.own.saw(parsed.digits);
        let place = Place { file, line: number };
        self.matcher.line(text, parsed.at.map(|t| (t, parsed.digits)), place);
        if matches!(parsed.what, HcEvent::Other(_)) {
            self.others += 1;
            if self.others > OTHER_LINES {
                return;
            }
        }
        self.digits.push(parsed.digits);
        self.log.lines.push(HcLine {
            at: parsed.at.map_or(Bracket::OPEN, stamp::pending),
            runtime: parsed.runtime,
            arrival,
            place,
            what: parsed.what,
        });
        if self.thinning.due(self.log.lines.len()) {
            self.thin();
        }
        if self.log.lines.len() > self.room {
            self.log.lines.pop();
            self.digits.pop();
            self.lost += 1;
        }
    }

    /// A line without its newline that may have had more to say.
    fn is_cut(&self, what: &HcEvent) -> bool {
        match what {
            HcEvent::Transition { to, .. } => self.names.may_be_cut(to),
            HcEvent::Health { to, .. } => *to < 100,
            HcEvent::Poll { .. } | HcEvent::AgentActive { .. } => true,
            HcEvent::Start { .. }
            | HcEvent::DrainListeners { .. }
            | HcEvent::DrainTimeout
            | HcEvent::PreStop { .. }
            | HcEvent::Sigterm
            | HcEvent::Exiting
            | HcEvent::Other(_) => false,
        }
    }

    /// Of a run of equal polls only the first and the last are kept.
    fn thin(&mut self) {
        let same = |a: &HcLine, b: &HcLine| matches!(a.what, HcEvent::Poll { .. }) && a.what == b.what;
        let keep = self.thinning.keep(&self.log.lines, same);
        retain(&mut self.log.lines, &keep);
        retain(&mut self.digits, &keep);
    }

    fn finish(mut self, exit: Option<i32>, reading: &mut Reading) -> (HcLog, Vec<LogMatch>) {
        let file = self.log.file;
        for (line, digits) in self.log.lines.iter_mut().zip(&self.digits) {
            stamp::widen(&mut line.at, self.own.of(*digits));
        }
        reading.thinned(file, "lines", 0, self.lost);
        if self.others > OTHER_LINES {
            let more = self.others - OTHER_LINES;
            reading.note_file(
                file,
                NoteKind::Remark,
                format!("{more} lines that say nothing known are not kept"),
            );
        }
        if self.zoneless {
            reading.mark_unknown_zone(file);
            reading.note_file(
                file,
                NoteKind::Remark,
                "the stamps carry no zone and were read as UTC; write them with one, or keep the runtime's stamps",
            );
        }
        if exit.is_some_and(|code| code != 0) {
            self.log.follow_ended_early = true;
        }
        if self.log.lines.is_empty() {
            reading.note_file(file, NoteKind::Incomplete, "the log holds no usable line");
        }
        let matches = self.matcher.finish(self.own, Duration::ZERO);
        (self.log, matches)
    }
}
