//! Between the plan of a run and a lab: which lab a plan asks for, and the environment that a lab is.

use crate::language::plan;
use crate::time::Duration;

use super::world::{
    Amount, DrainListeners, Hpa, LabWorld, LoadBalancerWorld, LogFormat, Mode, NodeWorld, OnMarkedDown, PodWorld,
    Prestop, RolloutWorld, Sidecar,
};
use super::{LabError, LabFacts};

impl LabWorld {
    /// The lab for a plan's world. What only a model can have is left to it: HAProxy is the one that is installed, round
    /// trips are this machine's, and `exec` runs real commands.
    ///
    /// # Errors
    /// What a lab cannot be: a mode it does not know, clocks that differ, other clients, a check cycle that begins at a
    /// chosen phase, no log.
    pub fn of_plan(world: &plan::World) -> Result<Self, LabError> {
        let refuse = |why: String| Err(LabError::World(why));
        let mode = match world.mode.as_str() {
            "current" => Mode::Current,
            "improved" => Mode::Improved,
            "nolb" => Mode::Nolb,
            other => {
                return refuse(format!(
                    "`mode: {other}`; the lab's workload has current, improved and nolb"
                ));
            }
        };
        if let Some((host, _)) = world
            .clocks
            .iter()
            .find(|(_, c)| c.offset != Duration::ZERO || c.drift != 0.0)
        {
            return refuse(format!(
                "`clocks.{host}`: the lab's hosts all have this machine's clock"
            ));
        }
        if world.traffic.rate > 0.0 {
            return refuse("`traffic.rate`: the lab has no other clients; use a `load` step".into());
        }
        if world.load_balancer.phase.is_some() {
            return refuse(
                "`load_balancer.phase`: HAProxy begins its checks by itself; use `sweep: { phase: ... }`".into(),
            );
        }
        let (pod, lb, rollout) = (&world.pod, &world.load_balancer, &world.rollout);
        let log = match lb.log {
            plan::HaproxyLogFormat::Iso => LogFormat::Iso,
            plan::HaproxyLogFormat::Rfc5424 => LogFormat::Rfc5424,
            plan::HaproxyLogFormat::Rfc3164 => LogFormat::Rfc3164,
            plan::HaproxyLogFormat::None => {
                return refuse("`load_balancer.log: none`: the lab's HAProxy always logs".into());
            }
        };
        let mut prestop = std::collections::BTreeMap::new();
        for (container, hook) in &pod.prestop {
            if container.as_str() == "hc" {
                return refuse("`pod.prestop.hc`: this hook is what drains the lab's workload".into());
            }
            prestop.insert(container.as_str().to_owned(), Prestop::Sleep(hook.sleep));
        }
        let env = pod.env.iter().map(|(c, vars)| {
            let vars = vars.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
            (c.as_str().to_owned(), vars)
        });
        let lab = Self {
            mode,
            replicas: world.replicas,
            pod: PodWorld {
                grace: pod.grace,
                prestop,
                sidecar: match pod.sidecar {
                    plan::SidecarKind::Container => Sidecar::Container,
                    plan::SidecarKind::Native => Sidecar::Native,
                },
                env: env.collect(),
                termination_drain: Some(pod.termination_drain),
                pdb_min_available: pod.pdb_min_available,
                hpa: match pod.hpa {
                    plan::HpaPresence::Absent => Hpa::Absent,
                    plan::HpaPresence::Allowed => Hpa::Present,
                },
                drain_max: pod.drain_max,
                lb_wait: pod.lb_wait,
                drain_listeners: match pod.drain_listeners {
                    plan::DrainListeners::Never => DrainListeners::Never,
                    plan::DrainListeners::AtDraining => DrainListeners::AtDraining,
                    plan::DrainListeners::AtClosing => DrainListeners::AtClosing,
                },
                drain_time: pod.drain_time,
            },
            nodes: world
                .nodes
                .iter()
                .map(|(name, n)| {
                    (
                        name.clone(),
                        NodeWorld {
                            cordoned: n.cordoned,
                            taints: n.taints.clone(),
                        },
                    )
                })
                .collect(),
            load_balancer: LoadBalancerWorld {
                inter: lb.inter,
                fastinter: lb.fastinter,
                downinter: lb.downinter,
                fall: lb.fall,
                rise: lb.rise,
                on_marked_down: match lb.on_marked_down {
                    plan::OnMarkedDown::ShutdownSessions => OnMarkedDown::ShutdownSessions,
                    plan::OnMarkedDown::None => OnMarkedDown::None,
                },
                // Mode `nolb` is made of it; in the others it is what the world says.
                disable_on_404: Some(lb.disable_on_404 || mode == Mode::Nolb),
                agent_check: lb.agent_check,
                redispatch: lb.redispatch,
                retry_on: lb.retry_on.clone(),
                timeout_server: lb.timeout_server,
                log,
            },
            rollout: RolloutWorld {
                min_ready: rollout.min_ready,
                max_surge: amount(rollout.max_surge),
                max_unavailable: amount(rollout.max_unavailable),
                anti_affinity: match &rollout.anti_affinity {
                    plan::AntiAffinity::None => "none".to_owned(),
                    plan::AntiAffinity::Hostname => "hostname".to_owned(),
                    plan::AntiAffinity::Key(key) => key.clone(),
                },
            },
        };
        lab.check()?;
        Ok(lab)
    }
}

