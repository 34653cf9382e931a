//! Who is who: the proxy and its servers, which pod's files belong to which server, and which servers were told
//! to stop.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::evidence::haproxy_csv::StatKind;
use crate::evidence::haproxy_log::{HaproxyEvent, ServerChange};
use crate::evidence::run_log::RunLogLine;
use crate::evidence::{Endpoint, Evidence};

/// What is known beforehand, from the environment and the plan; empty for an old folder.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// HAProxy's proxy with the servers in question (`pxname`).
    pub proxy: Option<String>,
    /// Node to server name.
    pub servers: BTreeMap<String, String>,
    /// Envoy's ingress listener prefix, `inbound_0.0.0.0_8080`; Istio's names where not given.
    pub ingress: Option<String>,
    /// Envoy's application cluster, `inbound|8000||`.
    pub app_cluster: Option<String>,
    /// Assumed greatest difference of two clocks that nothing ties.
    pub max_skew: Option<crate::time::Duration>,
}

/// Who is who in a run.
#[derive(Debug, Clone, Default)]
pub struct Site {
    /// The proxy whose servers matter.
    pub proxy: Option<Arc<str>>,
    /// Its servers, by name.
    pub servers: Vec<SiteServer>,
    /// The pods that left a log, gauges or FSM lines.
    pub pods: Vec<SitePod>,
    /// The load balancer's own addresses towards the pods.
    pub lb_addresses: BTreeSet<IpAddr>,
    /// Path of the health page.
    pub check_path: String,
    /// How the targets were found.
    pub target_by: Option<String>,
}

/// One server of the proxy.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteServer {
    /// Name (`svname`).
    pub name: Arc<str>,
    /// Address and port.
    pub address: Option<Endpoint>,
    /// Its pod was told to stop.
    pub target: bool,
}

/// One pod, by the files it left; indices into [`Evidence`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SitePod {
    /// Subject of its files; `None` for the files without one.
    pub name: Option<String>,
    /// Server in front of it.
    pub server: Option<Arc<str>>,
    /// Index into `envoy_logs`.
    pub envoy: Option<usize>,
    /// Index into `hc_logs`.
    pub hc: Option<usize>,
    /// Indices into `envoy_stats`.
    pub stats: Vec<usize>,
}

impl Site {
    /// The server's index by name.
    pub fn server(&self, name: &str) -> Option<usize> {
        self.servers.iter().position(|s| &*s.name == name)
    }

