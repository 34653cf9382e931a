//! What the Deployment and ReplicaSet controllers do: keep the number of pods, and replace old ones by new ones within
//! `maxSurge` and `maxUnavailable`.

use super::super::model::Model;
use super::super::pod::{Pod, PodId};

impl Model {
    fn live(&self) -> Vec<PodId> {
        let counts = |p: &Pod| !p.gone && p.deletion.is_none() && !p.phase.terminal();
        (0..self.pods.len())
            .filter(|i| counts(&self.pods[*i]))
            .map(PodId)
            .collect()
    }

    /// Terminating pods are not counted anywhere here.
    pub(super) fn reconcile(&mut self) {
        let live = self.live();
        let desired = self.control.replicas as usize;
        let is_new = |p: &PodId| self.pods[p.0].generation == self.control.template;
        let (new, old): (Vec<PodId>, Vec<PodId>) = live.iter().partition(|p| is_new(p));
        if old.is_empty() {
            for _ in new.len()..desired {
                let pod = self.create_pod();
                self.created(pod);
            }
            if new.len() > desired {
                self.scale_down(new, desired);
            }
            return;
        }
        let surge = self.spec.rollout.max_surge as usize;
        let unavailable = match (self.spec.rollout.max_surge, self.spec.rollout.max_unavailable) {
            // Both zero could never progress; the controller takes one pod away.
            (0, 0) => 1,
            (_, n) => n as usize,
        };
        let room = (desired + surge)
            .saturating_sub(live.len())
            .min(desired.saturating_sub(new.len()));
        for _ in 0..room {
            let pod = self.create_pod();
            self.created(pod);
        }
        let min_ready = self.spec.rollout.min_ready;
        let available = |m: &Self, p: &PodId| m.pods[p.0].available(m.now, min_ready);
        let floor = desired.saturating_sub(unavailable);
        let mut up = live.iter().filter(|p| available(self, p)).count();
        for pod in old {
            let counts = available(self, &pod);
            if counts && up <= floor {
                continue;
            }
            up -= usize::from(counts);
            self.delete_by_controller(pod);
        }
    }

    fn created(&mut self, pod: PodId) {
        let text = format!("Created pod: {}", self.pods[pod.0].name);
        self.pod_event_message(pod, None, "Normal", "SuccessfulCreate", text);
    }

    fn scale_down(&mut self, mut pods: Vec<PodId>, desired: usize) {
        // Not ready before ready, low deletion cost before high, young before old.
        pods.sort_by_key(|p| {
            let pod = &self.pods[p.0];
            (
                pod.ready.is_some(),
                pod.deletion_cost.unwrap_or(0),
                std::cmp::Reverse(pod.created),
            )
        });
        let surplus = pods.len() - desired;
        for pod in pods.into_iter().take(surplus) {
            self.delete_by_controller(pod);
        }
    }

    fn delete_by_controller(&mut self, pod: PodId) {
        let text = format!("Deleted pod: {}", self.pods[pod.0].name);
        self.pod_event_message(pod, None, "Normal", "SuccessfulDelete", text);
        let grace = self.spec.pod.grace;
        self.terminate_pod(pod, grace);
    }
}
