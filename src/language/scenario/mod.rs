//! A scenario file as its author wrote it: every value with its place, templates not filled in, names perhaps dangling.
//!
//! The doc comments of these types are the users' reference and the descriptions in `schema/scenario.schema.json`.

mod assertion;
mod document;
mod merge;
mod names;
mod precondition;
mod probe;
mod step;
mod variation;
mod verb;

pub use assertion::Assertion;
pub use document::Document;
pub(crate) use merge::merge_preconditions;
pub use names::{IdText, ScenarioName, Version};
pub use precondition::{LoadBalancerFacts, PodFacts, Preconditions, Prestop, RetryOn, RolloutFacts};
pub use probe::{ContainerLog, Every, NoOptions, Probe, ProbeKind, RstCapture};
pub use step::{Expr, Retry, Step, Verb};
pub use variation::{Control, Matrix, Phase, Row, Sweep, SweptVariable, VariableSweep};
pub use verb::{
    ConnectionName, DeletePod, DrainNode, Exec, FileName, Load, Poll, PollHttp, PollKind, Request, RolloutRestart,
    Scale, Ssh,
};
