//! What one line of the health-check process says, in whatever costume it comes.

use std::borrow::Cow;

use super::HcEvent;
use crate::evidence::container_line;
use crate::evidence::json_object::{Fields, Scalar};
use crate::evidence::reading::{excerpt, number};
use crate::evidence::stamp::{self, Stamp};
use crate::time::{Bracket, Instant};

/// Longest text of a line that is kept as it is.
const TEXT_LIMIT: usize = 512;

/// Names of the workload's FSM states: the present ones, and old names with what they are called now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsmNames {
    states: Vec<String>,
    aliases: Vec<(String, String)>,
}

impl Default for FsmNames {
    fn default() -> Self {
        Self::new(&[], &[])
    }
}

impl FsmNames {
    /// From an environment's `fsm` section; no states means OPEN, DRAINING, CLOSING, CLOSED.
    pub fn new(states: &[String], aliases: &[(String, String)]) -> Self {
        let states = if states.is_empty() {
            ["OPEN", "DRAINING", "CLOSING", "CLOSED"].map(str::to_owned).to_vec()
        } else {
            states.to_vec()
        };
        Self {
            states,
            aliases: aliases.to_vec(),
        }
    }

    /// The present name of a state; a name in neither list is kept as it is.
    pub fn present(&self, name: &str) -> String {
        self.aliases
            .iter()
            .find(|(old, _)| old == name)
            .map_or(name, |(_, new)| new)
            .to_owned()
    }

    /// The name is a state or an alias of one.
    pub fn knows(&self, name: &str) -> bool {
        self.states.iter().any(|s| s == name) || self.aliases.iter().any(|(old, _)| old == name)
    }

    /// The name may be the beginning of a longer one, so that the end of a cut line proves nothing.
    pub(crate) fn may_be_cut(&self, name: &str) -> bool {
        !self.knows(name)
            || self
                .states
                .iter()
                .chain(self.aliases.iter().map(|(old, _)| old))
                .any(|s| s != name && s.starts_with(name))
    }
}

/// One line, read by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedLine {
    /// The application's stamp; the runtime's where the application wrote none.
    pub at: Option<Instant>,
    /// Digits of the stamp's fraction.
    pub digits: u8,
    /// The stamp has no zone and was read as UTC.
    pub zoneless: bool,
    /// The runtime's stamp.
    pub runtime: Option<Instant>,
    /// What it says.
    pub what: HcEvent,
}

impl ParsedLine {
    /// When it was written, with the resolution that its own stamp shows; open without a stamp.
    pub fn bracket(&self) -> Bracket {
        self.at
            .map_or(Bracket::OPEN, |at| Bracket::floored(at, stamp::resolution(self.digits)))
    }
}

/// Reads one line as it comes from a container's log, wrapped or not; `None` when it is empty or a part of a
/// line that the runtime cut.
pub fn parse_line(line: &[u8], names: &FsmNames) -> Option<ParsedLine> {
    let unwrapped = container_line::unwrap(line);
    if unwrapped.partial || unwrapped.text.is_empty() {
        return None;
    }
    Some(parse_text(&unwrapped.text, unwrapped.runtime, names))
}

/// Reads what the application wrote.
pub(crate) fn parse_text(text: &[u8], runtime: Option<Stamp>, names: &FsmNames) -> ParsedLine {
    let (stamp, what) = match Fields::parse(text) {
        Some(fields) => {
            let stamp = fields
                .first(&["ts", "time", "timestamp", "@timestamp", "t"])
                .and_then(Scalar::stamp);
            let get = |key: &str| fields.get(key).and_then(Scalar::text).map(|t| t.into_owned());
            (stamp, event(&get, names, text))
        }
        None => {
            let (stamp, rest) = match stamp::iso(text) {
                Some((s, used)) => (Some(s), &text[used..]),
                None => (None, text),
            };
            let pairs = LogFmt::read(rest);
            let get = |key: &str| pairs.get(key).map(|v| String::from_utf8_lossy(v).into_owned());
            (stamp, event(&get, names, rest))
        }
    };
    let own = stamp.or(runtime);
    ParsedLine {
        at: own.map(|s| s.at),
        digits: own.map_or(0, |s| s.digits),
        zoneless: own.is_some_and(|s| s.zone.is_none()),
        runtime: runtime.map(|s| s.at),
        what,
    }
}

