//! The lab's hosts as network namespaces, joined by a bridge in a namespace of its own.
//!
//! ```text
//!   root namespace                       PREFIX-net
//!   gtlabN 198.18.N.1/24 ---- up0 -- br0 --- v0 ---- eth0 198.18.N.211  PREFIX-lb
//!                                        `-- v1 ---- eth0 198.18.N.11   PREFIX-worker1   ...
//! ```
//!
//! One veth pair leads out, so that gtrun speaks to HAProxy, sshd and nobody else without any translation of
//! addresses. Each lab has a /24 of its own out of 198.18.0.0/15, the block reserved for tests of networks
//! (RFC 2544), so labs side by side never meet. The name `gtlabN` in the root namespace is what reserves number N:
//! the kernel gives a name once.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::LabError;
use super::error::IoContext;
use super::namespace::Namespace;

/// The bridge's address. Unless it is given one, a bridge takes the lowest of its members' and changes it as they come
/// and go; the neighbours' ARP entries then go stale (54 s of loss on a real rig).
const BRIDGE_MAC: &str = "02:67:74:6c:62:01";

/// A lab's addresses: a /24 of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subnet(pub(crate) u8);

impl Subnet {
    /// The address with this last byte.
    pub(crate) fn host(self, last: u8) -> Ipv4Addr {
        Ipv4Addr::new(198, 18, self.0, last)
    }

    /// This end of the veth pair, in the root namespace.
    pub(crate) fn root(self) -> Ipv4Addr {
        self.host(1)
    }

    fn interface(self) -> String {
        format!("gtlab{}", self.0)
    }
}

/// One host: its namespace and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// `lb`, `worker1`, ..., `client`.
    pub(crate) name: String,
    /// Where it lives.
    pub(crate) namespace: Namespace,
    /// Its only address.
    pub(crate) address: Ipv4Addr,
}

/// Last byte of the addresses; worker k has 10 + k.
const LB: u8 = 211;
const CLIENT: u8 = 100;

/// The names of the namespaces that a lab makes: its own prefix, the hosts, and `net` for the bridge.
pub(crate) fn namespaces<'a>(lab: &str, nodes: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names = vec![
        format!("gtrun-{lab}-net"),
        format!("gtrun-{lab}-lb"),
        format!("gtrun-{lab}-client"),
    ];
    names.extend(nodes.map(|n| format!("gtrun-{lab}-{n}")));
    names
}

/// The lab's hosts with their addresses: `lb`, the nodes in order, `client`.
pub(crate) fn hosts<'a>(lab: &str, subnet: Subnet, nodes: impl Iterator<Item = &'a String>) -> Vec<Host> {
    let host = |name: &str, last: u8| Host {
        name: name.to_owned(),
        namespace: Namespace(format!("gtrun-{lab}-{name}")),
        address: subnet.host(last),
    };
    let mut hosts = vec![host("lb", LB)];
    hosts.extend((11u8..).zip(nodes).map(|(last, node)| host(node, last)));
    hosts.push(host("client", CLIENT));
    hosts
}

