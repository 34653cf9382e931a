//! Which file is what, by its name.

use crate::evidence::SourceKind;
use crate::evidence::haproxy_csv::StatKind;

/// What a file is, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    RunLog,
    Curl {
        id: String,
    },
    Requests,
    Load {
        id: String,
        form: LoadForm,
    },
    /// With `arrivals_only` the raw log is missing and the file with the arrivals is read instead.
    Hc {
        arrivals_only: bool,
    },
    Envoy {
        arrivals_only: bool,
    },
    Container {
        arrivals_only: bool,
    },
    Gauges,
    Stats(StatKind),
    HaproxyLog,
    HaproxyConfig,
    Capture,
    SkippedCapture,
    Watch,
    /// A watch in a form that cannot be read.
    WatchTable,
    Clocks,
    Steps,
    Journal,
    /// `run.json`.
    Run,
}

/// Whose file a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadForm {
    Own,
    Tsv,
    Hey,
    /// vegeta, k6, oha, fortio.
    Tool,
}

/// A file that is known by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) role: Role,
    /// Node, pod, host or request.
    pub(crate) subject: Option<String>,
}

impl Known {
    pub(crate) fn kind(&self) -> SourceKind {
        match &self.role {
            Role::RunLog => SourceKind::RunLog,
            Role::Curl { .. } | Role::Requests => SourceKind::Client,
            Role::Load { .. } => SourceKind::Load,
            Role::Hc { .. } => SourceKind::HcLog,
            Role::Envoy { .. } => SourceKind::EnvoyLog,
            Role::Container { .. } => SourceKind::ContainerLog,
            Role::Gauges => SourceKind::EnvoyStats,
            Role::Stats(_) => SourceKind::HaproxyCsv,
            Role::HaproxyLog => SourceKind::HaproxyLog,
            Role::HaproxyConfig => SourceKind::HaproxyConfig,
            Role::Capture | Role::SkippedCapture => SourceKind::Capture,
            Role::Watch | Role::WatchTable => SourceKind::Watch,
            Role::Clocks => SourceKind::ClockExchange,
            Role::Steps | Role::Journal | Role::Run => SourceKind::Journal,
        }
    }
}

/// Load tools whose results are read, under their names.
const TOOLS: [&str; 4] = ["vegeta", "k6", "oha", "fortio"];

/// `hc` or `hc-worker1` for the base `hc`: nothing, or the subject.
fn subject<'n>(stem: &'n str, base: &str) -> Option<Option<&'n str>> {
    let rest = stem.strip_prefix(base)?;
    if rest.is_empty() {
        return Some(None);
    }
    rest.strip_prefix('-').filter(|s| !s.is_empty()).map(Some)
}

/// Names of the companions of a log with this name: the files with the arrivals of its lines.
pub(crate) fn arrivals_of(name: &str) -> Vec<String> {
    let mut names = vec![format!("{name}.arrival.tsv")];
    if let Some(stem) = name.strip_suffix(".log")
        && let Some(s) = subject(stem, "envoy")
    {
        // The container's own name.
        let s = s.map_or_else(String::new, |s| format!("-{s}"));
        names.push(format!("istio-proxy{s}.log.arrival.tsv"));
    }
    names
}

