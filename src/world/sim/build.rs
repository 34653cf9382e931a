//! From an environment's `world` to the world that is simulated.

use std::collections::BTreeMap;

use super::spec::{
    ClockSpec, CommandRule, DrainListeners, Effect, Hook, LoadBalancerSpec, LogStamps, Mode, Names, NetworkSpec,
    NodeSpec, Observation, PodSpec, RolloutSpec, SidecarEnd, Version, WorldSpec,
};
use crate::language::plan::{self, CountOrPercent, Environment, HpaPresence, OnMarkedDown, SidecarKind};
use crate::time::Duration;
use crate::world::port::{ErrorKind, WorldError};

/// The world of an environment of kind `sim`.
///
/// # Errors
/// `Unsupported` when the environment has no world, or one that the model does not know how to be (a mode without a
/// meaning, a HAProxy version older than 2.6).
pub fn world_of(environment: &Environment) -> Result<WorldSpec, WorldError> {
    let refuse = |message: String, help: &str| {
        WorldError::new(ErrorKind::Unsupported, "build the simulated world", message).with_help(help)
    };
    let Some(world) = &environment.world else {
        return Err(refuse(
            "the environment has no world".to_owned(),
            "use an environment of kind sim",
        ));
    };
    let mode = match world.mode.as_str() {
        "current" => Mode::Current,
        "improved" => Mode::Improved,
        "nolb" => Mode::Nolb,
        other => {
            return Err(refuse(
                format!("`{other}` is no mode that the simulated workload has"),
                "it knows current, improved and nolb; another value of the label needs a cluster",
            ));
        }
    };
    let version = version(&world.load_balancer.version).ok_or_else(|| {
        let given = &world.load_balancer.version;
        refuse(format!("HAProxy `{given}` is not modelled"), "versions 2.6 to 3.4 are")
    })?;
    let log = match world.load_balancer.log {
        plan::HaproxyLogFormat::Iso | plan::HaproxyLogFormat::None => LogStamps::Iso,
        plan::HaproxyLogFormat::Rfc5424 => LogStamps::Rfc5424,
        plan::HaproxyLogFormat::Rfc3164 => LogStamps::Rfc3164 { zone: Duration::ZERO },
    };
    let lb = &world.load_balancer;
    let servers = &environment.load_balancer.servers;
    let mut nodes: Vec<NodeSpec> = world
        .nodes
        .iter()
        .map(|(name, node)| NodeSpec {
            name: name.clone(),
            server: servers.get(name).unwrap_or(name).clone(),
            cordoned: node.cordoned,
            taints: node.taints.clone(),
        })
        .collect();
    if nodes.is_empty() {
        nodes.push(NodeSpec::named("worker1"));
    }
    Ok(WorldSpec {
        names: names(environment),
        mode,
        replicas: world.replicas,
        pod: pod(&world.pod),
        nodes,
        rollout: rollout(&world.rollout, world.replicas),
        load_balancer: LoadBalancerSpec {
            version,
            inter: lb.inter,
            fastinter: lb.fastinter,
            downinter: lb.downinter,
            fall: lb.fall.max(1),
            rise: lb.rise.max(1),
            shutdown_sessions: match lb.on_marked_down {
                OnMarkedDown::ShutdownSessions => true,
                OnMarkedDown::None => false,
            },
            disable_on_404: lb.disable_on_404,
            agent_check: lb.agent_check,
            redispatch: lb.redispatch,
            retry_on: lb.retry_on.clone(),
            timeout_server: lb.timeout_server,
            log,
            phase: lb.phase,
            ..LoadBalancerSpec::default()
        },
        network: NetworkSpec {
            rtt: world.network.rtt,
            host_port: false,
        },
        clocks: world
            .clocks
            .iter()
            .map(|(host, c)| {
                (
                    host.clone(),
                    ClockSpec {
                        offset: c.offset,
                        drift_ppm: c.drift,
                    },
                )
            })
            .collect(),
        traffic: world.traffic.rate,
        commands: world.exec.iter().map(command).collect(),
        observation: Observation {
            no_lb_log: match lb.log {
                plan::HaproxyLogFormat::None => true,
                plan::HaproxyLogFormat::Iso | plan::HaproxyLogFormat::Rfc5424 | plan::HaproxyLogFormat::Rfc3164 => {
                    false
                }
            },
            ..Observation::default()
        },
        ..WorldSpec::default()
    })
}

