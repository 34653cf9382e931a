//! What a host's clock says between two readings of our own.

use std::time::Duration;

use super::Ssh;
use super::ask::Asker;
use crate::evidence::clock_exchange::ClockExchange;
use crate::time::Instant;
use crate::world::port::{ErrorKind, WorldError};

/// Exchanges that are kept; one more goes before them, because the first is slow.
const EXCHANGES: usize = 9;

/// Answers each line with seconds since the epoch, as finely as the host can: by the shell itself (microseconds, no
/// process), by `date` (nanoseconds), by perl. A clock that shows whole seconds only is no answer.
const LOOP: &str = r#"if command -v bash >/dev/null 2>&1 && [ -n "$(bash -c 'printf %s "${EPOCHREALTIME-}"')" ]; then
  exec bash -c 'LC_ALL=C; while read -r n; do printf "%s\n%s %s 0\n" "$EPOCHREALTIME" "$0" "$n"; done' "$0"
fi
case $(date +%N) in
  ''|*[!0-9]*) ;;
  *) while read -r n; do printf '%s\n%s %s 0\n' "$(date +%s.%N)" "$0" "$n"; done; exit ;;
esac
if command -v perl >/dev/null 2>&1; then
  exec perl -MTime::HiRes=time -e '$|=1; while ($n = <STDIN>) { chomp $n; printf "%.6f\n%s %s 0\n", time, $ARGV[0], $n }' "$0"
fi
while read -r n; do printf 'none\n%s %s 1\n' "$0" "$n"; done"#;

/// Reads the host's clock several times in a row over one session.
pub(super) async fn exchange(ssh: &Ssh, host: &str) -> Result<Vec<ClockExchange>, WorldError> {
    let doing = format!("read the clock of {host}");
    let mut asker = Asker::start(ssh, host, LOOP, &[]).await?;
    let mut exchanges = Vec::with_capacity(EXCHANGES);
    for round in 0..=EXCHANGES {
        let sent = ssh.clock().now();
        let limit = Duration::from_secs(5);
        let reply = asker.ask(limit).await.map_err(|none| none.into_error(&doing))?;
        let text = String::from_utf8_lossy(&reply.text);
        let Some(remote) = seconds(&text) else {
            let error = WorldError::new(ErrorKind::Unsupported, doing, "it shows no fractions of a second");
            return Err(error.with_help("install bash 5 or newer, GNU date or perl there"));
        };
        if round > 0 {
            exchanges.push(ClockExchange {
                host: host.to_owned(),
                sent,
                remote,
                received: reply.received,
            });
        }
    }
    Ok(exchanges)
}

/// `seconds.fraction` since the epoch, exactly; some locales write a comma.
fn seconds(text: &str) -> Option<Instant> {
    let (whole, fraction) = text.trim().split_once(['.', ','])?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let nanos: i64 = format!("{fraction:0<9}").parse().ok()?;
    Some(Instant::from_nanos(
        whole.checked_mul(1_000_000_000)?.checked_add(nanos)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_exact() {
        for (text, nanos) in [
            ("1764433990.608123\n", 1_764_433_990_608_123_000),
            ("1764433990,608123", 1_764_433_990_608_123_000),
            ("1764433990.000000001", 1_764_433_990_000_000_001),
        ] {
            assert_eq!(seconds(text), Some(Instant::from_nanos(nanos)), "{text}");
        }
        for text in [
            "1764433990",
            "none",
            "",
            "1.%N",
            "1.",
            "99999999999999.5",
            "1.0000000001",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
