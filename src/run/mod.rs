//! Carries out a plan in a world and writes the evidence; never judges.
//!
//! [`execute`] is total: once a plan exists the result is a run folder, failures are in it. Everything of a run is one
//! future (steps, probes, background requests, loads), so nothing outlives it, and it needs no runtime of its own: the
//! simulator polls it in virtual time, a real world under tokio.

pub mod cleanup;
mod context;
mod executor;
pub mod folder;
pub mod interrupt;
pub mod journal;
mod live;
mod load;
mod preflight;
mod probe;
pub mod recorder;
mod step;
mod target;
mod tasks;

pub use executor::{Order, execute};
