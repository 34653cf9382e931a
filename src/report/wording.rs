use crate::evidence::client;
use crate::time::{Bracket, Instant};
use crate::verdict::{Cause, Fate, Finding, FindingKind, Outcome, RequestFinding, RunVerdict};

/// What every report of a simulated run carries.
pub(super) const SIMULATED: &str = "SIMULATED";

/// What SIMULATED means, in one sentence.
pub(super) const SIMULATED_MEANS: &str = "evidence of the simulator, which proves nothing about a real system";

/// `PASS`, `FAIL`, `INCONCLUSIVE`.
pub const fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Inconclusive => "INCONCLUSIVE",
    }
}

/// The verdict of a run in capitals; `NO VERDICT` for a folder without a scenario.
pub const fn run_word(verdict: Option<RunVerdict>) -> &'static str {
    match verdict {
        Some(RunVerdict::Pass) => "PASS",
        Some(RunVerdict::Fail) => "FAIL",
        Some(RunVerdict::Inconclusive) => "INCONCLUSIVE",
        Some(RunVerdict::Invalid) => "INVALID",
        Some(RunVerdict::Skipped) => "SKIPPED",
        None => "NO VERDICT",
    }
}

/// The fate as the design's word.
pub const fn fate_word(fate: Fate) -> &'static str {
    match fate {
        Fate::Protected => "protected",
        Fate::Broken => "broken",
        Fate::Rescued => "rescued",
        Fate::Lost => "lost",
        Fate::NotInFlight => "not in flight",
        Fate::Inconclusive => "inconclusive",
    }
}

/// The cause of a loss, for a person.
pub(super) const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::LbDown => "the load balancer marked the server DOWN",
        Cause::LbMaint => "the load balancer put the server into maintenance",
        Cause::ListenerClosed => "the pod's own drain had closed its listener",
        Cause::ServerTimeout => "the load balancer's server timeout ended it",
        Cause::PodKilled => "the pod ended with the request in it",
        Cause::NoServer => "the load balancer had no server",
        Cause::ClientAbort => "the client gave up",
        Cause::ClientTimeout => "the client's own time limit ended it",
        Cause::Refused => "the connection was refused",
        Cause::Network => "lost on the way",
        Cause::Unknown => "nothing says why",
    }
}

/// How the client saw a request end.
pub(super) const fn client_words(outcome: client::Outcome) -> &'static str {
    match outcome {
        client::Outcome::Ok => "ok",
        client::Outcome::HttpError => "HTTP error",
        client::Outcome::Truncated => "truncated body",
        client::Outcome::Reset => "reset",
        client::Outcome::ClosedEarly => "closed before an answer",
        client::Outcome::Refused => "refused",
        client::Outcome::RefusedStream => "stream refused",
        client::Outcome::Timeout => "timeout",
        client::Outcome::TlsError => "TLS error",
        client::Outcome::DnsError => "DNS error",
        client::Outcome::Aborted => "aborted by gtrun",
        client::Outcome::Unknown => "end not known",
    }
}

/// What the client saw of one request: `200 ok after 60.062 s`.
pub(super) fn answer(request: &RequestFinding) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(request.status.map(|status| status.to_string()));
    words.extend(request.outcome.map(|outcome| client_words(outcome).to_owned()));
    words.extend(request.duration_s.map(|s| format!("after {}", seconds(s))));
    if words.is_empty() {
        "no evidence of the client's side".to_owned()
    } else {
        words.join(" ")
    }
}

/// What kind of claim a finding is, where it is not a plain assertion.
pub(super) const fn kind_words(kind: FindingKind) -> Option<&'static str> {
    match kind {
        FindingKind::Assertion => None,
        FindingKind::Step => Some("claim of a step"),
        FindingKind::ExpectedFailure => Some("expected failure"),
    }
}

