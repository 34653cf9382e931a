//! Results of other load tools, told apart by their content: vegeta (`encode` as JSON or CSV, `report -type=json`),
//! k6 (`--out json`, summary), oha (JSON, CSV) and fortio (result, access log as JSON).
//!
//! vegeta, k6 and fortio send a request again by themselves when a kept connection was closed under it; oha's CSV has
//! successes only, with times since a start that it does not tell.

use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::reader::{Records, empty, outcome};
use super::{Load, LoadDetail, LoadRequest, StatedTotals};
use crate::evidence::client::Outcome;
use crate::evidence::client::reader::seconds;
use crate::evidence::lines::{Line, Lines};
use crate::evidence::reading::{Reading, excerpt, number};
use crate::evidence::stamp::{self, Stamp};
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Bracket, Duration};

/// A summary is never larger.
const SUMMARY_LIMIT: usize = 16 << 20;

/// Reads a result; the content tells whose it is.
pub(crate) fn read<R: BufRead>(source: R, file: FileId, id: &str, reading: &mut Reading) -> io::Result<Option<Load>> {
    let mut load = empty(file, id, LoadDetail::EveryRequestRetried);
    let mut records = Records::default();
    let mut lines = Lines::new(source);
    let mut form: Option<Form> = None;
    let mut document: Vec<u8> = Vec::new();
    while let Some(line) = lines.next_line()? {
        if line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let form = match &form {
            Some(f) => f,
            None => form.insert(Form::of(line.bytes)),
        };
        match form {
            Form::Document => {
                if document.len() + line.bytes.len() > SUMMARY_LIMIT {
                    break;
                }
                document.extend_from_slice(line.bytes);
                document.push(b'\n');
            }
            Form::OhaCsv(columns) => {
                load.detail = LoadDetail::SuccessesOnly;
                if line.number > 1 && !line.unterminated {
                    records.push(oha_row(columns, &line, file), ());
                }
            }
            Form::VegetaCsv | Form::JsonLines => {
                let request = match form {
                    Form::VegetaCsv => vegeta_row(&line, reading, file),
                    _ => json_line(&line, reading, file),
                };
                match request {
                    Row::Request(r) => records.push(*r, ()),
                    Row::Other => {}
                    Row::Bad(_) if line.unterminated => reading.note(
                        file,
                        line.number,
                        NoteKind::Incomplete,
                        "the last record is cut and was not used",
                    ),
                    Row::Bad(what) => reading.note(file, line.number, NoteKind::Incomplete, what),
                }
            }
        }
    }
    records.finish(&mut load, reading);
    match form {
        Some(Form::Document) => {
            let Some(totals) = summary(&document) else {
                reading.note_file(
                    file,
                    NoteKind::Unreadable,
                    "not a result of a load tool that is known (vegeta, k6, oha, fortio, hey)",
                );
                return Ok(None);
            };
            load.detail = LoadDetail::Summary;
            load.stated = Some(totals);
        }
        Some(Form::OhaCsv(_)) => reading.note_file(
            file,
            NoteKind::Incomplete,
            "oha's CSV has no failed requests and no absolute times; use a load of gtrun, vegeta or fortio",
        ),
        Some(Form::VegetaCsv | Form::JsonLines) => {}
        None => return Ok(None),
    }
    Ok(Some(load))
}

enum Form {
    /// One JSON document over many lines.
    Document,
    /// One JSON object a line, each a request or a point.
    JsonLines,
    VegetaCsv,
    OhaCsv(Vec<String>),
}

impl Form {
    fn of(line: &[u8]) -> Self {
        if line.starts_with(b"request-start,") {
            let names = String::from_utf8_lossy(line);
            return Self::OhaCsv(names.split(',').map(|n| n.trim().to_owned()).collect());
        }
        if line[0].is_ascii_digit() {
            return Self::VegetaCsv;
        }
        match serde_json::from_slice::<Map<String, Value>>(line) {
            Ok(o) if (o.contains_key("latency") && o.contains_key("timestamp")) || o.contains_key("metric") => {
                Self::JsonLines
            }
            _ => Self::Document,
        }
    }
}

