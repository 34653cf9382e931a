//! The kubelet: starts containers, probes readiness, and ends a pod: preStop, SIGTERM, SIGKILL at the end of the
//! grace period. Latencies are those measured on a real node (minimum, median, maximum).

use super::super::model::{Event as ModelEvent, Model};
use super::super::spec::{Hook, SidecarEnd};
use super::super::truth::Happened;
use super::{Phase, PodId, Role, fsm};
use crate::time::Duration;
use crate::world::port::LogEnd;

/// What the kubelet does.
#[derive(Debug, Clone, Copy)]
pub(in crate::world::sim) enum Event {
    /// The containers start.
    Start,
    /// Envoy listens.
    Listen,
    /// The readiness probe.
    Probe,
    /// A container's preStop hook is run.
    Hook(Role),
    /// SIGTERM to a container.
    Sigterm(Role),
    /// A container's process ends.
    Exit(Role, i32),
    /// Istio's agent looks whether anything is active.
    AgentLooks,
    /// The grace period is over.
    GraceOver,
    /// SIGKILL to a container that still runs.
    Sigkill(Role),
    /// The API shows the containers as terminated.
    ShowEnded,
    /// The object is removed.
    Remove,
}

/// The shortest time that the kubelet gives after SIGTERM.
const LEAST_GRACE: Duration = Duration::from_secs(2);
const PROBE_PERIOD: Duration = Duration::from_secs(2);

impl Model {
    pub(in crate::world::sim) fn kubelet_soon(&mut self, pod: PodId, after: Duration, event: Event) {
        self.after(after, ModelEvent::Pod(super::Event::Kubelet(pod, event)));
    }

    pub(super) fn kubelet_event(&mut self, pod: PodId, event: Event) {
        match event {
            Event::Start => self.kubelet_starts(pod),
            Event::Listen => self.pods[pod.0].envoy.listening = self.pods[pod.0].runs(Role::Sidecar),
            Event::Probe => self.kubelet_probes(pod),
            Event::Hook(role) => self.kubelet_runs_hook(pod, role),
            Event::Sigterm(role) => self.kubelet_sigterm(pod, role),
            Event::Exit(role, code) => self.container_exits(pod, role, code),
            Event::AgentLooks => self.agent_looks(pod),
            Event::GraceOver => self.kubelet_grace_over(pod),
            Event::Sigkill(role) => self.container_exits(pod, role, 137),
            Event::ShowEnded => self.kubelet_shows_ended(pod),
            Event::Remove => self.remove_pod(pod),
        }
    }

    fn kubelet_starts(&mut self, pod: PodId) {
        if self.pods[pod.0].deletion.is_some() {
            return self.kubelet_shows_ended(pod);
        }
        for role in Role::ALL {
            self.pods[pod.0].container_mut(role).started = Some(self.now);
            self.pod_event_message(
                pod,
                Some(role),
                "Normal",
                "Started",
                format!("Started container {}", self.container_name(role)),
            );
        }
        self.pods[pod.0].phase = Phase::Running;
        let open = self.spec.names.states[0].clone();
        let mode = self.spec.mode.word();
        self.write_stamped(pod, Role::Hc, &format!("event=start state={open} mode={mode}"));
        self.envoy_says(pod, "info", "server.cc:1001", "starting main dispatch loop");
        self.pod_changed(pod);
        let listens = self.dice.spread(60_000, 150_000, 700_000);
        self.kubelet_soon(pod, listens, Event::Listen);
        let probe = listens + self.dice.spread(50_000, 300_000, 900_000);
        self.kubelet_soon(pod, probe, Event::Probe);
    }

