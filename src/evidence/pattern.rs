//! Lines of container logs that an assertion asks for: `log(app, /cache flushed/)`.

use regex::Regex;

use super::stamp::{self, Resolution};
use super::{LogMatch, Place};
use crate::time::{Bracket, Duration, Instant};

/// Matches of one file that are kept; an assertion that counts more is about another thing.
const MATCHES: usize = 100_000;

/// Looks for the patterns of one probe in its log.
#[derive(Debug, Default)]
pub(crate) struct Matcher {
    probe: String,
    patterns: Vec<Regex>,
    found: Vec<(LogMatch, u8)>,
}

impl Matcher {
    /// The patterns of this probe among all that a plan asks for.
    pub(crate) fn new(probe: &str, patterns: &[(String, Regex)]) -> Self {
        Self {
            probe: probe.to_owned(),
            patterns: patterns
                .iter()
                .filter(|(p, _)| p == probe)
                .map(|(_, r)| r.clone())
                .collect(),
            found: Vec::new(),
        }
    }

    /// Looks at a line as the application wrote it. `at` is its stamp, with so many digits.
    pub(crate) fn line(&mut self, text: &[u8], at: Option<(Instant, u8)>, place: Place) {
        if self.patterns.is_empty() {
            return;
        }
        let text = String::from_utf8_lossy(text);
        for pattern in &self.patterns {
            if self.found.len() < MATCHES && pattern.is_match(&text) {
                let found = LogMatch {
                    probe: self.probe.clone(),
                    pattern: pattern.as_str().to_owned(),
                    at: at.map_or(Bracket::OPEN, |(t, _)| stamp::pending(t)),
                    place,
                };
                self.found.push((found, at.map_or(0, |(_, digits)| digits)));
            }
        }
    }

    /// All matches, in file order, once the resolution of the file's stamps is known. `more` is what widens each
    /// beyond that.
    pub(crate) fn finish(self, resolution: Resolution, more: Duration) -> Vec<LogMatch> {
        self.found
            .into_iter()
            .map(|(mut m, digits)| {
                stamp::widen(&mut m.at, resolution.of(digits) + more);
                m
            })
            .collect()
    }
}
