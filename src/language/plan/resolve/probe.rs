//! The standard probes, and what the scenario changes or adds.

use super::context::Context;
use crate::diagnostic::Code;
use crate::language::Id;
use crate::language::nearest::did_you_mean;
use crate::language::plan::{EnvironmentKind, Probe, ProbeKind};
use crate::language::scenario::{self, Every, RstCapture};
use crate::language::vocabulary::is_reserved;
use crate::time::Duration;

const ACTIVE_EVERY: Duration = Duration::from_millis(200);
const STAT_EVERY: Duration = Duration::from_millis(500);
const HEALTH_EVERY: Duration = Duration::from_secs(1);
/// Where packets are captured, when the scenario does not say.
const CAPTURE_AT: [&str; 2] = ["lb", "workers"];

impl Context<'_> {
    pub(super) fn probes(&mut self) -> Vec<Probe> {
        let mut out = self.standard();
        for (name, file) in &self.document.probes {
            let id = name.value.0.clone();
            if is_reserved(id.as_str()) && !out.iter().any(|probe| probe.name == id) {
                let _: Option<()> = self.error(
                    Code::ReservedId,
                    format!("`{id}` means something else in expressions"),
                    name.span,
                    Some("choose another name".into()),
                );
            }
            let Some(kind) = self.probe_kind(&file.kind) else {
                continue;
            };
            let required = file.required.as_ref().is_none_or(|required| required.value.0);
            let probe = Probe {
                name: id,
                kind,
                required,
                span: Some(name.span.to(file.key)),
            };
            match out.iter_mut().find(|standard| standard.name == probe.name) {
                Some(standard) => *standard = probe,
                None => out.push(probe),
            }
        }
        out
    }

    /// Every kind that the environment can do, with its defaults.
    fn standard(&self) -> Vec<Probe> {
        let environment = &self.chosen.environment;
        let own = environment.kind != EnvironmentKind::Cluster;
        let probe = |name: &str, kind: ProbeKind| Probe {
            name: Id::trusted(name),
            kind,
            required: false,
            span: None,
        };
        let log = |name: &str, container: &str| {
            let container = environment
                .workload
                .containers
                .keys()
                .find(|key| key.as_str() == container)?
                .clone();
            Some(probe(name, ProbeKind::ContainerLog { container }))
        };
        let hosts = self.capture_hosts(CAPTURE_AT);
        [
            Some(probe("pod", ProbeKind::PodWatch)),
            log("hc", "hc"),
            log("envoy", "sidecar"),
            log("app", "app"),
            (own || environment.load_balancer.log.is_some()).then(|| probe("lblog", ProbeKind::HaproxyLog)),
            Some(probe("active", ProbeKind::EnvoyActive { every: ACTIVE_EVERY })),
            Some(probe("lb", ProbeKind::HaproxyStat { every: STAT_EVERY })),
            Some(probe("health", ProbeKind::Health { every: HEALTH_EVERY })),
            (!hosts.is_empty()).then(|| probe("rst", ProbeKind::RstCapture { hosts })),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn capture_hosts<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for name in names {
            for host in self.chosen.environment.hosts_of(name) {
                if !out.iter().any(|known| known == host) {
                    out.push(host.to_owned());
                }
            }
        }
        out
    }

    fn probe_kind(&mut self, file: &scenario::ProbeKind) -> Option<ProbeKind> {
        Some(match file {
            scenario::ProbeKind::ContainerLog(log) => ProbeKind::ContainerLog {
                container: self.container(&log.container)?,
            },
            scenario::ProbeKind::EnvoyActive(every) => ProbeKind::EnvoyActive {
                every: self.every(every, ACTIVE_EVERY)?,
            },
            scenario::ProbeKind::HaproxyStat(every) => ProbeKind::HaproxyStat {
                every: self.every(every, STAT_EVERY)?,
            },
            scenario::ProbeKind::HaproxyLog(_) => ProbeKind::HaproxyLog,
            scenario::ProbeKind::RstCapture(capture) => ProbeKind::RstCapture {
                hosts: self.hosts(capture)?,
            },
            scenario::ProbeKind::PodWatch(_) => ProbeKind::PodWatch,
            scenario::ProbeKind::Health(every) => ProbeKind::Health {
                every: self.every(every, HEALTH_EVERY)?,
            },
        })
    }

    fn every(&mut self, file: &Every, default: Duration) -> Option<Duration> {
        let Some(every) = file.every.as_ref() else {
            return Some(default);
        };
        let value = self.value(every)?;
        if value < Duration::from_millis(1) {
            return self.error(
                Code::OutOfRange,
                "a probe cannot sample more often than every 1ms",
                every.span,
                None,
            );
        }
        Some(value)
    }

    fn hosts(&mut self, file: &RstCapture) -> Option<Vec<String>> {
        let Some(names) = file.hosts.as_ref() else {
            return Some(self.capture_hosts(CAPTURE_AT));
        };
        let mut good = true;
        for name in names {
            if self.chosen.environment.hosts_of(&name.value).is_empty() {
                let environment = &self.chosen.environment;
                let groups = environment
                    .hosts
                    .values()
                    .flat_map(|host| host.groups.iter().map(String::as_str));
                let known: Vec<&str> = environment.hosts.keys().map(String::as_str).chain(groups).collect();
                let message = format!(
                    "environment `{}` has no host and no group `{}`",
                    environment.name, name.value
                );
                let help = did_you_mean(&name.value, known.iter().copied());
                let _: Option<()> = self.error(Code::UnknownName, message, name.span, help);
                good = false;
            }
        }
        good.then(|| self.capture_hosts(names.iter().map(|name| name.value.as_str())))
    }
}
