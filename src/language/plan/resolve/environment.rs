//! An environment file to an environment: defaults filled in, names tied to each other.

use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Span};
use crate::language::environment::{EnvironmentFile, LogKind, built_in};
use crate::language::nearest::did_you_mean;
use crate::language::plan::{Environment, EnvironmentKind, Host, LoadBalancerFacts, LogSource};
use crate::language::scenario;
use crate::language::value::{At, Flag, Opt, Port, PositiveCount, Templated, Written};

/// Resolves an environment file. `None` when something in it is wrong.
pub(crate) fn environment(
    file: &EnvironmentFile,
    name: &str,
    path: &Path,
    directory: &Path,
    found: &mut Vec<Diagnostic>,
) -> Option<Environment> {
    let before = found.len();
    let kind = file.kind.value;
    let mut out = built_in(name, kind);
    out.file = Some(path.display().to_string());
    out.context = text(&file.context);
    out.seed = file.seed.0.unwrap_or_default();
    workload(file, &mut out);
    entry(file, directory, &mut out, found);
    hosts(file, &mut out, found);
    load_balancer(file, &mut out, found);
    fsm(file, &mut out, found);
    if let Some(error) = file.clocks.as_ref().and_then(|clocks| clocks.max_error.as_ref()) {
        out.clocks.max_error = error.value;
    }
    if kind == EnvironmentKind::Cluster {
        complete(file, found);
        if let Some(world) = file.world.as_ref() {
            let diagnostic = Diagnostic::error(Code::EnvironmentConflict, "a cluster is as it is: it has no `world`")
                .at(first(world.span), "");
            found.push(diagnostic.help("`world` belongs to `kind: sim` and `kind: lab`"));
        }
    }
    (found.len() == before).then_some(out)
}

/// A point at the beginning of a span.
fn first(span: Span) -> Span {
    Span {
        end: span.start,
        ..span
    }
}