fn amount(amount: plan::CountOrPercent) -> Amount {
    match amount {
        plan::CountOrPercent::Count(n) => Amount::Count(n),
        plan::CountOrPercent::Percent(n) => Amount::Percent(n),
    }
}

impl LabFacts {
    /// The environment of a run with this lab's names and addresses in place of its own: what the adapters of a cluster
    /// work from. Name, kind, bounds and states stay as they are.
    pub fn environment(&self, base: &plan::Environment) -> plan::Environment {
        let (workload, lb) = (&self.workload, &self.load_balancer);
        let path = |p: &std::path::Path| p.display().to_string();
        plan::Environment {
            context: Some(self.context.clone()),
            workload: plan::Workload {
                namespace: workload.namespace.clone(),
                deployment: workload.deployment.clone(),
                mode_label: workload.mode_label.clone(),
                containers: base
                    .workload
                    .containers
                    .iter()
                    .map(|(key, name)| {
                        let own = workload.containers.get(key.as_str()).unwrap_or(name);
                        (key.clone(), own.clone())
                    })
                    .collect(),
                envoy_admin: workload.envoy_admin,
                ..base.workload.clone()
            },
            entry: plan::Entry {
                url: self.entry_url.clone(),
                connect_to: Some(self.entry_connect_to.clone()),
                ca_file: None,
            },
            load_balancer: plan::LoadBalancer {
                host: lb.host.clone(),
                socket: path(&lb.socket),
                config: Some(path(&lb.config)),
                log: Some(plan::LogSource::File {
                    path: path(&lb.log),
                    zone: None,
                }),
                backend: lb.backend.clone(),
                servers: lb.servers.clone(),
                facts: base.load_balancer.facts.clone(),
            },
            hosts: self
                .hosts
                .iter()
                .map(|(name, host)| {
                    let host = plan::Host {
                        ssh: Some(format!("{}@{}", host.user, host.address)),
                        jump: host.jump.clone(),
                        sudo: host.sudo,
                        groups: host.groups.clone(),
                    };
                    (name.clone(), host)
                })
                .collect(),
            ..base.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::environment::default_world;

    #[test]
    fn the_default_world_of_the_language_is_a_lab() {
        let lab = LabWorld::of_plan(&default_world()).expect("a lab");
        assert_eq!((lab.mode, lab.replicas, lab.nodes.len()), (Mode::Improved, 1, 2));
        assert_eq!(lab.rollout.anti_affinity, "hostname");
        assert_eq!(lab.load_balancer.disable_on_404, Some(false));
    }

    #[test]
    fn what_a_lab_cannot_be_is_refused_by_name() {
        let refused = |change: fn(&mut plan::World)| {
            let mut world = default_world();
            change(&mut world);
            LabWorld::of_plan(&world).expect_err("refused").to_string()
        };
        assert!(refused(|w| w.mode = "fast".into()).contains("`mode: fast`"));
        assert!(refused(|w| w.traffic.rate = 1.0).contains("`traffic.rate`"));
        let ahead = plan::ClockWorld {
            offset: Duration::from_millis(20),
            drift: 0.0,
        };
        let mut world = default_world();
        world.clocks.insert("lb".into(), ahead);
        assert!(
            LabWorld::of_plan(&world)
                .expect_err("refused")
                .to_string()
                .contains("`clocks.lb`")
        );
    }
}
