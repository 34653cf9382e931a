use super::words;

words! {
    /// The events of the language by name, without their arguments. An event is about the target pod and the server in front
    /// of it, and means its first occurrence since the disturbance.
    EventName {
        Delete "delete" "the call that told the target to stop: whichever of `delete_pod` and `evict_pod` hit it, from sent to acknowledged"
        Drain "drain" "the drain began: the FSM left OPEN, else Envoy's drain call"
        Transition "transition" "an FSM transition, `transition(CLOSING, CLOSED)`; `any` leaves a side open"
        DrainListeners "drain_listeners" "Envoy drains its listeners; only whoever called it logs this"
        ActiveZero "active_zero" "the in-flight count reached zero and stayed there"
        FirstActiveZero "first_active_zero" "the first zero of the in-flight count after the drain began"
        HealthFail "health_fail" "the health page first answered with a failure"
        LbDown "lb_down" "the load balancer marked the target's server DOWN"
        LbUp "lb_up" "the load balancer marked the target's server UP"
        LbDrain "lb_drain" "the target's server went to DRAIN: no new sessions, old ones live on"
        LbNolb "lb_nolb" "the target's server went to NOLB: the check answered 404 with `disable-on-404`"
        LbMaint "lb_maint" "the target's server went into maintenance"
        LbReload "lb_reload" "the load balancer was reloaded: a new process took over"
        Rst "rst" "a reset, while its response was not complete, on a connection that carried a request of this run, or request R with `rst(R)`"
        Cut "cut" "the load balancer ended request R's connection before the response was whole: FIN or RST on its 4-tuple, or `D` in the termination state"
        Started "started" "request, load or step R was sent"
        Ended "ended" "request, load or step R is over, in whatever way"
        Finished "finished" "request R is over and its response was whole, whatever its status: a 502 is finished"
        Failed "failed" "request R is over without a response, or with a part of one"
        Goaway "goaway" "gtrun's own client received HTTP/2 GOAWAY on the connection of request R"
        Sigterm "sigterm" "a container of the target, or container C with `sigterm(C)`, received SIGTERM"
        ContainerExit "container_exit" "a container of the target, or container C, ended"
        PodTerminating "pod_terminating" "the target pod has a deletion timestamp"
        PodGone "pod_gone" "the target pod is gone from the API"
        PodReady "pod_ready" "a pod of the workload became Ready"
        NotReady "not_ready" "the target pod is no longer Ready"
        EndpointRemoved "endpoint_removed" "the target left the EndpointSlice, which comes after its containers are gone"
        RolloutStarted "rollout_started" "the rollout began"
        RolloutFinished "rollout_finished" "the rollout is over: the load balancer agrees and the old pods are gone"
        Log "log" "a line of probe P that matches, `log(app, /ready/)`"
        Mark "mark" "a `mark` step, `mark(warm)`"
    }
}

impl EventName {
    /// Fewest and most arguments.
    pub const fn arity(self) -> (usize, usize) {
        match self {
            Self::Transition | Self::Log => (2, 2),
            Self::Cut | Self::Started | Self::Ended | Self::Finished | Self::Failed | Self::Goaway | Self::Mark => {
                (1, 1)
            }
            Self::LbDown | Self::LbUp | Self::LbDrain | Self::LbNolb | Self::LbMaint => (0, 1),
            Self::Rst | Self::Sigterm | Self::ContainerExit => (0, 1),
            Self::Delete
            | Self::Drain
            | Self::DrainListeners
            | Self::ActiveZero
            | Self::FirstActiveZero
            | Self::HealthFail
            | Self::LbReload
            | Self::PodTerminating
            | Self::PodGone
            | Self::PodReady
            | Self::NotReady
            | Self::EndpointRemoved
            | Self::RolloutStarted
            | Self::RolloutFinished => (0, 0),
        }
    }

    /// How it is written, arguments included.
    pub const fn usage(self) -> &'static str {
        match self {
            Self::Transition => "transition(A, B)",
            Self::Log => "log(P, /regex/)",
            Self::Cut => "cut(R)",
            Self::Started => "started(R)",
            Self::Ended => "ended(R)",
            Self::Finished => "finished(R)",
            Self::Failed => "failed(R)",
            Self::Goaway => "goaway(R)",
            Self::Mark => "mark(M)",
            Self::LbDown => "lb_down, lb_down(any), lb_down(others)",
            Self::LbUp => "lb_up, lb_up(any), lb_up(others)",
            Self::LbDrain => "lb_drain, lb_drain(any), lb_drain(others)",
            Self::LbNolb => "lb_nolb, lb_nolb(any), lb_nolb(others)",
            Self::LbMaint => "lb_maint, lb_maint(any), lb_maint(others)",
            Self::Rst => "rst, rst(R)",
            Self::Sigterm => "sigterm, sigterm(C)",
            Self::ContainerExit => "container_exit, container_exit(C)",
            Self::Delete
            | Self::Drain
            | Self::DrainListeners
            | Self::ActiveZero
            | Self::FirstActiveZero
            | Self::HealthFail
            | Self::LbReload
            | Self::PodTerminating
            | Self::PodGone
            | Self::PodReady
            | Self::NotReady
            | Self::EndpointRemoved
            | Self::RolloutStarted
            | Self::RolloutFinished => self.as_str(),
        }
    }
}
