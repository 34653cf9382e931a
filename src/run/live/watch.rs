//! What watch events mean for the facts: pods that terminate, become ready or go, endpoints that leave.

use std::collections::{BTreeMap, BTreeSet};

use super::{Live, Seen};
use crate::evidence::pod_watch::{PodState, WatchChange};
use crate::time::Instant;

/// The last state of what is watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    pods: BTreeMap<String, (bool, bool)>,
    endpoints: BTreeSet<String>,
}

impl Watched {
    /// One event.
    pub(crate) fn see(&mut self, live: &Live, at: Instant, change: &WatchChange) {
        match change {
            WatchChange::Pod(pod) => self.pod(live, at, pod),
            WatchChange::PodDeleted(pod) => {
                self.pods.remove(&pod.uid);
                self.count_ready(live);
                live.saw(at, Seen::Gone { uid: pod.uid.clone() });
            }
            WatchChange::Endpoints(endpoints) => {
                let present: BTreeSet<String> = endpoints.iter().filter_map(|e| e.pod_uid.clone()).collect();
                for uid in self.endpoints.difference(&present) {
                    live.saw(at, Seen::EndpointRemoved { uid: uid.clone() });
                }
                self.endpoints = present;
            }
            WatchChange::Event(_) | WatchChange::Deployment(_) | WatchChange::Gap(_) => {}
        }
    }

    fn pod(&mut self, live: &Live, at: Instant, pod: &PodState) {
        let is = (pod.deletion.is_some(), pod.ready == Some(true));
        let was = self.pods.insert(pod.uid.clone(), is);
        self.count_ready(live);
        if is.0 && was.is_none_or(|w| !w.0) {
            live.saw(at, Seen::Terminating { uid: pod.uid.clone() });
        }
        if was.is_some_and(|w| w.1 != is.1) {
            live.saw(
                at,
                Seen::Ready {
                    uid: pod.uid.clone(),
                    ready: is.1,
                },
            );
        }
    }

    /// Terminating pods are not counted, as the Deployment's status does not count them.
    fn count_ready(&self, live: &Live) {
        let ready = self
            .pods
            .iter()
            .filter(|(_, (terminating, ready))| *ready && !*terminating);
        let ready: BTreeSet<String> = ready.map(|(uid, _)| uid.clone()).collect();
        live.update(|s| s.ready = Some(ready));
    }
}
