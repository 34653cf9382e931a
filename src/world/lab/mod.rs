//! The lab: real HAProxy, Envoy, sshd and tcpdump in network namespaces of one Linux machine, pods that are real
//! processes, and a Kubernetes API that gtrun serves itself.
//!
//! ```text
//! gtrun lab up -> gtrun lab serve (supervisor)
//!                   network      namespaces lb, worker1, worker2, client, and a bridge
//!                   host         HAProxy on lb, an SSH server on each
//!                   kubernetes   API server, controllers, scheduler, kubelets
//!                   workload     app, hc and Envoy in each pod
//! ```
//!
//! To the adapters of `cluster` it is a cluster: [`LabFacts`] has what an environment file of that kind says. Everything
//! that a lab makes is written down in its state directory first, so that it can be removed after any crash.

mod control;
mod credentials;
mod error;
mod facts;
mod host;
mod kubernetes;
mod namespace;
mod network;
mod parts;
mod plan;
mod process;
mod removal;
mod serve;
mod state;
pub(crate) mod workload;
mod world;

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use error::IoContext;
use nix::sys::signal::Signal;
use process::ProcessId;
use removal::remove;
use state::{Manifest, StateDir, prepare_root};

pub use error::LabError;
pub use facts::{HostFacts, LabFacts, LoadBalancerFacts, WorkloadFacts};
pub use parts::{ENVOY_VERSION, cache_dir};
pub use serve::serve;
pub use state::{LabName, default_state_root};
pub use world::{
    Amount, DrainListeners, Hpa, LabWorld, LoadBalancerWorld, LogFormat, Mode, NodeWorld, OnMarkedDown, PodWorld,
    Prestop, RolloutWorld, Sidecar,
};

/// How long a lab may take to come up, beyond what its own settings make it wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to bring a lab up.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Its name.
    pub name: LabName,
    /// What it offers.
    pub world: LabWorld,
    /// Where labs keep their state; [`default_state_root`] by default.
    pub root: PathBuf,
    /// The `gtrun` program: this one by default, another only in tests.
    pub program: Option<PathBuf>,
    /// How long it lives.
    pub lifetime: Lifetime,
}

/// How long a lab lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// Until it is taken down.
    Detached,
    /// At most as long as this process: also when it is killed, the lab removes itself.
    Attached,
}

impl LabOptions {
    /// A lab of this name and world, until it is taken down.
    pub fn new(name: LabName, world: LabWorld) -> Self {
        Self {
            name,
            world,
            root: default_state_root(),
            program: None,
            lifetime: Lifetime::Detached,
        }
    }
}

/// A lab that is up.
#[derive(Debug)]
pub struct Lab {
    state: StateDir,
    facts: LabFacts,
    /// The supervisor of an attached lab; its standard input is what ties it to this process.
    supervisor: Option<Child>,
}

/// How a lab stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabStatus {
    /// It is up.
    Up(Box<LabFacts>),
    /// Its supervisor is at work, and it is not up yet.
    Starting,
    /// Its supervisor is gone: `gtrun lab down` removes what is left.
    LeftBehind,
}

impl Lab {
    /// Brings a lab up and waits for it. Blocks for a few seconds.
    ///
    /// # Errors
    /// A part is missing, the world cannot be built, or something did not become ready; nothing is left behind.
    pub fn up(options: &LabOptions) -> Result<Self, LabError> {
        options.world.check()?;
        parts::find()?;
        let state = StateDir::of(&options.root, &options.name);
        let name = options.name.as_str();
        if state.path().exists() {
            match status(&state)? {
                LabStatus::Up(_) | LabStatus::Starting => return Err(LabError::AlreadyUp(name.to_owned())),
                LabStatus::LeftBehind => {
                    let _lock = state.lock()?;
                    remove(&state)?;
                }
            }
        }
        let namespaces = network::namespaces(name, options.world.nodes.keys());
        for namespace in &namespaces {
            if namespace::Namespace(namespace.clone()).exists() {
                return Err(LabError::Foreign(format!(
                    "a network namespace `{namespace}` exists already"
                )));
            }
        }
        prepare_root(&options.root)?;
        state.create()?;
        let lock = state.lock()?;
        state.write_manifest(&Manifest {
            name: name.to_owned(),
            boot: process::boot_id(),
            namespaces,
            subnet: None,
            world: options.world.clone(),
        })?;
        let raised = raise(&state, options);
        drop(lock);
        match raised {
            Ok((facts, child)) => {
                let supervisor = (options.lifetime == Lifetime::Attached).then_some(child);
                Ok(Self {
                    state,
                    facts,
                    supervisor,
                })
            }
            Err(error) => {
                remove(&state)?;
                Err(error)
            }
        }
    }

    /// The lab of this name that is up.
    ///
    /// # Errors
    /// There is none.
    pub fn find(root: &Path, name: &LabName) -> Result<Self, LabError> {
        let state = StateDir::of(root, name);
        let not_up = || LabError::NotUp(name.as_str().to_owned());
        if !state.path().exists() {
            return Err(not_up());
        }
        match status(&state)? {
            LabStatus::Up(facts) => Ok(Self {
                state,
                facts: *facts,
                supervisor: None,
            }),
            LabStatus::Starting | LabStatus::LeftBehind => Err(not_up()),
        }
    }

    /// What its users need to know.
    pub fn facts(&self) -> &LabFacts {
        &self.facts
    }

    /// Its state directory: configurations, logs of HAProxy, of the SSH servers and of the supervisor.
    pub fn directory(&self) -> &Path {
        self.state.path()
    }