enum Row {
    Request(Box<LoadRequest>),
    /// A point of another metric.
    Other,
    Bad(String),
}

/// One line of vegeta, k6 or fortio.
#[derive(Deserialize)]
struct JsonRecord {
    // vegeta and fortio
    timestamp: Option<Value>,
    latency: Option<f64>,
    code: Option<i64>,
    error: Option<String>,
    bytes_in: Option<u64>,
    seq: Option<u64>,
    // fortio
    ok: Option<bool>,
    details: Option<String>,
    // k6
    metric: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    data: Option<Point>,
}

#[derive(Deserialize)]
struct Point {
    time: Option<String>,
    value: Option<f64>,
    tags: Option<Map<String, Value>>,
}

fn json_line(line: &Line<'_>, names: &mut Reading, file: FileId) -> Row {
    let record: JsonRecord = match serde_json::from_slice(line.bytes) {
        Ok(r) => r,
        Err(e) => return Row::Bad(format!("not a record of a load tool: {e}")),
    };
    let place = Place {
        file,
        line: line.number,
    };
    if let Some(metric) = &record.metric {
        // One point a metric and request; the duration has the status and the end.
        if metric != "http_req_duration" || record.kind.as_deref() != Some("Point") {
            return Row::Other;
        }
        return k6(record.data, names, place);
    }
    let Some(start) = record.timestamp.as_ref().and_then(value_stamp) else {
        return Row::Bad("a record without a timestamp was not used".to_owned());
    };
    let fortio = record.ok.is_some();
    // vegeta counts nanoseconds, fortio seconds.
    let total = record.latency.map(|l| {
        if fortio {
            Duration::from_secs_f64(l)
        } else {
            Duration::from_nanos(l as i64)
        }
    });
    let code = match record.details.as_deref() {
        Some(d) if fortio => number(d.as_bytes()),
        _ => record.code.and_then(|c| u64::try_from(c).ok()),
    };
    let error = if fortio {
        record.details.filter(|d| number(d.as_bytes()).is_none())
    } else {
        record.error
    };
    Row::Request(Box::new(request(
        place,
        start,
        total,
        code,
        error,
        record.bytes_in,
        record.seq.is_some(),
        names,
    )))
}

#[expect(clippy::too_many_arguments, reason = "the columns of a record")]
fn request(
    place: Place,
    start: Stamp,
    total: Option<Duration>,
    code: Option<u64>,
    error: Option<String>,
    bytes: Option<u64>,
    errors_on_status: bool,
    names: &mut Reading,
) -> LoadRequest {
    let status = code.and_then(|c| u16::try_from(c).ok()).filter(|c| *c >= 100);
    let error = error.filter(|e| !e.is_empty());
    let started = Bracket::floored(start.at, start.resolution());
    // vegeta repeats the status line as an error.
    let plain = errors_on_status
        && status.is_some_and(|s| s >= 400)
        && error.as_deref().is_some_and(|e| e.starts_with(char::is_numeric));
    let ended = match (total, started.lo, started.hi) {
        (Some(t), Some(lo), Some(hi)) => Bracket::new(lo + t, hi + t),
        _ => Bracket::OPEN,
    };
    LoadRequest {
        place,
        intended: Bracket::OPEN,
        started,
        ended,
        status,
        outcome: outcome(status, None, error.as_deref().filter(|_| !plain)),
        total,
        local_port: None,
        connection: None,
        bytes,
        server: None,
        error: error.map(|e| names.name(&excerpt(e.as_bytes(), 256))),
    }
}

