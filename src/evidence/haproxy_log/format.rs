//! A `log-format` compiled into a reader of the lines that it writes.
//!
//! HAProxy writes one blank for blanks around an item that is empty, and `-` for a value that is not there.

use std::borrow::Cow;

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

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    /// This text.
    Literal(Vec<u8>),
    /// Blanks.
    Separator,
    /// A value, perhaps in quotes.
    Value(Field, bool),
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
        let mut compiler = Compiler {
            rest: text.as_bytes(),
            items: Vec::new(),
            quoted: false,
            json: false,
            names: Vec::new(),
        };
        compiler.run();
        Self {
            json: compiler.json.then(|| std::mem::take(&mut compiler.names)),
            items: fused(compiler.items),
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

/// `%ci:%cp` is one value: an IPv6 address holds colons.
fn fused(items: Vec<Item>) -> Vec<Item> {
    let mut out: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        if let Item::Value(port, _) = &item
            && let [.., Item::Value(address, quoted), Item::Literal(colon)] = out.as_slice()
            && colon == b":"
        {
            let both = match (address, port) {
                (Field::ClientAddress, Field::ClientPort) => Some(Field::Client),
                (Field::BackendSourceAddress, Field::BackendSourcePort) => Some(Field::BackendSource),
                _ => None,
            };
            if let Some(both) = both {
                let quoted = *quoted;
                out.truncate(out.len() - 2);
                out.push(Item::Value(both, quoted));
                continue;
            }
        }
        out.push(item);
    }
    out
}

struct Compiler<'t> {
    rest: &'t [u8],
    items: Vec<Item>,
    /// `+Q` for all that follows.
    quoted: bool,
    json: bool,
    names: Vec<(String, Field)>,
}

impl Compiler<'_> {
    fn run(&mut self) {
        while let Some(&first) = self.rest.first() {
            if first == b'%' && self.rest.len() > 1 {
                self.rest = &self.rest[1..];
                if self.rest[0] == b'%' {
                    self.literal(b'%');
                    self.rest = &self.rest[1..];
                } else {
                    self.item();
                }
            } else if first == b' ' || first == b'\t' {
                self.rest = self.rest.trim_ascii_start();
                if self.items.last() != Some(&Item::Separator) {
                    self.items.push(Item::Separator);
                }
            } else {
                self.literal(first);
                self.rest = &self.rest[1..];
            }
        }
    }

    fn literal(&mut self, byte: u8) {
        match self.items.last_mut() {
            Some(Item::Literal(text)) => text.push(byte),
            _ => self.items.push(Item::Literal(vec![byte])),
        }
    }

    /// The text up to a closing character, which is passed; nested opening characters and quotes are respected.
    fn until(&mut self, open: u8, close: u8) -> String {
        let mut depth = 1;
        let mut quote = None;
        let end = self
            .rest
            .iter()
            .position(|&b| {
                match quote {
                    Some(q) if b == q => quote = None,
                    Some(_) => {}
                    None if b == b'\'' || b == b'"' => quote = Some(b),
                    None if b == open => depth += 1,
                    None if b == close => depth -= 1,
                    None => {}
                }
                depth == 0
            })
            .unwrap_or(self.rest.len());
        let text = String::from_utf8_lossy(&self.rest[..end]).into_owned();
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        text
    }

    /// After a `%`: `(name)`, `{flags}`, then a name or `[sample]`.
    fn item(&mut self) {
        let mut quoted = self.quoted;
        let mut own_json = false;
        let mut name = None;
        loop {
            if let Some(rest) = self.rest.strip_prefix(b"(") {
                self.rest = rest;
                // `name` or `name:type`.
                let text = self.until(b'(', b')');
                name = Some(text.split(':').next().unwrap_or_default().to_owned());
            } else if let Some(rest) = self.rest.strip_prefix(b"{") {
                self.rest = rest;
                for flag in self.until(b'{', b'}').split(',') {
                    match flag.trim() {
                        "+Q" => quoted = true,
                        "-Q" => quoted = false,
                        "+json" => own_json = true,
                        _ => {}
                    }
                }
            } else {
                break;
            }
        }
        let field = if let Some(rest) = self.rest.strip_prefix(b"[") {
            self.rest = rest;
            let sample = self.until(b'[', b']');
            sample_field(&sample)
        } else {
            let length = self.rest.iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            let (word, used) = self.known(length);
            self.rest = &self.rest[used..];
            if word == "o" {
                // Flags for all that follows; prints nothing.
                self.quoted = quoted;
                self.json |= own_json;
                return;
            }
            named_field(&word)
        };
        if let Some(name) = name {
            self.names.push((name, field));
        }
        self.items.push(Item::Value(field, quoted));
    }

    /// The longest known name at the beginning of the word: `%Tms` is `%T` and `ms` for HAProxy too.
    fn known(&self, length: usize) -> (String, usize) {
        let word = String::from_utf8_lossy(&self.rest[..length]).into_owned();
        for end in (1..=length).rev() {
            if NAMES.contains(&&word[..end]) {
                return (word[..end].to_owned(), end);
            }
        }
        (word, length)
    }
}