/// What the file is; `None` for one that is not read. `exists` tells whether the folder has another file, `probes`
/// are further logs.
pub(crate) fn classify(name: &str, exists: &dyn Fn(&str) -> bool, probes: &[String]) -> Option<Known> {
    let known = |role, subject: Option<&str>| {
        Some(Known {
            role,
            subject: subject.filter(|s| !s.is_empty()).map(str::to_owned),
        })
    };
    match name {
        "run.log" => return known(Role::RunLog, None),
        "requests.jsonl" => return known(Role::Requests, None),
        "clocks.jsonl" => return known(Role::Clocks, None),
        "steps.jsonl" => return known(Role::Steps, None),
        "journal.jsonl" => return known(Role::Journal, None),
        "run.json" => return known(Role::Run, None),
        "haproxy.cfg" => return known(Role::HaproxyConfig, None),
        _ => {}
    }
    if let Some(raw) = name.strip_suffix(".arrival.tsv") {
        // Read together with the raw log where there is one.
        let raw_exists = exists(raw)
            || raw
                .strip_prefix("istio-proxy")
                .is_some_and(|rest| exists(&format!("envoy{rest}")));
        return if raw_exists {
            None
        } else {
            log(raw, true, exists, probes)
        };
    }
    let (stem, extension) = name.rsplit_once('.')?;
    if matches!(extension, "json" | "jsonl" | "csv" | "ndjson" | "log")
        && TOOLS.iter().any(|tool| subject(stem, tool).is_some())
    {
        return known(
            Role::Load {
                id: stem.to_owned(),
                form: LoadForm::Tool,
            },
            None,
        );
    }
    match extension {
        "out" => {
            if let Some(s) = subject(stem, "curl") {
                let id = s.unwrap_or("long").to_owned();
                return known(Role::Curl { id }, s);
            }
            subject(stem, "hey")?;
            known(
                Role::Load {
                    id: stem.to_owned(),
                    form: LoadForm::Hey,
                },
                None,
            )
        }
        "tsv" => {
            if let Some(s) = subject(stem, "envoy-active") {
                return known(Role::Gauges, s);
            }
            subject(stem, "client")?;
            known(
                Role::Load {
                    id: stem.to_owned(),
                    form: LoadForm::Tsv,
                },
                None,
            )
        }
        "jsonl" => {
            if let Some(s) = subject(stem, "envoy-active") {
                // `-pf` is how it was sampled.
                let s = s.and_then(|s| match s {
                    "pf" | "pf-newconn" => None,
                    _ => Some(s.strip_prefix("pf-newconn-").or(s.strip_prefix("pf-")).unwrap_or(s)),
                });
                return known(Role::Gauges, s);
            }
            if let Some(id) = stem.strip_prefix("load-") {
                return known(
                    Role::Load {
                        id: id.to_owned(),
                        form: LoadForm::Own,
                    },
                    None,
                );
            }
            stem.ends_with("-watch").then_some(())?;
            known(Role::Watch, None)
        }
        "txt" => {
            stem.ends_with("-watch").then_some(())?;
            known(Role::WatchTable, None)
        }
        "csv" => {
            if let Some(what) = stem.strip_prefix("haproxy-stat-") {
                let kind = match what {
                    "before" => StatKind::Before,
                    "after" => StatKind::After,
                    "timeline" => StatKind::Timeline,
                    _ => StatKind::Snapshot,
                };
                return known(Role::Stats(kind), (kind == StatKind::Snapshot).then_some(what));
            }
            subject(stem, "hey")?;
            known(
                Role::Load {
                    id: stem.to_owned(),
                    form: LoadForm::Hey,
                },
                None,
            )
        }
        "pcap" | "pcapng" | "cap" => {
            let host = subject(stem, "rst")?;
            known(Role::Capture, host)
        }
        "SKIPPED" => {
            let host = subject(stem, "rst")?;
            known(Role::SkippedCapture, host)
        }
        "log" => log(name, false, exists, probes),
        _ => None,
    }
}