    /// The targets' indices.
    pub fn targets(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.servers.len()).filter(|i| self.servers[*i].target)
    }

    /// Pods behind a server.
    pub fn pods_of<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a SitePod> {
        self.pods.iter().filter(move |p| p.server.as_deref() == Some(server))
    }

    /// The path is the health page's.
    pub fn is_check(&self, path: Option<&str>) -> bool {
        path.is_some_and(|p| p.split('?').next() == Some(self.check_path.as_str()))
    }

    /// Finds out who is who from what the sources say of themselves.
    pub fn survey(evidence: &Evidence, known: &Knowledge) -> Self {
        let proxy = proxy(evidence, known);
        let mut site = Self {
            servers: servers(evidence, proxy.as_deref()),
            check_path: check_path(evidence, proxy.as_deref()),
            proxy,
            ..Self::default()
        };
        site.lb_addresses = lb_addresses(evidence, &site);
        site.pods = pods(evidence);
        site.find_targets(evidence, known);
        site.place_pods(evidence);
        site
    }

    fn find_targets(&mut self, evidence: &Evidence, known: &Knowledge) {
        let mut named: Vec<(String, String)> = Vec::new();
        for call in &evidence.own_calls {
            if matches!(call.verb.as_str(), "delete_pod" | "evict_pod") {
                let by_node = |n: &String| known.servers.get(n);
                if let Some(server) = call.server.as_ref().or_else(|| call.pod.as_ref().and_then(by_node)) {
                    named.push((
                        server.clone(),
                        format!("{} step{}", call.verb, uid_note(call.uid.is_some())),
                    ));
                }
            }
        }
        if let Some(log) = &evidence.run_log {
            if let Some(server) = log.target.as_ref().and_then(|t| t.server.clone()) {
                named.push((server, "run.log: target".to_owned()));
            }
            for entry in &log.entries {
                if let RunLogLine::DeletePod { pod, .. } = &entry.what {
                    named.push((pod.clone(), "run.log: delete".to_owned()));
                }
                if let RunLogLine::Sigterm { pod: Some(pod) } = &entry.what {
                    named.push((pod.clone(), "run.log: SIGTERM".to_owned()));
                }
            }
        }
        let load = !evidence.loads.is_empty() && evidence.clients.is_empty();
        for (name, by) in named {
            if let Some(i) = self.server(&name) {
                self.servers[i].target = true;
                self.target_by.get_or_insert(by);
            }
        }
        if self.target_by.is_some() && !load {
            return;
        }
        // Nobody names it, or a rollout tells several in turn: every server that went DOWN after it had been UP.
        let down = self.went_down(evidence);
        if !down.is_empty() && (load || down.len() == 1) {
            for name in &down {
                if let Some(i) = self.server(name) {
                    self.servers[i].target = true;
                }
            }
            let by = if load {
                "servers that went DOWN during the load"
            } else {
                "the only server that went UP to DOWN"
            };
            self.target_by.get_or_insert(by.to_owned());
        } else if down.is_empty() && self.servers.len() == 1 {
            self.servers[0].target = true;
            self.target_by = Some("the only server".to_owned());
        }
    }

    /// Servers seen UP and then DOWN or in maintenance, by statistics or log.
    fn went_down(&self, evidence: &Evidence) -> Vec<Arc<str>> {
        let mut found = BTreeSet::new();
        for server in &self.servers {
            let mut up = false;
            let timeline = evidence.haproxy_csv.iter().filter(|s| s.kind == StatKind::Timeline);
            for row in timeline.flat_map(|s| &s.samples).flat_map(|s| &s.rows) {
                if !row.is_backend && row.server == server.name && Some(&row.proxy) == self.proxy.as_ref() {
                    if row.status.class.is_alive() && row.check_status.as_deref() == Some("L7OK") {
                        up = true;
                    } else if row.status.class.is_down() && up {
                        found.insert(Arc::clone(&server.name));
                    }
                }
            }
            for log in &evidence.haproxy_logs {
                let mut up = false;
                for line in &log.lines {
                    match &line.what {
                        HaproxyEvent::HealthCheck(c)
                            if c.server == server.name && Some(&c.backend) == self.proxy.as_ref() =>
                        {
                            up |= c.ok || c.status.as_ref().is_some_and(|(n, _, word)| &**word == "UP" && *n > 0);
                        }
                        HaproxyEvent::ServerState(s)
                            if s.server == server.name && Some(&s.backend) == self.proxy.as_ref() =>
                        {
                            match s.to {
                                ServerChange::Down | ServerChange::DownByTracking if up => {
                                    found.insert(Arc::clone(&server.name));
                                }
                                ServerChange::Up | ServerChange::Stopping => up = true,
                                ServerChange::Down
                                | ServerChange::DownByTracking
                                | ServerChange::Running
                                | ServerChange::Maint
                                | ServerChange::LeavingMaint
                                | ServerChange::Drain
                                | ServerChange::LeavingDrain => {}
                            }
                        }
                        _ => {}
                    }
                }
            }
        }
        found.into_iter().collect()
    }

    /// Which server is in front of which pod: by name, by address, by a request seen on both sides.
    fn place_pods(&mut self, evidence: &Evidence) {
        let only_target = {
            let t: Vec<usize> = self.targets().collect();
            (t.len() == 1).then(|| Arc::clone(&self.servers[t[0]].name))
        };
        let run_log_pod = evidence
            .run_log
            .as_ref()
            .and_then(|l| l.target.clone())
            .unwrap_or_default();
        let mut placed = Vec::new();
        for pod in &self.pods {
            let by_name = pod
                .name
                .as_deref()
                .and_then(|n| self.server(n))
                .map(|i| Arc::clone(&self.servers[i].name));
            let by_run_log = (pod.name.is_some() && pod.name == run_log_pod.pod)
                .then(|| run_log_pod.server.as_deref().and_then(|s| self.server(s)))
                .flatten()
                .map(|i| Arc::clone(&self.servers[i].name));
            let by_address = pod.envoy.and_then(|e| {
                let local = evidence.envoy_logs[e].requests.iter().find_map(|r| r.local)?;
                self.servers
                    .iter()
                    .find(|s| s.address == Some(local))
                    .map(|s| Arc::clone(&s.name))
            });
            let by_request = pod.envoy.and_then(|e| self.server_by_requests(evidence, e));
            let alone = (self.pods.len() == 1 || pod.name.is_none())
                .then(|| only_target.clone())
                .flatten();
            placed.push(by_name.or(by_run_log).or(by_address).or(by_request).or(alone));
        }
        for (pod, server) in self.pods.iter_mut().zip(placed) {
            pod.server = server;
        }
    }

    fn server_by_requests(&self, evidence: &Evidence, envoy: usize) -> Option<Arc<str>> {
        let ports: BTreeMap<u16, Option<&str>> = evidence.envoy_logs[envoy]
            .requests
            .iter()
            .filter(|r| !self.is_check(r.path.as_deref()))
            .filter_map(|r| Some((r.downstream?.port(), r.path.as_deref())))
            .collect();
        let mut seen: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for line in evidence.haproxy_logs.iter().flat_map(|l| &l.lines) {
            if let HaproxyEvent::Request(r) = &line.what {
                let port = r.backend_source.map(|e| e.port());
                if let (Some(server), Some(path)) = (&r.server, port.and_then(|p| ports.get(&p)))
                    && *path == r.path.as_deref()
                {
                    *seen.entry(Arc::clone(server)).or_default() += 1;
                }
            }
        }
        let most = seen.iter().max_by_key(|(_, n)| **n)?;
        seen.values()
            .all(|n| n == most.1 || n * 10 <= *most.1)
            .then(|| Arc::clone(most.0))
    }
}