fn event(get: &dyn Fn(&str) -> Option<String>, names: &FsmNames, text: &[u8]) -> HcEvent {
    let count = |key: &str| get(key).and_then(|v| number(v.as_bytes()));
    let status = |key: &str| count(key).and_then(|n| u16::try_from(n).ok());
    let other = || match agent_connections(text) {
        Some(connections) => HcEvent::AgentActive { connections },
        None => HcEvent::Other(excerpt(text.trim_ascii(), TEXT_LIMIT)),
    };
    match get("event").as_deref() {
        Some("start") => HcEvent::Start { mode: get("mode") },
        Some("transition") => match (get("from"), get("to")) {
            (Some(from), Some(to)) => HcEvent::Transition {
                from: names.present(&from),
                to: names.present(&to),
            },
            _ => other(),
        },
        Some("health") => match status("to") {
            Some(to) => HcEvent::Health {
                from: status("from"),
                to,
            },
            None => other(),
        },
        Some("poll") => HcEvent::Poll {
            downstream: count("downstream"),
            upstream: count("upstream"),
        },
        Some("poll_error") => HcEvent::Poll {
            downstream: None,
            upstream: None,
        },
        Some("drain_listeners") => HcEvent::DrainListeners {
            status: status("status"),
        },
        Some("drain_timeout") => HcEvent::DrainTimeout,
        Some("prestop" | "hold") => HcEvent::PreStop { who: get("who") },
        Some("sigterm") => HcEvent::Sigterm,
        Some("exiting" | "exit") => HcEvent::Exiting,
        Some(_) | None => other(),
    }
}

/// Istio's agent: `There are still 3 active connections`, `active connections: 3`. Outer `None`: not such a line;
/// inner `None`: a negative number, the agent could not read its gauge.
pub(crate) fn agent_connections(text: &[u8]) -> Option<Option<u64>> {
    const WORDS: &[u8] = b"active connections";
    let lower = text.to_ascii_lowercase();
    let at = memchr::memmem::find(&lower, WORDS)?;
    let before = lower[..at].trim_ascii_end();
    if before.ends_with(b"no more") {
        return Some(Some(0));
    }
    let word = before.rsplit(|b| *b == b' ').next().unwrap_or_default();
    let after = lower[at + WORDS.len()..]
        .trim_ascii_start()
        .strip_prefix(b":")
        .map(|r| r.trim_ascii_start())
        .map(|r| &r[..r.iter().take_while(|b| b.is_ascii_digit() || **b == b'-').count()]);
    for candidate in [Some(word), after].into_iter().flatten() {
        if let Some(n) = number(candidate) {
            return Some(Some(n));
        }
        if candidate.strip_prefix(b"-").is_some_and(|n| number(n).is_some()) {
            return Some(None);
        }
    }
    None
}

/// `key=value` pairs; a value may be quoted, and what stands inside quotes is no pair.
struct LogFmt<'a>(Vec<(&'a [u8], Cow<'a, [u8]>)>);

impl<'a> LogFmt<'a> {
    fn read(text: &'a [u8]) -> Self {
        let mut pairs = Vec::new();
        let mut rest = text;
        loop {
            rest = rest.trim_ascii_start();
            let Some(&first) = rest.first() else { break };
            if first == b'"' || first == b'\'' {
                rest = quoted(rest).1;
                continue;
            }
            let end = rest
                .iter()
                .position(|b| b.is_ascii_whitespace() || *b == b'=')
                .unwrap_or(rest.len());
            if rest.get(end) != Some(&b'=') {
                rest = &rest[end..];
                continue;
            }
            let key = &rest[..end];
            rest = &rest[end + 1..];
            let value = match rest.first() {
                Some(b'"' | b'\'') => {
                    let (value, after) = quoted(rest);
                    rest = after;
                    value
                }
                _ => {
                    let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
                    let value = Cow::Borrowed(&rest[..end]);
                    rest = &rest[end..];
                    value
                }
            };
            pairs.push((key, value));
        }
        Self(pairs)
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        self.0
            .iter()
            .find(|(k, _)| *k == key.as_bytes())
            .map(|(_, v)| v.as_ref())
    }
}

