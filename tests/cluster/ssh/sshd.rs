//! Real sshd on loopback, with keys of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use gtrun::language::plan;
use gtrun::world::cluster::ssh::SshOptions;
use tempfile::TempDir;

use crate::part;

/// Two daemons: one to jump over, one behind it. They are killed when it is dropped.
pub(crate) struct Sshd {
    folder: TempDir,
    daemons: Vec<Daemon>,
    /// Shell commands that come before the daemon `lb`, in a mount namespace.
    prelude: Option<String>,
    /// Who logs in to `lb`.
    user: String,
}

struct Daemon {
    port: u16,
    process: Child,
}

impl Sshd {
    /// Nothing when a part is missing on this machine.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None, user())
    }

    /// With the daemon `lb` in a mount namespace of its own, in which these shell commands have run before.
    pub(crate) fn start_within(prelude: &str) -> Option<Self> {
        Self::start_with(Some(prelude.to_owned()), user())
    }

    /// The same, for a user that only the namespace knows. `{folder}` in the commands is the daemons' folder.
    pub(crate) fn start_within_as(prelude: &str, user: &str) -> Option<Self> {
        Self::start_with(Some(prelude.to_owned()), user.to_owned())
    }

    fn start_with(prelude: Option<String>, user: String) -> Option<Self> {
        let sshd = part::program("sshd")?;
        part::program("ssh")?;
        let keygen = part::program("ssh-keygen")?;
        let folder = TempDir::new().expect("folder");
        for key in ["host", "user"] {
            let made = Command::new(&keygen)
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(folder.path().join(key))
                .status();
            assert!(made.expect("ssh-keygen").success());
        }
        let mut all = Self {
            folder,
            daemons: Vec::new(),
            prelude,
            user,
        };
        // Another user must read the authorized key.
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(all.folder.path(), readable).expect("mode");
        for name in ["gate", "lb"] {
            let process = all.launch(&sshd, name);
            all.daemons.push(process);
        }
        std::fs::write(all.client_config(), all.client_config_text()).expect("config");
        Some(all)
    }

    fn try_launch(&self, sshd: &std::path::Path, name: &str) -> Option<Daemon> {
        let port = {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
            listener.local_addr().expect("address").port()
        };
        if nix::unistd::geteuid().is_root() {
            // Where it puts an unprivileged child; Debian makes the folder when the service starts.
            std::fs::create_dir_all("/run/sshd").expect("/run/sshd");
        }
        let path = |file: &str| self.folder.path().join(file).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel VERBOSE\n\
             MaxStartups 100\n",
            path("host"),
            path("user.pub"),
        );
        let file = self.folder.path().join(format!("{name}.conf"));
        std::fs::write(&file, config).expect("config");
        let log = std::fs::File::create(self.folder.path().join(format!("{name}.log"))).expect("log");
        let mut command = match &self.prelude {
            Some(prelude) if name == "lb" => {
                let mut command = Command::new("unshare");
                let prelude = prelude.replace("{folder}", &self.folder.path().display().to_string());
                let script = format!("{prelude}; exec \"$@\"");
                command.args(["--mount", "sh", "-c", &script, "sh"]).arg(sshd);
                command
            }
            Some(_) | None => Command::new(sshd),
        };
        let mut process = command
            .args(["-D", "-e", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("sshd");
        for _ in 0..500 {
            if self.log(name).contains("Server listening") {
                return Some(Daemon { port, process });
            }
            if process.try_wait().expect("sshd").is_some() {
                return None;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("sshd does not listen: {}", self.log(name));
    }

    /// Another test may take the port before sshd does.
    fn launch(&self, sshd: &std::path::Path, name: &str) -> Daemon {
        let tried = (0..5).find_map(|_| self.try_launch(sshd, name));
        tried.unwrap_or_else(|| panic!("sshd does not start: {}", self.log(name)))
    }

    fn client_config(&self) -> PathBuf {
        self.folder.path().join("client.conf")
    }

    fn client_config_text(&self) -> String {
        let known = self.folder.path().join("known_hosts");
        let host = std::fs::read_to_string(self.folder.path().join("host.pub")).expect("key");
        let lines: String = self
            .daemons
            .iter()
            .map(|daemon| format!("[127.0.0.1]:{} {host}", daemon.port))
            .collect();
        std::fs::write(&known, lines).expect("known hosts");
        format!(
            "Host outside\n  HostName 127.0.0.1\n  User {}\n  Port {}\nHost *\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n",
            user(),
            self.daemons[0].port,
            self.folder.path().join("user").display(),
            known.display(),
        )
    }

    pub(crate) fn options(&self) -> SshOptions {
        SshOptions {
            config_files: Some(vec![self.client_config()]),
            patience: gtrun::time::Duration::from_secs(4),
            ..SshOptions::default()
        }
    }

    /// What a daemon wrote.
    pub(crate) fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(format!("{name}.log"))).expect("log")
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// An environment with the hosts `lb` (behind the jump host of the ssh configuration), `direct` (the same without)
    /// and `nobody` (where nothing listens).
    pub(crate) fn environment(&self) -> plan::Environment {
        let host = |port: u16, jump: &[&str], sudo: bool| plan::Host {
            ssh: Some(format!("{}@127.0.0.1:{port}", self.user)),
            jump: jump.iter().map(|hop| (*hop).to_owned()).collect(),
            sudo,
            groups: vec!["all".to_owned()],
        };
        let port = self.daemons[1].port;
        let mut environment = crate::environment();
        environment.hosts = [
            (
                "lb".to_owned(),
                host(
                    port,
                    &["outside"],
                    nix::unistd::geteuid().is_root() || self.user != user(),
                ),
            ),
            ("direct".to_owned(), host(port, &[], false)),
            ("nobody".to_owned(), host(1, &[], false)),
        ]
        .into_iter()
        .collect();
        environment
    }

    /// Restarts a daemon that gives this variable to every session.
    pub(crate) fn set_environment(&self, name: &str, assignment: &str) {
        let daemon = &self.daemons[usize::from(name != "gate")];
        let file = self.folder.path().join(format!("{name}.conf"));
        let mut config = std::fs::read_to_string(&file).expect("config");
        config.push_str(&format!("SetEnv {assignment}\n"));
        std::fs::write(&file, config).expect("config");
        let pid = nix::unistd::Pid::from_raw(i32::try_from(daemon.process.id()).expect("a pid"));
        // It reads its configuration again, as the same process.
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).expect("HUP");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!((0..200).any(|_| listens(daemon.port)), "sshd does not come back");
    }

    /// Kills what serves the open connections of a daemon (not the daemon): they break without a word.
    pub(crate) fn cut(&self, name: &str) {
        let daemon = &self.daemons[usize::from(name != "gate")];
        for child in children(daemon.process.id()) {
            let name = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
            if name.starts_with("sshd") {
                kill(&child);
            }
        }
    }
}

/// Whether somebody listens there; a moment later when not.
fn listens(port: u16) -> bool {
    let up = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    if !up {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    up
}

fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid());
    user.expect("users").expect("a user").name
}

/// Sessions of a daemon, and what its prelude has started.
fn children(parent: u32) -> Vec<String> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

pub(crate) fn kill(pid: &str) {
    let pid = nix::unistd::Pid::from_raw(pid.parse().expect("a number"));
    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
}

impl Drop for Sshd {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            for child in children(daemon.process.id()) {
                kill(&child);
            }
            let _ = daemon.process.kill();
            let _ = daemon.process.wait();
        }
    }
}