fn uid_note(has_uid: bool) -> &'static str {
    if has_uid { ", uid" } else { "" }
}

/// The proxy: as known; else the one that the requests went to; else the only one; else the one a frontend names.
fn proxy(evidence: &Evidence, known: &Knowledge) -> Option<Arc<str>> {
    if let Some(p) = &known.proxy {
        return Some(Arc::from(p.as_str()));
    }
    let mut by_requests: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for line in evidence.haproxy_logs.iter().flat_map(|l| &l.lines) {
        if let HaproxyEvent::Request(r) = &line.what
            && let Some(b) = &r.backend
        {
            *by_requests.entry(Arc::clone(b)).or_default() += 1;
        }
    }
    if let Some((p, _)) = by_requests.iter().max_by_key(|(_, n)| **n) {
        return Some(Arc::clone(p));
    }
    let mut sessions: BTreeMap<Arc<str>, u64> = BTreeMap::new();
    for row in evidence
        .haproxy_csv
        .iter()
        .flat_map(|s| &s.samples)
        .flat_map(|s| &s.rows)
    {
        if !row.is_backend {
            let n = sessions.entry(Arc::clone(&row.proxy)).or_default();
            *n = (*n).max(row.stot.unwrap_or(0));
        }
    }
    let busiest = sessions
        .iter()
        .max_by_key(|(_, n)| **n)
        .filter(|(_, n)| **n > 0 || sessions.len() == 1);
    if let Some((p, _)) = busiest {
        return Some(Arc::clone(p));
    }
    let config = evidence.haproxy_config.as_ref()?;
    let named = config.frontends.iter().find_map(|f| f.default_backend.clone());
    named
        .or_else(|| config.backends.first().map(|b| b.name.clone()))
        .map(Arc::from)
}

