//! HAProxy's configuration, and its state as its own socket tells it.

use std::fmt::Write;
use std::net::Ipv4Addr;
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::time::Duration;
use crate::world::lab::network::Host;
use crate::world::lab::workload::{AGENT_PORT, INGRESS_PORT, SERVICE_HOST};
use crate::world::lab::world::{LoadBalancerWorld, LogFormat, Mode, OnMarkedDown};

/// `pxname` of the servers.
pub(crate) const BACKEND: &str = "istio-http-backend";

/// The line of a request, as the recorded runs have it: `bi=` is HAProxy's own address and port towards the worker and
/// names the connection in the captures.
const LOG_LINE: &str = r#""%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r bi=%bi:%bp""#;

/// The configuration file: a server for each node, checked through the same listener that serves requests.
pub(crate) fn configuration(
    world: &LoadBalancerWorld,
    mode: Mode,
    address: Ipv4Addr,
    nodes: &[Host],
    socket: &Path,
) -> String {
    let log = match world.log {
        LogFormat::Iso => "iso",
        LogFormat::Rfc5424 => "rfc5424",
        LogFormat::Rfc3164 => "rfc3164",
    };
    let server_timeout = millis(world.timeout_server);
    let mut text = format!(
        "global
    log stdout format {log} local0
    stats socket {} mode 660 level admin
defaults
    mode http
    log global
    option httplog
    option dontlognull
    option log-health-checks
    timeout connect 5s
    timeout client {server_timeout}
    timeout server {server_timeout}
frontend istio-http-frontend
    bind {address}:80
    log-format {LOG_LINE}
    default_backend {BACKEND}
backend {BACKEND}
    balance roundrobin
",
        socket.display()
    );
    let mut option = |line: &str| text.push_str(&format!("    {line}\n"));
    if world.redispatch {
        option("option redispatch");
    }
    if !world.retry_on.is_empty() {
        option(&format!("retry-on {}", world.retry_on.join(" ")));
    }
    // `option httpchk GET /x` alone speaks HTTP/1.0, and Envoy answers that with 426.
    option("option httpchk GET /health_check.html");
    option(&format!(
        "http-check send meth GET uri /health_check.html ver HTTP/1.1 hdr Host {SERVICE_HOST}"
    ));
    if world.disable_on_404.unwrap_or(mode == Mode::Nolb) {
        option("http-check disable-on-404");
    }
    option("http-check expect status 200");
    for node in nodes {
        let _ = write!(
            text,
            "    server {} {}:{INGRESS_PORT} check inter {}",
            node.name,
            node.address,
            millis(world.inter)
        );
        for (word, value) in [("fastinter", world.fastinter), ("downinter", world.downinter)] {
            if let Some(value) = value {
                let _ = write!(text, " {word} {}", millis(value));
            }
        }
        let _ = write!(text, " fall {} rise {}", world.fall, world.rise);
        if world.on_marked_down == OnMarkedDown::ShutdownSessions {
            text.push_str(" on-marked-down shutdown-sessions");
        }
        if world.agent_check {
            let _ = write!(
                text,
                " agent-check agent-port {AGENT_PORT} agent-inter {}",
                millis(world.inter)
            );
        }
        text.push('\n');
    }
    text
}

/// HAProxy's spelling of a time; whole seconds stay readable.
fn millis(d: Duration) -> String {
    let ms = d.as_nanos() / 1_000_000;
    if ms % 1000 == 0 {
        format!("{}s", ms / 1000)
    } else {
        format!("{ms}ms")
    }
}

/// One server as `show stat` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerState {
    /// `UP`, `DOWN`, `UP 1/2`, ...
    pub(crate) status: String,
    /// `L7OK`, `L4CON`, ... without the `* ` of a check that is running.
    pub(crate) check: String,
}

impl ServerState {
    /// UP, and not only because nothing was checked yet: a server is UP from the start until its first check fails.
    pub(crate) fn is_proven_up(&self) -> bool {
        self.status == "UP" && self.check == "L7OK"
    }

    /// Known not to take requests.
    pub(crate) fn is_down(&self) -> bool {
        self.status == "DOWN"
    }
}

/// The state of each server, asked of HAProxy's socket.
///
/// # Errors
/// The socket is not there or does not answer.
pub(crate) async fn servers(socket: &Path) -> std::io::Result<Vec<(String, ServerState)>> {
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(b"show stat\n").await?;
    let mut said = String::new();
    stream.read_to_string(&mut said).await?;
    Ok(read_servers(&said))
}

fn read_servers(csv_text: &str) -> Vec<(String, ServerState)> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .from_reader(csv_text.trim_start_matches("# ").as_bytes());
    let Ok(header) = reader.headers().cloned() else {
        return Vec::new();
    };
    let column = |name: &str| header.iter().position(|h| h == name);
    let Some((proxy, server, status, check)) = column("pxname")
        .zip(column("svname"))
        .zip(column("status"))
        .zip(column("check_status"))
        .map(|(((proxy, server), status), check)| (proxy, server, status, check))
    else {
        return Vec::new();
    };
    reader
        .records()
        .flatten()
        .filter(|r| r.get(proxy) == Some(BACKEND) && r.get(server).is_some_and(|s| s != "BACKEND"))
        .filter_map(|r| {
            let state = ServerState {
                status: r.get(status)?.to_owned(),
                check: r.get(check)?.trim_start_matches("* ").to_owned(),
            };
            Some((r.get(server)?.to_owned(), state))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::lab::network::{Subnet, hosts};

    #[test]
    fn the_configuration_says_what_the_world_says() {
        let world = LoadBalancerWorld {
            inter: Duration::from_millis(500),
            redispatch: true,
            retry_on: vec!["all-retryable-errors".into()],
            ..LoadBalancerWorld::default()
        };
        let nodes = hosts("a", Subnet(0), ["worker1".to_owned()].iter());
        let text = configuration(
            &world,
            Mode::Nolb,
            Ipv4Addr::new(198, 18, 0, 211),
            &nodes[1..2],
            Path::new("/s/lb.sock"),
        );
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        for line in [
            "log stdout format iso local0",
            "bind 198.18.0.211:80",
            "option redispatch",
            "retry-on all-retryable-errors",
            "http-check disable-on-404",
            "server worker1 198.18.0.11:8080 check inter 500ms fall 2 rise 2 on-marked-down shutdown-sessions",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_running_check_does_not_hide_the_last_one() {
        let text = "# pxname,svname,status,check_status,\nistio-http-backend,worker1,UP,* L7OK,\n\
                    istio-http-backend,worker2,DOWN,L4CON,\nistio-http-backend,BACKEND,UP,,\n";
        let servers = read_servers(text);
        assert_eq!(servers.len(), 2);
        assert!(servers[0].1.is_proven_up() && servers[1].1.is_down());
    }
}
