//! Sampling: one question after the other over a kept connection, with latency, losses and the end of what is asked.

use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::Sim;
use super::super::model::Model;
use super::super::pod::envoy::StatFilter;
use super::super::pod::{PodId, Role};
use super::Spread;
use crate::time::Duration;
use crate::world::port::{Sample, Sampler};

/// A sample that is not answered is given up after this.
const LIMIT: Duration = Duration::from_millis(300);

/// What is asked.
pub(super) enum Question {
    /// A pod's Envoy for its stats.
    Stats {
        /// Pod.
        pod: PodId,
        /// Which stats.
        filter: StatFilter,
        /// It has answered before: when it goes, the question in flight hangs.
        answered: bool,
    },
    /// A pod for its health page.
    Health(PodId),
    /// The load balancer for its statistics.
    ShowStat,
}

/// A kept connection.
pub(super) struct SimSampler {
    pub(super) sim: Sim,
    pub(super) question: Question,
    /// Round trip, the reading in it.
    pub(super) latency: Spread,
}

/// What a sample comes to.
enum Course {
    /// The answer, read after the first time and there after the second.
    Answered(Duration, Duration),
    /// No answer within the limit.
    Hangs,
    /// An error at once.
    Refused(Duration),
}

impl Sampler for SimSampler {
    fn sample(&mut self) -> BoxFuture<'_, Sample> {
        async move {
            let sim = self.sim.clone();
            let sent = sim.model().now;
            let reply = match self.course() {
                Course::Hangs => {
                    sim.after(LIMIT).await;
                    Err("timeout".to_owned())
                }
                Course::Refused(wait) => {
                    sim.after(wait).await;
                    Err("connection refused".to_owned())
                }
                Course::Answered(there, back) => {
                    sim.after(there).await;
                    let reply = self.read(&mut sim.model());
                    match reply {
                        Some(text) => {
                            sim.after(back).await;
                            Ok(text)
                        }
                        None => {
                            sim.after(LIMIT - there).await;
                            Err("timeout".to_owned())
                        }
                    }
                }
            };
            let received = sim.model().now;
            Sample { sent, received, reply }
        }
        .boxed()
    }
}

impl SimSampler {
    fn course(&mut self) -> Course {
        let sim = self.sim.clone();
        let mut m = sim.model();
        let lost = m.spec.observation.lost_samples;
        if lost > 0.0 && m.dice.chance(lost) {
            return Course::Hangs;
        }
        if let Question::Stats { pod, answered, .. } = &mut self.question
            && !m.pods[pod.0].runs(Role::Sidecar)
        {
            // The connection that was kept hangs once; new ones are refused.
            let wait = m.dice.spread(500, 1_500, 6_000);
            return if std::mem::take(answered) {
                Course::Hangs
            } else {
                Course::Refused(wait)
            };
        }
        if let Question::Health(pod) = &self.question
            && !m.pods[pod.0].runs(Role::Hc)
        {
            return Course::Refused(m.dice.spread(500, 1_500, 6_000));
        }
        // Now and then something on the way takes its time.
        let whole = if m.dice.chance(0.004) {
            m.dice.micros(10_000, 67_000)
        } else {
            m.dice.spread(self.latency.0, self.latency.1, self.latency.2)
        };
        let share = m.dice.fraction(0.15, 0.85);
        let there = Duration::from_nanos((whole.as_nanos() as f64 * share) as i64);
        Course::Answered(there, whole - there)
    }

    /// The reading itself, at one moment.
    fn read(&mut self, m: &mut Model) -> Option<String> {
        match &mut self.question {
            Question::ShowStat => Some(m.show_stat()),
            Question::Health(pod) => {
                let p = &m.pods[pod.0];
                let status = if p.readiness_broken { 503 } else { p.fsm.health };
                p.runs(Role::Hc).then(|| status.to_string())
            }
            Question::Stats { pod, filter, answered } => {
                if !m.pods[pod.0].runs(Role::Sidecar) {
                    *answered = false;
                    return None;
                }
                *answered = true;
                let uptime = m.envoy_uptime(*pod, m.now);
                Some(m.pods[pod.0].envoy.stats(filter, uptime))
            }
        }
    }
}
