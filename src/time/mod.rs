//! Instants, durations and brackets: integer nanoseconds, no clock is ever read here.

mod bracket;
mod duration;
mod instant;

pub use bracket::Bracket;
pub use duration::{Duration, DurationError};
pub use instant::{Instant, InstantError};
