//! An environment file as its author wrote it: every value with its place.
//!
//! The doc comments of these types are the users' reference and the descriptions in `schema/environment.schema.json`.

mod defaults;
mod file;
mod world;

pub(crate) use defaults::{built_in, default_world};
pub use file::{
    ClocksFile, EntryFile, EnvironmentFile, FsmFile, HostFile, LoadBalancerFile, LoadBalancerKind, LogKind,
    LogSourceFile, WorkloadFile,
};
pub use world::{
    ClockFile, ExecEffectFile, LoadBalancerWorldFile, NetworkFile, NodeFile, PlainPrestop, PodWorldFile,
    RolloutWorldFile, TrafficFile, WorldFile,
};
