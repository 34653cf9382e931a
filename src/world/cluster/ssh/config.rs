//! The ssh configuration of a run, and how a host of the environment is reached with it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use crate::language::plan;
use crate::world::port::{ErrorKind, WorldError};

/// What `ssh` is called with for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    /// The destination and the hosts on the way to it.
    arguments: Vec<String>,
}

/// `user@host:port`, as written in `ssh:`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Destination {
    user: Option<String>,
    host: String,
    port: Option<u16>,
}

/// The text of the configuration file: gtrun's own rules first (the first value wins), then the files of the user, in
/// which jump hosts, keys and known hosts are found.
pub(super) fn text(user_files: &[PathBuf]) -> String {
    let mut text = String::from(
        "# Written by gtrun for one run.\n\
         Host *\n\
         \x20 BatchMode yes\n\
         \x20 ConnectTimeout 10\n\
         \x20 ConnectionAttempts 1\n\
         \x20 ServerAliveInterval 3\n\
         \x20 ServerAliveCountMax 3\n\
         \x20 ControlMaster no\n\
         \x20 ControlPath none\n\
         \x20 ForwardAgent no\n\
         \x20 ForwardX11 no\n\
         \x20 ClearAllForwardings yes\n\
         \x20 PermitLocalCommand no\n\
         \x20 RemoteCommand none\n\
         \x20 RequestTTY no\n\
         \x20 EscapeChar none\n\
         \x20 LogLevel ERROR\n",
    );
    for file in user_files {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Include {}", quoted(file));
    }
    text
}

/// Included unless the environment brings its own: the files that `ssh` reads by itself.
pub(super) fn user_files() -> Vec<PathBuf> {
    vec![PathBuf::from("~/.ssh/config"), PathBuf::from("/etc/ssh/ssh_config")]
}

fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    if path.contains(' ') {
        format!("\"{path}\"")
    } else {
        path.into_owned()
    }
}

impl Route {
    /// The way to a host of the environment: its jump hosts are hosts of the same file, with their own jump hosts, else
    /// names of the user's ssh configuration.
    pub(super) fn to(name: &str, hosts: &IndexMap<String, plan::Host>) -> Result<Self, WorldError> {
        let mut hops = Vec::new();
        let destination = walk(name, hosts, &mut Vec::new(), &mut hops)?;
        let mut arguments = Vec::new();
        if !hops.is_empty() {
            arguments.extend(["-J".to_owned(), hops.join(",")]);
        }
        if let Some(user) = destination.user {
            arguments.extend(["-l".to_owned(), user]);
        }
        if let Some(port) = destination.port {
            arguments.extend(["-p".to_owned(), port.to_string()]);
        }
        arguments.extend(["--".to_owned(), destination.host]);
        Ok(Self { arguments })
    }

    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }
}

/// Adds the hops before `name`, in order, and gives its own destination.
fn walk<'a>(
    name: &'a str,
    hosts: &'a IndexMap<String, plan::Host>,
    visited: &mut Vec<&'a str>,
    hops: &mut Vec<String>,
) -> Result<Destination, WorldError> {
    let wrong = |message: String, help: &str| {
        Err(WorldError::new(ErrorKind::Unsupported, format!("find the way to host {name}"), message).with_help(help))
    };
    let Some(host) = hosts.get(name) else {
        return wrong("no such host in the environment".to_owned(), "add it under `hosts:`");
    };
    let Some(ssh) = &host.ssh else {
        return wrong("it has no address".to_owned(), "add `ssh: user@address`");
    };
    if visited.contains(&name) {
        return wrong("its jump hosts go in a circle".to_owned(), "correct `jump:`");
    }
    let Some(destination) = Destination::read(ssh) else {
        return wrong(
            format!("`{ssh}` is no address"),
            "write user@address or user@address:port",
        );
    };
    visited.push(name);
    for hop in &host.jump {
        let hop = match hosts.get_key_value(hop.as_str()) {
            Some((known, _)) => walk(known, hosts, visited, hops)?.to_hop(),
            None => hop.clone(),
        };
        hops.push(hop);
    }
    visited.pop();
    Ok(destination)
}

impl Destination {
    fn read(text: &str) -> Option<Self> {
        let (user, rest) = match text.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, text),
        };
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']')?;
                match after.strip_prefix(':') {
                    Some(port) => (host, Some(port)),
                    None if after.is_empty() => (host, None),
                    None => return None,
                }
            }
            // More than one colon: an IPv6 address without a port.
            None if rest.matches(':').count() > 1 => (rest, None),
            None => match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            },
        };
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        let fits = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.contains([' ', ',', '\'', '"']);
        (fits(host) && user.is_none_or(fits)).then(|| Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        })
    }

    /// As one item of `-J`.
    fn to_hop(&self) -> String {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{user}{host}{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(list: &[(&str, &str, &[&str])]) -> IndexMap<String, plan::Host> {
        let host = |(name, ssh, jump): &(&str, &str, &[&str])| {
            let host = plan::Host {
                ssh: Some((*ssh).to_owned()),
                jump: jump.iter().map(|j| (*j).to_owned()).collect(),
                sudo: false,
                groups: Vec::new(),
            };
            ((*name).to_owned(), host)
        };
        list.iter().map(host).collect()
    }

    fn route(name: &str, list: &[(&str, &str, &[&str])]) -> String {
        match Route::to(name, &hosts(list)) {
            Ok(route) => route.arguments().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn jump_hosts_are_of_this_file_else_of_the_users_configuration() {
        let list: &[(&str, &str, &[&str])] = &[
            ("gate", "admin@203.0.113.1:2222", &["homelab"]),
            ("lb", "ubuntu@203.0.113.211", &["gate"]),
            ("v6", "[2001:db8::1]:22", &[]),
            ("far", "far.example.test", &["v6", "lb"]),
        ];
        assert_eq!(
            route("lb", list),
            "-J homelab,admin@203.0.113.1:2222 -l ubuntu -- 203.0.113.211"
        );
        assert_eq!(
            route("far", list),
            "-J [2001:db8::1]:22,homelab,admin@203.0.113.1:2222,ubuntu@203.0.113.211 -- far.example.test"
        );
    }

    #[test]
    fn what_leads_nowhere_says_so() {
        let list: &[(&str, &str, &[&str])] = &[
            ("a", "a.test", &["b"]),
            ("b", "b.test", &["a"]),
            ("option", "-oProxyCommand=x", &[]),
            ("port", "x:ssh", &[]),
        ];
        assert_eq!(
            route("a", list),
            "find the way to host a: its jump hosts go in a circle (correct `jump:`)"
        );
        for name in ["option", "port"] {
            assert!(route(name, list).contains("is no address"), "{}", route(name, list));
        }
        assert!(route("lb", list).contains("no such host"));
    }
}