/// Makes the namespaces, the bridge and the way out, and says which subnet it took. `reserve` is told the subnet that
/// is about to be tried.
///
/// # Errors
/// `ip` refuses, or no subnet is free. What was made until then stays for [`remove`].
pub(crate) fn create(
    lab: &str,
    nodes: &[String],
    mut reserve: impl FnMut(Subnet) -> Result<(), LabError>,
) -> Result<Subnet, LabError> {
    let all = namespaces(lab, nodes.iter());
    batch(None, all.iter().map(|n| format!("netns add {n}")))?;
    let net = Namespace(format!("gtrun-{lab}-net"));
    batch(
        Some(&net),
        [
            "link set lo up".to_owned(),
            format!("link add br0 address {BRIDGE_MAC} type bridge"),
            "link set br0 up".to_owned(),
        ],
    )?;
    let subnet = way_out(&net, &mut reserve)?;
    let hosts = hosts(lab, subnet, nodes.iter());
    batch(
        Some(&net),
        hosts.iter().enumerate().flat_map(|(i, host)| {
            [
                format!("link add v{i} type veth peer name eth0 netns {}", host.namespace.0),
                format!("link set v{i} master br0 up"),
            ]
        }),
    )?;
    for host in &hosts {
        // No IPv6: its neighbour discovery would only add packets to the captures.
        host.namespace
            .enter(|| std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").ok())
            .context("cannot enter", host.namespace.path())?;
        batch(
            Some(&host.namespace),
            [
                "link set lo up".to_owned(),
                format!("addr add {}/24 dev eth0", host.address),
                "link set eth0 up".to_owned(),
            ],
        )?;
    }
    Ok(subnet)
}

/// Takes the first free number: no address of its block is in use here, and the kernel gives us the interface's name.
fn way_out(net: &Namespace, reserve: &mut impl FnMut(Subnet) -> Result<(), LabError>) -> Result<Subnet, LabError> {
    let taken = taken_subnets()?;
    for subnet in (0..=u8::MAX).map(Subnet).filter(|s| !taken.contains(&s.0)) {
        let name = subnet.interface();
        reserve(subnet)?;
        match batch(
            None,
            [format!("link add {name} type veth peer name up0 netns {}", net.0)],
        ) {
            Err(LabError::Command { said, .. }) if said.contains("File exists") => continue,
            other => other?,
        }
        batch(Some(net), ["link set up0 master br0 up".to_owned()])?;
        batch(
            None,
            [
                format!("addr add {}/24 dev {name}", subnet.root()),
                format!("link set {name} up"),
            ],
        )?;
        return Ok(subnet);
    }
    Err(LabError::NotReady(
        "all of 198.18.0.0/16 is in use on this machine; end a lab with `gtrun lab down`".into(),
    ))
}

/// Third bytes of the addresses and routes in 198.18.0.0/16 that this machine has already.
fn taken_subnets() -> Result<BTreeSet<u8>, LabError> {
    let mut taken = BTreeSet::new();
    for arguments in [["-o", "-4", "addr", "show"], ["-o", "-4", "route", "show"]] {
        let said = run(Command::new("ip").args(arguments), "")?;
        taken.extend(
            said.split_ascii_whitespace()
                .filter_map(|word| word.split('/').next()?.parse::<Ipv4Addr>().ok())
                .filter(|a| a.octets()[..2] == [198, 18])
                .map(|a| a.octets()[2]),
        );
    }
    Ok(taken)
}

/// Removes the namespaces of these names and with them their interfaces; the root namespace's end of the veth pair
/// goes with its peer. Names that are gone already are no error. Returns when the way out is gone too.
///
/// # Errors
/// `ip` refuses.
pub(crate) fn remove(names: &[String], subnet: Option<Subnet>) -> Result<(), LabError> {
    for name in names {
        let namespace = Namespace(name.clone());
        if namespace.exists() {
            batch(None, [format!("netns del {name}")])?;
        }
    }
    let Some(subnet) = subnet else { return Ok(()) };
    // The kernel takes a namespace apart after the call has returned.
    let address = format!("inet {}/24", subnet.root());
    let until = Instant::now() + Duration::from_secs(2);
    while run(Command::new("ip").args(["-o", "-4", "addr", "show"]), "")?.contains(&address) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Runs commands of `ip`, one a line, in one process; in a namespace if one is named.
fn batch(namespace: Option<&Namespace>, lines: impl IntoIterator<Item = String>) -> Result<(), LabError> {
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-n", &namespace.0]);
    }
    let lines: Vec<String> = lines.into_iter().collect();
    run(command.args(["-batch", "-"]), &(lines.join("\n") + "\n"))
        .map(|_| ())
        .map_err(|error| match error {
            LabError::Command { said, .. } => LabError::Command {
                command: format!("ip {}", lines.join("; ip ")),
                said,
            },
            other => other,
        })
}

fn run(command: &mut Command, input: &str) -> Result<String, LabError> {
    let program = command.get_program().to_os_string();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run", &program)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).context("cannot write to", &program)?;
    }
    let output = child.wait_with_output().context("cannot run", &program)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::Command {
        command: format!("{command:?}"),
        said,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_its_own_namespace_and_address() {
        let nodes = ["worker1".to_owned(), "worker2".to_owned()];
        let hosts = hosts("a", Subnet(7), nodes.iter());
        let listed: Vec<_> = hosts
            .iter()
            .map(|h| format!("{} {} {}", h.name, h.namespace.0, h.address))
            .collect();
        assert_eq!(
            listed,
            [
                "lb gtrun-a-lb 198.18.7.211",
                "worker1 gtrun-a-worker1 198.18.7.11",
                "worker2 gtrun-a-worker2 198.18.7.12",
                "client gtrun-a-client 198.18.7.100",
            ]
        );
        let names = namespaces("a", nodes.iter());
        assert!(hosts.iter().all(|h| names.contains(&h.namespace.0)));
    }
}
