//! Where a plan is carried out: the ports that `run` sees, and the worlds behind them.
//!
//! `port` holds the traits at the level of intent, `facts` what a cluster tells about the workload. `sim` is a
//! model with a virtual clock; `cluster` and `lab` are real.

pub mod cluster;
pub mod facts;
#[cfg(all(target_os = "linux", feature = "lab"))]
pub mod lab;
pub mod port;
pub mod sim;