/// A quoted text at the beginning, without its quotes and backslashes, and what follows it.
fn quoted(text: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let quote = text[0];
    let body = &text[1..];
    let mut plain = Vec::new();
    let mut escaped = false;
    let mut i = 0;
    while i < body.len() {
        match body[i] {
            b'\\' if i + 1 < body.len() => {
                if !escaped {
                    plain.extend_from_slice(&body[..i]);
                    escaped = true;
                }
                plain.push(body[i + 1]);
                i += 2;
            }
            b if b == quote => {
                let value = if escaped {
                    Cow::Owned(plain)
                } else {
                    Cow::Borrowed(&body[..i])
                };
                return (value, &body[i + 1..]);
            }
            b => {
                if escaped {
                    plain.push(b);
                }
                i += 1;
            }
        }
    }
    (Cow::Borrowed(body), &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn what(line: &str) -> HcEvent {
        parse_line(line.as_bytes(), &FsmNames::default()).expect(line).what
    }

    #[test]
    fn events_of_the_workload() {
        let cases = [
            (
                "2026-11-29T16:12:40.357Z event=start state=OPEN mode=current",
                HcEvent::Start {
                    mode: Some("current".into()),
                },
            ),
            (
                r#"{"ts": "2026-11-29T17:10:56.616Z", "level": "info", "event": "health", "from": "200", "to": 503}"#,
                HcEvent::Health {
                    from: Some(200),
                    to: 503,
                },
            ),
            (
                "2026-11-29T16:12:54.723Z event=drain_listeners status=200 body='OK'",
                HcEvent::DrainListeners { status: Some(200) },
            ),
            (
                r#"2026-11-29T16:12:54.723Z event=poll_error err=ConnectionRefusedError(111, "Connect call failed")"#,
                HcEvent::Poll {
                    downstream: None,
                    upstream: None,
                },
            ),
            (
                "2026-11-29T16:56:38.436Z event=hold who=app",
                HcEvent::PreStop {
                    who: Some("app".into()),
                },
            ),
            (
                r#"2026-05-31T07:12:41Z level=info msg="waiting for event=transition from=A to=B" active=1"#,
                HcEvent::Other(r#"level=info msg="waiting for event=transition from=A to=B" active=1"#.into()),
            ),
            (
                "2026-05-31T07:12:41Z info There are still -1 active connections",
                HcEvent::AgentActive { connections: None },
            ),
            (
                "2026-05-31T07:12:41Z info There are no more active connections. terminating proxy...",
                HcEvent::AgentActive { connections: Some(0) },
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(what(line), expected, "{line}");
        }
    }

    #[test]
    fn old_names_are_mapped_and_never_guessed() {
        let line = b"2026-05-31T07:12:42Z event=transition from=READY to=DRAINED_WAIT_LB";
        let to = |names: &FsmNames| match parse_line(line, names).expect("line").what {
            HcEvent::Transition { to, .. } => to,
            other => panic!("{other:?}"),
        };
        assert_eq!(to(&FsmNames::default()), "DRAINED_WAIT_LB");
        let aliases = [("DRAINED_WAIT_LB".to_owned(), "CLOSING".to_owned())];
        assert_eq!(to(&FsmNames::new(&[], &aliases)), "CLOSING");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_line(&line, &FsmNames::default());
        }

        #[test]
        fn no_text_panics(line in r#"[ -~]{0,20}( (event|from|to|x)=["']?[A-Za-z\\"']{0,8})*"#) {
            let _ = parse_line(line.as_bytes(), &FsmNames::default());
        }
    }
}