/// `margin 2.104 s ± 0.212 s`; `None` where there is no distance.
pub(super) fn margin(finding: &Finding) -> Option<String> {
    let margin = finding.margin_s?;
    Some(match finding.margin_error_s {
        Some(error) => format!("margin {} ± {}", seconds(margin), seconds(error)),
        None => format!("margin {}", seconds(margin)),
    })
}

/// A length of time, down to the microsecond: `60.062 s`, `212 ms`, `-0.5 ms`.
pub(super) fn seconds(s: f64) -> String {
    if s.abs() >= 1.0 {
        return format!("{s:.3} s");
    }
    let ms = format!("{:.3}", s * 1e3);
    let ms = ms.trim_end_matches('0').trim_end_matches('.');
    if ms == "-0" || ms == "0" {
        "0 ms".to_owned()
    } else {
        format!("{ms} ms")
    }
}

/// A moment as seconds from the origin, always with its sign: `+52.414`.
pub(super) fn offset(at: Instant, origin: Instant) -> String {
    let s = (at - origin).as_secs_f64();
    let shown = format!("{s:+.3}");
    if shown == "-0.000" { "+0.000".to_owned() } else { shown }
}

/// Both ends of a bracket as seconds from the origin: `+50.100 .. +50.310`, one number where they read the same.
pub(super) fn ends(at: Bracket, origin: Instant) -> String {
    match (at.lo, at.hi) {
        (Some(lo), Some(hi)) => {
            let (lo, hi) = (offset(lo, origin), offset(hi, origin));
            if lo == hi { lo } else { format!("{lo} .. {hi}") }
        }
        (Some(lo), None) => format!("after {}", offset(lo, origin)),
        (None, Some(hi)) => format!("by {}", offset(hi, origin)),
        (None, None) => "not seen".to_owned(),
    }
}

/// Text of the evidence so that it can only be read: control characters, which a terminal obeys, and marks that turn the
/// direction of writing, which make a line look like another one, are written as escapes.
pub(super) fn readable(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown = |c: char| {
        if obeyed(c) {
            c.escape_default().collect::<String>()
        } else {
            c.to_string()
        }
    };
    text.chars().map(shown).collect()
}

/// `1 request`, `3 requests`.
pub(super) fn count(n: u64, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// An interval's name on disk as words: `active_zero to lb_down`.
pub(super) fn interval_words(name: &str) -> String {
    name.split("_to_").collect::<Vec<_>>().join(" to ")
}

/// Bytes for a person: `512 B`, `12.3 kB`, `1.0 MB`.
pub(super) fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        _ => format!("{:.1} MB", n as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn numbers_read_well() {
        assert_eq!(seconds(2.104), "2.104 s");
        assert_eq!(seconds(-0.212), "-212 ms");
        assert_eq!(seconds(-0.0005), "-0.5 ms");
        assert_eq!(seconds(0.1), "100 ms");
        assert_eq!(seconds(-0.0), "0 ms");
        assert_eq!(seconds(-1e-9), "0 ms");
        let origin = Instant::from_nanos(0);
        let at = |ms| origin + Duration::from_micros(ms);
        assert_eq!(offset(at(-100), origin), "+0.000");
        assert_eq!(
            ends(Bracket::new(at(50_100_000), at(50_310_000)), origin),
            "+50.100 .. +50.310"
        );
        assert_eq!(ends(Bracket::new(at(1_000_000), at(1_000_001)), origin), "+1.000");
        assert_eq!(
            ends(
                Bracket {
                    lo: Some(at(0)),
                    hi: None
                },
                origin
            ),
            "after +0.000"
        );
        assert_eq!(ends(Bracket::OPEN, origin), "not seen");
        assert_eq!(
            (count(1, "request"), count(0, "request")),
            ("1 request".to_owned(), "0 requests".to_owned())
        );
        assert_eq!(
            (bytes(999), bytes(12_340), bytes(1_000_000)),
            ("999 B".into(), "12.3 kB".into(), "1.0 MB".into())
        );
    }
}
