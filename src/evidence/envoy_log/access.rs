//! Access lines: Envoy's default text, Istio's text, a text with `name=value` fields, and JSON.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::EnvoyRequest;
use crate::evidence::json_object::{Fields, Scalar};
use crate::evidence::reading::{Reading, number};
use crate::evidence::stamp::{self, Stamp};
use crate::evidence::{Endpoint, FileId, Place};
use crate::time::{Bracket, Duration};

/// An access line, with digits of its stamp so that the resolution may be settled for the whole file.
pub(crate) struct AccessLine {
    pub(crate) request: EnvoyRequest,
    pub(crate) stamp: Stamp,
}

/// Which keys of a JSON access log mean what: pairs of Istio's key and the site's own, from the environment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JsonKeys(Vec<(String, String)>);

impl JsonKeys {
    /// From `(istio's key, own key)` pairs: `("response_code", "status")`.
    pub fn new(pairs: &[(String, String)]) -> Self {
        Self(pairs.to_vec())
    }

    fn get<'f, 'a>(&self, fields: &'f Fields<'a>, keys: &[&str]) -> Option<&'f Scalar<'a>> {
        let own = self.0.iter().find(|(istio, _)| keys.contains(&istio.as_str()));
        match own {
            Some((_, own)) => fields.get(own),
            None => fields.first(keys),
        }
    }
}

/// Values before they have their types.
#[derive(Default)]
struct Values<'a> {
    method: Option<Cow<'a, str>>,
    path: Option<Cow<'a, str>>,
    protocol: Option<Cow<'a, str>>,
    code: Option<u64>,
    flags: Option<Cow<'a, str>>,
    details: Option<Cow<'a, str>>,
    bytes_sent: Option<u64>,
    duration: Option<u64>,
    downstream: Option<Cow<'a, str>>,
    local: Option<Cow<'a, str>>,
    upstream: Option<Cow<'a, str>>,
    cluster: Option<Cow<'a, str>>,
    request_id: Option<Cow<'a, str>>,
}

/// Reads an access line in JSON; `None` for JSON of another kind.
pub(crate) fn json(fields: &Fields<'_>, keys: &JsonKeys, names: &mut Reading) -> Option<AccessLine> {
    let get = |k: &[&str]| keys.get(fields, k);
    let text = |k: &[&str]| get(k).and_then(Scalar::text);
    let count = |k: &[&str]| get(k).and_then(Scalar::number);
    let stamp = get(&["start_time", "startTime", "timestamp", "time", "@timestamp", "ts"])?.stamp()?;
    let code = get(&["response_code", "responseCode", "status", "code"]);
    let duration = get(&["duration", "duration_ms", "total_duration"]);
    // An application's line has a level and a message.
    if code.is_none() && duration.is_none() {
        return None;
    }
    let values = Values {
        method: text(&["method", "req_method"]),
        path: text(&["path", "x_envoy_original_path", "req_path", "uri"]),
        protocol: text(&["protocol"]),
        code: code.and_then(Scalar::number),
        flags: text(&["response_flags", "responseFlags", "flags"]),
        details: text(&["response_code_details", "details"]),
        bytes_sent: count(&["bytes_sent", "bytesSent"]),
        duration: duration.and_then(Scalar::number),
        downstream: text(&["downstream_remote_address", "downstream_direct_remote_address", "down"]),
        local: text(&["downstream_local_address", "local"]),
        upstream: text(&["upstream_host", "up"]),
        cluster: text(&["upstream_cluster", "upstream_cluster_raw", "cluster"]),
        request_id: text(&["request_id", "x_request_id"]),
    };
    Some(line(stamp, values, names))
}

/// Reads an access line in text: `[START] "METHOD PATH PROTOCOL" CODE FLAGS ...`.
pub(crate) fn text(line_text: &[u8], names: &mut Reading) -> Option<AccessLine> {
    let rest = line_text.strip_prefix(b"[")?;
    let (stamp, used) = stamp::iso(rest)?;
    let rest = rest[used..].strip_prefix(b"] \"")?;
    let end = end_of_request(rest)?;
    let request = String::from_utf8_lossy(&rest[..end]);
    let words = Words::split(rest.get(end + 2..)?);
    let mut request_words = request.split(' ');
    let mut values = Values {
        method: value(request_words.next()?),
        path: request_words.next().and_then(value),
        protocol: request_words.next().and_then(value),
        code: number(words.bare(0)?.as_bytes()),
        flags: value(words.bare(1)?),
        ..Values::default()
    };
    let count = |i: usize| words.bare(i).and_then(|w| number(w.as_bytes()));
    let is_count = |i: usize| {
        words
            .bare(i)
            .is_some_and(|w| w == "-" || number(w.as_bytes()).is_some())
    };
    let text_at = |i: usize| words.any(i).and_then(value);
    if is_count(2) && is_count(3) && is_count(4) && words.bare(2) != Some("-") {
        // Envoy's default: received, sent, duration, upstream's time, then quoted: forwarded for, agent, request id,
        // authority, upstream host.
        values.bytes_sent = count(3);
        values.duration = count(4);
        values.request_id = text_at(8);
        values.upstream = text_at(10);
    } else if words.quoted(4) {
        // Istio's: details, termination details, quoted transport failure, received, sent, duration, upstream's
        // time, then quoted: forwarded for, agent, request id, authority, upstream host; cluster, upstream local,
        // downstream local, downstream remote, server name, route.
        values.details = text_at(2);
        values.bytes_sent = count(6);
        values.duration = count(7);
        values.request_id = text_at(11);
        values.upstream = text_at(13);
        values.cluster = text_at(14);
        values.local = text_at(16);
        values.downstream = text_at(17);
    } else {
        // Details, received, sent, duration, then fields by name.
        values.details = text_at(2);
        values.bytes_sent = count(4);
        values.duration = count(5);
    }
    for word in &words.0 {
        let Word::Bare(w) = word else { continue };
        if let Some((name, v)) = w.split_once('=') {
            let v = value(v);
            match name {
                "down" => values.downstream = v,
                "local" => values.local = v,
                "up" => values.upstream = v,
                "cluster" => values.cluster = v,
                "id" | "request_id" => values.request_id = v,
                _ => {}
            }
        }
    }
    Some(line(stamp, values.into_owned(), names))
}

