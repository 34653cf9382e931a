//! One reply of Envoy's admin as a signal: how many requests are in flight.

use std::sync::Arc;

use crate::evidence::envoy_stats::{GaugeValues, Reading};

/// What the gauges say, and what is known of their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    /// Clusters that health checks were seen to go to, from the access log.
    checks: std::collections::BTreeSet<String>,
    /// The last reading: between load balancer and proxy, and between proxy and application. `None`: not known.
    last: Option<(u64, u64)>,
    /// It was busy at some time.
    pub(crate) was_busy: bool,
}

impl Gauges {
    /// An access line of a health check names its cluster.
    pub(crate) fn check_goes_to(&mut self, cluster: &str) {
        self.checks.insert(format!("cluster.{cluster}.upstream_rq_active"));
    }

    /// A reply: the gauges that are absent are not known, which is not zero.
    pub(crate) fn read(&mut self, reading: &Reading) {
        self.last = match reading {
            Reading::Unknown(_) => None,
            Reading::Values(values) => self.counts(values),
        };
        self.was_busy |= self.active().is_some_and(|n| n > 0);
    }

    fn counts(&self, values: &GaugeValues) -> Option<(u64, u64)> {
        let own = ["http.admin", "http.agent", "http.stats", "http.outbound"];
        let ingress = values.iter().filter(|(name, _)| {
            name.starts_with("http.")
                && name.ends_with(".downstream_rq_active")
                && !own.iter().any(|prefix| name.starts_with(prefix))
        });
        let ingress: Vec<u64> = ingress.map(|(_, value)| *value).collect();
        let clusters = values
            .iter()
            .filter(|(name, _)| name.starts_with("cluster.inbound|") && name.ends_with(".upstream_rq_active"));
        let (checks, app): (Vec<_>, Vec<_>) = clusters.partition(|(name, _)| self.checks.contains(name.as_ref()));
        let sum = |of: &[(&Arc<str>, &u64)]| of.iter().map(|(_, value)| **value).sum::<u64>();
        if ingress.is_empty() || app.is_empty() {
            return None;
        }
        // A health check that is being served counts at the ingress too.
        let downstream = ingress.iter().sum::<u64>().saturating_sub(sum(&checks));
        Some((downstream, sum(&app)))
    }

    /// Requests between load balancer and proxy.
    pub(crate) fn downstream(&self) -> Option<u64> {
        self.last.map(|(down, _)| down)
    }

    /// Requests between proxy and application.
    pub(crate) fn upstream(&self) -> Option<u64> {
        self.last.map(|(_, up)| up)
    }

    /// The larger of both: zero only when both are.
    pub(crate) fn active(&self) -> Option<u64> {
        self.last.map(|(down, up)| down.max(up))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(values: &[(&str, u64)]) -> Reading {
        Reading::Values(values.iter().map(|(name, value)| (Arc::from(*name), *value)).collect())
    }

    #[test]
    fn neither_the_admin_nor_a_health_check_is_in_flight() {
        let mut gauges = Gauges::default();
        gauges.check_goes_to("inbound|8001||");
        let check_running = [
            ("http.admin.downstream_rq_active", 1),
            ("http.inbound_0.0.0.0_8080.downstream_rq_active", 1),
            ("cluster.inbound|8000||.upstream_rq_active", 0),
            ("cluster.inbound|8001||.upstream_rq_active", 1),
            ("cluster.xds-grpc.upstream_rq_active", 1),
        ];
        gauges.read(&reading(&check_running));
        assert_eq!(gauges.active(), Some(0));
    }

    #[test]
    fn absent_is_not_zero() {
        let mut gauges = Gauges::default();
        gauges.read(&reading(&[("http.admin.downstream_rq_active", 1)]));
        assert_eq!(gauges.active(), None);
        gauges.read(&Reading::Unknown("timeout".to_owned()));
        assert_eq!(gauges.active(), None);
    }
}
