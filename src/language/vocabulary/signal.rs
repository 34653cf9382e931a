use super::words;

words! {
    /// Sampled values. They have a value at a moment: in `wait_for`, `when`, `until` and inside `always(...)`.
    Signal {
        Active "active" "requests in flight at the target: Envoy's ingress and application gauges together"
        Downstream "downstream" "Envoy's ingress gauge: requests between load balancer and proxy"
        Upstream "upstream" "Envoy's application gauge: requests between proxy and application"
        ReadyReplicas "ready_replicas" "ready pods of the workload"
        LbStatus "lb_status" "state of the target's server on the load balancer"
        Health "health" "what the health page answers"
    }
}
