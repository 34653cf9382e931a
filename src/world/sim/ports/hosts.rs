//! The hosts' port: clocks, commands, captures.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::Sim;
use super::super::capture;
use super::super::haproxy;
use super::super::model::{Event, Model};
use super::super::network::{CLIENT, FIRST_WORKER, HostId};
use super::super::pod::{Pod, PodId, Role};
use super::super::spec::Effect;
use crate::evidence::clock_exchange::ClockExchange;
use crate::time::{Duration, Instant};
use crate::world::port::{Capture, CaptureEnd, CommandOutput, ErrorKind, HostInfo, Hosts, Pending, WorldError};

/// Exchanges of a clock in one session.
const EXCHANGES: usize = 5;

impl Model {
    fn host(&self, name: &str) -> Option<HostId> {
        let found = self.net.hosts.iter().position(|h| h.name == name);
        found.map(HostId).filter(|h| *h != CLIENT)
    }

    /// What a command does, in a pod or on a host.
    pub(super) fn command(&mut self, argv: &[String], pod: Option<PodId>) -> CommandOutput {
        let Some(rule) = self.spec.commands.iter().find(|r| r.argv == argv).cloned() else {
            let name = argv.first().map_or("", String::as_str);
            let stderr = format!("{name}: no such command in the simulated world\n").into_bytes();
            return CommandOutput {
                exit: 127,
                stdout: Vec::new(),
                stderr,
            };
        };
        match (rule.effect, pod) {
            (Effect::FailReadiness, Some(pod)) => self.pods[pod.0].readiness_broken = true,
            (Effect::RestoreReadiness, Some(pod)) => self.pods[pod.0].readiness_broken = false,
            (Effect::AgentDrain, Some(pod)) => self.pods[pod.0].agent_drain = true,
            (Effect::AgentReady, Some(pod)) => self.pods[pod.0].agent_drain = false,
            (Effect::BeginDrain, Some(pod)) => self.fsm_begins(pod),
            (Effect::ReloadHaproxy, _) => {
                let wait = self.dice.micros(5_000, 60_000);
                self.after(wait, Event::Haproxy(haproxy::Event::Reload));
            }
            (Effect::Maintenance, _) => self.all_in_maintenance(true),
            (Effect::LeaveMaintenance, _) => self.all_in_maintenance(false),
            // Without a pod there is nothing that they could act on.
            (
                Effect::None
                | Effect::FailReadiness
                | Effect::RestoreReadiness
                | Effect::AgentDrain
                | Effect::AgentReady
                | Effect::BeginDrain,
                _,
            ) => {}
        }
        CommandOutput {
            exit: rule.exit,
            stdout: rule.stdout.into_bytes(),
            stderr: Vec::new(),
        }
    }

    fn all_in_maintenance(&mut self, on: bool) {
        for server in 0..self.spec.nodes.len() {
            self.set_maintenance(server, on);
        }
    }

    /// The pod on a worker, for commands that act on what runs there.
    fn pod_on(&self, host: HostId) -> Option<PodId> {
        let node = host.0.checked_sub(FIRST_WORKER)?;
        let here = |p: &Pod| p.node == Some(node) && p.runs(Role::Hc);
        self.pods.iter().rposition(here).map(PodId)
    }
}

fn unknown(host: &str, doing: &str) -> WorldError {
    let message = format!("there is no host `{host}` in the simulated world");
    WorldError::new(ErrorKind::Unsupported, doing, message)
        .with_help("its hosts are the load balancer's and those of the nodes")
}

impl Hosts for Sim {
    fn list(&self) -> Vec<HostInfo> {
        let m = self.model();
        let hosts = m.net.hosts.iter().enumerate().skip(1);
        hosts
            .map(|(index, h)| {
                let worker = index >= FIRST_WORKER;
                HostInfo {
                    name: h.name.clone(),
                    groups: if worker { vec!["workers".to_owned()] } else { Vec::new() },
                    node: worker.then(|| h.name.clone()),
                }
            })
            .collect()
    }

