//! The target's health page, asked every so often.

use super::super::context::Context;
use super::Running;
use crate::time::Duration;
use crate::world::port::{ErrorKind, WorldError};

pub(super) async fn start(_ctx: &Context, _every: Duration) -> Result<Running, WorldError> {
    let message = "this environment has no way to the health page beside the load balancer's own checks";
    Err(WorldError::new(ErrorKind::Unsupported, "ask the health page", message))
}
