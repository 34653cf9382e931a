//! Values as they stand in a file: with their place, and where a template may stand instead, not yet filled in.

mod at;
mod opt;
mod scalar;
mod templated;

pub use at::At;
pub use opt::Opt;
pub use scalar::{AsWritten, ByteRate, Count, Flag, Offset, Port, PositiveCount, Rate, Ratio, Scalar};
pub use templated::{Plain, Templated, Written};
