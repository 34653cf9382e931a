//! A container's log line without what others put around it: colours, the stamps of the kubelet and of the
//! container runtime, the prefix of `kubectl logs --prefix` and of tailing tools, Docker's JSON envelope.

use std::borrow::Cow;

use super::json_object::{Fields, Scalar};
use super::stamp::{self, Stamp};

/// A line taken out of its wrappings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unwrapped<'a> {
    /// What the application wrote.
    pub(crate) text: Cow<'a, [u8]>,
    /// The runtime's stamp in front of it.
    pub(crate) runtime: Option<Stamp>,
    /// The runtime cut a long line here (CRI `P`): the next line goes on.
    pub(crate) partial: bool,
}

/// Takes a line out of its wrappings.
pub(crate) fn unwrap(line: &[u8]) -> Unwrapped<'_> {
    let plain: Cow<'_, [u8]> = if memchr::memchr(0x1b, line).is_some() {
        Cow::Owned(without_colours(line))
    } else {
        Cow::Borrowed(line)
    };
    match plain {
        Cow::Borrowed(text) => unwrap_plain(text),
        Cow::Owned(text) => {
            let u = unwrap_plain(&text);
            let (runtime, partial) = (u.runtime, u.partial);
            Unwrapped {
                text: Cow::Owned(u.text.into_owned()),
                runtime,
                partial,
            }
        }
    }
}

fn unwrap_plain(line: &[u8]) -> Unwrapped<'_> {
    let mut text = without_pod_prefix(line);
    if text.starts_with(b"{\"log\":")
        && let Some(u) = docker_envelope(text)
    {
        return u;
    }
    let mut runtime = None;
    let mut partial = false;
    if let Some((stamp, used)) = stamp::iso(text) {
        let rest = &text[used..];
        if let Some((flag, message)) = cri(rest) {
            runtime = Some(stamp);
            partial = flag;
            text = message;
        } else if let Some(message) = rest.strip_prefix(b" ")
            && (starts_a_message(message) || is_runtime_stamp(stamp, &text[..used]))
        {
            runtime = Some(stamp);
            text = message;
        }
    }
    Unwrapped {
        text: Cow::Borrowed(text),
        runtime,
        partial,
    }
}

/// What follows begins with a stamp of its own, so the stamp in front is the runtime's.
fn starts_a_message(text: &[u8]) -> bool {
    text.first() == Some(&b'{')
        || stamp::iso(text).is_some()
        || (text.first() == Some(&b'[') && stamp::iso(&text[1..]).is_some())
}

/// A kubelet's stamp in front of a line that has none: nanoseconds in UTC or with an offset, trailing zeros trimmed.
fn is_runtime_stamp(stamp: Stamp, text: &[u8]) -> bool {
    stamp.digits > 6 && stamp.zone.is_some() && text[10] == b'T'
}

/// ` stdout F message`: whether it is a part only, and the message.
fn cri(rest: &[u8]) -> Option<(bool, &[u8])> {
    let rest = rest
        .strip_prefix(b" stdout ")
        .or_else(|| rest.strip_prefix(b" stderr "))?;
    // The tag may carry more after a colon.
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let partial = match rest.first()? {
        b'F' => false,
        b'P' => true,
        _ => return None,
    };
    (end == 1 || rest.get(1) == Some(&b':')).then(|| (partial, rest.get(end + 1..).unwrap_or_default()))
}

/// `[pod/NAME/CONTAINER] ` of kubectl, `NAME CONTAINER ` of tailing tools.
fn without_pod_prefix(line: &[u8]) -> &[u8] {
    if line.starts_with(b"[pod/")
        && let Some(end) = memchr::memmem::find(line, b"] ")
    {
        return &line[end + 2..];
    }
    let word = |text: &[u8]| {
        let end = memchr::memchr(b' ', text)?;
        let name = &text[..end];
        (!name.is_empty()
            && name.len() <= 253
            && name
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')))
        .then_some(end + 1)
    };
    if line.first().is_some_and(u8::is_ascii_alphabetic)
        && let Some(first) = word(line)
        && let Some(second) = word(&line[first..])
    {
        let rest = &line[first + second..];
        if starts_a_message(rest) {
            return rest;
        }
    }
    line
}

/// `{"log":"...\n","stream":"stdout","time":"..."}`.
fn docker_envelope(text: &[u8]) -> Option<Unwrapped<'static>> {
    let fields = Fields::parse(text)?;
    let message = fields.get("log").and_then(Scalar::text)?;
    fields.get("stream")?;
    let whole = message.ends_with('\n');
    Some(Unwrapped {
        text: Cow::Owned(message.trim_end_matches(['\n', '\r']).as_bytes().to_vec()),
        runtime: fields.get("time").and_then(Scalar::stamp),
        partial: !whole,
    })
}

