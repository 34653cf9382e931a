//! What stands in front of a message of HAProxy: its own `iso`, `rfc3164`, `rfc5424`, what syslog daemons make of
//! them, and what journalctl prints.

use std::borrow::Cow;

use crate::evidence::json_object::{Fields, Scalar};
use crate::evidence::reading::number;
use crate::evidence::stamp::{self, Stamp, YearlessStamp};

/// When a line says that it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// A whole stamp, perhaps without a zone.
    Stamp(Stamp),
    /// Without a year, in local time.
    Yearless(YearlessStamp),
    /// Not at all.
    No,
}

/// A line taken apart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header<'a> {
    /// Its stamp.
    pub(crate) written: Written,
    /// Process id.
    pub(crate) pid: Option<u32>,
    /// `[WARNING]  (425) : `: a copy for the terminal of what is logged as well.
    pub(crate) for_the_terminal: bool,
    /// The message.
    pub(crate) message: Cow<'a, [u8]>,
}

/// Takes a line apart.
pub(crate) fn parse(line: &[u8]) -> Header<'_> {
    let text = without_priority(line);
    if let Some(header) = rfc5424(text) {
        return header;
    }
    let plain = |written, pid, message| Header {
        written,
        pid,
        for_the_terminal: false,
        message: Cow::Borrowed(message),
    };
    if let Some((stamp, used)) = stamp::iso(text) {
        let rest = text[used..].trim_ascii_start();
        let (pid, message) = tag(rest, false).unwrap_or((None, rest));
        return plain(Written::Stamp(stamp), pid, message);
    }
    if let Some((stamp, used)) = stamp::yearless(text) {
        let rest = text[used..].trim_ascii_start();
        let (pid, message) = tag(rest, true).unwrap_or((None, rest));
        return plain(Written::Yearless(stamp), pid, message);
    }
    if let Some((stamp, rest)) = weekday(text) {
        let (pid, message) = tag(rest, true).unwrap_or((None, rest));
        return plain(Written::Stamp(stamp), pid, message);
    }
    if let Some(header) = journal_json(text) {
        return header;
    }
    if let Some((pid, message)) = terminal(text) {
        return Header {
            for_the_terminal: true,
            ..plain(Written::No, pid, message)
        };
    }
    let (pid, message) = tag(text, false).unwrap_or((None, text));
    plain(Written::No, pid, message)
}

/// Without `<134>`.
fn without_priority(line: &[u8]) -> &[u8] {
    let Some(rest) = line.strip_prefix(b"<") else {
        return line;
    };
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    match rest.get(digits) {
        Some(b'>') if (1..=3).contains(&digits) => &rest[digits + 1..],
        _ => line,
    }
}

/// The first word and what follows its blank.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b' ', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// `1 STAMP HOST APP PROCID MSGID SD MESSAGE`.
fn rfc5424(text: &[u8]) -> Option<Header<'_>> {
    let (version, rest) = word(text);
    if version.len() > 2 || number(version).is_none_or(|v| v == 0) {
        return None;
    }
    let (when, rest) = word(rest);
    let written = match stamp::iso_whole(when) {
        Some(stamp) => Written::Stamp(stamp),
        None if when == b"-" => Written::No,
        None => return None,
    };
    let (_host, rest) = word(rest);
    let (_app, rest) = word(rest);
    let (process, rest) = word(rest);
    let (_message_id, rest) = word(rest);
    let rest = structured_data(rest)?;
    let message = rest.strip_prefix(b" ").unwrap_or(rest);
    let message = message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message);
    Some(Header {
        written,
        pid: number(process).and_then(|n| u32::try_from(n).ok()),
        for_the_terminal: false,
        message: Cow::Borrowed(message),
    })
}

