//! What curl says of a request: status, exit code and error text become an outcome.

use super::Outcome;

/// How a request ended, from curl's `http_code` (`None` for 000), exit code and error text.
///
/// The status alone is no outcome: 000 has many causes, a cut body still says 200, and curl exits 0 on a 502.
/// Exit codes as in curl(1).
pub fn outcome(status: Option<u16>, exit: Option<i32>, error: Option<&str>) -> Outcome {
    let truncated_or = |otherwise: Outcome| {
        if status.is_some() {
            Outcome::Truncated
        } else {
            otherwise
        }
    };
    let says = |word: &str| error.is_some_and(|e| e.contains(word));
    match exit {
        Some(0) => match status {
            Some(code) if code < 400 => Outcome::Ok,
            Some(_) => Outcome::HttpError,
            None => Outcome::Unknown,
        },
        Some(5 | 6) => Outcome::DnsError,
        Some(7) => Outcome::Refused,
        Some(16 | 95) => truncated_or(Outcome::ClosedEarly),
        Some(18) => Outcome::Truncated,
        // -f: the response was an error and was not saved.
        Some(22) => Outcome::HttpError,
        // Write error, or the size limit that the caller set: our own doing.
        Some(23 | 63) => Outcome::Aborted,
        Some(28) => Outcome::Timeout,
        Some(35 | 51 | 53 | 54 | 58 | 59 | 60 | 64 | 66 | 77 | 80 | 82 | 83 | 90 | 91 | 98) => Outcome::TlsError,
        Some(52) => Outcome::ClosedEarly,
        Some(55 | 56) => truncated_or(Outcome::Reset),
        Some(92) if says("REFUSED_STREAM") => Outcome::RefusedStream,
        Some(92) => truncated_or(Outcome::Reset),
        // Killed by a signal.
        Some(code) if code > 128 => Outcome::Aborted,
        Some(_) | None => Outcome::Unknown,
    }
}