fn log(name: &str, arrivals_only: bool, exists: &dyn Fn(&str) -> bool, probes: &[String]) -> Option<Known> {
    let stem = name.strip_suffix(".log")?;
    let known = |role, subject: Option<&str>| {
        Some(Known {
            role,
            subject: subject.map(str::to_owned),
        })
    };
    if let Some(s) = subject(stem, "hc") {
        return known(Role::Hc { arrivals_only }, s);
    }
    if let Some(s) = subject(stem, "envoy").or_else(|| subject(stem, "istio-proxy")) {
        return known(Role::Envoy { arrivals_only }, s);
    }
    if stem == "haproxy" || stem.starts_with("haproxy-") {
        return (!arrivals_only).then(|| known(Role::HaproxyLog, None)).flatten();
    }
    for base in probes {
        if let Some(s) = subject(stem, base) {
            return known(Role::Container { arrivals_only }, s);
        }
    }
    // Any log that was followed as a container's.
    (arrivals_only || exists(&format!("{name}.arrival.tsv")))
        .then(|| known(Role::Container { arrivals_only }, None))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, others: &[&str]) -> Option<(SourceKind, Option<String>)> {
        classify(name, &|n| others.contains(&n), &["app".to_owned(), "audit".to_owned()]).map(|k| (k.kind(), k.subject))
    }

    #[test]
    fn names_of_old_and_new_folders() {
        let some = |s: &str| Some(s.to_owned());
        for (name, expected) in [
            ("run.log", Some((SourceKind::RunLog, None))),
            ("curl.out", Some((SourceKind::Client, None))),
            ("curl-r1.out", Some((SourceKind::Client, some("r1")))),
            ("hey.out", Some((SourceKind::Load, None))),
            ("client.tsv", Some((SourceKind::Load, None))),
            ("vegeta-run1.json", Some((SourceKind::Load, None))),
            ("oha.csv", Some((SourceKind::Load, None))),
            ("load-steady.jsonl", Some((SourceKind::Load, None))),
            ("hc-worker1.log", Some((SourceKind::HcLog, some("worker1")))),
            ("envoy.log", Some((SourceKind::EnvoyLog, None))),
            ("istio-proxy.log", Some((SourceKind::EnvoyLog, None))),
            ("audit.log", Some((SourceKind::ContainerLog, None))),
            (
                "envoy-active-worker1.tsv",
                Some((SourceKind::EnvoyStats, some("worker1"))),
            ),
            ("envoy-active-pf.jsonl", Some((SourceKind::EnvoyStats, None))),
            ("envoy-active-pf-newconn.jsonl", Some((SourceKind::EnvoyStats, None))),
            (
                "envoy-active-pf-pod-1.jsonl",
                Some((SourceKind::EnvoyStats, some("pod-1"))),
            ),
            ("haproxy-stat-timeline.csv", Some((SourceKind::HaproxyCsv, None))),
            ("haproxy-stat-mid.csv", Some((SourceKind::HaproxyCsv, some("mid")))),
            ("haproxy-syslog-rfc3164.log", Some((SourceKind::HaproxyLog, None))),
            ("rst-lb.pcap", Some((SourceKind::Capture, some("lb")))),
            ("rst-lb.SKIPPED", Some((SourceKind::Capture, some("lb")))),
            ("rst-lb.err", None),
            ("pod-watch.jsonl", Some((SourceKind::Watch, None))),
            ("pod-watch.txt", Some((SourceKind::Watch, None))),
            ("meta.json", None),
            ("truth", None),
            ("delete.log", None),
            ("port-forward.log", None),
            ("hcx.log", None),
        ] {
            assert_eq!(role(name, &[]), expected, "{name}");
        }
    }

    #[test]
    fn a_log_and_its_arrivals_are_read_once() {
        assert_eq!(role("hc.log.arrival.tsv", &["hc.log"]), None);
        assert_eq!(role("istio-proxy.log.arrival.tsv", &["envoy.log"]), None);
        assert_eq!(
            role("istio-proxy.log.arrival.tsv", &[]),
            Some((SourceKind::EnvoyLog, None))
        );
        assert_eq!(
            role("other.log", &["other.log.arrival.tsv"]),
            Some((SourceKind::ContainerLog, None))
        );
        assert_eq!(
            arrivals_of("envoy-p.log"),
            ["envoy-p.log.arrival.tsv", "istio-proxy-p.log.arrival.tsv"]
        );
    }
}
