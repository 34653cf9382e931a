//! Watches: who is told of what, in order, with a delay, and the gaps.

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::super::model::{Event as ModelEvent, Model};
use super::super::pod::{PodId, Role};
use super::{Event, Message};
use crate::time::{Duration, Instant};
use crate::world::port::{PodIdentity, WatchItem, Watched};

/// Somebody who watches.
#[derive(Debug)]
pub(in crate::world::sim) struct Watcher {
    pub(in crate::world::sim) what: Watched,
    to: UnboundedSender<WatchItem>,
    last_arrival: Instant,
    broken: bool,
}

/// An item on its way.
#[derive(Debug)]
pub(in crate::world::sim) struct Delivery {
    to: UnboundedSender<WatchItem>,
    item: WatchItem,
}

impl Delivery {
    /// Arrives; nobody may be left who wants it.
    pub(in crate::world::sim) fn arrive(self) {
        let _ = self.to.send(self.item);
    }
}

impl Model {
    fn tell(&mut self, watcher: usize, item: impl FnOnce(Instant) -> WatchItem) {
        let lag = self.dice.spread(900, 3_000, 18_000);
        let w = &mut self.control.watchers[watcher];
        let arrival = (self.now + lag).max(w.last_arrival + Duration::from_micros(40));
        w.last_arrival = arrival;
        let delivery = Delivery {
            to: w.to.clone(),
            item: item(arrival),
        };
        self.schedule(arrival, ModelEvent::Watch(delivery));
    }

    /// Tells every watcher of that kind.
    pub(super) fn notify(&mut self, what: Watched, kind: &str, object: Value) {
        for index in 0..self.control.watchers.len() {
            let w = &self.control.watchers[index];
            if w.what == what && !w.broken {
                let (kind, object) = (kind.to_owned(), object.clone());
                self.tell(index, |arrival| WatchItem::Event { arrival, kind, object });
            }
        }
    }

    /// Tells watchers of the Deployment when its status or generation is another than the last time.
    pub(super) fn notify_if_changed(&mut self, object: Value) {
        let known = &self.deployment_shown;
        if known["status"] == object["status"] && known["metadata"]["generation"] == object["metadata"]["generation"] {
            return;
        }
        self.deployment_shown = object.clone();
        self.notify(Watched::Deployment, "MODIFIED", object);
    }

    /// A new watch: contact, then the present objects as ADDED.
    pub(in crate::world::sim) fn watch(&mut self, what: Watched, to: UnboundedSender<WatchItem>) {
        self.control.watchers.push(Watcher {
            what,
            to,
            last_arrival: self.now,
            broken: false,
        });
        self.list_to(self.control.watchers.len() - 1);
    }

    fn list_to(&mut self, watcher: usize) {
        self.tell(watcher, |arrival| WatchItem::Contact { arrival });
        let objects: Vec<Value> = match self.control.watchers[watcher].what {
            Watched::Pods => {
                let present = (0..self.pods.len()).filter(|i| !self.pods[*i].gone);
                present
                    .map(PodId)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .map(|p| self.pod_object(p))
                    .collect()
            }
            Watched::EndpointSlices => vec![self.slice_object()],
            Watched::Deployment => {
                self.deployment_shown = self.deployment_object();
                vec![self.deployment_shown.clone()]
            }
            Watched::Events => {
                let messages = self.control.messages.clone();
                messages.iter().map(|m| self.message_object(m)).collect()
            }
        };
        for object in objects {
            self.tell(watcher, |arrival| WatchItem::Event {
                arrival,
                kind: "ADDED".to_owned(),
                object,
            });
        }
    }

    pub(super) fn break_watches(&mut self) {
        for index in 0..self.control.watchers.len() {
            let reason = "the stream ended without a word".to_owned();
            self.tell(index, |arrival| WatchItem::Gap { arrival, reason });
            self.control.watchers[index].broken = true;
        }
        let heal = self.dice.micros(300_000, 2_000_000);
        self.after(heal, ModelEvent::Control(Event::HealWatches));
    }

    pub(super) fn heal_watches(&mut self) {
        for index in 0..self.control.watchers.len() {
            if std::mem::take(&mut self.control.watchers[index].broken) {
                self.list_to(index);
            }
        }
    }

    /// A Kubernetes event about a pod. Repeated ones are counted, and silent after 13.
    pub(in crate::world::sim) fn pod_event_message(
        &mut self,
        pod: PodId,
        role: Option<Role>,
        level: &'static str,
        reason: &'static str,
        text: String,
    ) {
        let p = &self.pods[pod.0];
        let about = PodIdentity {
            name: p.name.clone(),
            uid: p.uid.clone(),
        };
        let container = role.map(|r| self.container_name(r).to_owned());
        let now = self.now;
        let same =
            |m: &&mut Message| m.about == about && m.reason == reason && m.container == container && m.text == text;
        let (kind, message) = match self.control.messages.iter_mut().find(same) {
            Some(known) if known.count >= 13 => return,
            Some(known) => {
                known.count += 1;
                known.last = now;
                ("MODIFIED", known.clone())
            }
            None => {
                let name = format!("{}.{:016x}", about.name, u64::from(self.dice.word()) << 20);
                let message = Message {
                    name,
                    about,
                    kind: "Pod",
                    container,
                    level,
                    reason,
                    text,
                    count: 1,
                    first: now,
                    last: now,
                };
                self.control.messages.push(message.clone());
                ("ADDED", message)
            }
        };
        if self.control.watchers.iter().any(|w| w.what == Watched::Events) {
            let object = self.message_object(&message);
            self.notify(Watched::Events, kind, object);
        }
    }
}
