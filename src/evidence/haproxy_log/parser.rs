//! Lines of HAProxy's log, one at a time: for a whole file and for a live stream.

use std::str::FromStr;
use std::sync::Arc;

use chrono::{LocalResult, TimeZone};

use super::format::Format;
use super::header::{self, Written};
use super::message;
use super::{HaproxyEvent, HaproxyRequest};
use crate::evidence::haproxy_config::{HaproxyConfig, LogFormat};
use crate::evidence::reading::Reading;
use crate::evidence::stamp::{self, Stamp};
use crate::time::{Bracket, Duration, Instant};

/// One line, read by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedLine {
    /// The line's own stamp, in UTC where the zone is known.
    pub at: Option<Instant>,
    /// Digits of its fraction.
    pub digits: u8,
    /// The stamp is local time of a zone that nothing tells; it was read as UTC.
    pub unknown_zone: bool,
    /// How far local time is ahead of UTC, where this line proves it although its stamp has no zone.
    pub zone: Option<Duration>,
    /// Process id.
    pub pid: Option<u32>,
    /// A copy for the terminal of a message that is logged with a stamp as well.
    pub for_the_terminal: bool,
    /// What it says.
    pub what: HaproxyEvent,
}

impl ParsedLine {
    /// When it was written, with the resolution of its stamp; open without one.
    pub fn bracket(&self) -> Bracket {
        self.at
            .map_or(Bracket::OPEN, |at| Bracket::floored(at, stamp::resolution(self.digits)))
    }
}

/// Reads lines in the formats of a configuration and in HAProxy's own.
#[derive(Debug)]
pub struct Parser {
    formats: Vec<Arc<Format>>,
    /// The format of the line before: lines of one frontend follow one another.
    last: usize,
    zone: Option<chrono_tz::Tz>,
    near: Option<Instant>,
    names: Reading,
}

impl Parser {
    /// With the formats of `haproxy.cfg` and the zone of stamps that carry none, an IANA name.
    pub fn new(config: Option<&HaproxyConfig>, zone: Option<&str>) -> Self {
        let mut formats = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        for frontend in config.iter().flat_map(|c| &c.frontends) {
            if let LogFormat::Custom(text) = &frontend.log_format
                && !texts.contains(&text.as_str())
            {
                texts.push(text);
                formats.push(Arc::new(Format::compile(text)));
            }
        }
        formats.extend([Format::httpslog(), Format::httplog(), Format::tcplog()].map(Arc::new));
        Self {
            formats,
            last: 0,
            zone: zone.and_then(|z| chrono_tz::Tz::from_str(z).ok()),
            near: None,
            names: Reading::default(),
        }
    }

    /// A moment near the log's, from which stamps without a year take it: a stamp of another file, or now.
    pub fn set_near(&mut self, near: Instant) {
        self.near = Some(near);
    }

    /// A moment near the log's is known.
    pub(crate) fn has_near(&self) -> bool {
        self.near.is_some()
    }

    /// Reads one line; `None` when it says nothing that is known.
    pub fn line(&mut self, line: &[u8]) -> Option<ParsedLine> {
        let header = header::parse(line);
        let (stamp, mut unknown_zone) = self.written(header.written);
        let at = stamp.map(|s| s.at);
        let mut zone = None;
        let mut pid = header.pid;
        let what = match message::parse(&header.message, &mut self.names) {
            Some(event) => event,
            None => {
                let (request, learned, own_pid) = self.request(&header.message, stamp, unknown_zone)?;
                zone = learned;
                pid = pid.or(own_pid);
                HaproxyEvent::Request(Box::new(request))
            }
        };
        let at = match (at, zone) {
            (Some(at), Some(ahead)) if unknown_zone => {
                unknown_zone = false;
                Some(at - ahead)
            }
            (at, _) => at,
        };
        Some(ParsedLine {
            at,
            digits: stamp.map_or(0, |s| s.digits),
            unknown_zone: unknown_zone && at.is_some(),
            zone,
            pid,
            for_the_terminal: header.for_the_terminal,
            what,
        })
    }

    /// A line that looks like one of a request or a connection, but in a format that was not recognised.
    pub(crate) fn looks_like_access(line: &[u8]) -> bool {
        // Every format has one of HAProxy's dates or a request line.
        memchr::memmem::find(line, b" HTTP/").is_some()
            || memchr::memchr_iter(b'[', line).any(|at| stamp::clf(&line[at + 1..]).is_some())
    }

