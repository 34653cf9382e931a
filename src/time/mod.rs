//! Instants, durations, brackets and the offsets between clocks: integer nanoseconds, no clock is ever read here.

mod bracket;
mod duration;
mod instant;
mod tie;

pub use bracket::Bracket;
pub use duration::{Duration, DurationError};
pub use instant::{Instant, InstantError};
pub use tie::{Clock, ClockTies, Contradiction, Gap, OffsetBounds};
