//! Hosts by SSH: one connection a host, up to eight sessions over it.
//!
//! The connections are `ssh` processes in master mode that end with gtrun; sessions are opened over their sockets
//! (openssh's native multiplexing), because a new `ssh` a command costs 0.3 s. What runs remotely ends with its session
//! or by a limit of its own, see [`script`].

mod ask;
mod capture;
mod clock;
mod config;
mod master;
mod scratch;
mod script;
mod session;

use std::path::PathBuf;
use std::sync::Arc;

use futures::FutureExt;
use indexmap::IndexMap;
use tokio::sync::Semaphore;

use self::config::Route;
use self::master::Master;
use self::scratch::Scratch;
use super::error;
use crate::evidence::clock_exchange::ClockExchange;
use crate::language::plan;
use crate::time::Duration;
use crate::world::port::{Capture, Clock, CommandOutput, ErrorKind, HostInfo, Hosts, Pending, WorldError};

pub(super) use self::ask::{Asker, NoReply, Reply};
pub(super) use self::session::{Hold, Output, Session};

/// Sessions at once over one connection; sshd's own limit is 10 (`MaxSessions`).
const SESSIONS: usize = 8;

/// How long a host may refuse a further session.
const FULL: std::time::Duration = std::time::Duration::from_secs(5);

/// The hosts of an environment.
#[derive(Clone)]
pub struct Ssh {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<dyn Clock>,
    hosts: IndexMap<String, Host>,
    /// Holds the configuration and the control sockets.
    _scratch: Scratch,
    config: PathBuf,
    limit: Duration,
    patience: Duration,
}

struct Host {
    info: HostInfo,
    sudo: bool,
    /// Name of its control socket.
    socket: PathBuf,
    route: Result<Route, WorldError>,
    master: tokio::sync::Mutex<Option<Arc<Master>>>,
    permits: Arc<Semaphore>,
}

/// How the hosts are reached, beside what the environment says.
#[derive(Debug, Clone)]
pub struct SshOptions {
    /// Files of ssh's configuration to read after gtrun's own; `None`: the user's and the system's.
    pub config_files: Option<Vec<PathBuf>>,
    /// Time limit of every remote process: not shorter than the run.
    pub limit: Duration,
    /// How long a log whose session was lost is tried to be taken up again.
    pub patience: Duration,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            config_files: None,
            limit: Duration::from_secs(3600),
            patience: Duration::from_secs(60),
        }
    }
}