    /// The line's stamp in UTC, and whether its zone is unknown.
    fn written(&self, written: Written) -> (Option<Stamp>, bool) {
        let stamp = match written {
            Written::No => return (None, false),
            Written::Stamp(stamp) => stamp,
            Written::Yearless(yearless) => {
                let near = self.near.unwrap_or(UNKNOWN_YEAR);
                match yearless.near(near) {
                    Some(at) => Stamp {
                        at,
                        digits: yearless.digits,
                        zone: None,
                    },
                    None => return (None, false),
                }
            }
        };
        if stamp.zone.is_some() {
            return (Some(stamp), false);
        }
        match self.zone.and_then(|zone| utc(stamp.at, zone)) {
            Some(at) => (Some(Stamp { at, ..stamp }), false),
            None => (Some(stamp), true),
        }
    }

    fn request(
        &mut self,
        message: &[u8],
        written: Option<Stamp>,
        unknown_zone: bool,
    ) -> Option<(HaproxyRequest, Option<Duration>, Option<u32>)> {
        let mut found = self.formats.get(self.last)?.read(message);
        if found.is_none() {
            for (i, format) in self.formats.iter().enumerate() {
                if i != self.last
                    && let Some(draft) = format.read(message)
                {
                    self.last = i;
                    found = Some(draft);
                    break;
                }
            }
        }
        let draft = found?;
        let mut learned = None;
        let accepted = draft.accepted().map(|stamp| {
            let Some(written) = written else {
                return self.zone.and_then(|z| utc(stamp.at, z)).unwrap_or(stamp.at);
            };
            // The line was written when the request was over, so accept stamp and total lead to the line's stamp,
            // but for the zone in which each is given.
            let Some(total) = draft.total() else {
                return match stamp.zone {
                    None if !unknown_zone => self.zone.and_then(|z| utc(stamp.at, z)).unwrap_or(stamp.at),
                    _ => stamp.at,
                };
            };
            let ahead = stamp::quarter_hours(stamp.at + total - written.at);
            if stamp.zone.is_none() {
                return stamp.at - ahead;
            }
            if unknown_zone {
                learned = Some(Duration::ZERO - ahead);
            }
            stamp.at
        });
        let pid = draft.pid;
        Some((draft.finish(accepted, &mut self.names), learned, pid))
    }
}

/// Stamps without a year in a folder where no stamp has one: in this year, a leap year.
const UNKNOWN_YEAR: Instant = Instant::from_nanos(962_409_600_000_000_000);

