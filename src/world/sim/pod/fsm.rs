//! The FSM of the health page's process: OPEN, DRAINING, CLOSING, CLOSED, in its three modes.

use super::super::model::{Event as ModelEvent, Model};
use super::super::spec::{DrainListeners, Mode};
use super::super::truth::Happened;
use super::{PodId, Role};
use crate::time::{Duration, Instant};

/// The states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::world::sim) enum State {
    /// Takes requests.
    Open,
    /// Told to stop, waits for its requests.
    Draining,
    /// Nothing in flight, waits for the load balancer.
    Closing,
    /// Ready to end.
    Closed,
}

/// The FSM of one pod.
#[derive(Debug)]
pub(in crate::world::sim) struct Fsm {
    pub(in crate::world::sim) state: State,
    /// What the health page answers.
    pub(in crate::world::sim) health: u16,
    /// DRAINING since.
    since: Option<Instant>,
}

impl Default for Fsm {
    fn default() -> Self {
        Self {
            state: State::Open,
            health: 200,
            since: None,
        }
    }
}

/// What happens to an FSM.
#[derive(Debug, Clone, Copy)]
pub(in crate::world::sim) enum Event {
    /// The preStop hook was called.
    Begin,
    /// The health page's answer changes.
    Health(u16),
    /// It reads Envoy's gauges.
    Poll,
    /// Envoy has answered its call to drain.
    Drained,
    /// The wait for the load balancer is over.
    Close,
}

impl Model {
    fn fsm_soon(&mut self, pod: PodId, after: Duration, event: Event) {
        self.after(after, ModelEvent::Pod(super::Event::Fsm(pod, event)));
    }

    pub(super) fn fsm_event(&mut self, pod: PodId, event: Event) {
        if !self.pods[pod.0].runs(Role::Hc) {
            return;
        }
        match event {
            Event::Begin => self.fsm_begin(pod),
            Event::Health(status) => self.fsm_health(pod, status),
            Event::Poll => self.fsm_poll(pod),
            Event::Drained => self.write_stamped(pod, Role::Hc, "event=drain_listeners status=200 body='OK'"),
            Event::Close => self.fsm_close(pod),
        }
    }

    fn fsm_begin(&mut self, pod: PodId) {
        if self.pods[pod.0].fsm.state != State::Open {
            return;
        }
        self.pods[pod.0].fsm.since = Some(self.now);
        self.fsm_enters(pod, State::Draining);
        let flip = self.dice.spread(50, 700, 3_000);
        match self.spec.mode {
            Mode::Current => self.fsm_soon(pod, flip, Event::Health(503)),
            Mode::Nolb => self.fsm_soon(pod, flip, Event::Health(404)),
            Mode::Improved => {}
        }
        match self.spec.pod.drain_listeners {
            DrainListeners::AtDrainingAtOnce => self.fsm_calls_drain(pod, Duration::ZERO, false),
            DrainListeners::AtDraining => self.fsm_calls_drain(pod, Duration::from_secs(2), true),
            DrainListeners::AtClosing | DrainListeners::Never => {}
        }
        self.app_drains(pod);
        let poll = flip + self.dice.spread(500, 2_000, 9_000);
        self.fsm_soon(pod, poll, Event::Poll);
    }

    fn fsm_enters(&mut self, pod: PodId, to: State) {
        let from = std::mem::replace(&mut self.pods[pod.0].fsm.state, to);
        let [from, to] = [from, to].map(|s| self.spec.names.states[s as usize].clone());
        self.write_stamped(pod, Role::Hc, &format!("event=transition from={from} to={to}"));
        let name = self.pods[pod.0].name.clone();
        self.truth.note(self.now, Happened::Transition { pod: name, from, to });
    }

    fn fsm_health(&mut self, pod: PodId, status: u16) {
        let before = std::mem::replace(&mut self.pods[pod.0].fsm.health, status);
        if before == status {
            return;
        }
        self.write_stamped(pod, Role::Hc, &format!("event=health from={before} to={status}"));
        let name = self.pods[pod.0].name.clone();
        self.truth.note(self.now, Happened::Health { pod: name, status });
    }

    /// Envoy is told to drain after `wait`; its answer takes a few milliseconds more.
    fn fsm_calls_drain(&mut self, pod: PodId, wait: Duration, graceful: bool) {
        let call = wait + self.dice.spread(300, 900, 4_000);
        let event = super::envoy::Event::Drain { graceful };
        self.after(call, ModelEvent::Pod(super::Event::Envoy(pod, event)));
        let answer = call + self.dice.spread(100, 500, 3_000);
        self.fsm_soon(pod, answer, Event::Drained);
    }

    fn fsm_poll(&mut self, pod: PodId) {
        let p = &self.pods[pod.0];
        if p.fsm.state != State::Draining {
            return;
        }
        let again = self.spec.pod.drain_poll + self.dice.spread(400, 3_000, 9_000);
        if !p.runs(Role::Sidecar) {
            let text = "event=poll_error err=ConnectionRefusedError(111, \"Connect call failed ('127.0.0.1', 15000)\")";
            self.write_stamped(pod, Role::Hc, text);
            self.fsm_soon(pod, again, Event::Poll);
            return;
        }
        let (downstream, upstream) = (p.envoy.downstream, p.envoy.upstream);
        self.write_stamped(
            pod,
            Role::Hc,
            &format!("event=poll downstream={downstream} upstream={upstream}"),
        );
        let drained = downstream == 0 && upstream == 0;
        let since = self.pods[pod.0].fsm.since.unwrap_or(self.now);
        let late = self.spec.pod.drain_max.is_some_and(|max| self.now - since >= max);
        if !drained && !late {
            self.fsm_soon(pod, again, Event::Poll);
            return;
        }
        if !drained {
            self.write_stamped(pod, Role::Hc, "event=drain_timeout");
        }
        self.fsm_enters(pod, State::Closing);
        self.fsm_health(pod, 503);
        match self.spec.pod.drain_listeners {
            DrainListeners::AtClosing => self.fsm_calls_drain(pod, Duration::ZERO, true),
            DrainListeners::AtDraining | DrainListeners::AtDrainingAtOnce | DrainListeners::Never => {}
        }
        let wait = self.spec.pod.lb_wait + self.dice.spread(300, 1_500, 4_000);
        self.fsm_soon(pod, wait, Event::Close);
    }

    fn fsm_close(&mut self, pod: PodId) {
        self.fsm_enters(pod, State::Closed);
        self.kubelet_fsm_closed(pod);
    }
}
