//! `clocks.jsonl`: what a host's clock said between two readings of gtrun's own.

use serde::{Deserialize, Serialize};

use crate::time::Instant;

/// One exchange with a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockExchange {
    /// Host of the environment: `lb`, `worker1`.
    pub host: String,
    /// gtrun's clock before the question was sent.
    pub sent: Instant,
    /// The host's clock when it answered.
    pub remote: Instant,
    /// gtrun's clock after the answer was there.
    pub received: Instant,
}