impl Ssh {
    /// Writes the configuration; no host is contacted yet.
    ///
    /// # Errors
    ///
    /// `Failed` when the folder for the control sockets cannot be made.
    pub fn new(
        environment: &plan::Environment,
        options: &SshOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorldError> {
        let doing = "write the ssh configuration of this run";
        let failed = |e: std::io::Error| WorldError::new(ErrorKind::Failed, doing, e.to_string());
        let scratch = Scratch::make().map_err(failed)?;
        let config = scratch.path().join("config");
        let files = options.config_files.clone().unwrap_or_else(config::user_files);
        std::fs::write(&config, config::text(&files)).map_err(failed)?;
        let servers = &environment.load_balancer.servers;
        let hosts = environment
            .hosts
            .iter()
            .enumerate()
            .map(|(index, (name, host))| {
                let info = HostInfo {
                    name: name.clone(),
                    groups: host.groups.clone(),
                    node: servers.contains_key(name).then(|| name.clone()),
                };
                let host = Host {
                    info,
                    sudo: host.sudo,
                    socket: scratch.path().join(format!("s{index}")),
                    route: Route::to(name, &environment.hosts),
                    master: tokio::sync::Mutex::default(),
                    permits: Arc::new(Semaphore::new(SESSIONS)),
                };
                (name.clone(), host)
            })
            .collect();
        let inner = Inner {
            clock,
            hosts,
            _scratch: scratch,
            config,
            limit: options.limit,
            patience: options.patience,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// gtrun's reference clock.
    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.clock
    }

    /// Whether the environment allows `sudo -n` there.
    pub(super) fn sudo(&self, host: &str) -> bool {
        self.inner.hosts.get(host).is_some_and(|host| host.sudo)
    }

    /// Limit of a remote process in seconds.
    pub(super) fn limit(&self) -> u64 {
        self.inner.limit.to_std().as_secs().max(1)
    }

    /// How long a log whose session was lost is tried to be taken up again.
    pub(super) fn patience(&self) -> std::time::Duration {
        self.inner.patience.to_std()
    }

    /// Opens a session that runs this command line; connects first when there is no connection.
    pub(super) async fn open(&self, host: &str, line: &str) -> Result<Session, WorldError> {
        let known = self.inner.hosts.get(host).ok_or_else(|| {
            WorldError::new(
                ErrorKind::Unsupported,
                format!("use host {host}"),
                "no such host in the environment",
            )
        })?;
        let permit = Arc::clone(&known.permits).acquire_owned().await;
        let permit =
            permit.map_err(|e| WorldError::new(ErrorKind::Failed, format!("use host {host}"), e.to_string()))?;
        let (mut master, mut fresh) = self.master(known, None).await?;
        let patience = std::time::Instant::now() + FULL;
        loop {
            match Session::open(host, &master, line).await {
                Ok(session) => return Ok(session.holding(permit, master)),
                // In either case nothing was started. The connection had gone and nobody had noticed:
                Err(openssh::Error::Disconnected) if !fresh => {
                    (master, fresh) = self.master(known, Some(&master)).await?;
                }
                // Sessions that were given up still end on the host, and take their places until then.
                Err(error) if error::ssh_refused(&error) && std::time::Instant::now() < patience => {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                Err(error) => return Err(error::ssh(host, &error)),
            }
        }
    }

    /// The connection to a host; true when it is new. `dead`: one that is known to be lost.
    async fn master(&self, host: &Host, dead: Option<&Arc<Master>>) -> Result<(Arc<Master>, bool), WorldError> {
        let mut slot = host.master.lock().await;
        if let Some(master) = &*slot
            && master.standing()
            && dead.is_none_or(|dead| !Arc::ptr_eq(dead, master))
        {
            return Ok((Arc::clone(master), false));
        }
        *slot = None;
        let route = host.route.clone()?;
        // Left by a connection that was lost without a word.
        let _ = std::fs::remove_file(&host.socket);
        let master = Arc::new(Master::connect(&host.info.name, &self.inner.config, &host.socket, &route).await?);
        *slot = Some(Arc::clone(&master));
        Ok((master, true))
    }

    /// Starts a command whose output is read as it comes, with watchdog and limit.
    pub(super) async fn stream(&self, host: &str, argv: &[String], root: bool) -> Result<Session, WorldError> {
        self.open(host, &script::guarded(&session::word(), self.limit(), root, argv))
            .await
    }

    /// Runs a command, with watchdog and limit. Its own failure is in the output.
    pub(super) async fn command(&self, host: &str, argv: &[String], sudo: bool) -> Result<CommandOutput, WorldError> {
        let doing = format!("run `{}` on {host}", argv.first().map_or("", String::as_str));
        if argv.is_empty() {
            return Err(WorldError::new(ErrorKind::Failed, doing, "no command given"));
        }
        if sudo && !self.sudo(host) {
            let error = WorldError::new(ErrorKind::Unsupported, doing, "it needs root");
            return Err(error.with_help(format!(
                "allow `sudo -n` there and write `sudo: true` under `hosts: {host}:`"
            )));
        }
        let word = session::word();
        let session = self
            .open(host, &script::guarded(&word, self.limit(), sudo, argv))
            .await?;
        let Output { stdout, mut stderr } = session.output(&doing).await?;
        let Some(exit) = script::take_exit(&word, &mut stderr) else {
            return Err(error::session_lost(&doing, &stderr));
        };
        if sudo && exit != 0 {
            error::sudo_refused(&doing, &stderr)?;
        }
        Ok(CommandOutput { exit, stdout, stderr })
    }
}

impl Hosts for Ssh {
    fn list(&self) -> Vec<HostInfo> {
        self.inner.hosts.values().map(|host| host.info.clone()).collect()
    }

    fn exchange_clocks<'a>(&'a self, host: &'a str) -> Pending<'a, Vec<ClockExchange>> {
        clock::exchange(self, host).boxed()
    }

    fn run<'a>(&'a self, host: &'a str, argv: &'a [String], sudo: bool) -> Pending<'a, CommandOutput> {
        self.command(host, argv, sudo).boxed()
    }

    fn start_capture<'a>(&'a self, host: &'a str, marker: &'a str, limit: Duration) -> Pending<'a, Box<dyn Capture>> {
        capture::start(self, host, marker, limit).boxed()
    }
}