    fn kubelet_probes(&mut self, pod: PodId) {
        let p = &self.pods[pod.0];
        if p.shown_ended || p.gone {
            return;
        }
        let healthy = p.runs(Role::Hc) && p.fsm.health == 200 && !p.readiness_broken;
        let hc_ready = healthy;
        let others = [Role::App, Role::Sidecar].map(|r| (r, p.runs(r)));
        let was = p.ready.is_some();
        let is = hc_ready && others.iter().all(|(_, up)| *up);
        let changed = was != is || p.container(Role::Hc).ready != hc_ready;
        let p = &mut self.pods[pod.0];
        p.container_mut(Role::Hc).ready = hc_ready;
        for (role, up) in others {
            p.container_mut(role).ready = up;
        }
        if was != is {
            p.ready = is.then_some(self.now);
            let name = p.name.clone();
            self.truth.note(self.now, Happened::PodReady { pod: name, ready: is });
        }
        if changed {
            self.pod_changed(pod);
            self.slice_soon();
            self.reconcile_soon();
            if is {
                let min_ready = self.spec.rollout.min_ready;
                self.reconcile_after(min_ready);
            }
        }
        if !hc_ready {
            let status = self.pods[pod.0].fsm.health;
            let text = format!("Readiness probe failed: HTTP probe failed with statuscode: {status}");
            self.pod_event_message(pod, Some(Role::Hc), "Warning", "Unhealthy", text);
        }
        let again = PROBE_PERIOD + self.dice.micros(0, 4_000);
        self.kubelet_soon(pod, again, Event::Probe);
    }

    /// The API server has accepted the deletion: the kubelet hears of it and begins.
    pub(in crate::world::sim) fn kubelet_ends(&mut self, pod: PodId, grace: Duration) {
        if self.pods[pod.0].container(Role::App).started.is_none() {
            let wait = self.dice.spread(100_000, 200_000, 400_000);
            return self.kubelet_soon(pod, wait, Event::ShowEnded);
        }
        if grace <= Duration::ZERO {
            for role in Role::ALL {
                let wait = self.dice.spread(30_000, 60_000, 120_000);
                self.kubelet_soon(pod, wait, Event::Sigkill(role));
            }
            return;
        }
        for role in Role::ALL {
            if role == Role::Sidecar && self.spec.pod.native_sidecar {
                continue;
            }
            // Containers' hooks begin in any order, the one that drains usually last.
            let (event, wait) = match (self.hook(role), role) {
                (Hook::None, _) => (Event::Sigterm(role), self.dice.spread(28_000, 34_000, 60_000)),
                (_, Role::Hc) => (Event::Hook(role), self.dice.spread(49_000, 90_000, 140_000)),
                (_, Role::App | Role::Sidecar) => (Event::Hook(role), self.dice.spread(32_000, 56_000, 76_000)),
            };
            let text = format!("Stopping container {}", self.container_name(role));
            self.pod_event_message(pod, Some(role), "Normal", "Killing", text);
            self.kubelet_soon(pod, wait, event);
        }
        self.kubelet_soon(pod, grace, Event::GraceOver);
    }

    fn hook(&self, role: Role) -> Hook {
        match role {
            Role::App => self.spec.pod.app_hook,
            Role::Hc => self.spec.pod.hc_hook,
            Role::Sidecar => self.spec.pod.sidecar_hook,
        }
    }

    fn kubelet_runs_hook(&mut self, pod: PodId, role: Role) {
        if !self.pods[pod.0].runs(role) {
            return;
        }
        self.pods[pod.0].container_mut(role).hook_begun = true;
        match self.hook(role) {
            Hook::None => {}
            Hook::Sleep(d) => {
                let wait = d + self.dice.spread(1_000, 6_000, 30_000);
                self.kubelet_soon(pod, wait, Event::Sigterm(role));
            }
            Hook::Fsm => {
                let p = &self.pods[pod.0];
                if !p.runs(Role::Hc) || p.fsm.state == fsm::State::Closed {
                    let wait = self.dice.spread(3_000, 9_000, 20_000);
                    return self.kubelet_soon(pod, wait, Event::Sigterm(role));
                }
                let word = if role == Role::Hc { "prestop" } else { "hold" };
                let who = self.container_name(role).to_owned();
                self.write_stamped(pod, Role::Hc, &format!("event={word} who={who}"));
                if role == Role::Hc {
                    self.fsm_begins(pod);
                }
            }
        }
    }