/// Without `ESC [ ... letter` sequences.
pub(crate) fn without_colours(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = memchr::memchr(0x1b, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(sequence) = rest.strip_prefix(b"[") {
            let parameters = sequence
                .iter()
                .take_while(|b| matches!(b, b'0'..=b'9' | b';' | b'?' | b':'))
                .count();
            rest = sequence.get(parameters + 1..).unwrap_or_default();
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Puts the parts of a line that the runtime cut together again.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    text: Vec<u8>,
    runtime: Option<Stamp>,
    dropped: bool,
}

impl Joiner {
    /// Takes a line; gives it back whole when it is, with the stamp of its first part.
    pub(crate) fn add<'a>(&mut self, line: Unwrapped<'a>) -> Option<(Cow<'a, [u8]>, Option<Stamp>)> {
        if self.text.is_empty() && !self.dropped && !line.partial {
            return Some((line.text, line.runtime));
        }
        if self.text.is_empty() && !self.dropped {
            self.runtime = line.runtime;
        }
        if self.text.len() + line.text.len() > super::lines::LINE_LIMIT {
            self.dropped = true;
            self.text.clear();
        }
        if !self.dropped {
            self.text.extend_from_slice(&line.text);
        }
        if line.partial {
            return None;
        }
        let dropped = std::mem::take(&mut self.dropped);
        let text = std::mem::take(&mut self.text);
        (!dropped).then(|| (Cow::Owned(text), self.runtime.take()))
    }
}

/// What a follower of logs prints into the log itself; `None`: it is no such line.
pub(crate) fn follower_noise(line: &[u8]) -> Option<FollowerNoise> {
    const ENDED: [&[u8]; 8] = [
        b"failed to create fsnotify watcher",
        b"error: unexpected EOF",
        b"unexpected EOF",
        b"rpc error: code =",
        b"unable to retrieve container logs",
        b"Error from server",
        b"error: http2: ",
        b"error: read tcp",
    ];
    const HARMLESS: [&[u8]; 3] = [b"Defaulted container ", b"Unable to use a TTY", b"==> "];
    if ENDED.iter().any(|p| line.starts_with(p)) {
        return Some(FollowerNoise::Ended);
    }
    HARMLESS
        .iter()
        .any(|p| line.starts_with(p))
        .then_some(FollowerNoise::Harmless)
}

/// What a follower's own line means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowerNoise {
    /// The follow ended, or may have.
    Ended,
    /// Nothing.
    Harmless,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &str) -> (String, Option<String>, bool) {
        let u = unwrap(line.as_bytes());
        (
            String::from_utf8_lossy(&u.text).into_owned(),
            u.runtime.map(|s| s.at.to_rfc3339()),
            u.partial,
        )
    }

    #[test]
    fn every_wrapping_comes_off() {
        let app = "2026-05-31T07:12:39Z event=x";
        let stamp = Some("2026-05-31T07:12:38.000000009Z".to_owned());
        for (line, expected) in [
            ("2026-05-31T07:12:39Z event=x", (app, None, false)),
            ("\u{1b}[90m2026-05-31T07:12:39Z\u{1b}[0m event=x", (app, None, false)),
            (
                "2026-05-31T07:12:38.000000009Z 2026-05-31T07:12:39Z event=x",
                (app, stamp.clone(), false),
            ),
            (
                "[pod/service-a-igw-0/hc] 2026-05-31T07:12:38.000000009Z 2026-05-31T07:12:39Z event=x",
                (app, stamp.clone(), false),
            ),
            ("service-a-igw-0 hc 2026-05-31T07:12:39Z event=x", (app, None, false)),
            (
                "2026-05-31T07:12:38.000000009Z stdout F 2026-05-31T07:12:39Z event=x",
                (app, stamp.clone(), false),
            ),
            (
                "2026-05-31T07:12:38.000000009Z stderr P 2026-05-31T07:12:39Z event=x",
                (app, stamp.clone(), true),
            ),
            (
                r#"{"log":"2026-05-31T07:12:39Z event=x\n","stream":"stdout","time":"2026-05-31T07:12:38.000000009Z"}"#,
                (app, stamp.clone(), false),
            ),
            (
                "2026-05-31T07:12:38.000000009Z event=x",
                ("event=x", stamp.clone(), false),
            ),
            ("not ready 3", ("not ready 3", None, false)),
        ] {
            assert_eq!(text(line), (expected.0.to_owned(), expected.1, expected.2), "{line}");
        }
    }

    #[test]
    fn parts_are_joined() {
        let mut j = Joiner::default();
        assert_eq!(j.add(unwrap(b"2026-05-31T07:12:38.1Z stdout P one ")), None);
        let (joined, stamp) = j.add(unwrap(b"2026-05-31T07:12:38.2Z stdout F two")).expect("whole");
        assert_eq!(joined.as_ref(), b"one two");
        assert_eq!(
            stamp.map(|s| s.at.to_rfc3339()).as_deref(),
            Some("2026-05-31T07:12:38.100Z")
        );
        assert!(j.add(unwrap(b"plain")).is_some());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = (unwrap(&line), follower_noise(&line));
        }
    }
}