fn value_stamp(v: &Value) -> Option<Stamp> {
    match v {
        Value::String(s) => stamp::iso_whole(s.as_bytes()),
        Value::Number(n) => stamp::epoch(n.to_string().as_bytes()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// k6 stamps a point at the end of its request.
fn k6(point: Option<Point>, names: &mut Reading, place: Place) -> Row {
    let Some(point) = point else { return Row::Other };
    let (Some(end), Some(ms)) = (
        point.time.as_deref().and_then(|t| stamp::iso_whole(t.as_bytes())),
        point.value,
    ) else {
        return Row::Bad("a point without time or value was not used".to_owned());
    };
    let tag = |name: &str| {
        point
            .tags
            .as_ref()
            .and_then(|t| t.get(name))
            .and_then(Value::as_str)
            .filter(|t| !t.is_empty())
    };
    let total = Duration::from_secs_f64(ms / 1000.0);
    let status = tag("status")
        .and_then(|s| number(s.as_bytes()))
        .and_then(|c| u16::try_from(c).ok())
        .filter(|c| *c >= 100);
    let error_code = tag("error_code").and_then(|c| number(c.as_bytes()));
    let outcome = match error_code {
        Some(1050 | 1210 | 1211) => Outcome::Timeout,
        Some(1100..=1199) => Outcome::DnsError,
        Some(1212) => Outcome::Refused,
        Some(1220 | 1221) if status.is_none() => Outcome::Reset,
        Some(1300..=1399) => Outcome::TlsError,
        // The answer's own status.
        Some(1400..=1599) => outcome(status, None, None),
        _ => outcome(status, None, tag("error")),
    };
    let ended = Bracket::floored(end.at, end.resolution());
    Row::Request(Box::new(LoadRequest {
        place,
        intended: Bracket::OPEN,
        started: ended.shifted(Duration::ZERO - total),
        ended,
        status,
        outcome,
        total: Some(total),
        local_port: None,
        connection: None,
        bytes: None,
        server: None,
        error: tag("error").map(|e| names.name(&excerpt(e.as_bytes(), 256))),
    }))
}

/// `timestamp_ns,code,latency_ns,bytes_out,bytes_in,error,body,attack,seq,...`.
fn vegeta_row(line: &Line<'_>, names: &mut Reading, file: FileId) -> Row {
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(line.bytes);
    let mut record = csv::ByteRecord::new();
    let read = csv.read_byte_record(&mut record).unwrap_or(false);
    let field = |i: usize| record.get(i);
    let (Some(start), true) = (field(0).and_then(stamp::epoch), read && record.len() >= 6) else {
        return Row::Bad("not a record of vegeta".to_owned());
    };
    let total = field(2)
        .and_then(number)
        .and_then(|n| i64::try_from(n).ok())
        .map(Duration::from_nanos);
    let error = field(5).map(|e| excerpt(e, 256));
    Row::Request(Box::new(request(
        Place {
            file,
            line: line.number,
        },
        start,
        total,
        field(1).and_then(number),
        error,
        field(4).and_then(number),
        true,
        names,
    )))
}

fn oha_row(columns: &[String], line: &Line<'_>, file: FileId) -> LoadRequest {
    let fields: Vec<&[u8]> = line.bytes.split(|b| *b == b',').collect();
    let field = |name: &str| {
        columns
            .iter()
            .position(|c| c == name)
            .and_then(|i| fields.get(i))
            .copied()
    };
    let status = field("status").and_then(number).and_then(|c| u16::try_from(c).ok());
    LoadRequest {
        place: Place {
            file,
            line: line.number,
        },
        intended: Bracket::OPEN,
        started: Bracket::OPEN,
        ended: Bracket::OPEN,
        status,
        outcome: outcome(status, None, None),
        total: field("request-duration").and_then(seconds),
        local_port: None,
        connection: None,
        bytes: field("bytes").and_then(number),
        server: None,
        error: None,
    }
}

/// Totals of a summary: status codes and errors under the names of each tool.
fn summary(document: &[u8]) -> Option<StatedTotals> {
    let document: Map<String, Value> = serde_json::from_slice(document).ok()?;
    let mut totals = StatedTotals::default();
    let codes = ["RetCodes", "statusCodeDistribution", "status_codes"]
        .iter()
        .find_map(|k| document.get(*k)?.as_object());
    if let Some(codes) = codes {
        for (code, count) in codes {
            let count = count.as_u64().unwrap_or(0);
            totals.requests = totals.requests.saturating_add(count);
            match code.parse::<u16>().ok().filter(|c| *c >= 100) {
                Some(code) => totals.by_status.push((code, count)),
                // fortio's -1, vegeta's 0: no answer.
                None => totals.errors.push((format!("no answer ({code})"), count)),
            }
        }
        if let Some(errors) = document.get("errorDistribution").and_then(Value::as_object) {
            for (text, count) in errors {
                let count = count.as_u64().unwrap_or(0);
                totals.requests = totals.requests.saturating_add(count);
                totals.errors.push((excerpt(text.as_bytes(), 256), count));
            }
        }
        totals.by_status.sort_unstable();
        return Some(totals);
    }
    // k6's summary: `metrics.http_reqs` as `{count}` or `{values: {count}}`.
    let metric = |name: &str, value: &str| {
        let m = document.get("metrics")?.get(name)?;
        m.get(value).or_else(|| m.get("values")?.get(value))?.as_u64()
    };
    totals.requests = metric("http_reqs", "count")?;
    // A rate whose "passes" are the failed requests.
    if let Some(failed) = metric("http_req_failed", "passes").filter(|n| *n > 0) {
        totals.errors.push(("failed requests".to_owned(), failed));
    }
    Some(totals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(text: &str) -> Load {
        read(text.as_bytes(), FileId(0), "load", &mut Reading::default())
            .expect("memory cannot fail")
            .expect("a load")
    }

    fn rows(load: &Load) -> Vec<(Option<u16>, Outcome, Option<String>)> {
        load.requests
            .iter()
            .map(|r| (r.status, r.outcome, r.ended.hi.map(|t| t.to_rfc3339())))
            .collect()
    }

    #[test]
    fn vegeta_in_both_forms() {
        let json = load(concat!(
            r#"{"attack":"","seq":0,"code":200,"timestamp":"2026-11-29T16:18:35.52+00:00","latency":54000000,"bytes_out":0,"bytes_in":39,"error":"","body":null,"method":"GET","url":"http://x/","headers":null}"#,
            "\n",
            r#"{"attack":"","seq":1,"code":502,"timestamp":"2026-11-29T16:18:36Z","latency":1000000000,"bytes_out":0,"bytes_in":0,"error":"502 Bad Gateway"}"#,
            "\n",
            r#"{"attack":"","seq":2,"code":0,"timestamp":"2026-11-29T16:18:36Z","latency":5,"bytes_out":0,"bytes_in":0,"error":"Get \"http://x/\": EOF"}"#,
            "\n"
        ));
        assert_eq!(json.detail, LoadDetail::EveryRequestRetried);
        assert_eq!(
            json.requests.iter().map(|r| r.outcome).collect::<Vec<_>>(),
            [Outcome::Ok, Outcome::HttpError, Outcome::ClosedEarly]
        );
        assert_eq!(
            json.requests[1].ended.lo.map(|t| t.to_rfc3339()).as_deref(),
            Some("2026-11-29T16:18:36.999999999Z")
        );
        let csv = load(
            "1796055515520000000,200,54000000,0,39,,e30=,,0,GET,http://x/,\n1796055516000000000,0,5,0,0,\"Get \"\"x\"\": dial tcp: connection refused\",,,1\n",
        );
        assert_eq!(
            rows(&csv),
            [
                (Some(200), Outcome::Ok, Some("2026-11-30T16:18:35.574Z".to_owned())),
                (
                    None,
                    Outcome::Refused,
                    Some("2026-11-30T16:18:36.000000005Z".to_owned())
                ),
            ]
        );
    }

    #[test]
    fn k6_points() {
        let l = load(concat!(
            r#"{"type":"Metric","data":{"type":"trend"},"metric":"http_req_duration"}"#,
            "\n",
            r#"{"type":"Point","data":{"time":"2026-11-29T17:18:36.000000001+01:00","value":54.5,"tags":{"status":"200","method":"GET"}},"metric":"http_req_duration"}"#,
            "\n",
            r#"{"type":"Point","data":{"time":"2026-11-29T17:18:37+01:00","value":0,"tags":{"status":"0","error_code":"1220","error":"read: connection reset by peer"}},"metric":"http_req_duration"}"#,
            "\n",
            r#"{"type":"Point","data":{"time":"2026-11-29T17:18:37+01:00","value":1,"tags":{}},"metric":"vus"}"#,
            "\n"
        ));
        assert_eq!(
            rows(&l),
            [
                (
                    Some(200),
                    Outcome::Ok,
                    Some("2026-11-29T16:18:36.000000001Z".to_owned())
                ),
                (None, Outcome::Reset, Some("2026-11-29T16:18:37.999999999Z".to_owned())),
            ]
        );
        assert_eq!(
            l.requests[0].started.hi.map(|t| t.to_rfc3339()).as_deref(),
            Some("2026-11-29T16:18:35.945500001Z")
        );
    }

    #[test]
    fn fortio_access_log_and_summaries() {
        let l = load(
            "{\"latency\":0.054000,\"timestamp\":1796055515520000000,\"thread\":0,\"iter\":1,\"ok\":true,\"details\":\"200\"}\n{\"latency\":0.1,\"timestamp\":1796055515520000000,\"thread\":0,\"iter\":2,\"ok\":false,\"details\":\"-1\"}\n",
        );
        assert_eq!(
            rows(&l)[0],
            (Some(200), Outcome::Ok, Some("2026-11-30T16:18:35.574Z".to_owned()))
        );
        assert_eq!(l.requests[1].status, None);
        assert_ne!(l.requests[1].outcome, Outcome::Ok);
        for (text, requests, status, errors) in [
            (
                "{\n \"RunType\": \"HTTP\",\n \"RetCodes\": {\"200\": 98, \"-1\": 2}\n}",
                100,
                vec![(200, 98)],
                1,
            ),
            (
                "{\"summary\":{},\n\"statusCodeDistribution\":{\"200\":9,\"503\":1},\"errorDistribution\":{\"connection refused\":2}}",
                12,
                vec![(200, 9), (503, 1)],
                1,
            ),
            (
                "{\"latencies\":{},\"requests\":3,\"status_codes\":{\"200\":3},\"errors\":[]}",
                3,
                vec![(200, 3)],
                0,
            ),
            (
                "{\"metrics\":{\"http_reqs\":{\"count\":7},\"http_req_failed\":{\"passes\":1,\"fails\":6}}}",
                7,
                vec![],
                1,
            ),
        ] {
            let totals = load(text).stated.expect(text);
            assert_eq!(
                (totals.requests, totals.by_status, totals.errors.len()),
                (requests, status, errors),
                "{text}"
            );
        }
    }

    #[test]
    fn oha_has_successes_only() {
        let l = load(
            "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n0.1,0,0,0.05,0.054,39,200\n",
        );
        assert_eq!(
            (l.detail, l.requests[0].status, l.requests[0].total),
            (LoadDetail::SuccessesOnly, Some(200), Some(Duration::from_millis(54)))
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(\\{\"latency\":|\\{\"metric\"|1796055515520000000,|request-start,)?[ -~\n]{0,120}") {
            let _ = read(text.as_bytes(), FileId(0), "x", &mut Reading::default());
        }
    }
}
