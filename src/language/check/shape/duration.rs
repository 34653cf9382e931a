//! What somebody meant who wrote a duration in another spelling.

use crate::time::Duration;

/// The same length in the language's spelling, when it can be guessed.
pub(super) fn meant(text: &str) -> Option<String> {
    let compact: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let lower = compact.to_lowercase();
    if let Some(rest) = lower.strip_prefix('-')
        && rest.parse::<Duration>().is_ok()
    {
        return Some(rest.to_owned());
    }
    // ISO 8601, and minutes with seconds after a colon.
    let iso = lower.strip_prefix("pt").map(str::to_owned);
    let clock = lower.split_once(':').and_then(|(minutes, seconds)| {
        let two = seconds.len() == 2 && seconds.bytes().all(|b| b.is_ascii_digit());
        (two && !minutes.is_empty() && minutes.bytes().all(|b| b.is_ascii_digit()))
            .then(|| format!("{minutes}m{seconds}s"))
    });
    let words = [
        ("milliseconds", "ms"),
        ("millisecond", "ms"),
        ("millis", "ms"),
        ("msec", "ms"),
        ("seconds", "s"),
        ("second", "s"),
        ("secs", "s"),
        ("sec", "s"),
        ("minutes", "m"),
        ("minute", "m"),
        ("mins", "m"),
        ("min", "m"),
        ("hours", "h"),
        ("hour", "h"),
        ("hrs", "h"),
        ("hr", "h"),
        ("µs", "us"),
        ("μs", "us"),
    ];
    let replaced = words
        .iter()
        .fold(lower.clone(), |text, (word, unit)| text.replace(word, unit));
    // `1h30`: the last number is of the next smaller unit.
    let digits_last = lower.ends_with(|c: char| c.is_ascii_digit());
    let next = digits_last
        .then(|| {
            if lower.contains('h') {
                format!("{lower}m")
            } else {
                format!("{lower}s")
            }
        })
        .filter(|_| lower.contains(['h', 'm']));
    let candidates = [iso, clock, Some(replaced), next];
    candidates
        .into_iter()
        .flatten()
        .find(|candidate| candidate.parse::<Duration>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn common_spellings_are_understood() {
        for (written, right) in [
            ("5M", "5m"),
            ("-5s", "5s"),
            ("1h30", "1h30m"),
            ("PT1M30S", "1m30s"),
            ("1:30", "1m30s"),
            ("60S", "60s"),
            ("5 s", "5s"),
            ("1m 30s", "1m30s"),
            ("5min", "5m"),
            ("10 seconds", "10s"),
            ("10µs", "10us"),
        ] {
            assert_eq!(meant(written).as_deref(), Some(right), "{written}");
        }
        for written in ["", "s", "soon", "1s1s", "99999999999999999999s"] {
            assert_eq!(meant(written), None, "{written}");
        }
    }
}
