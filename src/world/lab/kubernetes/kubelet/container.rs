//! One run of a container: a group of processes in its node's network, a log, and what is executed in it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::log::ContainerLog;
use crate::world::lab::namespace::Namespace;
use crate::world::lab::process::ProcessId;

/// Where and with what the programs of a container run.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    /// The node's network.
    pub(crate) namespace: Namespace,
    /// The whole environment.
    pub(crate) environment: Vec<(String, String)>,
}

/// How far a run has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Run {
    /// It is there.
    Running,
    /// It has ended with this code (128 + signal) at this time.
    Ended {
        /// As the status of a pod has it.
        code: i32,
        /// When the runtime saw it.
        at: DateTime<Utc>,
    },
}

/// One run of a container.
pub(crate) struct Container {
    /// The container's name in its pod.
    pub(crate) name: String,
    /// `containerd://...` of the status, without the scheme.
    pub(crate) id: String,
    /// When it started.
    pub(crate) started: DateTime<Utc>,
    /// The main process.
    pub(crate) process: ProcessId,
    /// What it writes.
    pub(crate) log: Arc<ContainerLog>,
    surroundings: Surroundings,
    run: watch::Sender<Run>,
    /// Groups of what is executed in it: a real container takes them along when its main process ends.
    guests: Mutex<Vec<Pid>>,
}

impl Container {
    /// Starts a container's command.
    ///
    /// # Errors
    /// The command is empty or cannot be started, or the log cannot be written.
    pub(crate) fn start(
        name: &str,
        command: &[String],
        surroundings: Surroundings,
        log: PathBuf,
    ) -> io::Result<Arc<Self>> {
        let log = Arc::new(ContainerLog::create(log)?);
        let mut child = spawn(&surroundings, command, Stdio::null(), Stdio::piped(), Stdio::piped())?;
        let pid = child.id().and_then(|p| i32::try_from(p).ok()).unwrap_or_default();
        // A process that has ended already still has its number until it is waited for.
        let process = ProcessId::of(pid).unwrap_or(ProcessId { pid, start: 0 });
        let id: String = (0..2)
            .map(|_| super::super::object::new_uid().replace('-', ""))
            .collect();
        let container = Arc::new(Self {
            name: name.to_owned(),
            id,
            started: Utc::now(),
            process,
            log,
            surroundings,
            run: watch::Sender::new(Run::Running),
            guests: Mutex::default(),
        });
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let own = Arc::clone(&container);
        tokio::spawn(async move {
            let copy_out = async {
                if let Some(s) = out {
                    Arc::clone(&own.log).copy("stdout", s).await
                }
            };
            let copy_err = async {
                if let Some(s) = err {
                    Arc::clone(&own.log).copy("stderr", s).await
                }
            };
            let wait = async {
                let code = child.wait().await.map_or(-1, exit_code);
                own.take_along();
                own.run.send_replace(Run::Ended { code, at: Utc::now() });
            };
            tokio::join!(copy_out, copy_err, wait);
            own.log.end();
        });
        Ok(container)
    }

    /// How far the run has got.
    pub(crate) fn run(&self) -> Run {
        *self.run.borrow()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> i32 {
        let mut run = self.run.subscribe();
        let _ = run.wait_for(|r| matches!(r, Run::Ended { .. })).await;
        match self.run() {
            Run::Ended { code, .. } => code,
            Run::Running => -1,
        }
    }

    /// Asks the main process to end.
    pub(crate) fn terminate(&self) {
        self.process.signal(Signal::SIGTERM);
    }

    /// Ends every process of the container.
    pub(crate) fn kill(&self) {
        if self.process.is_alive() {
            let _ = killpg(Pid::from_raw(self.process.pid), Signal::SIGKILL);
        }
        self.take_along();
    }

    fn take_along(&self) {
        for group in self.guests.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if group.as_raw() > 1 {
                let _ = killpg(*group, Signal::SIGKILL);
            }
        }
    }

    /// Starts a command inside the container.
    ///
    /// # Errors
    /// There is no such program.
    pub(crate) fn execute(&self, command: &[String], stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<Guest> {
        let child = spawn(&self.surroundings, command, stdin, stdout, stderr)?;
        let group = Pid::from_raw(child.id().and_then(|p| i32::try_from(p).ok()).unwrap_or_default());
        self.guests.lock().unwrap_or_else(PoisonError::into_inner).push(group);
        Ok(Guest { child, group })
    }

    /// A command has ended: its number may be somebody else's soon.
    pub(crate) fn forget(&self, guest: &Guest) {
        self.guests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|g| *g != guest.group);
    }
}

/// A command that was started inside a container.
pub(crate) struct Guest {
    /// Its main process.
    pub(crate) child: Child,
    group: Pid,
}

/// The code that the API shows: 128 + signal for a process that a signal ended.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|s| 128 + s)).unwrap_or(-1)
}

fn spawn(within: &Surroundings, command: &[String], stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let runtime = tokio::runtime::Handle::current();
    within.namespace.enter(|| {
        let _runtime = runtime.enter();
        Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(within.environment.iter().map(|(k, v)| (k, v)))
            .current_dir("/")
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()
    })?
}