    fn exchange_clocks<'a>(&'a self, host: &'a str) -> Pending<'a, Vec<ClockExchange>> {
        async move {
            let Some(id) = self.model().host(host) else {
                return Err(unknown(host, "read a clock"));
            };
            // The session takes longer to open than to use.
            self.call((1_000, 15_000, 60_000), (100, 300, 900), |_| ()).await;
            let half = self.model().spec.network.rtt.as_nanos() / 2_000;
            let way = (half + 40, half + 120, half + 3_000);
            let mut exchanges = Vec::with_capacity(EXCHANGES);
            for _ in 0..EXCHANGES {
                let sent = self.model().now;
                let remote = self.call(way, way, move |m| m.net.read_clock(id, m.now)).await;
                let received = self.model().now;
                exchanges.push(ClockExchange {
                    host: host.to_owned(),
                    sent,
                    remote,
                    received,
                });
            }
            Ok(exchanges)
        }
        .boxed()
    }

    fn run<'a>(&'a self, host: &'a str, argv: &'a [String], _sudo: bool) -> Pending<'a, CommandOutput> {
        async move {
            let Some(id) = self.model().host(host) else {
                return Err(unknown(host, "run a command"));
            };
            let argv = argv.to_vec();
            let answer = self.call((2_000, 20_000, 60_000), (1_000, 3_000, 20_000), move |m| {
                let pod = m.pod_on(id);
                m.command(&argv, pod)
            });
            Ok(answer.await)
        }
        .boxed()
    }

    fn start_capture<'a>(&'a self, host: &'a str, _marker: &'a str, _limit: Duration) -> Pending<'a, Box<dyn Capture>> {
        async move {
            let Some(id) = self.model().host(host) else {
                return Err(unknown(host, "start a capture"));
            };
            let refused = self.call((2_000, 25_000, 80_000), (1_000, 5_000, 20_000), move |m| {
                let refused = m.spec.observation.no_capture.contains(&m.net.hosts[id.0].name);
                m.net.hosts[id.0].captures += u32::from(!refused);
                (refused, m.now)
            });
            let (refused, since) = refused.await;
            if refused {
                let doing = format!("capture on {host}");
                let error = WorldError::new(ErrorKind::Unsupported, doing, "sudo: a password is required");
                return Err(error.with_help("allow `sudo -n tcpdump` there"));
            }
            Ok(Box::new(SimCapture {
                sim: self.clone(),
                host: id,
                since,
            }) as Box<dyn Capture>)
        }
        .boxed()
    }
}

/// A capture that is running on a host of the model.
struct SimCapture {
    sim: Sim,
    host: HostId,
    /// Captures side by side see the same packets, each from its own start.
    since: Instant,
}

impl Capture for SimCapture {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<u8>>> {
        // The file is fetched whole at the end.
        std::future::pending().boxed()
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, CaptureEnd> {
        async move {
            let (host, since) = (self.host, self.since);
            let end = self
                .sim
                .call((2_000, 20_000, 60_000), (2_000, 20_000, 60_000), move |m| {
                    let now = m.now;
                    let h = &mut m.net.hosts[host.0];
                    h.captures -= 1;
                    let mut packets = h.packets.clone();
                    if h.captures == 0 {
                        h.packets.clear();
                    }
                    packets.retain(|p| p.at >= since && p.at <= now);
                    packets.sort_by_key(|p| p.at);
                    let mut rest = capture::file_header();
                    for packet in &packets {
                        capture::record(&mut rest, packet, &h.clock);
                    }
                    let words = capture::WORDS_AT_START.to_owned() + &capture::words_at_end(packets.len());
                    CaptureEnd {
                        rest,
                        words,
                        fault: None,
                    }
                });
            end.await
        }
        .boxed()
    }
}
