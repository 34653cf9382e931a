//! Clocks tied, sources merged: events with brackets on one time axis, and the intervals between them.

pub mod clocks;
pub mod message;
pub mod request;
pub mod sampling;
pub mod site;
