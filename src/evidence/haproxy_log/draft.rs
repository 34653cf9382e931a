//! An access line while its fields are read one by one.

use std::net::IpAddr;

use super::{HaproxyRequest, Termination};
use crate::evidence::reading::{Reading, excerpt, number};
use crate::evidence::stamp::{self, Stamp};
use crate::time::{Bracket, Duration, Instant};

/// Longest path that is kept.
const PATH_LIMIT: usize = 4096;

/// The fields of `log-format` that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// `%ci:%cp`.
    Client,
    /// `%ci`.
    ClientAddress,
    /// `%cp`.
    ClientPort,
    /// `%bi:%bp`.
    BackendSource,
    /// `%bi`.
    BackendSourceAddress,
    /// `%bp`.
    BackendSourcePort,
    /// `%t %tr %T %Tl %trg %trl`.
    Accepted,
    /// `%Ts`: seconds since 1970.
    AcceptedSeconds,
    /// `%ms`: milliseconds of `%Ts`.
    AcceptedMillis,
    /// A sample of a date: a number since 1970.
    AcceptedEpoch,
    /// `%f`, `%ft`.
    Frontend,
    /// `%b`.
    Backend,
    /// `%s`.
    Server,
    /// `%Tq`, `%TR`.
    TimeRequest,
    /// `%Tw`.
    TimeQueue,
    /// `%Tc`.
    TimeConnect,
    /// `%Tr`.
    TimeResponse,
    /// `%Ta`, `%Tt`.
    TimeTotal,
    /// `%ST`.
    Status,
    /// `%B`.
    Bytes,
    /// `%ts`, `%tsc`.
    Termination,
    /// `%rc`.
    Retries,
    /// `%r`.
    Request,
    /// `%HM`.
    Method,
    /// `%HP`, `%HPO`, `%HU`: path, or path and query.
    Path,
    /// `%HQ`: `?query`.
    Query,
    /// `%HV`.
    Protocol,
    /// `%pid`.
    Pid,
    /// `%hr`, `%hs`: `{a|b}` for each capture, or nothing.
    Captures,
    /// Anything else that takes its place.
    Other,
}

/// What was read so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Draft {
    client_address: Option<IpAddr>,
    client_port: Option<u16>,
    source_address: Option<IpAddr>,
    source_port: Option<u16>,
    accepted: Option<Stamp>,
    accepted_millis: Option<u64>,
    frontend: Option<String>,
    backend: Option<String>,
    server: Option<String>,
    times: [Option<Duration>; 5],
    as_soon_as_possible: bool,
    status: Option<u16>,
    bytes: Option<u64>,
    termination: Option<Termination>,
    retries: u32,
    redispatched: bool,
    method: Option<String>,
    path: Option<String>,
    query: Option<String>,
    protocol: Option<String>,
    /// `%pid`.
    pub(crate) pid: Option<u32>,
}

/// The value does not fit its field, so the line was not written in this format.
pub(crate) struct Misfit;

fn text(value: &[u8]) -> Option<String> {
    (!value.is_empty() && value != b"-").then(|| excerpt(value, PATH_LIMIT))
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(value).ok()?;
    let ip: IpAddr = text.trim_matches(['[', ']']).parse().ok()?;
    Some(ip.to_canonical())
}

/// `-1` and other negatives: it did not come so far.
fn milliseconds(value: &[u8]) -> Result<Option<Duration>, Misfit> {
    let digits = value
        .strip_prefix(b"-")
        .or_else(|| value.strip_prefix(b"+"))
        .unwrap_or(value);
    let n = number(digits).and_then(|n| i64::try_from(n).ok()).ok_or(Misfit)?;
    Ok((value[0] != b'-').then(|| Duration::from_millis(n)))
}

