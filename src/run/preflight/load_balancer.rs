//! The load balancer's configuration against what is claimed, and the state of the servers in front of the pods.

use super::Misses;
use crate::evidence::FileId;
use crate::evidence::haproxy_config::{Backend, parse};
use crate::evidence::haproxy_csv::{StatusClass, parse_snapshot};
use crate::language::plan::{LoadBalancerFacts, OnMarkedDown};
use crate::run::context::Context;
use crate::run::target::server_of;
use crate::time::Duration;
use crate::world::facts::PodFacts;

/// A server may take this long to come UP.
const SERVER_UP: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Reads the configuration, keeps it as evidence and compares it with `preconditions.load_balancer`.
pub(super) async fn compare(ctx: &Context, pods: &[PodFacts], misses: &mut Misses) {
    let environment = &ctx.plan.environment.load_balancer;
    let backend = match ctx.world.load_balancer.configuration().await {
        Ok(text) => {
            ctx.recorder.replace("haproxy.cfg", text.as_bytes());
            let (config, _) = parse(&text, FileId(0));
            let found = config.backends.into_iter().find(|b| b.name == environment.backend);
            if found.is_none() {
                misses.add(format!(
                    "haproxy.cfg has no backend `{}`; correct `load_balancer.backend` of the environment",
                    environment.backend
                ));
            }
            found
        }
        Err(error) => {
            ctx.say(&format!("the load balancer's configuration cannot be read: {error}"));
            None
        }
    };
    let node = pods.iter().find(|p| !p.terminating()).and_then(|p| p.node.clone());
    let server = node.and_then(|n| server_of(&n, &ctx.plan.environment));
    let found = facts(backend.as_ref(), server.as_deref(), &environment.facts);
    let wanted = &ctx.plan.preconditions.load_balancer;
    let claim = |key: &str| format!("load_balancer.{key}");
    misses.compare(&claim("inter"), wanted.inter.as_ref(), found.inter.as_ref());
    misses.compare(&claim("fastinter"), wanted.fastinter.as_ref(), found.fastinter.as_ref());
    misses.compare(&claim("downinter"), wanted.downinter.as_ref(), found.downinter.as_ref());
    misses.compare(&claim("fall"), wanted.fall.as_ref(), found.fall.as_ref());
    misses.compare(&claim("rise"), wanted.rise.as_ref(), found.rise.as_ref());
    let word = |o: OnMarkedDown| match o {
        OnMarkedDown::ShutdownSessions => "shutdown-sessions",
        OnMarkedDown::None => "none",
    };
    let (given, have) = (wanted.on_marked_down.map(word), found.on_marked_down.map(word));
    misses.compare(&claim("on_marked_down"), given.as_ref(), have.as_ref());
    misses.compare(
        &claim("disable_on_404"),
        wanted.disable_on_404.as_ref(),
        found.disable_on_404.as_ref(),
    );
    misses.compare(
        &claim("agent_check"),
        wanted.agent_check.as_ref(),
        found.agent_check.as_ref(),
    );
    misses.compare(
        &claim("redispatch"),
        wanted.redispatch.as_ref(),
        found.redispatch.as_ref(),
    );
    misses.compare(
        &claim("timeout_server"),
        wanted.timeout_server.as_ref(),
        found.timeout_server.as_ref(),
    );
    for word in &wanted.retry_on {
        if !found.retry_on.contains(word) {
            misses.add(format!("`load_balancer.retry_on` has no {word}"));
        }
    }
}

/// What the configuration says, else what the environment declares.
fn facts(backend: Option<&Backend>, server: Option<&str>, declared: &LoadBalancerFacts) -> LoadBalancerFacts {
    let Some(backend) = backend else {
        return declared.clone();
    };
    let named = server.and_then(|name| backend.servers.iter().find(|s| s.name == name));
    let server = named.or_else(|| backend.servers.first());
    let marked = |shutdown| {
        if shutdown {
            OnMarkedDown::ShutdownSessions
        } else {
            OnMarkedDown::None
        }
    };
    LoadBalancerFacts {
        inter: server.map(|s| s.inter),
        fastinter: server.and_then(|s| s.fastinter),
        downinter: server.and_then(|s| s.downinter),
        fall: server.map(|s| s.fall),
        rise: server.map(|s| s.rise),
        on_marked_down: server.map(|s| marked(s.shutdown_sessions)),
        disable_on_404: Some(backend.disable_on_404),
        agent_check: server.map(|s| s.agent_check),
        redispatch: Some(backend.redispatch),
        retry_on: backend.retry_on.clone(),
        timeout_server: backend.timeout_server,
    }
}

/// Waits until the server in front of every pod is UP and its last check was answered well: a server is UP from the start
/// until its first check fails, so UP alone says nothing.
pub(super) async fn serving(ctx: &Context, pods: &[PodFacts], misses: &mut Misses) {
    let environment = &ctx.plan.environment;
    let mut wanted: Vec<String> = Vec::new();
    for pod in pods.iter().filter(|p| !p.terminating()) {
        match pod.node.as_deref().map(|n| (n, server_of(n, environment))) {
            Some((_, Some(server))) => wanted.push(server),
            Some((node, None)) => misses.add(format!(
                "node {node} has no entry in `load_balancer.servers` of the environment: which server is in front of pod {}?",
                pod.identity.name
            )),
            None => {}
        }
    }
    let Ok(mut sampler) = ctx.world.load_balancer.stats().await else {
        ctx.say("the load balancer's statistics cannot be read: whether its servers are UP is not known");
        return;
    };
    let backend = environment.load_balancer.backend.clone();
    let mut last = String::new();
    let all_up = async {
        loop {
            if let Ok(text) = sampler.sample().await.reply {
                let rows = parse_snapshot(&text);
                let states: Vec<_> = wanted
                    .iter()
                    .map(|server| {
                        let row = rows
                            .iter()
                            .find(|r| !r.is_backend && *r.proxy == *backend && *r.server == **server);
                        let up = row.is_some_and(|r| {
                            r.status.class == StatusClass::Up && r.check_status.as_deref() == Some("L7OK")
                        });
                        (server, up, row.map(|r| r.status.text.to_string()))
                    })
                    .collect();
                if states.iter().all(|(_, up, _)| *up) {
                    return;
                }
                let not_up = states.iter().filter(|(_, up, _)| !up);
                let shown = not_up.map(|(s, _, state)| format!("{s} is {}", state.as_deref().unwrap_or("not there")));
                last = shown.collect::<Vec<_>>().join(", ");
            }
            ctx.sleep(LOOK_AGAIN).await;
        }
    };
    if ctx.within(SERVER_UP, all_up).await.is_none() {
        misses.add(format!(
            "the load balancer does not serve the pods after {SERVER_UP}: {last} in backend {backend}"
        ));
    }
}
