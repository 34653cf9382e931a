//! Lines of a text file, one at a time, with a limit: a line of 100 MB costs no more memory than the limit.

use std::io::{self, BufRead};

/// Longest line that is looked at, in bytes. A longer one is counted and skipped, never held.
pub(crate) const LINE_LIMIT: usize = 1 << 20;

/// One line without its terminator (`\n` or `\r\n`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Number in the file, from 1.
    pub(crate) number: u32,
    /// The bytes; empty when the line was too long.
    pub(crate) bytes: &'a [u8],
    /// The last line of a file that does not end with a newline: perhaps only a part of a line.
    pub(crate) unterminated: bool,
    /// Length of a line over the limit.
    pub(crate) too_long: Option<u64>,
}

/// Reads lines from a buffered source.
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u32,
    limit: usize,
}

impl<R: BufRead> Lines<R> {
    /// Lines up to [`LINE_LIMIT`].
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            line: Vec::with_capacity(512),
            number: 0,
            limit: LINE_LIMIT,
        }
    }

    /// The next line; `None` at the end. The first one loses a byte order mark.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let mut length: u64 = 0;
        let mut terminated = false;
        loop {
            let available = match self.source.fill_buf() {
                Ok(b) => b,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if available.is_empty() {
                break;
            }
            let (used, end) = match memchr::memchr(b'\n', available) {
                Some(i) => (i, true),
                None => (available.len(), false),
            };
            length += used as u64;
            if length <= self.limit as u64 {
                self.line.extend_from_slice(&available[..used]);
            } else {
                self.line.clear();
            }
            self.source.consume(used + usize::from(end));
            if end {
                terminated = true;
                break;
            }
        }
        if length == 0 && !terminated {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        let too_long = (length > self.limit as u64).then_some(length);
        if terminated && self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        let mut bytes: &[u8] = &self.line;
        if self.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        Ok(Some(Line {
            number: self.number,
            bytes,
            unterminated: !terminated,
            too_long,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn all(text: &[u8], limit: usize) -> Vec<(u32, Vec<u8>, bool, Option<u64>)> {
        let mut lines = Lines::new(BufReader::with_capacity(7, text));
        lines.limit = limit;
        let mut out = Vec::new();
        while let Some(l) = lines.next_line().expect("memory cannot fail") {
            out.push((l.number, l.bytes.to_vec(), l.unterminated, l.too_long));
        }
        out
    }

    #[test]
    fn terminators_marks_and_a_cut_end() {
        assert_eq!(
            all(b"\xef\xbb\xbfone\r\n\ntwo\nthr", 100),
            [
                (1, b"one".to_vec(), false, None),
                (2, b"".to_vec(), false, None),
                (3, b"two".to_vec(), false, None),
                (4, b"thr".to_vec(), true, None),
            ]
        );
        assert_eq!(all(b"", 100), []);
    }

    #[test]
    fn a_line_over_the_limit_is_counted_and_not_held() {
        assert_eq!(
            all(b"ok\n0123456789012345\nend\n", 10),
            [
                (1, b"ok".to_vec(), false, None),
                (2, b"".to_vec(), false, Some(16)),
                (3, b"end".to_vec(), false, None),
            ]
        );
        let big = vec![b'x'; 5_000_000];
        let mut lines = Lines::new(BufReader::new(&big[..]));
        assert_eq!(
            lines.next_line().expect("memory cannot fail").and_then(|l| l.too_long),
            Some(5_000_000)
        );
        assert!(lines.line.capacity() <= 2 * LINE_LIMIT);
    }
}
