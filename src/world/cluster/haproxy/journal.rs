//! HAProxy's log from the journal of a host.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use super::follow::{Read, Source};
use crate::time::{Duration, Instant};
use crate::world::cluster::ssh::{Session, Ssh};
use crate::world::port::{ErrorKind, WorldError};

/// Entries of a unit, or under a syslog name.
pub(super) struct Journal {
    host: String,
    name: String,
    root: bool,
    /// The last entry that was read; without one the journal was empty.
    cursor: Option<String>,
}

/// Says that it stands, then gives entries: `$1` is the cursor or empty, the rest are conditions. Everything after the
/// cursor is given, so nothing is lost between the moment it was taken and now.
const SCRIPT: &str = r#"c=$1; shift
echo "$0"
if [ -n "$c" ]; then exec journalctl -q -f --no-tail -o json --after-cursor="$c" "$@"; fi
exec journalctl -q -f -n 0 -o json "$@""#;

const BEGIN: &str = "gtrun-follow-journal";

impl Journal {
    /// Finds out whether the journal can be read, and where it ends now.
    pub(super) async fn new(ssh: &Ssh, host: &str, name: &str) -> Result<Self, WorldError> {
        let doing = format!("follow the journal of {name} on {host}");
        let root = ssh.sudo(host);
        let argv = ["journalctl", "-n", "1", "-o", "json", "--no-pager"].map(str::to_owned);
        let output = ssh.command(host, &argv, root).await?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let failed = |message: String, help: &str| {
            Err(WorldError::new(ErrorKind::Unsupported, &doing, message).with_help(help.to_owned()))
        };
        if output.exit != 0 {
            return failed(words, "is there a journal? Else write `log: { file: ... }`");
        }
        // It then shows the user's own entries, which are none: silence that looks like a quiet load balancer.
        if words.contains("not seeing messages") {
            return failed(
                words,
                "add the ssh user to the group systemd-journal, or write `sudo: true`",
            );
        }
        let entry = serde_json::from_slice::<Value>(&output.stdout).ok();
        Ok(Self {
            host: host.to_owned(),
            name: name.to_owned(),
            root,
            cursor: entry.and_then(|entry| entry["__CURSOR"].as_str().map(str::to_owned)),
        })
    }
}

impl Source for Journal {
    fn doing(&self) -> String {
        format!("follow the journal of {} on {}", self.name, self.host)
    }

    fn open<'a>(&'a mut self, ssh: &'a Ssh) -> BoxFuture<'a, Result<Session, WorldError>> {
        async move {
            let unit = match self.name.contains('.') {
                true => format!("_SYSTEMD_UNIT={}", self.name),
                false => format!("_SYSTEMD_UNIT={}.service", self.name),
            };
            let ident = format!("SYSLOG_IDENTIFIER={}", self.name.trim_end_matches(".service"));
            let cursor = self.cursor.clone().unwrap_or_default();
            let argv = ["sh", "-c", SCRIPT, BEGIN, &cursor, &unit, "+", &ident].map(str::to_owned);
            ssh.stream(&self.host, &argv, self.root).await
        }
        .boxed()
    }

    fn read(&mut self, line: &[u8]) -> Read {
        if line == BEGIN.as_bytes() {
            return Read::Begin(None);
        }
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            return Read::Nothing;
        };
        if let Some(cursor) = entry["__CURSOR"].as_str() {
            self.cursor = Some(cursor.to_owned());
        }
        match message(&entry) {
            Some(text) => Read::Line(text),
            None => Read::Nothing,
        }
    }

    fn heard(&mut self, _words: &str) -> Option<String> {
        None
    }
}

/// The message as HAProxy wrote it; journald's stamp in front when it bears none. By syslog journald takes the stamp off.
fn message(entry: &Value) -> Option<Vec<u8>> {
    let text = match &entry["MESSAGE"] {
        Value::String(text) => text.clone().into_bytes(),
        // Not UTF-8.
        Value::Array(bytes) => bytes
            .iter()
            .map(|byte| byte.as_u64().and_then(|byte| u8::try_from(byte).ok()))
            .collect::<Option<_>>()?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    if bears_stamp(&text) {
        return Some(text);
    }
    // The sender's own moment where the kernel told it, else when journald had the entry.
    let micros = ["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"]
        .iter()
        .find_map(|field| entry[field].as_str()?.parse::<i64>().ok())?;
    let at = Instant::from_nanos(0) + Duration::from_micros(micros);
    let stamp = at.to_utc().format("%Y-%m-%dT%H:%M:%S%.6f+00:00 ").to_string();
    Some([stamp.into_bytes(), text].concat())
}

/// `iso`, `rfc5424` and `rfc3164` lines begin with a stamp, after the priority where there is one.
fn bears_stamp(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned();
    let text = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((priority, rest)) if priority.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => &text,
    };
    let text = text.strip_prefix("1 ").unwrap_or(text);
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else { return false };
    let month = "JanFebMarAprMayJunJulAugSepOctNovDec"
        .find(first)
        .is_some_and(|at| at % 3 == 0);
    Instant::parse(first).is_ok() || (first.len() == 3 && month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_without_a_stamp_gets_that_of_the_journal() {
        let entry = |message: Value| {
            let text = message_of(json!({
                "MESSAGE": message, "__REALTIME_TIMESTAMP": "1764433990700000", "_SOURCE_REALTIME_TIMESTAMP": "1764433990608123",
            }));
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let down = "Server istio-http-backend/worker1 is DOWN.";
        assert_eq!(
            entry(json!(down)),
            Some(format!("2025-11-29T16:33:10.608123+00:00 {down}"))
        );
        for own in [
            "2026-11-29T16:18:22.976256+00:00 Server x/y is DOWN.",
            "<133>1 2026-11-29T16:18:22.976256+00:00 lb haproxy 12 - - Server x/y is DOWN.",
            "<133>Nov 29 16:07:06 haproxy[10819]: Server x/y is DOWN.",
        ] {
            assert_eq!(entry(json!(own)).as_deref(), Some(own));
        }
        assert_eq!(
            entry(json!([104, 105])),
            Some("2025-11-29T16:33:10.608123+00:00 hi".to_owned())
        );
        for none in [Value::Null, json!([256]), json!(["x"])] {
            assert_eq!(entry(none), None);
        }
        assert_eq!(message_of(json!({ "MESSAGE": "no stamp at all" })), None);
    }

    fn message_of(entry: Value) -> Option<Vec<u8>> {
        message(&entry)
    }
}
