//! Container logs: lines with the runtime's stamp, and the followers that read them.

use tokio::sync::mpsc::UnboundedSender;

use super::super::clocks::stamp;
use super::super::model::{Event, Model};
use super::super::network::{FIRST_WORKER, HostId};
use super::{PodId, Role};
use crate::time::{Duration, Instant};
use crate::world::port::{LogEnd, LogItem};

/// A container's log.
#[derive(Debug, Default)]
pub(in crate::world::sim) struct ContainerLog {
    lines: Vec<Line>,
    followers: Vec<Follower>,
    /// Runtime stamps never go back.
    last_runtime: Option<Instant>,
}

#[derive(Debug)]
struct Line {
    /// When the runtime read it, truly.
    at: Instant,
    /// The runtime's stamp, on the node's clock.
    runtime: String,
    text: String,
}

/// Somebody who follows a log.
#[derive(Debug)]
struct Follower {
    to: UnboundedSender<LogItem>,
    last_arrival: Instant,
}

/// Something that arrives at gtrun.
#[derive(Debug)]
pub(in crate::world::sim) struct Delivery {
    to: UnboundedSender<LogItem>,
    item: LogItem,
}

impl Delivery {
    /// An item for somebody.
    pub(in crate::world::sim) fn new(to: UnboundedSender<LogItem>, item: LogItem) -> Self {
        Self { to, item }
    }

    /// Arrives; nobody may be left who wants it.
    pub(in crate::world::sim) fn arrive(self) {
        let _ = self.to.send(self.item);
    }
}

impl Model {
    /// A line is written by a container's process now.
    pub(in crate::world::sim) fn write_line(&mut self, pod: PodId, role: Role, text: String) {
        let node = self.pods[pod.0].node.unwrap_or(0);
        // Runtime stamp minus application stamp: 0.2 to 4 ms, up to 16 seen. Most lines take a fraction of that.
        let lag = self.dice.spread(60, 500, 5_000);
        let clock = self.net.hosts[FIRST_WORKER + node].clock;
        let mut at = self.now + lag;
        let log = &mut self.pods[pod.0].container_mut(role).log;
        if let Some(last) = log.last_runtime.filter(|last| *last >= at) {
            at = last + Duration::from_micros(20);
        }
        log.last_runtime = Some(at);
        let runtime = stamp(clock.read(at), 9, "Z");
        let mut deliveries = Vec::new();
        for follower in &mut log.followers {
            // Arrival minus runtime: 0.5, 1.3 to 3.5, 40 ms.
            let arrival =
                (at + self.dice.spread(500, 2_000, 40_000)).max(follower.last_arrival + Duration::from_micros(9));
            follower.last_arrival = arrival;
            let item = LogItem::Line {
                arrival,
                runtime: Some(runtime.clone()),
                text: text.clone().into_bytes(),
            };
            deliveries.push((
                arrival,
                Delivery {
                    to: follower.to.clone(),
                    item,
                },
            ));
        }
        log.lines.push(Line { at, runtime, text });
        for (arrival, delivery) in deliveries {
            self.schedule(arrival, Event::Log(delivery));
        }
    }

    /// A line with the application's own stamp in milliseconds in front.
    pub(in crate::world::sim) fn write_stamped(&mut self, pod: PodId, role: Role, text: &str) {
        let node = self.pods[pod.0].node.unwrap_or(0);
        let shown = self.net.read_clock(HostId(FIRST_WORKER + node), self.now);
        let mut line = stamp(shown, 3, "Z ");
        line.push_str(text);
        self.write_line(pod, role, line);
    }

    /// Follows a log from now on, or from `since` on; everything that is there already comes at once.
    pub(in crate::world::sim) fn follow(
        &mut self,
        pod: PodId,
        role: Role,
        since: Option<Instant>,
        to: UnboundedSender<LogItem>,
    ) {
        let now = self.now;
        let mut last_arrival = now;
        let mut deliveries = Vec::new();
        let container = self.pods[pod.0].container_mut(role);
        if let Some(since) = since {
            for line in container.log.lines.iter().filter(|l| l.at >= since && l.at <= now) {
                last_arrival = last_arrival + Duration::from_micros(30);
                let text = line.text.clone().into_bytes();
                let item = LogItem::Line {
                    arrival: last_arrival,
                    runtime: Some(line.runtime.clone()),
                    text,
                };
                deliveries.push((last_arrival, Delivery { to: to.clone(), item }));
            }
        }
        container.log.followers.push(Follower { to, last_arrival });
        let over = container.ended.is_some();
        for (arrival, delivery) in deliveries {
            self.schedule(arrival, Event::Log(delivery));
        }
        if over {
            self.end_followers(pod, role, LogEnd::ContainerEnded);
        } else if self.spec.observation.followers_break && self.dice.chance(0.5) {
            let breaks = self.dice.between(Duration::from_secs(2), Duration::from_secs(40));
            self.after(breaks, Event::BreakFollowers(pod, role));
        }
    }

    /// Every follower is told the end, 0.3 to 1.0 s from now, after its last line.
    pub(in crate::world::sim) fn end_followers(&mut self, pod: PodId, role: Role, why: LogEnd) {
        let lag = self.dice.spread(300_000, 600_000, 1_000_000);
        let at = self.now + lag;
        for follower in std::mem::take(&mut self.pods[pod.0].container_mut(role).log.followers) {
            let arrival = at.max(follower.last_arrival + Duration::from_micros(9));
            let item = LogItem::End {
                arrival,
                why: why.clone(),
            };
            self.schedule(arrival, Event::Log(Delivery { to: follower.to, item }));
        }
    }

    /// The followers' connections break for good.
    pub(in crate::world::sim) fn break_followers(&mut self, pod: PodId, role: Role) {
        let why = LogEnd::Lost("http2: server sent GOAWAY and closed the connection".to_owned());
        self.end_followers(pod, role, why);
    }
}