fn servers(evidence: &Evidence, proxy: Option<&str>) -> Vec<SiteServer> {
    let Some(proxy) = proxy else { return Vec::new() };
    let mut found: BTreeMap<Arc<str>, Option<Endpoint>> = BTreeMap::new();
    for row in evidence
        .haproxy_csv
        .iter()
        .flat_map(|s| &s.samples)
        .flat_map(|s| &s.rows)
    {
        if !row.is_backend && &*row.proxy == proxy {
            let address = row.addr.as_deref().and_then(|a| a.parse().ok());
            let known = found.entry(Arc::clone(&row.server)).or_default();
            *known = known.or(address);
        }
    }
    for line in evidence.haproxy_logs.iter().flat_map(|l| &l.lines) {
        let named = match &line.what {
            HaproxyEvent::ServerState(s) => Some((&s.backend, &s.server)),
            HaproxyEvent::HealthCheck(c) => Some((&c.backend, &c.server)),
            HaproxyEvent::Request(r) => r.backend.as_ref().zip(r.server.as_ref()),
            HaproxyEvent::ProxyStopped(_) | HaproxyEvent::ProxyStarted(_) | HaproxyEvent::NoServer(_) => None,
        };
        if let Some((b, s)) = named
            && &**b == proxy
        {
            found.entry(Arc::clone(s)).or_default();
        }
    }
    let backend = evidence
        .haproxy_config
        .as_ref()
        .and_then(|c| c.backends.iter().find(|b| b.name == proxy));
    for server in backend.iter().flat_map(|b| &b.servers) {
        if let Some(known) = found.get_mut(server.name.as_str()) {
            *known = known.or(server.address);
        } else if found.is_empty() {
            found.insert(Arc::from(server.name.as_str()), server.address);
        }
    }
    found
        .into_iter()
        .map(|(name, address)| SiteServer {
            name,
            address,
            target: false,
        })
        .collect()
}

/// From the configuration; else the path that Envoy's log shows most regularly with the load balancer's checks.
fn check_path(evidence: &Evidence, proxy: Option<&str>) -> String {
    const USUAL: &str = "/health_check.html";
    let config = evidence.haproxy_config.as_ref();
    let backend = config.and_then(|c| c.backends.iter().find(|b| Some(b.name.as_str()) == proxy));
    backend
        .and_then(|b| b.check_path.clone())
        .unwrap_or_else(|| USUAL.to_owned())
}

/// Where connections to the pods come from: HAProxy's own address in its lines, else the peer of the checks.
fn lb_addresses(evidence: &Evidence, site: &Site) -> BTreeSet<IpAddr> {
    let from_log: BTreeSet<IpAddr> = evidence
        .haproxy_logs
        .iter()
        .flat_map(|l| &l.lines)
        .filter_map(|l| match &l.what {
            HaproxyEvent::Request(r) => r.backend_source.map(|e| e.ip()),
            _ => None,
        })
        .collect();
    let requests = || evidence.envoy_logs.iter().flat_map(|l| &l.requests);
    let peers = |check: bool| -> BTreeSet<IpAddr> {
        requests()
            .filter(|r| site.is_check(r.path.as_deref()) == check)
            .filter_map(|r| r.downstream.map(|e| e.ip()))
            .collect()
    };
    let both: BTreeSet<IpAddr> = peers(true).intersection(&peers(false)).copied().collect();
    let mut all = from_log;
    all.extend(both);
    all
}

/// Groups the files of each pod by their subject.
fn pods(evidence: &Evidence) -> Vec<SitePod> {
    let mut by_name: BTreeMap<Option<String>, SitePod> = BTreeMap::new();
    for (i, log) in evidence.envoy_logs.iter().enumerate() {
        by_name.entry(log.subject.clone()).or_default().envoy = Some(i);
    }
    for (i, log) in evidence.hc_logs.iter().enumerate() {
        by_name.entry(log.subject.clone()).or_default().hc = Some(i);
    }
    for (i, series) in evidence.envoy_stats.iter().enumerate() {
        by_name.entry(series.subject.clone()).or_default().stats.push(i);
    }
    by_name.into_iter().map(|(name, pod)| SitePod { name, ..pod }).collect()
}