    /// Closes the API server's port and every connection to it, without a word to watches and streams.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub fn api_down(&self) -> Result<(), LabError> {
        self.wish("api-down")
    }

    /// Opens the API server's port again.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub fn api_up(&self) -> Result<(), LabError> {
        self.wish("api-up")
    }

    /// Forgets the history of the watches: those that resume get 410.
    ///
    /// # Errors
    /// The supervisor does not answer.
    pub fn compact(&self) -> Result<(), LabError> {
        self.wish("compact")
    }

    /// Reloads HAProxy: a new process takes over, the old one serves its sessions to their end.
    ///
    /// # Errors
    /// The supervisor does not answer, or HAProxy is gone.
    pub fn reload_haproxy(&self) -> Result<(), LabError> {
        self.wish("reload-haproxy")
    }

    fn wish(&self, wish: &str) -> Result<(), LabError> {
        let path = self.state.join("control.sock");
        let ask = || {
            let mut stream = UnixStream::connect(&path)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            writeln!(stream, "{wish}")?;
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer)?;
            Ok::<_, io::Error>(answer)
        };
        let answer = ask().context("cannot ask", &path)?;
        if answer.trim() == "ok" {
            return Ok(());
        }
        Err(LabError::Command {
            command: wish.to_owned(),
            said: answer.trim().to_owned(),
        })
    }

    /// Takes the lab down: nothing of it is left.
    ///
    /// # Errors
    /// Something cannot be removed; another attempt may succeed.
    pub fn down(mut self) -> Result<(), LabError> {
        let taken = take_down(&self.state);
        if let Some(mut supervisor) = self.supervisor.take() {
            drop(supervisor.stdin.take());
            let _ = supervisor.wait();
        }
        taken
    }
}

/// Takes down the lab of this name, whatever state it is in. True when there was one.
///
/// # Errors
/// Something cannot be removed, or another command works on it.
pub fn down(root: &Path, name: &LabName) -> Result<bool, LabError> {
    let state = StateDir::of(root, name);
    if !state.path().exists() {
        return Ok(false);
    }
    take_down(&state)?;
    Ok(true)
}

/// Every lab under a root, by name.
///
/// # Errors
/// The directory cannot be read.
pub fn list(root: &Path) -> Result<Vec<(String, LabStatus)>, LabError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e).context("cannot read", root),
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|e| e.path().is_dir())
        .filter_map(|e| e.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut labs = Vec::new();
    for name in names {
        let status = status(&StateDir::at(root.join(&name)))?;
        labs.push((name, status));
    }
    Ok(labs)
}

fn supervisor(state: &StateDir) -> Option<ProcessId> {
    state
        .processes()
        .into_iter()
        .find(|(what, _)| what == "supervisor")
        .map(|(_, process)| process)
}

fn status(state: &StateDir) -> Result<LabStatus, LabError> {
    let this_boot = state.manifest()?.is_some_and(|m| m.boot == process::boot_id());
    let alive = this_boot && supervisor(state).is_some_and(ProcessId::is_alive);
    Ok(match (alive, state.facts()?) {
        (true, Some(facts)) => LabStatus::Up(Box::new(facts)),
        (true, None) => LabStatus::Starting,
        // `up` holds the lock from before the supervisor exists until the lab is up.
        (false, _) if matches!(state.lock(), Err(LabError::Busy(_))) => LabStatus::Starting,
        (false, _) => LabStatus::LeftBehind,
    })
}

/// Starts the supervisor and waits until it says that the lab is up.
fn raise(state: &StateDir, options: &LabOptions) -> Result<(LabFacts, Child), LabError> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("cannot find", "the gtrun program")?,
    };
    let log = state.join("serve.log");
    let open = || {
        fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .context("cannot open", &log)
    };
    let mut command = Command::new(&program);
    command.args(["lab", "serve", "--state"]).arg(state.path());
    let attached = options.lifetime == Lifetime::Attached;
    if attached {
        command.arg("--attached");
    }
    // A group of its own: a Ctrl-C in the terminal is for whoever uses the lab.
    let mut child = command
        .current_dir("/")
        .stdin(if attached { Stdio::piped() } else { Stdio::null() })
        .stdout(open()?)
        .stderr(open()?)
        .process_group(0)
        .spawn()
        .context("cannot start", &program)?;
    let world = &options.world.load_balancer;
    let until = Instant::now() + PATIENCE + world.inter.to_std() * world.rise.max(world.fall);
    loop {
        if let Some(facts) = state.facts()? {
            return Ok((facts, child));
        }
        let ended = child.try_wait().context("cannot wait for", &program)?;
        if ended.is_some() || Instant::now() > until {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
            let _ = child.kill();
            let _ = child.wait();
            let what = if ended.is_some() {
                "the lab's supervisor ended"
            } else {
                "the lab did not come up in time"
            };
            return Err(LabError::NotReady(format!("{what}:\n{last}")));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends the supervisor first, so that it starts nothing any more, then removes the rest.
fn take_down(state: &StateDir) -> Result<(), LabError> {
    let _lock = match state.lock() {
        // The supervisor was faster.
        Err(LabError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
        lock => lock?,
    };
    let this_boot = state.manifest()?.is_some_and(|m| m.boot == process::boot_id());
    if this_boot && let Some(supervisor) = supervisor(state) {
        supervisor.signal(Signal::SIGTERM);
        let until = Instant::now() + Duration::from_secs(5);
        while supervisor.is_alive() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    remove(state)
}
