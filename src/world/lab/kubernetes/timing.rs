//! How long the parts of a cluster take, as measured on Kubernetes 1.34 with kubelet and containerd (9 runs; minimum,
//! median and maximum in seconds after the DELETE left the client, "D").
//!
//! | what | measured |
//! |---|---|
//! | first preStop runs | D + 0.038 / 0.062 / 0.081, the containers' within 0.02 to 0.09 of each other, in any order |
//! | SIGTERM without a preStop | D + 0.04 |
//! | EndpointSlice says terminating | D + 0.021 / 0.037 / 0.066 |
//! | replacement pod | added D + 0.01 to 0.1, Ready D + 1.6 / 2.3 / 4.0, UP at the load balancer D + 3.4 / 5.1 / 6.5 |
//! | CLOSED to SIGTERM | 0.015 / 0.018 / 0.033 |
//! | SIGTERM to "all containers terminated" | 0.158 / 0.168 / 0.439, the endpoint goes with it |
//! | SIGTERM to DELETED | 0.47 / 0.72 / 1.17, the last MODIFIED 1 to 12 ms before |

use std::ops::Range;
use std::time::Duration;

use rand::Rng;

/// A wait of a random length, in milliseconds.
#[derive(Debug, Clone)]
pub(crate) struct Wait(Range<u64>);

impl Wait {
    const fn ms(range: Range<u64>) -> Self {
        Self(range)
    }

    /// A length out of the range.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_micros(rand::rng().random_range(self.0.start * 1000..self.0.end * 1000))
    }

    /// Waits.
    pub(crate) async fn pass(&self) {
        tokio::time::sleep(self.length()).await;
    }
}

/// From the DELETE to the kubelet's first act.
pub(crate) const KUBELET_NOTICES: Wait = Wait::ms(28..48);
/// Further, for each container's hook.
pub(crate) const HOOK_STARTS: Wait = Wait::ms(2..40);
/// From the end of the hook to SIGTERM.
pub(crate) const HOOK_ENDS: Wait = Wait::ms(8..18);
/// Between the signals to the containers of a pod when they are due at the same time (6 to 13 ms in all, in any order).
pub(crate) const SIGNALS_SPREAD: Wait = Wait::ms(0..13);
/// From the end of the last container until the kubelet's look at the runtime sees it.
pub(crate) const RELIST: Wait = Wait::ms(140..290);
/// From there until the pod's sandbox is gone.
pub(crate) const SANDBOX_REMOVED: Wait = Wait::ms(310..660);
/// From the last change of a pod to its removal.
pub(crate) const REMOVED: Wait = Wait::ms(1..12);
/// From the end of the main containers to the SIGTERM of a native sidecar.
pub(crate) const SIDECAR_TURN: Wait = Wait::ms(60..80);
/// From the binding of a pod until its sandbox has a network.
pub(crate) const SANDBOX_CREATED: Wait = Wait::ms(1050..1500);
/// Between the starts of two containers.
pub(crate) const CONTAINER_STARTS: Wait = Wait::ms(40..120);
/// From a container's start until the kubelet has noticed it and probes.
pub(crate) const FIRST_PROBE: Wait = Wait::ms(350..800);
/// A controller's reaction to a change.
pub(crate) const CONTROLLER: Wait = Wait::ms(6..30);
/// The endpoint slice controller's.
pub(crate) const ENDPOINTS: Wait = Wait::ms(18..48);
/// The scheduler's.
pub(crate) const SCHEDULER: Wait = Wait::ms(2..10);
/// How long the log of a container can still be followed after its end.
pub(crate) const LOG_ENDS: Wait = Wait::ms(300..600);
/// How long a forwarded connection hangs once its pod has gone away under it (0.92 to 1.06 s).
pub(crate) const FORWARD_HANGS: Wait = Wait::ms(930..1050);
