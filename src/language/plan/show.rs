//! A plan in words: what each step does, and the command that a person would type for it.

use super::{
    Connection, Environment, EnvironmentKind, LoadEnd, Plan, PollRead, Probe, ProbeKind, Step, Template, Verb, Victim,
};

/// What a step does, in one line.
pub fn step(step: &Step) -> String {
    let mut out = verb(&step.verb);
    if let Some(timeout) = step.timeout {
        out.push_str(&format!(", at most {timeout}"));
    }
    if let Some(when) = &step.when {
        out.push_str(&format!(", only when {}", when.text));
    }
    if let Some(retry) = &step.retry {
        out.push_str(&format!(", up to {} times every {}", retry.times, retry.every));
    }
    match step.expect {
        super::Expect::Ok => {}
        super::Expect::Refused => out.push_str(", expected to be refused"),
        super::Expect::Error => out.push_str(", expected to fail"),
        super::Expect::Any => out.push_str(", whatever comes of it"),
    }
    out
}

fn verb(verb: &Verb) -> String {
    let waiting = |wait: bool| if wait { ", and wait" } else { "" };
    match verb {
        Verb::Request(request) => {
            let background = match (request.background, request.expect_in_flight) {
                (true, true) => ", in the background once it is seen in flight",
                (true, false) => ", in the background",
                (false, _) => "",
            };
            let connection = match &request.connection {
                Connection::New => String::new(),
                Connection::Reused => ", on a kept connection".to_owned(),
                Connection::Named(name) => format!(", on connection {name}"),
            };
            format!(
                "{} {}{connection}, client limit {}{background}",
                request.method.as_str(),
                request.path,
                request.timeout
            )
        }
        Verb::Load(load) => {
            let end = match &load.end {
                LoadEnd::Duration(duration) => format!("for {duration}"),
                LoadEnd::Until(until) => format!("until {}", until.text),
                LoadEnd::Steps => "until the steps end".to_owned(),
            };
            format!("{} {} at {}/s, {end}", load.method.as_str(), load.path, load.rate)
        }
        Verb::DeletePod(delete) | Verb::EvictPod(delete) => {
            let pod = delete
                .pod
                .as_ref()
                .map_or("the target pod".to_owned(), |selector| format!("pods with {selector}"));
            let grace = delete
                .grace
                .map_or("its own grace period".to_owned(), |grace| format!("grace {grace}"));
            format!(
                "{} {pod}, {grace}{}",
                if matches!(verb, Verb::EvictPod(_)) {
                    "evict"
                } else {
                    "delete"
                },
                waiting(delete.wait)
            )
        }
        Verb::Scale(scale) => {
            let victim = match scale.victim {
                Victim::Any => "",
                Victim::Target => ", the target goes first",
            };
            format!("scale to {} replicas{victim}{}", scale.replicas, waiting(scale.wait))
        }
        Verb::RolloutRestart(restart) => format!("restart the rollout{}", waiting(restart.wait)),
        Verb::DrainNode(drain) => format!("cordon and drain the target's node{}", waiting(drain.wait)),
        Verb::Label(label) => format!(
            "label the Deployment: {}",
            pairs(label.labels.iter().map(|(name, value)| (name.as_str(), value)))
        ),
        Verb::Wait(wait) => format!("wait {}", wait.duration),
        Verb::WaitFor(wait) => format!("wait for {}", wait.condition.text),
        Verb::Poll(poll) => {
            let read = match &poll.read {
                PollRead::Http { path } => format!("GET {path}"),
                PollRead::Exec(exec) => format!("{} in {}", argv(&exec.argv), exec.container),
            };
            match &poll.until {
                Some(until) => format!("{read} every {} until {}", poll.every, until.text),
                None => format!("{read} once"),
            }
        }
        Verb::Exec(exec) => format!("run in {}: {}", exec.container, argv(&exec.argv)),
        Verb::Ssh(ssh) => format!(
            "run on {}{}: {}",
            ssh.host,
            if ssh.sudo { " with sudo" } else { "" },
            argv(&ssh.argv)
        ),
        Verb::Snapshot(snapshot) => format!("HAProxy statistics into haproxy-stat-{}.csv", snapshot.name),
        Verb::Mark(mark) => format!("mark {}", mark.name),
        Verb::Parallel(parallel) => {
            let names: Vec<&str> = parallel.branches.keys().map(crate::language::Id::as_str).collect();
            format!("side by side: {}", names.join(", "))
        }
    }
}