/// What follows `-` or `[id key="value"]...`.
fn structured_data(text: &[u8]) -> Option<&[u8]> {
    if let Some(rest) = text.strip_prefix(b"-") {
        return Some(rest);
    }
    let mut rest = text;
    while let Some(element) = rest.strip_prefix(b"[") {
        let mut quoted = false;
        let mut escaped = false;
        let end = element.iter().position(|b| {
            let ends = !quoted && *b == b']';
            if escaped {
                escaped = false;
            } else {
                match b {
                    b'\\' => escaped = true,
                    b'"' => quoted = !quoted,
                    _ => {}
                }
            }
            ends
        })?;
        rest = &element[end + 1..];
    }
    (rest.len() < text.len()).then_some(rest)
}

/// `HOST TAG[PID]: ` or `TAG[PID]: ` in front of a message. Without a process id only where a tag must stand:
/// a message may begin with a word and a colon itself.
fn tag(text: &[u8], must: bool) -> Option<(Option<u32>, &[u8])> {
    let (first, after_first) = word(text);
    if let Some(pid) = tag_word(first, must) {
        return Some((pid, after_first.trim_ascii_start()));
    }
    let (second, after_second) = word(after_first);
    tag_word(second, must).map(|pid| (pid, after_second.trim_ascii_start()))
}

/// `haproxy[425]:`, `haproxy:`.
fn tag_word(word: &[u8], must: bool) -> Option<Option<u32>> {
    let name = word.strip_suffix(b":")?;
    if let Some(name) = name.strip_suffix(b"]") {
        let at = memchr::memrchr(b'[', name)?;
        let pid = number(&name[at + 1..])?;
        return (at > 0).then_some(u32::try_from(pid).ok());
    }
    let plain = !name.is_empty() && memchr::memchr3(b':', b'/', b'"', name).is_none();
    (plain && (must || name.starts_with(b"haproxy"))).then_some(None)
}

/// `Sun 2026-11-29 16:12:40 UTC host haproxy[425]: ` of `journalctl -o short-full`.
fn weekday(text: &[u8]) -> Option<(Stamp, &[u8])> {
    let (day, rest) = word(text);
    if day.len() != 3 || !day.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let (mut stamp, used) = stamp::iso(rest)?;
    let rest = rest[used..].trim_ascii_start();
    let (zone, after) = word(rest);
    if matches!(zone, b"UTC" | b"GMT") {
        stamp.zone = Some(0);
    }
    Some((stamp, after))
}

/// One entry of `journalctl -o json`.
fn journal_json(text: &[u8]) -> Option<Header<'static>> {
    if text.first() != Some(&b'{') {
        return None;
    }
    let fields = Fields::parse(text)?;
    let message = fields.get("MESSAGE")?.text()?.into_owned().into_bytes();
    let written = fields
        .first(&["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"])
        .and_then(Scalar::text)
        .and_then(|t| stamp::epoch(t.as_bytes()))
        .map_or(Written::No, Written::Stamp);
    let pid = fields
        .first(&["SYSLOG_PID", "_PID"])
        .and_then(Scalar::number)
        .and_then(|n| u32::try_from(n).ok());
    Some(Header {
        written,
        pid,
        for_the_terminal: false,
        message: Cow::Owned(message),
    })
}