fn text(file: &Opt<At<String>>) -> Option<String> {
    file.as_ref().map(|at| at.value.clone())
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// What a cluster must say.
fn complete(file: &EnvironmentFile, found: &mut Vec<Diagnostic>) {
    let workload = file.workload.as_ref().map(|at| &at.value);
    let entry = file.entry.as_ref().map(|at| &at.value);
    let lb = file.load_balancer.as_ref().map(|at| &at.value);
    let needs = [
        (workload.is_some(), "workload"),
        (workload.is_none_or(|w| w.deployment.is_some()), "workload.deployment"),
        (entry.is_some(), "entry"),
        (entry.is_none_or(|e| e.url.is_some()), "entry.url"),
        (lb.is_some(), "load_balancer"),
        (lb.is_none_or(|l| l.host.is_some()), "load_balancer.host"),
        (lb.is_none_or(|l| l.socket.is_some()), "load_balancer.socket"),
        (lb.is_none_or(|l| l.backend.is_some()), "load_balancer.backend"),
        (lb.is_none_or(|l| !l.servers.is_empty()), "load_balancer.servers"),
        (!file.hosts.is_empty(), "hosts"),
    ];
    let missing: Vec<String> = needs
        .iter()
        .filter(|(there, _)| !there)
        .map(|(_, key)| format!("`{key}`"))
        .collect();
    if !missing.is_empty() {
        let diagnostic = Diagnostic::error(
            Code::EnvironmentIncomplete,
            format!("a cluster needs {}", missing.join(", ")),
        )
        .at(file.kind.span, "this is a cluster");
        found.push(diagnostic.help("scenarios/environments/homelab.yaml shows a whole one"));
    }
    let pins = [
        (file.context.is_some(), "`context`"),
        (workload.is_some_and(|w| w.namespace.is_some()), "`workload.namespace`"),
    ];
    let loose: Vec<&str> = pins.iter().filter(|(there, _)| !there).map(|(_, key)| *key).collect();
    if !loose.is_empty() {
        let message = format!(
            "a cluster without {}: steps would act on whatever is current",
            loose.join(" and ")
        );
        let diagnostic = Diagnostic::error(Code::Unpinned, message).at(file.kind.span, "");
        found.push(diagnostic.help("name the kubeconfig context and the namespace of the workload"));
    }
    for (name, _) in file.hosts.iter().filter(|(_, host)| host.ssh.is_none()) {
        let message = format!("host `{}` has no `ssh`", name.value);
        found.push(
            Diagnostic::error(Code::EnvironmentIncomplete, message)
                .at(name.span, "")
                .help("write `ssh: user@address`"),
        );
    }
}

fn workload(file: &EnvironmentFile, out: &mut Environment) {
    let Some(file) = file.workload.as_ref().map(|at| &at.value) else {
        return;
    };
    let workload = &mut out.workload;
    set(&mut workload.namespace, text(&file.namespace));
    set(&mut workload.deployment, text(&file.deployment));
    set(&mut workload.mode_label, text(&file.mode_label));
    if !file.containers.is_empty() {
        workload.containers = file
            .containers
            .iter()
            .map(|(key, name)| (key.value.0.clone(), name.clone()))
            .collect();
    }
    set(
        &mut workload.envoy_admin,
        file.envoy_admin.as_ref().map(|port| port.value).map(|Port(port)| port),
    );
    set(
        &mut workload.port,
        file.port.as_ref().map(|port| port.value).map(|Port(port)| port),
    );
    set(&mut workload.health_path, text(&file.health_path));
}

fn entry(file: &EnvironmentFile, directory: &Path, out: &mut Environment, found: &mut Vec<Diagnostic>) {
    let Some(file) = file.entry.as_ref().map(|at| &at.value) else {
        return;
    };
    if let Some(url) = file.url.as_ref() {
        let rest = url
            .value
            .strip_prefix("http://")
            .or_else(|| url.value.strip_prefix("https://"));
        let good = rest
            .is_some_and(|rest| !rest.is_empty() && !rest.trim_end_matches('/').contains(['/', '?', '#', ' ', '@']));
        if !good {
            let message = format!("`{}` is not a scheme, a host and perhaps a port", url.value);
            found.push(
                Diagnostic::error(Code::Spelling, message)
                    .at(url.span, "")
                    .help("as https://service-a.example.test or http://10.0.0.1:8080; paths stand in scenarios"),
            );
        }
        out.entry.url = url.value.trim_end_matches('/').to_owned();
    }
    if let Some(address) = file.connect_to.as_ref() {
        let port = address
            .value
            .rsplit_once(':')
            .and_then(|(host, port)| (!host.is_empty()).then(|| port.parse::<u16>().ok()).flatten());
        if port.is_none_or(|port| port == 0) {
            let message = format!("`{}` is not an address and a port", address.value);
            found.push(
                Diagnostic::error(Code::Spelling, message)
                    .at(address.span, "")
                    .help("as 203.0.113.211:443"),
            );
        }
        out.entry.connect_to = Some(address.value.clone());
    }
    out.entry.ca_file = file
        .ca_file
        .as_ref()
        .map(|name| directory.join(&name.value).display().to_string());
}

fn hosts(file: &EnvironmentFile, out: &mut Environment, found: &mut Vec<Diagnostic>) {
    for (name, host) in &file.hosts {
        if let Some(ssh) = host.ssh.as_ref()
            && (ssh.value.contains(char::is_whitespace)
                || ssh.value.starts_with('-')
                || ssh.value.ends_with('@')
                || ssh.value.is_empty())
        {
            let message = format!("`{}` is not user@address", ssh.value);
            found.push(
                Diagnostic::error(Code::Spelling, message)
                    .at(ssh.span, "")
                    .help("as ubuntu@203.0.113.211 or ubuntu@worker1:2222; options belong into ~/.ssh/config"),
            );
        }
        if let Some(own) = host.jump.iter().find(|jump| jump.value == name.value) {
            found.push(
                Diagnostic::error(
                    Code::EnvironmentConflict,
                    format!("host `{}` jumps over itself", name.value),
                )
                .at(own.span, ""),
            );
        }
        let entry = Host {
            ssh: text(&host.ssh),
            jump: host.jump.iter().map(|jump| jump.value.clone()).collect(),
            sudo: host.sudo.as_ref().is_some_and(|flag| flag.value == Flag(true)),
            groups: host.groups.clone(),
        };
        out.hosts.insert(name.value.clone(), entry);
    }
}

fn load_balancer(file: &EnvironmentFile, out: &mut Environment, found: &mut Vec<Diagnostic>) {
    let Some(file) = file.load_balancer.as_ref().map(|at| &at.value) else {
        return;
    };
    let lb = &mut out.load_balancer;
    if let Some(host) = file.host.as_ref() {
        if !out.hosts.is_empty() && !out.hosts.contains_key(&host.value) {
            let help = did_you_mean(&host.value, out.hosts.keys().map(String::as_str));
            found.push(
                Diagnostic::error(Code::EnvironmentConflict, format!("there is no host `{}`", host.value))
                    .at(host.span, "")
                    .maybe_help(help),
            );
        }
        lb.host = host.value.clone();
    }
    set(&mut lb.socket, text(&file.socket));
    lb.config = text(&file.config).or(lb.config.take().filter(|_| out.kind != EnvironmentKind::Cluster));
    if let Some(log) = file.log.as_ref() {
        lb.log = Some(match &log.kind {
            LogKind::Journal(unit) => LogSource::Journal(unit.value.clone()),
            LogKind::File(path) => LogSource::File {
                path: path.value.clone(),
                zone: log.zone.as_ref().map(|zone| zone.value.clone()),
            },
        });
        if let Some(zone) = &log.zone
            && zone.value.parse::<chrono_tz::Tz>().is_err()
        {
            let near =
                crate::language::nearest::nearest(&zone.value, chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name()));
            let help = near.map_or("as Asia/Seoul, Europe/Berlin or UTC".to_owned(), |near| {
                format!("did you mean `{near}`?")
            });
            found.push(
                Diagnostic::error(Code::Spelling, format!("`{}` is no time zone", zone.value))
                    .at(zone.span, "")
                    .help(help),
            );
        }
    }
    set(&mut lb.backend, text(&file.backend));
    if !file.servers.is_empty() {
        lb.servers = file
            .servers
            .iter()
            .map(|(node, server)| (node.value.clone(), server.clone()))
            .collect();
    }
    if let Some(facts) = file.facts.as_ref() {
        lb.facts = plain_facts(facts, found);
    }
}