fn pairs<'a>(list: impl Iterator<Item = (&'a str, &'a Template)>) -> String {
    list.map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn argv(parts: &[Template]) -> String {
    parts.iter().map(Template::to_string).collect::<Vec<_>>().join(" ")
}

/// The command that a person would type for a step that acts on the cluster or a host. gtrun itself calls the API; this shows
/// exactly what is at stake.
pub fn command(step: &Step, environment: &Environment) -> Option<String> {
    let context = environment
        .context
        .as_ref()
        .map(|context| format!(" --context {context}"))
        .unwrap_or_default();
    let workload = &environment.workload;
    let kubectl = format!("kubectl{context} -n {}", workload.namespace);
    let deployment = format!("deploy/{}", workload.deployment);
    Some(match &step.verb {
        Verb::DeletePod(delete) => {
            let pod = delete
                .pod
                .as_ref()
                .map_or("TARGET".to_owned(), |selector| format!("-l {selector}"));
            let grace = delete
                .grace
                .map(|grace| format!(" --grace-period={}", grace.as_nanos() / 1_000_000_000))
                .unwrap_or_default();
            format!("{kubectl} delete pod {pod}{grace} --wait={}", delete.wait)
        }
        Verb::EvictPod(_) => format!("{kubectl} create eviction of pod TARGET (policy/v1)"),
        Verb::Scale(scale) => format!("{kubectl} scale {deployment} --replicas={}", scale.replicas),
        Verb::RolloutRestart(_) => format!("{kubectl} rollout restart {deployment}"),
        Verb::DrainNode(_) => format!("kubectl{context} drain NODE-OF-TARGET --ignore-daemonsets, then uncordon"),
        Verb::Label(label) => format!(
            "{kubectl} label {deployment} {} --overwrite",
            pairs(label.labels.iter().map(|(name, value)| (name.as_str(), value)))
        ),
        Verb::Exec(exec) => {
            let container = workload
                .containers
                .get(&exec.container)
                .cloned()
                .unwrap_or_else(|| exec.container.to_string());
            format!("{kubectl} exec TARGET -c {container} -- {}", argv(&exec.argv))
        }
        Verb::Ssh(ssh) => {
            let host = ssh
                .host
                .as_literal()
                .and_then(|name| environment.hosts.get(name))
                .and_then(|host| host.ssh.clone());
            let sudo = if ssh.sudo { "sudo -n " } else { "" };
            format!(
                "ssh {} {sudo}{}",
                host.unwrap_or_else(|| ssh.host.to_string()),
                argv(&ssh.argv)
            )
        }
        Verb::Request(_)
        | Verb::Load(_)
        | Verb::Wait(_)
        | Verb::WaitFor(_)
        | Verb::Poll(_)
        | Verb::Snapshot(_)
        | Verb::Mark(_)
        | Verb::Parallel(_) => return None,
    })
}

/// What a probe watches, in a few words.
pub fn probe(probe: &Probe) -> String {
    let what = match &probe.kind {
        ProbeKind::ContainerLog { container } => format!("log of {container}"),
        ProbeKind::EnvoyActive { every } => format!("Envoy's gauges every {every}"),
        ProbeKind::HaproxyStat { every } => format!("show stat every {every}"),
        ProbeKind::HaproxyLog => "HAProxy's log".to_owned(),
        ProbeKind::RstCapture { hosts } => format!("packets on {}", hosts.join(", ")),
        ProbeKind::PodWatch => "pods, endpoints, events".to_owned(),
        ProbeKind::Health { every } => format!("health page every {every}"),
    };
    format!(
        "{} ({what}{})",
        probe.name,
        if probe.required { ", required" } else { "" }
    )
}

/// Where a run happens, in one line.
pub fn place(plan: &Plan) -> String {
    let environment = &plan.environment;
    let workload = &environment.workload;
    match environment.kind {
        EnvironmentKind::Sim => format!("environment {} (simulated: nothing is real)", environment.name),
        EnvironmentKind::Lab => format!("environment {} (real parts on this machine)", environment.name),
        EnvironmentKind::Cluster => format!(
            "environment {} (REAL: context {}, {}/{})",
            environment.name,
            environment.context.as_deref().unwrap_or("?"),
            workload.namespace,
            workload.deployment
        ),
    }
}