    /// The FSM is told to drain, by the hook or by a command.
    pub(in crate::world::sim) fn fsm_begins(&mut self, pod: PodId) {
        let wait = self.dice.spread(200, 1_500, 5_000);
        self.after(wait, ModelEvent::Pod(super::Event::Fsm(pod, fsm::Event::Begin)));
    }

    /// The FSM is CLOSED (or its process gone): every hook that waits for it returns, SIGTERM follows.
    pub(super) fn kubelet_fsm_closed(&mut self, pod: PodId) {
        let lag = self.dice.spread(15_000, 18_000, 33_000);
        // Envoy's signal tends to be first; all of them come within 6 to 13 ms.
        for (role, first) in [(Role::Sidecar, 0), (Role::App, 1_000), (Role::Hc, 1_500)] {
            let c = self.pods[pod.0].container(role);
            if c.hook_begun && c.sigterm.is_none() && self.hook(role) == Hook::Fsm {
                let wait = lag + self.dice.micros(first, first + 6_000);
                self.kubelet_soon(pod, wait, Event::Sigterm(role));
            }
        }
    }

    fn kubelet_sigterm(&mut self, pod: PodId, role: Role) {
        let p = &self.pods[pod.0];
        if !p.runs(role) || p.container(role).sigterm.is_some() {
            return;
        }
        self.pods[pod.0].container_mut(role).sigterm = Some(self.now);
        let (name, container) = (self.pods[pod.0].name.clone(), self.container_name(role).to_owned());
        self.truth.note(self.now, Happened::Sigterm { pod: name, container });
        match role {
            Role::App => {
                self.write_stamped(pod, role, "event=sigterm");
                self.app_may_leave(pod);
            }
            Role::Hc => {
                self.write_stamped(pod, role, "event=sigterm");
                let wait = self.dice.spread(3_000, 8_000, 25_000);
                self.kubelet_soon(pod, wait, Event::Exit(role, 0));
            }
            Role::Sidecar => self.sidecar_sigterm(pod),
        }
        let deletion = self.pods[pod.0].deletion;
        let left = deletion.map_or(Duration::ZERO, |d| d.asked + d.grace - self.now);
        self.kubelet_soon(pod, left.max(LEAST_GRACE), Event::Sigkill(role));
    }

    /// An application that was told to stop leaves at once, or when its last request is answered.
    pub(super) fn app_may_leave(&mut self, pod: PodId) {
        let p = &self.pods[pod.0];
        if p.container(Role::App).sigterm.is_none() || (self.spec.pod.app_finishes && !p.working.is_empty()) {
            return;
        }
        let wait = self.dice.spread(5_000, 12_000, 30_000);
        self.kubelet_soon(pod, wait, Event::Exit(Role::App, 0));
    }

    fn sidecar_sigterm(&mut self, pod: PodId) {
        match self.spec.pod.sidecar_end {
            SidecarEnd::AtOnce => {
                self.envoy_says(pod, "warning", "server.cc:1028", "caught ENVOY_SIGTERM");
                let wait = self.dice.spread(1_000, 5_000, 40_000);
                self.kubelet_soon(pod, wait, Event::Exit(Role::Sidecar, 0));
            }
            SidecarEnd::After(d) => {
                self.agent_says(pod, &format!("Graceful termination period is {d}, starting..."));
                self.after(
                    Duration::from_millis(1),
                    ModelEvent::Pod(super::Event::Envoy(pod, super::envoy::Event::Drain { graceful: true })),
                );
                self.kubelet_soon(pod, d, Event::Exit(Role::Sidecar, 0));
            }
            SidecarEnd::AtZero(least) => {
                self.agent_says(
                    pod,
                    &format!("Agent draining proxy for {least}, then waiting for active connections to terminate..."),
                );
                self.after(
                    Duration::from_millis(1),
                    ModelEvent::Pod(super::Event::Envoy(pod, super::envoy::Event::Drain { graceful: true })),
                );
                self.kubelet_soon(pod, least, Event::AgentLooks);
            }
        }
    }

