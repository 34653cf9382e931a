//! `gtrun lab`: the local lab, for use with kubectl and by hand.

use std::path::PathBuf;
use std::time::Duration;

use super::exit::Exit;
use super::output;
use crate::world::lab::workload::{app, hc, hook};
use crate::world::lab::{
    DrainListeners, Lab, LabError, LabFacts, LabName, LabOptions, LabStatus, LabWorld, Mode, default_state_root, down,
    list, serve,
};

/// Arguments of `gtrun lab`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with a lab.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Bring a lab up: HAProxy, Envoy, sshd and pods in network namespaces, and a Kubernetes API. Needs root.
    Up(Up),
    /// Take a lab down, also one that was left behind: nothing of it stays.
    Down(Named),
    /// Say which labs there are and how to reach them.
    Status(Status),
    /// The lab's supervisor.
    #[command(hide = true)]
    Serve(Serve),
    /// The application in a pod.
    #[command(hide = true)]
    App,
    /// The health checker in a pod.
    #[command(hide = true)]
    Hc(Hc),
    /// A preStop hook in a pod.
    #[command(hide = true)]
    Hook(Hook),
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The lab's name: 1 to 24 of a-z, 0-9 and `-`.
    #[arg(long, default_value = "lab", value_name = "NAME")]
    name: String,
}

#[derive(Debug, clap::Args)]
struct Up {
    #[command(flatten)]
    named: Named,
    /// How the workload drains: current, improved or nolb.
    #[arg(long, value_name = "MODE")]
    mode: Option<String>,
    /// Pods.
    #[arg(long, value_name = "N")]
    replicas: Option<u32>,
    /// A word of the world, as `load_balancer.inter=1s`, `pod.grace=30s` or `pod.prestop.app=none`; may be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// A JSON file with the world.
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// For programs.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Serve {
    #[arg(long)]
    state: PathBuf,
    #[arg(long)]
    attached: bool,
}

#[derive(Debug, clap::Args)]
struct Hc {
    #[arg(long, env = "MODE", default_value = "improved")]
    mode: String,
    #[arg(long, env = "LB_WAIT", default_value = "6s")]
    lb_wait: crate::time::Duration,
    #[arg(long, env = "DRAIN_MAX")]
    drain_max: Option<crate::time::Duration>,
    #[arg(long, env = "DRAIN_LISTENERS", default_value = "at_closing")]
    drain_listeners: String,
}

#[derive(Debug, clap::Args)]
struct Hook {
    #[arg(long)]
    who: String,
    #[arg(long)]
    drain: bool,
}

/// Runs the command.
pub(super) fn main(args: Args) -> Exit {
    match args.command {
        Command::Up(up) => ended(bring_up(&up), "gtrun lab status"),
        Command::Down(named) => ended(take_down(&named), "gtrun lab status"),
        Command::Status(status) => ended(show(&status), "gtrun lab up"),
        Command::Serve(serve_args) => {
            let _ = tracing_subscriber::fmt()
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .try_init();
            match serve(serve_args.state, serve_args.attached) {
                Ok(()) => Exit::Success,
                Err(error) => {
                    eprintln!("{error}");
                    Exit::NothingProved
                }
            }
        }
        Command::App => program(app::run()),
        Command::Hc(settings) => match settings.read() {
            Ok(settings) => program(hc::run(settings)),
            Err(error) => {
                eprintln!("{error}");
                Exit::Usage
            }
        },
        Command::Hook(hook_args) => program(async move {
            hook::run(&hook_args.who, hook_args.drain)
                .await
                .map_err(std::io::Error::other)
        }),
    }
}

/// Maps the end of a command: 1, with what happened and the next command to try.
fn ended(result: Result<Exit, LabError>, next: &str) -> Exit {
    result.unwrap_or_else(|error| {
        eprintln!("gtrun: {error}; next: {next}");
        match error {
            LabError::Name(_) | LabError::World(_) => Exit::Usage,
            LabError::Missing(_)
            | LabError::AlreadyUp(_)
            | LabError::Foreign(_)
            | LabError::NotUp(_)
            | LabError::Busy(_)
            | LabError::Command { .. }
            | LabError::NotReady(_)
            | LabError::Io { .. } => Exit::NothingProved,
        }
    })
}

