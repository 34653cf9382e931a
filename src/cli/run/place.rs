//! Opens the world of an environment, and carries futures out in it: virtual time in the simulator, tokio elsewhere.

use std::future::Future;
use std::io::{BufRead, IsTerminal, Write};

use crate::language::plan::{Environment, EnvironmentKind, Plan};
use crate::world::cluster::{Options, connect};
use crate::world::port::{ErrorKind, World, WorldError};
use crate::world::sim::{Sim, Stuck, world_of};
#[cfg(all(target_os = "linux", feature = "lab"))]
use crate::{
    language::environment::default_world,
    world::cluster::ssh::SshOptions,
    world::lab::{Lab, LabError, LabName, LabOptions, LabWorld, Lifetime},
};

/// A world that is open.
pub(crate) enum Place {
    /// The simulator.
    Sim(Sim),
    /// A cluster, or a lab that looks like one.
    Real(Box<Real>),
}

/// A world whose time is this machine's.
pub(crate) struct Real {
    runtime: tokio::runtime::Runtime,
    world: World,
    /// Where it is: a lab has its names and addresses only once it is up.
    environment: Environment,
    #[cfg(all(target_os = "linux", feature = "lab"))]
    lab: Option<Lab>,
}

impl Place {
    /// Opens the world of an environment.
    pub(crate) fn open(environment: &Environment) -> Result<Self, WorldError> {
        match environment.kind {
            EnvironmentKind::Sim => Ok(Self::Sim(Sim::new(world_of(environment)?, environment.seed))),
            EnvironmentKind::Lab => Real::lab(environment),
            EnvironmentKind::Cluster => Real::enter(environment.clone(), &Options::default()),
        }
    }

    /// Its ports.
    pub(crate) fn world(&self) -> World {
        match self {
            Self::Sim(sim) => sim.world(),
            Self::Real(real) => real.world.clone(),
        }
    }

    /// The plan's environment as it is in this place.
    pub(crate) fn environment(&self, planned: &Environment) -> Environment {
        match self {
            Self::Sim(_) => planned.clone(),
            Self::Real(real) => real.environment.clone(),
        }
    }

    /// Carries a future out in it.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> Result<F::Output, Stuck> {
        match self {
            Self::Sim(sim) => sim.block_on(future),
            Self::Real(real) => Ok(real.runtime.block_on(future)),
        }
    }
}

impl Real {
    fn enter(environment: Environment, options: &Options) -> Result<Place, WorldError> {
        let failed = |e: std::io::Error| WorldError::new(ErrorKind::Failed, "start the runtime", e.to_string());
        let runtime = tokio::runtime::Runtime::new().map_err(failed)?;
        let world = runtime.block_on(connect(&environment, options))?;
        Ok(Place::Real(Box::new(Self {
            runtime,
            world,
            environment,
            #[cfg(all(target_os = "linux", feature = "lab"))]
            lab: None,
        })))
    }

    /// Brings a lab up for this run; it goes with it, also when gtrun is killed.
    #[cfg(all(target_os = "linux", feature = "lab"))]
    fn lab(environment: &Environment) -> Result<Place, WorldError> {
        let failed = |e: LabError| WorldError::new(ErrorKind::Unsupported, "bring the lab up", e.to_string());
        let planned = environment.world.clone().unwrap_or_else(default_world);
        let name = LabName::new(&format!("run-{}", std::process::id())).map_err(failed)?;
        let wanted = LabOptions {
            lifetime: Lifetime::Attached,
            ..LabOptions::new(name, LabWorld::of_plan(&planned).map_err(failed)?)
        };
        let lab = Lab::up(&wanted).map_err(failed)?;
        let facts = lab.facts();
        let options = Options {
            kubeconfig: Some(facts.kubeconfig.clone()),
            ssh: SshOptions {
                config_files: Some(vec![facts.ssh_config.clone()]),
                ..SshOptions::default()
            },
        };
        let mut place = Self::enter(facts.environment(environment), &options)?;
        if let Place::Real(real) = &mut place {
            real.lab = Some(lab);
        }
        Ok(place)
    }

    #[cfg(not(all(target_os = "linux", feature = "lab")))]
    fn lab(_: &Environment) -> Result<Place, WorldError> {
        let message = "the lab needs Linux and a gtrun with the feature `lab`";
        Err(WorldError::new(ErrorKind::Unsupported, "bring the lab up", message))
    }
}

#[cfg(all(target_os = "linux", feature = "lab"))]
impl Drop for Real {
    fn drop(&mut self) {
        if let Some(lab) = self.lab.take()
            && let Err(error) = lab.down()
        {
            eprintln!("gtrun: the lab was not removed whole: {error}; next: gtrun lab status");
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
