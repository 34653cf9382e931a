//! A `log-format` compiled into a reader of the lines that it writes.
//!
//! HAProxy writes one blank for blanks around an item that is empty, and `-` for a value that is not there.

use std::borrow::Cow;

use super::compile::{Item, compile};
use super::draft::{Draft, Field, Misfit};
use crate::evidence::json_object::{Fields, Scalar};
use crate::evidence::stamp;

/// `option httplog`.
const HTTPLOG: &str =
    "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r";
/// What `option httpslog` adds.
const HTTPSLOG_TAIL: &str =
    " %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc";
/// `option tcplog`.
const TCPLOG: &str = "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq";

/// A compiled format.
#[derive(Debug, Clone)]
pub(crate) struct Format {
    items: Vec<Item>,
    /// Names and fields of a format that writes one JSON object (`%{+json}o`).
    json: Option<Vec<(String, Field)>>,
    /// Whether more may follow on the line.
    open: bool,
}

impl Format {
    /// `option httplog`, and whatever a site adds behind it.
    pub(crate) fn httplog() -> Self {
        Self {
            open: true,
            ..Self::compile(HTTPLOG)
        }
    }

    /// `option httpslog`.
    pub(crate) fn httpslog() -> Self {
        Self::compile(&format!("{HTTPLOG}{HTTPSLOG_TAIL}"))
    }

    /// `option tcplog`, and whatever a site adds behind it.
    pub(crate) fn tcplog() -> Self {
        Self {
            open: true,
            ..Self::compile(TCPLOG)
        }
    }

    /// Compiles a `log-format`.
    pub(crate) fn compile(text: &str) -> Self {
        let (items, json) = compile(text);
        Self {
            items,
            json,
            open: false,
        }
    }

    /// Reads a line; `None` when it was not written in this format.
    pub(crate) fn read(&self, line: &[u8]) -> Option<Draft> {
        let mut draft = Draft::default();
        match &self.json {
            Some(names) => self.read_json(names, line, &mut draft)?,
            None => {
                let rest = self.read_items(line, &mut draft).ok()?;
                let rest = rest.trim_ascii();
                if !rest.is_empty() {
                    if !self.open {
                        return None;
                    }
                    addition(rest, &mut draft);
                }
            }
        }
        Some(draft)
    }

    fn read_json(&self, names: &[(String, Field)], line: &[u8], draft: &mut Draft) -> Option<()> {
        let fields = Fields::parse(line)?;
        let mut any = false;
        for (name, field) in names {
            if let Some(value) = fields.get(name).and_then(Scalar::text) {
                draft.set(*field, value.as_bytes()).ok()?;
                any = true;
            }
        }
        any.then_some(())
    }

    fn read_items<'l>(&self, line: &'l [u8], draft: &mut Draft) -> Result<&'l [u8], Misfit> {
        let mut rest = line;
        // A blank was just passed, so that another separator needs none.
        let mut blank = true;
        for (i, item) in self.items.iter().enumerate() {
            match item {
                Item::Literal(text) => {
                    rest = rest.strip_prefix(text.as_slice()).ok_or(Misfit)?;
                    blank = false;
                }
                Item::Separator => {
                    let trimmed = rest.trim_ascii_start();
                    if trimmed.len() == rest.len() && !blank && !rest.is_empty() {
                        return Err(Misfit);
                    }
                    rest = trimmed;
                    blank = true;
                }
                Item::Value(field, quoted) => {
                    let next = self.items.get(i + 1);
                    let (value, after) = value(rest, *field, *quoted, next).ok_or(Misfit)?;
                    if *field == Field::Captures && value.is_empty() {
                        continue;
                    }
                    draft.set(*field, &value)?;
                    rest = after;
                    blank = false;
                }
            }
        }
        Ok(rest)
    }
}