/// Runs one of the small programs of a pod.
fn program(work: impl Future<Output = std::io::Result<()>>) -> Exit {
    let ran = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|r| r.block_on(work));
    match ran {
        Ok(()) => Exit::Success,
        Err(error) => {
            eprintln!("{error}");
            Exit::NothingProved
        }
    }
}

impl Hc {
    fn read(self) -> Result<hc::HcSettings, LabError> {
        let word = |what: &str, text: String| {
            serde_json::from_value(text.clone().into()).map_err(|_| LabError::World(format!("`{text}` is no {what}")))
        };
        let mode: Mode = word("mode", self.mode)?;
        let drain_listeners: DrainListeners = serde_json::from_value(self.drain_listeners.clone().into())
            .map_err(|_| LabError::World(format!("`{}` is no time to drain listeners", self.drain_listeners)))?;
        Ok(hc::HcSettings {
            mode,
            lb_wait: self.lb_wait.to_std(),
            drain_max: self.drain_max.map(crate::time::Duration::to_std),
            drain_listeners,
        })
    }
}

fn bring_up(up: &Up) -> Result<Exit, LabError> {
    let name = LabName::new(&up.named.name)?;
    let base = match &up.world {
        None => serde_json::json!({}),
        Some(path) => {
            let wrong = |why: &dyn std::fmt::Display| LabError::World(format!("{}: {why}", path.display()));
            let text = std::fs::read(path).map_err(|e| wrong(&e))?;
            serde_json::from_slice(&text).map_err(|e| wrong(&e))?
        }
    };
    let mut settings = Vec::new();
    settings.extend(up.mode.as_ref().map(|m| format!("mode={m}")));
    settings.extend(up.replicas.map(|r| format!("replicas={r}")));
    settings.extend(up.set.iter().cloned());
    let world = LabWorld::with_settings(base, &settings)?;
    let began = std::time::Instant::now();
    let lab = Lab::up(&LabOptions::new(name, world))?;
    let text = format!(
        "lab `{}` is up after {:.1} s\n{}",
        up.named.name,
        seconds(began.elapsed()),
        how_to_reach(lab.facts())
    );
    Ok(output::print(&text))
}

fn seconds(d: Duration) -> f64 {
    d.as_secs_f64()
}

fn how_to_reach(facts: &LabFacts) -> String {
    format!(
        "  export KUBECONFIG={}\n  kubectl get pods -o wide\n  curl http://{}/\n  ssh -F {} {}\n  environment file: {}\n",
        facts.kubeconfig.display(),
        facts.entry_connect_to.trim_end_matches(":80"),
        facts.ssh_config.display(),
        facts.load_balancer.host,
        facts.environment.display(),
    )
}

fn take_down(named: &Named) -> Result<Exit, LabError> {
    let name = LabName::new(&named.name)?;
    if down(&default_state_root(), &name)? {
        return Ok(output::print(&format!("lab `{}` is down\n", named.name)));
    }
    Err(LabError::NotUp(named.name.clone()))
}

fn show(status: &Status) -> Result<Exit, LabError> {
    let labs = list(&default_state_root())?;
    if status.json {
        let all: Vec<serde_json::Value> = labs
            .iter()
            .map(|(name, status)| match status {
                LabStatus::Up(facts) => serde_json::json!({"name": name, "status": "up", "facts": facts}),
                LabStatus::Starting => serde_json::json!({"name": name, "status": "starting"}),
                LabStatus::LeftBehind => serde_json::json!({"name": name, "status": "left_behind"}),
            })
            .collect();
        return Ok(output::print(&format!("{:#}\n", serde_json::Value::from(all))));
    }
    if labs.is_empty() {
        return Ok(output::print("no lab is up; `gtrun lab up` brings one up\n"));
    }
    let text: String = labs
        .iter()
        .map(|(name, status)| match status {
            LabStatus::Up(facts) => format!("lab `{name}` is up\n{}", how_to_reach(facts)),
            LabStatus::Starting => format!("lab `{name}` is coming up\n"),
            LabStatus::LeftBehind => {
                format!("lab `{name}` was left behind; `gtrun lab down --name {name}` removes it\n")
            }
        })
        .collect();
    Ok(output::print(&text))
}
