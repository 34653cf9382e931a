//! `<name>.log.arrival.tsv`: when each line of a followed log arrived, and the runtime's own stamp of it.
//!
//! A line is `arrival<TAB>runtime-stamp line`; the follower's end is `arrival<TAB>exit: code`. The raw log and this
//! file may come from two followers that differ by a line or two at the edges.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use super::lines::Lines;
use super::stamp;
use crate::time::Instant;

/// Lines of look-ahead when the raw log and this file differ.
const WINDOW: usize = 64;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// When it arrived at the machine that followed the log.
    pub(crate) arrival: Instant,
    /// The runtime's stamp.
    pub(crate) runtime: Option<Instant>,
    /// The line as the application wrote it.
    pub(crate) text: Vec<u8>,
}

/// Reads the file beside the raw log.
pub(crate) struct Arrivals<R> {
    lines: Lines<R>,
    window: VecDeque<Arrived>,
    ended: bool,
    exit: Option<i32>,
}

impl<R: BufRead> Arrivals<R> {
    /// From its beginning.
    pub(crate) fn new(source: R) -> Self {
        Self {
            lines: Lines::new(source),
            window: VecDeque::new(),
            ended: false,
            exit: None,
        }
    }

    /// The next line.
    pub(crate) fn next_arrived(&mut self) -> io::Result<Option<Arrived>> {
        match self.window.pop_front() {
            Some(a) => Ok(Some(a)),
            None => self.pull(),
        }
    }

    /// The record of this raw line; `None` when it is not among the next ones.
    pub(crate) fn find(&mut self, text: &[u8]) -> io::Result<Option<Arrived>> {
        for i in 0..WINDOW {
            while self.window.len() <= i {
                match self.pull()? {
                    Some(a) => self.window.push_back(a),
                    None => return Ok(None),
                }
            }
            if self.window[i].text == text {
                self.window.drain(..i);
                return Ok(self.window.pop_front());
            }
        }
        Ok(None)
    }

    /// Exit code of the follower, once the end was reached: 0 is the container's end or a closed connection.
    pub(crate) fn exit(&mut self) -> io::Result<Option<i32>> {
        while self.pull()?.is_some() {}
        Ok(self.exit)
    }

    fn pull(&mut self) -> io::Result<Option<Arrived>> {
        while !self.ended {
            let Some(line) = self.lines.next_line()? else {
                self.ended = true;
                break;
            };
            let Some(tab) = memchr::memchr(b'\t', line.bytes) else {
                continue;
            };
            let Some(arrival) = stamp::iso_whole(&line.bytes[..tab]) else {
                continue;
            };
            let rest = &line.bytes[tab + 1..];
            if let Some(code) = rest.strip_prefix(b"exit: ") {
                self.exit = std::str::from_utf8(code).ok().and_then(|c| c.trim().parse().ok());
                continue;
            }
            let (runtime, text) = match stamp::iso(rest) {
                Some((s, used)) if rest.get(used) == Some(&b' ') => (Some(s.at), &rest[used + 1..]),
                Some((s, used)) if rest.len() == used => (Some(s.at), &rest[used..]),
                _ => (None, rest),
            };
            return Ok(Some(Arrived {
                arrival: arrival.at,
                runtime,
                text: text.to_vec(),
            }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "2026-11-29T17:14:02.618794Z\t2026-11-29T17:14:02.601975646Z a\n\
        2026-11-29T17:14:02.7Z\t2026-11-29T17:14:02.65Z b\n\
        2026-11-29T17:14:02.8Z\t2026-11-29T17:14:02.66Z b\n\
        2026-11-29T17:14:36.731901Z\texit: 1\n";

    #[test]
    fn raw_lines_find_their_arrival() {
        let mut a = Arrivals::new(FILE.as_bytes());
        assert_eq!(a.find(b"not there").expect("io"), None);
        let arrival = |x: Option<Arrived>| x.map(|x| x.arrival.to_rfc3339());
        assert_eq!(
            arrival(a.find(b"b").expect("io")).as_deref(),
            Some("2026-11-29T17:14:02.700Z")
        );
        assert_eq!(
            arrival(a.find(b"b").expect("io")).as_deref(),
            Some("2026-11-29T17:14:02.800Z")
        );
        assert_eq!(a.find(b"b").expect("io"), None);
        assert_eq!(a.exit().expect("io"), Some(1));
    }
}