/// `[WARNING]  (425) : `, in old versions `[WARNING] 333/161240 (425) : `.
fn terminal(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    const WORDS: [&[u8]; 5] = [b"[NOTICE]", b"[WARNING]", b"[ALERT]", b"[DIAG]", b"[EMERG]"];
    let rest = WORDS.iter().find_map(|w| text.strip_prefix(*w))?;
    let open = memchr::memchr(b'(', rest)?;
    let close = memchr::memchr(b')', rest)?;
    let pid = number(rest.get(open + 1..close)?).and_then(|n| u32::try_from(n).ok());
    let message = rest[close + 1..].trim_ascii_start();
    Some((pid, message.strip_prefix(b":").unwrap_or(message).trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;
    use proptest::prelude::*;

    fn taken_apart(line: &str) -> (Option<String>, Option<u32>, String) {
        let h = parse(line.as_bytes());
        let near = Instant::parse("2026-11-30T00:00:00Z").expect("stamp");
        let at = match h.written {
            Written::Stamp(s) => Some(s.at),
            Written::Yearless(s) => s.near(near),
            Written::No => None,
        };
        (
            at.map(Instant::to_rfc3339),
            h.pid,
            String::from_utf8_lossy(&h.message).into_owned(),
        )
    }

    #[test]
    fn every_header_comes_off() {
        let m = "Server be/w1 is DOWN. 1 active";
        for (line, at, pid) in [
            (
                "2026-11-29T16:12:54.656061+00:00 ",
                Some("2026-11-29T16:12:54.656061Z"),
                None,
            ),
            (
                "<129>Nov 29 16:12:54 localhost haproxy[425]: ",
                Some("2026-11-29T16:12:54Z"),
                Some(425),
            ),
            (
                "<129>Nov 29 16:12:54 haproxy[425]: ",
                Some("2026-11-29T16:12:54Z"),
                Some(425),
            ),
            ("Nov  9 16:12:54 lb01 edge: ", Some("2026-11-09T16:12:54Z"), None),
            (
                "Nov 29 16:12:54.656061 lb01 haproxy[425]: ",
                Some("2026-11-29T16:12:54.656061Z"),
                Some(425),
            ),
            (
                "<129>1 2026-11-29T16:12:54.656074+00:00 - haproxy 425 - - ",
                Some("2026-11-29T16:12:54.656074Z"),
                Some(425),
            ),
            (
                "1 2026-11-30T01:12:54.656074+09:00 lb01 haproxy 425 ID [x@1 a=\"b\\]\"][y c=\"]\"] \u{feff}",
                Some("2026-11-29T16:12:54.656074Z"),
                Some(425),
            ),
            (
                "2026-11-30T01:12:54.656074+09:00 lb01 haproxy[425]: ",
                Some("2026-11-29T16:12:54.656074Z"),
                Some(425),
            ),
            (
                "2026-11-30T01:12:54+0900 lb01 haproxy[425]: ",
                Some("2026-11-29T16:12:54Z"),
                Some(425),
            ),
            (
                "Sun 2026-11-29 16:12:54 UTC lb01 haproxy[425]: ",
                Some("2026-11-29T16:12:54Z"),
                Some(425),
            ),
            ("[WARNING]  (425) : ", None, Some(425)),
            ("[WARNING] 333/161240 (425) : ", None, Some(425)),
            ("haproxy[425]: ", None, Some(425)),
            ("<129>", None, None),
            ("", None, None),
        ] {
            assert_eq!(
                taken_apart(&format!("{line}{m}")),
                (at.map(str::to_owned), pid, m.to_owned()),
                "{line}"
            );
        }
        assert_eq!(
            taken_apart(
                r#"{"__REALTIME_TIMESTAMP":"1796055174656061","_PID":"425","MESSAGE":"Server be/w1 is DOWN. 1 active"}"#
            ),
            (Some("2026-11-30T16:12:54.656061Z".into()), Some(425), m.into())
        );
    }

    #[test]
    fn a_message_that_begins_with_a_word_and_a_colon_is_whole() {
        assert_eq!(
            taken_apart("2026-11-29T16:12:54Z client: 10.0.0.1").2,
            "client: 10.0.0.1"
        );
        assert_eq!(
            taken_apart("2026-11-29T16:12:54Z 10.77.0.100:34900 [29/Nov").2,
            "10.77.0.100:34900 [29/Nov"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(line in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&line);
        }

        #[test]
        fn no_text_panics(line in "(<134>)?(1 )?(2026-11-29T16:12:54Z|Nov 29 16:12:54|-)?( [ -~]{0,12}){0,6}") {
            let _ = parse(line.as_bytes());
        }
    }
}