fn names(environment: &Environment) -> Names {
    let given = Names::default();
    let workload = &environment.workload;
    let container = |key: &str, other: String| workload.containers.get(key).cloned().unwrap_or(other);
    let mut states = given.states;
    for (mine, theirs) in states.iter_mut().zip(&environment.fsm.states) {
        mine.clone_from(theirs);
    }
    Names {
        namespace: workload.namespace.clone(),
        deployment: workload.deployment.clone(),
        mode_label: workload.mode_label.clone(),
        app: container("app", given.app),
        hc: container("hc", given.hc),
        sidecar: container("sidecar", given.sidecar),
        frontend: given.frontend,
        backend: environment.load_balancer.backend.clone(),
        lb: environment.load_balancer.host.clone(),
        states,
    }
}

fn version(text: &str) -> Option<Version> {
    let mut parts = text.split('.').map(|p| p.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next()??);
    match (major, minor) {
        (2, 6 | 7) => Some(Version::V2_6),
        (2, 8 | 9) => Some(Version::V2_8),
        (3, 0 | 1) => Some(Version::V3_0),
        (3, 2..) => Some(Version::V3_2),
        _ => None,
    }
}

fn pod(world: &plan::PodWorld) -> PodSpec {
    let hook = |key: &str| world.prestop.get(key).map_or(Hook::Fsm, |p| Hook::Sleep(p.sleep));
    let env: BTreeMap<String, BTreeMap<String, String>> = world
        .env
        .iter()
        .map(|(c, vars)| {
            (
                c.as_str().to_owned(),
                vars.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            )
        })
        .collect();
    let exit_on_zero = env
        .get("sidecar")
        .and_then(|vars| vars.get("EXIT_ON_ZERO_ACTIVE_CONNECTIONS"))
        .is_some_and(|value| value == "true");
    let native = match world.sidecar {
        SidecarKind::Native => true,
        SidecarKind::Container => false,
    };
    PodSpec {
        grace: world.grace,
        lb_wait: world.lb_wait,
        drain_max: world.drain_max,
        drain_listeners: match world.drain_listeners {
            plan::DrainListeners::Never => DrainListeners::Never,
            plan::DrainListeners::AtDraining => DrainListeners::AtDraining,
            plan::DrainListeners::AtClosing => DrainListeners::AtClosing,
        },
        drain_time: world.drain_time,
        app_hook: hook("app"),
        hc_hook: hook("hc"),
        sidecar_hook: hook("sidecar"),
        native_sidecar: native,
        sidecar_end: if exit_on_zero {
            SidecarEnd::AtZero(world.termination_drain)
        } else {
            SidecarEnd::AtOnce
        },
        pdb_min_available: world.pdb_min_available,
        autoscaler: match world.hpa {
            HpaPresence::Allowed => true,
            HpaPresence::Absent => false,
        },
        env,
        ..PodSpec::default()
    }
}

fn rollout(world: &plan::RolloutWorld, replicas: u32) -> RolloutSpec {
    let share = |given: CountOrPercent, up: bool| match given {
        CountOrPercent::Count(n) => n,
        CountOrPercent::Percent(p) => {
            let hundredths = u64::from(replicas) * u64::from(p);
            let pods = if up { hundredths.div_ceil(100) } else { hundredths / 100 };
            u32::try_from(pods).unwrap_or(u32::MAX)
        }
    };
    RolloutSpec {
        min_ready: world.min_ready,
        max_surge: share(world.max_surge, true),
        max_unavailable: share(world.max_unavailable, false),
        anti_affinity: match &world.anti_affinity {
            plan::AntiAffinity::None => None,
            plan::AntiAffinity::Hostname => Some("kubernetes.io/hostname".to_owned()),
            plan::AntiAffinity::Key(key) => Some(key.clone()),
        },
    }
}

fn command(rule: &plan::ExecEffect) -> CommandRule {
    CommandRule {
        argv: rule.argv.clone(),
        effect: match rule.effect {
            plan::Effect::None => Effect::None,
            plan::Effect::FailReadiness => Effect::FailReadiness,
            plan::Effect::RestoreReadiness => Effect::RestoreReadiness,
            plan::Effect::AgentDrain => Effect::AgentDrain,
            plan::Effect::AgentReady => Effect::AgentReady,
            plan::Effect::BeginDrain => Effect::BeginDrain,
            plan::Effect::ReloadHaproxy => Effect::ReloadHaproxy,
        },
        stdout: rule.stdout.clone(),
        exit: rule.exit,
    }
}