impl Values<'_> {
    fn into_owned(self) -> Values<'static> {
        let own = |t: Option<Cow<'_, str>>| t.map(|t| Cow::Owned(t.into_owned()));
        Values {
            method: own(self.method),
            path: own(self.path),
            protocol: own(self.protocol),
            code: self.code,
            flags: own(self.flags),
            details: own(self.details),
            bytes_sent: self.bytes_sent,
            duration: self.duration,
            downstream: own(self.downstream),
            local: own(self.local),
            upstream: own(self.upstream),
            cluster: own(self.cluster),
            request_id: own(self.request_id),
        }
    }
}

/// `-` is no value.
fn value(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty() && text != "-").then_some(Cow::Borrowed(text))
}

/// Where the quoted request line ends: a path may hold quotes, but `" ` is followed by the status.
fn end_of_request(rest: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(rest, b"\" ").find(|at| {
        let after = &rest[at + 2..];
        let word = &after[..memchr::memchr(b' ', after).unwrap_or(after.len())];
        word == b"-" || number(word).is_some()
    })
}

enum Word<'a> {
    Bare(Cow<'a, str>),
    Quoted(Cow<'a, str>),
}

/// Blank-separated words; a quoted one may hold blanks.
struct Words<'a>(Vec<Word<'a>>);

impl<'a> Words<'a> {
    fn split(text: &'a [u8]) -> Self {
        let mut words = Vec::with_capacity(20);
        let mut rest = text.trim_ascii();
        while !rest.is_empty() {
            if let Some(quoted) = rest.strip_prefix(b"\"") {
                // The closing quote is followed by a blank or the end.
                let end = memchr::memmem::find(quoted, b"\" ")
                    .unwrap_or_else(|| quoted.len().saturating_sub(usize::from(quoted.ends_with(b"\""))));
                words.push(Word::Quoted(String::from_utf8_lossy(&quoted[..end])));
                rest = quoted.get(end + 1..).unwrap_or_default().trim_ascii_start();
            } else {
                let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
                words.push(Word::Bare(String::from_utf8_lossy(&rest[..end])));
                rest = rest[end..].trim_ascii_start();
            }
        }
        Self(words)
    }

    fn bare(&self, i: usize) -> Option<&str> {
        match self.0.get(i)? {
            Word::Bare(w) => Some(w),
            Word::Quoted(_) => None,
        }
    }

    fn any(&self, i: usize) -> Option<&str> {
        match self.0.get(i)? {
            Word::Bare(w) | Word::Quoted(w) => Some(w),
        }
    }

    fn quoted(&self, i: usize) -> bool {
        matches!(self.0.get(i), Some(Word::Quoted(_)))
    }
}

/// `10.0.0.1:80`, `[::1]:80`; a bare address has port 0, which is no port.
fn endpoint(text: &str) -> Option<Endpoint> {
    if let Ok(e) = text.parse::<SocketAddr>() {
        return Some(SocketAddr::new(e.ip().to_canonical(), e.port()));
    }
    let ip: IpAddr = text.trim_matches(['[', ']']).parse().ok()?;
    Some(SocketAddr::new(ip.to_canonical(), 0))
}

fn line(stamp: Stamp, v: Values<'_>, names: &mut Reading) -> AccessLine {
    let mut name = |t: Option<Cow<'_, str>>| t.map(|t| names.name(&t));
    let path = v.path.map(|p| match p {
        Cow::Borrowed(p) => Cow::Borrowed(crate::evidence::haproxy_log::path_of(p)),
        Cow::Owned(p) => Cow::Owned(crate::evidence::haproxy_log::path_of(&p).to_owned()),
    });
    let request = EnvoyRequest {
        started: stamp::pending(stamp.at),
        duration: v
            .duration
            .and_then(|d| i64::try_from(d).ok())
            .filter(|d| *d < 1_000_000_000_000)
            .map(Duration::from_millis),
        ended: Bracket::OPEN,
        place: Place {
            file: FileId(0),
            line: 0,
        },
        runtime: None,
        arrival: None,
        method: name(v.method),
        path: name(path),
        protocol: name(v.protocol),
        status: v.code.and_then(|c| u16::try_from(c).ok()).filter(|c| *c != 0),
        flags: v
            .flags
            .iter()
            .flat_map(|f| f.split(','))
            .map(str::trim)
            .filter(|f| !f.is_empty())
            .map(|f| name(Some(Cow::Borrowed(f))).unwrap_or_else(|| Arc::from(f)))
            .collect(),
        details: name(v.details),
        bytes_sent: v.bytes_sent,
        downstream: v.downstream.as_deref().and_then(endpoint),
        local: v.local.as_deref().and_then(endpoint),
        upstream: v.upstream.as_deref().and_then(endpoint),
        cluster: name(v.cluster),
        request_id: v.request_id.map(Cow::into_owned),
    };
    AccessLine { request, stamp }
}