/// The load balancer's facts in an environment, where no variables exist.
fn plain_facts(file: &scenario::LoadBalancerFacts, found: &mut Vec<Diagnostic>) -> LoadBalancerFacts {
    fn plain<T: Clone>(value: &Opt<Templated<T>>, found: &mut Vec<Diagnostic>) -> Option<T> {
        let value = value.as_ref()?;
        match &value.written {
            Written::Value(value) => Some(value.clone()),
            Written::Template(_) => {
                let message = "an environment has no variables";
                found.push(
                    Diagnostic::error(Code::TooEarly, message)
                        .at(value.span, "")
                        .help("write the value"),
                );
                None
            }
        }
    }
    LoadBalancerFacts {
        inter: plain(&file.inter, found),
        fastinter: plain(&file.fastinter, found),
        downinter: plain(&file.downinter, found),
        fall: plain(&file.fall, found).map(|PositiveCount(n)| n),
        rise: plain(&file.rise, found).map(|PositiveCount(n)| n),
        on_marked_down: file.on_marked_down.0,
        disable_on_404: plain(&file.disable_on_404, found).map(|Flag(b)| b),
        agent_check: plain(&file.agent_check, found).map(|Flag(b)| b),
        redispatch: plain(&file.redispatch, found).map(|Flag(b)| b),
        retry_on: file.retry_on.iter().map(|word| word.0.clone()).collect(),
        timeout_server: plain(&file.timeout_server, found),
    }
}

fn fsm(file: &EnvironmentFile, out: &mut Environment, found: &mut Vec<Diagnostic>) {
    let Some(file) = file.fsm.as_ref() else { return };
    if let Some(states) = file.states.as_ref() {
        out.fsm.states = states.iter().map(|state| state.value.clone()).collect();
    }
    for (alias, state) in &file.aliases {
        if !out.fsm.states.contains(&state.value) {
            let help = did_you_mean(&state.value, out.fsm.states.iter().map(String::as_str));
            let message = format!(
                "alias `{}` stands for `{}`, which is no state",
                alias.value, state.value
            );
            found.push(
                Diagnostic::error(Code::EnvironmentConflict, message)
                    .at(state.span, "")
                    .maybe_help(help),
            );
        }
        if out.fsm.states.contains(&alias.value) {
            found.push(
                Diagnostic::error(
                    Code::EnvironmentConflict,
                    format!("`{}` is a state and an alias", alias.value),
                )
                .at(alias.span, ""),
            );
        }
        out.fsm.aliases.insert(alias.value.clone(), state.value.clone());
    }
}