impl Draft {
    /// Takes a value.
    pub(crate) fn set(&mut self, field: Field, value: &[u8]) -> Result<(), Misfit> {
        match field {
            Field::Client | Field::BackendSource => {
                let (ip, port) = match memchr::memrchr(b':', value) {
                    Some(at) => (address(&value[..at]), number(&value[at + 1..])),
                    // A UNIX socket, or no connection at all.
                    None if value == b"-" || value == b"unix" => (None, None),
                    None => return Err(Misfit),
                };
                if ip.is_none() && !matches!(value, b"-" | b"-:-" | b"unix" | b":0") && !value.starts_with(b"unix:") {
                    return Err(Misfit);
                }
                let port = port.and_then(|p| u16::try_from(p).ok());
                if field == Field::Client {
                    (self.client_address, self.client_port) = (ip, port);
                } else {
                    (self.source_address, self.source_port) = (ip, port);
                }
            }
            Field::ClientAddress => self.client_address = address(value),
            Field::ClientPort => self.client_port = number(value).and_then(|p| u16::try_from(p).ok()),
            Field::BackendSourceAddress => self.source_address = address(value),
            Field::BackendSourcePort => self.source_port = number(value).and_then(|p| u16::try_from(p).ok()),
            Field::Accepted => {
                let (stamp, _) = stamp::clf(value).or_else(|| stamp::iso(value)).ok_or(Misfit)?;
                // The finest of several (`%t` and `%T`).
                if self.accepted.is_none_or(|a| a.digits <= stamp.digits) {
                    self.accepted = Some(stamp);
                }
            }
            Field::AcceptedSeconds | Field::AcceptedEpoch => {
                self.accepted = Some(stamp::epoch(value).ok_or(Misfit)?);
            }
            Field::AcceptedMillis => {
                self.accepted_millis = Some(number(value).filter(|n| *n < 1000).ok_or(Misfit)?);
            }
            Field::Frontend => self.frontend = text(value.strip_suffix(b"~").unwrap_or(value)),
            Field::Backend => self.backend = text(value),
            Field::Server => self.server = text(value).filter(|s| !s.starts_with('<')),
            Field::TimeRequest => self.times[0] = milliseconds(value)?,
            Field::TimeQueue => self.times[1] = milliseconds(value)?,
            Field::TimeConnect => self.times[2] = milliseconds(value)?,
            Field::TimeResponse => self.times[3] = milliseconds(value)?,
            Field::TimeTotal => {
                self.as_soon_as_possible |= value.starts_with(b"+");
                self.times[4] = milliseconds(value)?;
            }
            Field::Status => {
                if value != b"-1" && value != b"-" {
                    let code = number(value).filter(|n| *n < 1000).ok_or(Misfit)?;
                    self.status = u16::try_from(code).ok().filter(|c| *c > 0);
                }
            }
            Field::Bytes => {
                self.as_soon_as_possible |= value.starts_with(b"+");
                self.bytes = Some(number(value.strip_prefix(b"+").unwrap_or(value)).ok_or(Misfit)?);
            }
            Field::Termination => {
                let state = match *value {
                    [a, b] => [a, b, b'-', b'-'],
                    [a, b, c, d] => [a, b, c, d],
                    _ => return Err(Misfit),
                };
                if !state.iter().all(|b| b.is_ascii_alphabetic() || *b == b'-') {
                    return Err(Misfit);
                }
                self.termination = Some(Termination(state));
            }
            Field::Retries => {
                self.redispatched = value.starts_with(b"+");
                let n = number(value.strip_prefix(b"+").unwrap_or(value)).ok_or(Misfit)?;
                self.retries = u32::try_from(n).unwrap_or(u32::MAX);
            }
            Field::Request => self.request_line(value),
            Field::Method => self.method = text(value),
            Field::Path => self.path = text(value),
            Field::Query => self.query = text(value),
            Field::Protocol => self.protocol = text(value),
            Field::Pid => self.pid = number(value).and_then(|n| u32::try_from(n).ok()),
            Field::Captures | Field::Other => {}
        }
        Ok(())
    }

    /// `GET /sleep?seconds=60 HTTP/1.1`, `<BADREQ>`, or cut by a limit of syslog.
    fn request_line(&mut self, value: &[u8]) {
        if value.starts_with(b"<") {
            return;
        }
        let mut words = value.split(|b| *b == b' ');
        self.method = words.next().and_then(text);
        self.path = words.next().and_then(text);
        self.protocol = words.next().and_then(text);
    }

    /// When it was accepted, as written.
    pub(crate) fn accepted(&self) -> Option<Stamp> {
        let stamp = self.accepted?;
        match self.accepted_millis {
            Some(ms) if stamp.digits == 0 => Some(Stamp {
                at: stamp.at + Duration::from_millis(i64::try_from(ms).unwrap_or(0)),
                digits: 3,
                ..stamp
            }),
            _ => Some(stamp),
        }
    }

    /// All of it, in whole milliseconds.
    pub(crate) fn total(&self) -> Option<Duration> {
        self.times[4]
    }

    /// The line is of a request: a format of connections only, or of nothing, is none.
    pub(crate) fn finish(self, accepted: Option<Instant>, names: &mut Reading) -> HaproxyRequest {
        let digits = self.accepted().map_or(0, |s| s.digits);
        let mut name = |text: Option<String>| text.map(|t| names.name(&t));
        let path = self.path.map(|p| {
            let path = path_of(&p);
            match &self.query {
                Some(q) if !path.contains('?') => format!("{path}{}{q}", if q.starts_with('?') { "" } else { "?" }),
                _ => path.to_owned(),
            }
        });
        HaproxyRequest {
            client: self.client_address.zip(self.client_port).map(Into::into),
            accepted: accepted.map_or(Bracket::OPEN, |t| Bracket::floored(t, stamp::resolution(digits))),
            frontend: name(self.frontend),
            backend: name(self.backend),
            server: name(self.server),
            time_request: self.times[0],
            time_queue: self.times[1],
            time_connect: self.times[2],
            time_response: self.times[3],
            time_total: self.times[4],
            as_soon_as_possible: self.as_soon_as_possible,
            status: self.status,
            bytes: self.bytes,
            termination: self.termination.unwrap_or(Termination::UNKNOWN),
            retries: self.retries,
            redispatched: self.redispatched,
            method: name(self.method),
            path: name(path),
            protocol: name(self.protocol),
            backend_source: self.source_address.zip(self.source_port).map(Into::into),
        }
    }
}

/// Path and query of an absolute URI; anything else as it is.
pub(crate) fn path_of(url: &str) -> &str {
    match url.split_once("://") {
        Some((scheme, rest)) if scheme.bytes().all(|b| b.is_ascii_alphabetic()) => {
            rest.find(['/', '?']).map_or("/", |at| &rest[at..])
        }
        _ => url,
    }
}
