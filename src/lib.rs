//! gtrun measures the sign of one interval: does a pod that is told to stop finish the requests it has
//! accepted (`active_zero`) before the load balancer decides that it is down (`lb_down`) and cuts them?
//!
//! ```text
//! scenario.yaml + environment.yaml
//!   -> language    source -> scenario -> check -> plan     Plan: cannot be wrong
//!   -> run         steps + probes over a world             the run folder: raw evidence
//!   -> evidence    one reader per source                   observations on their own clocks
//!   -> timeline    clocks tied, sources merged             events with brackets, intervals
//!   -> verdict     facts, order, fates, assertions         three-valued, with reasons
//!   -> report      terminal, HTML, Markdown, JUnit, JSON, Perfetto
//! ```
//!
//! Everything from `evidence` on is a pure function of the run folder: no clock, no network, the same bytes.

pub mod cli;
pub mod diagnostic;
pub mod evidence;
pub mod language;
pub mod report;
pub mod run;
pub mod selfcheck;
pub mod time;
pub mod timeline;
pub mod verdict;
pub mod world;