/// Every name of `log-format` in versions 1.8 to 3.4.
const NAMES: [&str; 64] = [
    "o", "B", "CC", "CS", "H", "HM", "HP", "HPO", "HQ", "HU", "HV", "ID", "ST", "T", "Ta", "Tc", "Td", "Tl", "Th",
    "Ti", "Tq", "TR", "Tr", "Ts", "Tt", "Tu", "Tw", "U", "ac", "b", "bc", "bi", "bp", "bq", "ci", "cp", "f", "fc",
    "fi", "fp", "ft", "hr", "hrl", "hs", "hsl", "lc", "ms", "pid", "r", "rc", "rt", "s", "sc", "si", "sp", "sq",
    "sslc", "sslv", "t", "tr", "trg", "trl", "ts", "tsc",
];

fn named_field(name: &str) -> Field {
    match name {
        "ci" => Field::ClientAddress,
        "cp" => Field::ClientPort,
        "bi" => Field::BackendSourceAddress,
        "bp" => Field::BackendSourcePort,
        "t" | "tr" | "T" | "Tl" | "trg" | "trl" => Field::Accepted,
        "Ts" => Field::AcceptedSeconds,
        "ms" => Field::AcceptedMillis,
        "f" | "ft" => Field::Frontend,
        "b" => Field::Backend,
        "s" => Field::Server,
        "Tq" | "TR" => Field::TimeRequest,
        "Tw" => Field::TimeQueue,
        "Tc" => Field::TimeConnect,
        "Tr" => Field::TimeResponse,
        "Ta" | "Tt" => Field::TimeTotal,
        "ST" => Field::Status,
        "B" => Field::Bytes,
        "ts" | "tsc" => Field::Termination,
        "rc" => Field::Retries,
        "r" => Field::Request,
        "HM" => Field::Method,
        "HP" | "HPO" | "HU" => Field::Path,
        "HQ" => Field::Query,
        "HV" => Field::Protocol,
        "pid" => Field::Pid,
        "hr" | "hs" | "hrl" | "hsl" => Field::Captures,
        _ => Field::Other,
    }
}

/// A sample expression that stands for one of the fields.
fn sample_field(sample: &str) -> Field {
    let sample: String = sample.chars().filter(|c| !c.is_whitespace()).collect();
    match sample.as_str() {
        "src" | "fc_src" => Field::ClientAddress,
        "src_port" | "fc_src_port" => Field::ClientPort,
        "bc_src" => Field::BackendSourceAddress,
        "bc_src_port" => Field::BackendSourcePort,
        "fe_name" => Field::Frontend,
        "be_name" => Field::Backend,
        "srv_name" => Field::Server,
        "status" | "txn.status" => Field::Status,
        "method" | "capture.req.method" => Field::Method,
        "path" | "pathq" | "url" | "capture.req.uri" => Field::Path,
        "query" => Field::Query,
        "capture.req.ver" => Field::Protocol,
        "pid" => Field::Pid,
        "txn.sess_term_state" => Field::Termination,
        _ if sample.starts_with("accept_date") || sample.starts_with("request_date") => {
            if sample.contains(',') {
                Field::Other
            } else {
                Field::AcceptedEpoch
            }
        }
        _ => Field::Other,
    }
}