/// A value at the beginning of the text, and what follows it.
fn value<'l>(rest: &'l [u8], field: Field, quoted: bool, next: Option<&Item>) -> Option<(Cow<'l, [u8]>, &'l [u8])> {
    if field == Field::Captures {
        return Some(captures(rest));
    }
    if quoted && rest.first() == Some(&b'"') {
        return Some(unquoted(&rest[1..]));
    }
    if field == Field::Accepted {
        // With a zone it holds a blank.
        let (_, used) = stamp::clf(rest).or_else(|| stamp::iso(rest))?;
        return Some((Cow::Borrowed(&rest[..used]), &rest[used..]));
    }
    let end = match next {
        None => rest.len(),
        Some(Item::Literal(text)) => memchr::memmem::find(rest, text)?,
        Some(Item::Separator) if field == Field::Request => request_end(rest),
        Some(Item::Separator) => memchr::memchr(b' ', rest).unwrap_or(rest.len()),
        // Two values without anything between them: the first one is what its kind allows.
        Some(Item::Value(..)) => rest
            .iter()
            .position(|b| !b.is_ascii_alphanumeric() && *b != b'-')
            .unwrap_or(rest.len()),
    };
    Some((Cow::Borrowed(&rest[..end]), &rest[end..]))
}

/// Of an unquoted request line: up to its protocol.
fn request_end(rest: &[u8]) -> usize {
    if rest.starts_with(b"<") {
        return memchr::memchr(b'>', rest).map_or(rest.len(), |at| at + 1);
    }
    match memchr::memmem::find(rest, b" HTTP/") {
        Some(at) => memchr::memchr(b' ', &rest[at + 1..]).map_or(rest.len(), |end| at + 1 + end),
        None => rest.len(),
    }
}

/// `{a|b}`, or nothing.
fn captures(rest: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    if rest.first() != Some(&b'{') {
        return (Cow::Borrowed(&[]), rest);
    }
    let end = match memchr::memmem::find(rest, b"} ") {
        Some(at) => at + 1,
        None if rest.ends_with(b"}") => rest.len(),
        None => return (Cow::Borrowed(&[]), rest),
    };
    (Cow::Borrowed(&rest[..end]), &rest[end..])
}

/// A quoted value after its first quote; without its last one when a limit of syslog has cut the line.
fn unquoted(rest: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    let mut at = 0;
    while let Some(i) = memchr::memchr2(b'"', b'\\', &rest[at..]) {
        let i = at + i;
        if rest[i] == b'"' {
            return (Cow::Borrowed(&rest[..i]), &rest[i + 1..]);
        }
        at = (i + 2).min(rest.len());
    }
    (Cow::Borrowed(rest), &[])
}