/// Local time in UTC; `None` in the hour that a zone has twice or not at all.
fn utc(local: Instant, zone: chrono_tz::Tz) -> Option<Instant> {
    match zone.from_local_datetime(&local.to_utc().naive_utc()) {
        LocalResult::Single(t) => Some(t.to_utc().into()),
        LocalResult::Ambiguous(..) | LocalResult::None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::haproxy_config;
    use crate::evidence::{FileClock, FileId, SourceKind};
    use proptest::prelude::*;

    const REQUEST: &str = "10.77.0.100:59636 [30/Nov/2026:01:59:27.302] fe be/w1 0/0/1/-1/7720 502 209 - - DH-- 1/1/0/0/0 0/0 \"GET /sleep?seconds=60 HTTP/1.1\"";

    fn utc_of(text: &str) -> Instant {
        Instant::parse(text).expect(text)
    }

    fn accepted(line: &ParsedLine) -> Option<String> {
        match &line.what {
            HaproxyEvent::Request(r) => r.accepted.lo.map(|t| (t + Duration::from_nanos(1)).to_rfc3339()),
            other => panic!("{other:?}"),
        }
    }

    fn parser(zone: Option<&str>) -> Parser {
        let mut p = Parser::new(None, zone);
        p.set_near(utc_of("2026-11-29T17:00:00Z"));
        p
    }

    #[test]
    fn local_time_with_and_without_a_zone() {
        // The stamp carries an offset: request dates are brought to it, whatever zone they are in.
        let line = parser(None)
            .line(format!("2026-11-29T16:59:35.023456+00:00 {REQUEST}").as_bytes())
            .expect("line");
        assert_eq!(line.at, Some(utc_of("2026-11-29T16:59:35.023456Z")));
        assert_eq!(accepted(&line).as_deref(), Some("2026-11-29T16:59:27.302Z"));
        // Nothing tells the zone.
        let line = parser(None)
            .line(format!("Nov 30 01:59:35 lb01 haproxy[14516]: {REQUEST}").as_bytes())
            .expect("line");
        assert_eq!(
            (line.at, line.unknown_zone),
            (Some(utc_of("2026-11-30T01:59:35Z")), true)
        );
        assert_eq!(accepted(&line).as_deref(), Some("2026-11-30T01:59:27.302Z"));
        // The environment does.
        let line = parser(Some("Asia/Seoul"))
            .line(format!("Nov 30 01:59:35 lb01 haproxy[14516]: {REQUEST}").as_bytes())
            .expect("line");
        assert_eq!(
            (line.at, line.unknown_zone),
            (Some(utc_of("2026-11-29T16:59:35Z")), false)
        );
        assert_eq!(accepted(&line).as_deref(), Some("2026-11-29T16:59:27.302Z"));
        // A date in GMT beside the local stamp does.
        let format = "global\nfrontend fe\n log-format \"%ci:%cp [%T] %ft %b/%s %Ta %ST %tsc %{+Q}r\"\nbackend be\n server w1 10.0.0.1:1\n";
        let (config, _) = haproxy_config::parse(format, FileId(0));
        let mut p = Parser::new(Some(&config), None);
        p.set_near(utc_of("2026-11-29T17:00:00Z"));
        let line = p
            .line(b"Nov 30 01:59:35 lb01 haproxy[1]: 10.0.0.9:1 [29/Nov/2026:16:59:27 +0000] fe be/w1 7720 502 DH-- \"GET / HTTP/1.1\"")
            .expect("line");
        assert_eq!(
            (line.at, line.unknown_zone),
            (Some(utc_of("2026-11-29T16:59:35Z")), false)
        );
        assert_eq!(line.zone, Some(Duration::from_secs(9 * 3600)));
    }

    #[test]
    fn new_year_in_a_log_without_years() {
        let text = "Dec 31 23:59:58 lb haproxy[1]: Server be/w1 is DOWN.\nJan  1 00:00:01 lb haproxy[1]: Server be/w1 is UP.\n";
        for near in ["2026-12-31T23:59:00Z", "2027-01-01T00:30:00Z"] {
            let mut p = Parser::new(None, Some("UTC"));
            p.set_near(utc_of(near));
            let at: Vec<_> = text
                .lines()
                .filter_map(|l| p.line(l.as_bytes()))
                .filter_map(|l| l.at)
                .collect();
            assert_eq!(at, [utc_of("2026-12-31T23:59:58Z"), utc_of("2027-01-01T00:00:01Z")]);
        }
    }

    #[test]
    fn the_year_comes_from_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect(name);
        write(
            "haproxy.log",
            "Nov 30 01:59:35 lb01 haproxy[1]: Server be/w1 is DOWN.\n",
        );
        write("run.log", "2031-11-29T16:59:20Z [S1] curl finished\n");
        let options = crate::evidence::run_folder::ReadOptions::default();
        let e = crate::evidence::run_folder::read(folder.path(), &options).expect("folder");
        assert_eq!(
            e.haproxy_logs[0].lines[0].at.hi,
            Some(utc_of("2031-11-30T01:59:35.999999999Z"))
        );
        let file = e
            .files
            .iter()
            .find(|f| f.kind == SourceKind::HaproxyLog)
            .expect("the log");
        assert_eq!(file.clock, FileClock::OwnUnknownZone);
    }

    #[test]
    fn lines_of_several_frontends() {
        let cfg = "frontend a\n log-format \"A %ci:%cp %b/%s %ST %tsc\"\nfrontend b\n option httplog\nfrontend c\n log-format \"C %s %ST\"\nbackend be\n server w1 10.0.0.1:1\n";
        let (config, _) = haproxy_config::parse(cfg, FileId(0));
        let mut p = Parser::new(Some(&config), None);
        let mut status = |message: &str| {
            let line = p.line(format!("2026-11-29T16:59:35.000001Z {message}").as_bytes())?;
            match line.what {
                HaproxyEvent::Request(r) => r.status,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(status("A 10.0.0.9:1 be/w1 201 ----"), Some(201));
        assert_eq!(status(REQUEST), Some(502));
        assert_eq!(status("C w1 203"), Some(203));
        assert_eq!(status("D w1 204"), None);
        assert_eq!(status("A 10.0.0.9:1 be/w1 205 ----"), Some(205));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parser(Some("Europe/Berlin")).line(&line);
            let _ = Parser::looks_like_access(&line);
        }
    }
}
