//! From the text of a `log-format` to the items that a line consists of. The names are those of HAProxy's
//! configuration manual, versions 1.8 to 3.4.

use super::draft::Field;

/// An item of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// This text.
    Literal(Vec<u8>),
    /// Blanks.
    Separator,
    /// A value, perhaps in quotes.
    Value(Field, bool),
}

/// The items of a format; and, of one that writes a JSON object (`%{+json}o`), its keys and their fields.
pub(super) fn compile(text: &str) -> (Vec<Item>, Option<Vec<(String, Field)>>) {
    let mut compiler = Compiler {
        rest: text.as_bytes(),
        items: Vec::new(),
        quoted: false,
        json: false,
        names: Vec::new(),
    };
    compiler.run();
    let json = compiler.json.then(|| std::mem::take(&mut compiler.names));
    (fused(compiler.items), json)
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
