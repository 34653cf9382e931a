//! Clocks tied, sources merged: events with brackets on one time axis, and the intervals between them.

pub mod request;
pub mod sampling;
pub mod site;
