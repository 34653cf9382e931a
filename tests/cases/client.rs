use gtrun::evidence::client::{Outcome, curl_outcome};

use crate::case;

/// `%{http_code}` alone is no outcome: 000 has many causes, a cut body says 200, and curl exits 0 on a 502.
#[test]
fn case_57_curls_code_and_exit_together() {
    let text = std::fs::read_to_string(case("57-curl-code-and-exit/curl.tsv")).expect("records");
    let found: Vec<_> = text
        .lines()
        .map(|l| {
            let f: Vec<&str> = l.split('\t').collect();
            let status = f[0].parse::<u16>().ok().filter(|c| *c > 0);
            curl_outcome(status, f[3].parse().ok(), f.get(4).copied().filter(|e| !e.is_empty()))
        })
        .collect();
    assert_eq!(
        found,
        [
            Outcome::Ok,
            Outcome::HttpError,
            Outcome::ClosedEarly,
            Outcome::Reset,
            Outcome::Truncated,
            Outcome::Truncated,
            Outcome::Refused,
            Outcome::Timeout,
        ]
    );
    // Whole answers: the first, and the 502.
    assert_eq!(found.iter().filter(|o| o.whole() == Some(true)).count(), 2);
}
