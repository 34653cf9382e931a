//! Opens the world of an environment, and carries futures out in it: virtual time in the simulator, tokio elsewhere.

use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};

use crate::language::plan::{Environment, EnvironmentKind, Plan};
use crate::world::cluster;
use crate::world::port::{ErrorKind, World, WorldError};
use crate::world::sim::{Sim, Stuck, world_of};

/// A world that is open.
pub(crate) enum Place {
    /// The simulator.
    Sim(Sim),
    /// A real one, and the runtime that its adapters need.
    Real(tokio::runtime::Runtime, World),
}

impl Place {
    /// Opens the world of an environment.
    pub(crate) fn open(environment: &Environment) -> Result<Self, WorldError> {
        match environment.kind {
            EnvironmentKind::Sim => Ok(Self::Sim(Sim::new(world_of(environment)?, environment.seed))),
            EnvironmentKind::Cluster => {
                let fault = |e: std::io::Error| WorldError::new(ErrorKind::Failed, "start a runtime", e.to_string());
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .enable_all()
                    .build()
                    .map_err(fault)?;
                let world = runtime.block_on(cluster::connect(environment, &cluster::Options::default()))?;
                Ok(Self::Real(runtime, world))
            }
            EnvironmentKind::Lab => {
                let message = "scenarios are not carried out in the lab by this version";
                let error = WorldError::new(ErrorKind::Unsupported, "open the lab", message);
                Err(error.with_help("gtrun lab up makes one for use with kubectl and by hand"))
            }
        }
    }

    /// Its ports.
    pub(crate) fn world(&self) -> World {
        match self {
            Self::Sim(sim) => sim.world(),
            Self::Real(_, world) => world.clone(),
        }
    }

    /// Carries a future out in it.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Stuck> {
        match self {
            Self::Sim(sim) => sim.block_on(future),
            Self::Real(runtime, _) => Ok(runtime.block_on(future)),
        }
    }
}

/// Asks before a real cluster is acted on, where somebody can answer.
pub(super) fn confirmed(plan: &Plan) -> bool {
    let asks = match plan.environment.kind {
        EnvironmentKind::Sim | EnvironmentKind::Lab => false,
        EnvironmentKind::Cluster => super::suite::acts(plan) && std::io::stdin().is_terminal(),
    };
    if !asks {
        return true;
    }
    let workload = &plan.environment.workload;
    eprint!(
        "gtrun: {} acts on {}/{} in context {}. Go on? [y/N] ",
        plan.name,
        workload.namespace,
        workload.deployment,
        plan.environment.context.as_deref().unwrap_or("?")
    );
    let mut answer = String::new();
    let read = std::io::stderr()
        .flush()
        .and_then(|()| std::io::stdin().lock().read_line(&mut answer));
    read.is_ok() && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}
