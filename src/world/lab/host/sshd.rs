//! An SSH server on each host with a key made for the lab, and the client's configuration that reaches them.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::lab::LabError;
use crate::world::lab::error::IoContext;
use crate::world::lab::network::Host;
use crate::world::lab::state::{StateDir, write_private};

/// The name under which `client` serves as the jump host.
pub(crate) const JUMP: &str = "jump";

/// What a client needs to reach the hosts.
#[derive(Debug, Clone)]
pub(crate) struct SshFiles {
    /// The client's private key.
    pub(crate) key: PathBuf,
    /// The host key of every host.
    pub(crate) known_hosts: PathBuf,
    /// A whole `ssh_config`: `ssh -F FILE worker1`.
    pub(crate) config: PathBuf,
}

/// Makes the keys, a configuration of the server for each host, and the client's files.
///
/// # Errors
/// `ssh-keygen` or the file system refuses.
pub(crate) fn prepare(state: &StateDir, ssh_keygen: &Path, hosts: &[Host]) -> Result<SshFiles, LabError> {
    let file = |name: &str| state.join("ssh").join(name);
    for name in ["key", "host_key"] {
        let mut command = Command::new(ssh_keygen);
        command
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "gtrun-lab", "-f"])
            .arg(file(name));
        let output = command.output().context("cannot run", ssh_keygen)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(LabError::Command {
                command: format!("{command:?}"),
                said,
            });
        }
    }
    let read = |name: &str| fs::read_to_string(file(name)).context("cannot read", file(name));
    write_private(&file("authorized_keys"), read("key.pub")?.as_bytes())?;
    let host_key = read("host_key.pub")?;
    let known_hosts: String = hosts.iter().map(|h| format!("{} {host_key}", h.address)).collect();
    write_private(&file("known_hosts"), known_hosts.as_bytes())?;
    for host in hosts {
        write_private(
            &file(&format!("sshd_config-{}", host.name)),
            server(state, host).as_bytes(),
        )?;
    }
    write_private(&file("ssh_config"), client(state, hosts).as_bytes())?;
    // sshd of Debian refuses to start without it; it is the package's own directory, made by its service otherwise.
    match fs::create_dir("/run/sshd") {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e).context("cannot create", "/run/sshd"),
        _ => {}
    }
    Ok(SshFiles {
        key: file("key"),
        known_hosts: file("known_hosts"),
        config: file("ssh_config"),
    })
}

/// The arguments of the server on a host.
pub(crate) fn arguments(state: &StateDir, host: &Host) -> Vec<String> {
    let config = state.join("ssh").join(format!("sshd_config-{}", host.name));
    vec!["-D".into(), "-e".into(), "-f".into(), config.display().to_string()]
}

/// No PAM: it would read the machine's own message of the day and session set-up at each login. StrictModes is off
/// because the directory above (for temporary files) is open to all; the lab's own is not.
fn server(state: &StateDir, host: &Host) -> String {
    let file = |name: &str| state.join("ssh").join(name).display().to_string();
    format!(
        "ListenAddress {}:22
HostKey {}
AuthorizedKeysFile {}
PidFile none
StrictModes no
UsePAM no
UseDNS no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AllowTcpForwarding yes
MaxSessions 32
MaxStartups 64
PrintMotd no
LogLevel INFO
",
        host.address,
        file("host_key"),
        file("authorized_keys"),
    )
}

fn client(state: &StateDir, hosts: &[Host]) -> String {
    let file = |name: &str| state.join("ssh").join(name).display().to_string();
    let mut text = String::new();
    for host in hosts {
        let (name, jump) = if host.name == "client" {
            (JUMP, "none")
        } else {
            (host.name.as_str(), JUMP)
        };
        let _ = write!(text, "Host {name}\n  HostName {}\n  ProxyJump {jump}\n", host.address);
    }
    let _ = write!(
        text,
        "Host *\n  User {}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  StrictHostKeyChecking yes\n  BatchMode yes\n",
        user(),
        file("key"),
        file("known_hosts"),
    );
    text
}

/// Who logs in: the user who runs the lab.
pub(crate) fn user() -> String {
    nix::unistd::User::from_uid(nix::unistd::geteuid())
        .ok()
        .flatten()
        .map_or_else(|| "root".to_owned(), |u| u.name)
}