    fn agent_looks(&mut self, pod: PodId) {
        if !self.pods[pod.0].runs(Role::Sidecar) {
            return;
        }
        let active = self.pods[pod.0].envoy.downstream;
        if active == 0 {
            self.agent_says(pod, "There are no more active connections. terminating proxy...");
            let wait = self.dice.spread(1_000, 5_000, 40_000);
            return self.kubelet_soon(pod, wait, Event::Exit(Role::Sidecar, 0));
        }
        self.agent_says(pod, &format!("There are still {active} active connections"));
        self.kubelet_soon(pod, Duration::from_secs(1), Event::AgentLooks);
    }

    /// One of the agent's lines.
    fn agent_says(&mut self, pod: PodId, text: &str) {
        let node = self.pods[pod.0].node.unwrap_or(0);
        let host = super::super::network::HostId(super::super::network::FIRST_WORKER + node);
        let shown = super::super::clocks::stamp(self.net.read_clock(host, self.now), 6, "Z");
        self.write_line(pod, Role::Sidecar, format!("{shown}\tinfo\t{text}"));
    }

    fn container_exits(&mut self, pod: PodId, role: Role, code: i32) {
        if !self.pods[pod.0].runs(role) {
            return;
        }
        match role {
            Role::App => self.app_exits(pod),
            Role::Sidecar => self.envoy_exits(pod, code == 137),
            Role::Hc => {}
        }
        self.pods[pod.0].container_mut(role).ended = Some((self.now, code));
        let (name, container) = (self.pods[pod.0].name.clone(), self.container_name(role).to_owned());
        self.truth.note(
            self.now,
            Happened::ContainerExit {
                pod: name,
                container,
                code,
            },
        );
        self.end_followers(pod, role, LogEnd::ContainerEnded);
        if role == Role::Hc {
            self.kubelet_fsm_closed(pod);
        }
        let p = &self.pods[pod.0];
        let main_gone = !p.runs(Role::App) && !p.runs(Role::Hc);
        let (sidecar, told) = (p.runs(Role::Sidecar), p.deletion.is_some());
        if main_gone && sidecar && self.spec.pod.native_sidecar && told {
            let wait = self.dice.spread(50_000, 70_000, 110_000);
            self.kubelet_soon(pod, wait, Event::Sigterm(Role::Sidecar));
        }
        if main_gone && !sidecar {
            let wait = self.dice.spread(150_000, 160_000, 420_000);
            self.kubelet_soon(pod, wait, Event::ShowEnded);
        }
    }

    /// The grace period is over: hooks that still run are given up, SIGTERM comes with the least grace.
    fn kubelet_grace_over(&mut self, pod: PodId) {
        for role in Role::ALL {
            let c = self.pods[pod.0].container(role);
            if !self.pods[pod.0].runs(role) || c.sigterm.is_some() {
                continue;
            }
            if c.hook_begun {
                let text = "PreStopHook failed".to_owned();
                self.pod_event_message(pod, Some(role), "Warning", "FailedPreStopHook", text);
            }
            let wait = self.dice.spread(1_000, 4_000, 15_000);
            self.kubelet_soon(pod, wait, Event::Sigterm(role));
        }
    }

    fn kubelet_shows_ended(&mut self, pod: PodId) {
        let p = &mut self.pods[pod.0];
        if p.shown_ended || p.gone {
            return;
        }
        p.shown_ended = true;
        let clean = p.containers.iter().all(|c| c.ended.is_none_or(|(_, code)| code == 0));
        p.phase = if clean { Phase::Succeeded } else { Phase::Failed };
        if p.ready.take().is_some() {
            let name = p.name.clone();
            self.truth.note(
                self.now,
                Happened::PodReady {
                    pod: name,
                    ready: false,
                },
            );
        }
        for role in Role::ALL {
            self.pods[pod.0].container_mut(role).ready = false;
        }
        self.pod_changed(pod);
        self.slice_soon();
        self.reconcile_soon();
        self.schedule_pods_soon();
        let wait = self.dice.spread(300_000, 560_000, 750_000);
        self.kubelet_soon(pod, wait, Event::Remove);
    }
}