/// What a site added behind a standard format, where no configuration tells: `bi=10.77.0.211:47866`.
fn addition(rest: &[u8], draft: &mut Draft) {
    for word in rest.split(|b| *b == b' ') {
        if let Some(value) = word.strip_prefix(b"bi=") {
            let _ = draft.set(Field::BackendSource, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::haproxy_log::HaproxyRequest;
    use crate::evidence::reading::Reading;
    use crate::time::{Duration, Instant};
    use proptest::prelude::*;

    const LINE: &str = "10.77.0.100:34900 [29/Nov/2026:16:12:45.703] fe be/w1 0/0/0/-1/8953 502 209 - - DH-- 1/1/0/0/0 0/0 \"GET /sleep?seconds=60 HTTP/1.1\"";

    fn read(format: &Format, line: &str) -> Option<HaproxyRequest> {
        let draft = format.read(line.as_bytes())?;
        let at = draft.accepted().map(|s| s.at);
        Some(draft.finish(at, &mut Reading::default()))
    }

    fn custom(format: &str, line: &str) -> HaproxyRequest {
        read(&Format::compile(format), line).expect(line)
    }

    #[test]
    fn httplog_and_what_a_site_adds() {
        let r = read(&Format::httplog(), LINE).expect("httplog");
        assert_eq!(r.client.map(|c| c.to_string()).as_deref(), Some("10.77.0.100:34900"));
        assert_eq!(
            (r.frontend.as_deref(), r.backend.as_deref(), r.server.as_deref()),
            (Some("fe"), Some("be"), Some("w1"))
        );
        assert_eq!((r.time_request, r.time_response), (Some(Duration::ZERO), None));
        assert_eq!(
            (r.time_total, r.status, r.bytes),
            (Some(Duration::from_millis(8953)), Some(502), Some(209))
        );
        assert_eq!(
            (r.termination.to_string(), r.retries, r.redispatched),
            ("DH--".into(), 0, false)
        );
        assert_eq!(
            (r.method.as_deref(), r.path.as_deref(), r.protocol.as_deref()),
            (Some("GET"), Some("/sleep?seconds=60"), Some("HTTP/1.1"))
        );
        let r = read(&Format::httplog(), &format!("{LINE} bi=10.77.0.211:47866")).expect("with an addition");
        assert_eq!(
            r.backend_source.map(|c| c.to_string()).as_deref(),
            Some("10.77.0.211:47866")
        );
    }

    #[test]
    fn other_ends_of_a_request() {
        let line = |from: &str, to: &str| LINE.replace(from, to);
        let r = read(
            &Format::httplog(),
            &line("be/w1 0/0/0/-1/8953 502", "be/<NOSRV> 0/-1/-1/-1/+2 -1"),
        )
        .expect("no server");
        assert_eq!(
            (r.server, r.status, r.as_soon_as_possible, r.time_queue),
            (None, None, true, None)
        );
        let r = read(&Format::httplog(), &line("1/1/0/0/0 ", "1/1/0/0/+2 ")).expect("redispatched");
        assert_eq!((r.retries, r.redispatched), (2, true));
        let r = read(&Format::httplog(), &line("fe be", "fe~ be")).expect("tls");
        assert_eq!(r.frontend.as_deref(), Some("fe"));
        let r = read(
            &Format::httplog(),
            &line("GET /sleep?seconds=60 HTTP/1.1", "GET https://h.test/a?b=c HTTP/2.0"),
        )
        .expect("h2");
        assert_eq!(
            (r.path.as_deref(), r.protocol.as_deref()),
            (Some("/a?b=c"), Some("HTTP/2.0"))
        );
        let r = read(
            &Format::httplog(),
            &line("\"GET /sleep?seconds=60 HTTP/1.1\"", "\"<BADREQ>\""),
        )
        .expect("bad request");
        assert_eq!((r.method, r.path), (None, None));
        let r = read(&Format::httplog(), &line("0/0 \"", "0/0 {agent (x; y)|z} {|} \"")).expect("captures");
        assert_eq!(r.path.as_deref(), Some("/sleep?seconds=60"));
        let r = read(&Format::httplog(), &line("10.77.0.100:34900", "2001:db8::1:34900")).expect("IPv6");
        assert_eq!(r.client.map(|c| c.to_string()).as_deref(), Some("[2001:db8::1]:34900"));
        let r = read(
            &Format::httplog(),
            &line("10.77.0.100:34900", "::ffff:10.77.0.100:34900"),
        )
        .expect("mapped");
        assert_eq!(r.client.map(|c| c.to_string()).as_deref(), Some("10.77.0.100:34900"));
        // A limit of syslog has cut it.
        let r = read(&Format::httplog(), &line("?seconds=60 HTTP/1.1\"", "?sec")).expect("cut");
        assert_eq!(r.path.as_deref(), Some("/sleep?sec"));
        assert!(read(&Format::httplog(), &line("8953", "x")).is_none());
        assert!(read(&Format::httplog(), "Connect from 10.0.0.1:1 to 10.0.0.2:80 (fe/HTTP)").is_none());
    }

    #[test]
    fn tcplog_and_httpslog() {
        let r = read(
            &Format::tcplog(),
            "10.0.0.1:34900 [29/Nov/2026:16:12:45.703] fe be/w1 1/0/8953 209 SD 1/1/0/0/3 0/0",
        )
        .expect("tcplog");
        assert_eq!(
            (r.termination.to_string(), r.retries, r.status),
            ("SD--".into(), 3, None)
        );
        assert_eq!(
            (r.time_total, r.time_queue),
            (Some(Duration::from_millis(8953)), Some(Duration::from_millis(1)))
        );
        let r = read(
            &Format::httpslog(),
            &format!("{LINE} 0/0/0/0/0 service-a.test/TLSv1.3/TLS_AES_256_GCM_SHA384"),
        )
        .expect("httpslog");
        assert_eq!(r.status, Some(502));
        assert!(read(&Format::httpslog(), LINE).is_none());
    }

    #[test]
    fn formats_of_a_site() {
        let r = custom(
            r#"{"t":"%T","ms":%ms,"c":"%ci","p":%cp,"be":"%b","srv":"%s","st":%ST,"tsc":"%tsc","Ta":%Ta,"m":"%HM","u":"%HPO","q":"%HQ","bi":"%bi:%bp","x":"%[ssl_fc_sni,lower]"}"#,
            r#"{"t":"29/Nov/2026:16:12:45 +0000","ms":703,"c":"10.0.0.1","p":34900,"be":"be","srv":"w1","st":502,"tsc":"DH--","Ta":8953,"m":"GET","u":"/sleep","q":"?a=1","bi":"10.0.0.2:1","x":"-"}"#,
        );
        assert_eq!(
            (r.client.map(|c| c.port()), r.status, r.path.as_deref()),
            (Some(34900), Some(502), Some("/sleep?a=1"))
        );
        let accepted = Instant::parse("2026-11-29T16:12:45.703Z").expect("stamp");
        assert!(
            r.accepted.contains(accepted) && r.accepted.width() == Some(Duration::from_millis(1)),
            "{}",
            r.accepted
        );
        assert_eq!(r.backend_source.map(|c| c.port()), Some(1));
        // Flags for all, names with a colon in the value, an unquoted request line, no termination state.
        let r = custom(
            "%{+Q}o be=%b srv=%s %{-Q}r %[src] %%",
            "be=\"b e\" srv=\"w1\" GET /x y HTTP/1.1 10.0.0.9 %",
        );
        assert_eq!((r.backend.as_deref(), r.server.as_deref()), (Some("b e"), Some("w1")));
        assert_eq!((r.method.as_deref(), r.path.as_deref()), (Some("GET"), Some("/x")));
        assert!(!r.termination.is_normal() && !r.termination.cut_by_down());
        let r = custom(
            "%{+json}o %(client)ci %(st)ST %(term)tsc %(when)[accept_date(ms)] %(skip)CC",
            r#"{"client": "10.0.0.1", "st": 200, "term": "----", "when": 1795968765703, "skip": null}"#,
        );
        assert_eq!((r.status, r.termination.is_normal()), (Some(200), true));
        assert!(r.accepted.contains(accepted), "{}", r.accepted);
        let r = custom(
            "%[accept_date(us)] %b/%s %{+Q,+E}r",
            "1795968765703001 be/w1 \"GET /a\\\"b HTTP/1.1\"",
        );
        assert_eq!(r.path.as_deref(), Some("/a\\\"b"));
        assert_eq!(r.accepted.width(), Some(Duration::from_micros(1)));
    }

    proptest! {
        #[test]
        fn no_format_and_no_line_panic(format in "(%[a-zA-Z]{1,3}|%\\{[+Q,a-z]{0,4}\\}|%\\[|%\\(|[ -~]){0,12}", line in "[ -~]{0,60}") {
            let _ = Format::compile(&format).read(line.as_bytes());
        }

        #[test]
        fn no_cut_line_panics(cut in 0usize..LINE.len(), bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
            let line = [&LINE.as_bytes()[..cut], &bytes[..]].concat();
            for format in [Format::httplog(), Format::httpslog(), Format::tcplog()] {
                let _ = format.read(&line);
            }
        }
    }
}
