//! The supervisor of a lab: it makes the hosts, starts what runs on them, serves the Kubernetes API, and takes everything
//! away again when it is told to or when the one it belongs to is gone.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::control::Control;
use super::error::IoContext;
use super::facts::{HostFacts, LabFacts, LoadBalancerFacts, WorkloadFacts};
use super::host::{haproxy, sshd};
use super::kubernetes::Cluster;
use super::kubernetes::api::Role;
use super::kubernetes::manifest::{CONTAINERS, DEPLOYMENT, MODE_LABEL, NAMESPACE};
use super::network::{self, Host, Subnet};
use super::parts::{self, Parts};
use super::process::ProcessId;
use super::removal::{end_processes, remove};
use super::state::{Manifest, StateDir, write_private};
use super::workload::{ENVOY_ADMIN_PORT, envoy};
use super::{LabError, credentials};

/// How long the pods may take until all are Ready.
const PODS_READY: Duration = Duration::from_secs(20);

/// Runs the lab of a state directory until it is told to end. With `attached`, the end of standard input is the end of
/// whoever started it, and of the lab.
///
/// # Errors
/// The lab could not be made; its processes have ended, the rest is for [`remove`].
pub fn serve(state: PathBuf, attached: bool) -> Result<(), LabError> {
    let state = StateDir::at(state);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start the runtime of", state.path())?;
    let served = runtime.block_on(async {
        let served = run(&state, attached).await;
        // As long as the runtime is there it waits for its children, so that none is left as a zombie.
        let of = state.clone();
        let ended = tokio::task::spawn_blocking(move || end_processes(&of)).await;
        served.and(ended.unwrap_or(Ok(())))
    });
    // Streams and workers end with their runtime, before what they stand on is taken away.
    runtime.shutdown_timeout(Duration::from_millis(200));
    // Whoever waits for a lab that could not be made reads why in its directory, then removes the rest.
    served.and_then(|()| remove(&state))
}

async fn run(state: &StateDir, attached: bool) -> Result<(), LabError> {
    let mut end = Box::pin(told_to_end(attached));
    let lab = tokio::select! {
        made = make(state) => made?,
        () = &mut end => return Ok(()),
    };
    tokio::select! {
        _ = lab.cluster => {}
        () = lab.control.serve() => {}
        () = &mut end => {}
    }
    Ok(())
}

async fn told_to_end(attached: bool) {
    let signals = async {
        let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
            return std::future::pending().await;
        };
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {} }
    };
    let parent = async {
        if !attached {
            return std::future::pending().await;
        }
        let mut stdin = tokio::io::stdin();
        let mut byte = [0];
        while stdin.read(&mut byte).await.is_ok_and(|n| n > 0) {}
    };
    tokio::select! { () = signals => {}, () = parent => {} }
}

/// A lab that is up.
struct Running {
    /// Controllers, scheduler and kubelets.
    cluster: JoinHandle<()>,
    control: Control,
}

async fn make(state: &StateDir) -> Result<Running, LabError> {
    let began = Instant::now();
    let step = |what: &str| tracing::info!("{:5} ms {what}", began.elapsed().as_millis());
    let missing = || LabError::NotUp(state.path().display().to_string());
    let mut manifest = state.manifest()?.ok_or_else(missing)?;
    if let Some(own) = ProcessId::own() {
        state.record_process("supervisor", own)?;
    }
    let parts = parts::find()?;
    link_programs(state, &parts)?;
    let (name, world) = (manifest.name.clone(), manifest.world.clone());
    let nodes: Vec<String> = world.nodes.keys().cloned().collect();
    let subnet = network::create(&name, &nodes, |subnet| reserve(state, &mut manifest, subnet))?;
    let hosts = network::hosts(&name, subnet, nodes.iter());
    step("network made");
    let workers = hosts[1..=nodes.len()].to_vec();

    let envoy_configuration = state.join("kubernetes/envoy.yaml");
    fs::write(&envoy_configuration, envoy::CONFIGURATION).context("cannot write", &envoy_configuration)?;
    let cluster = Arc::new(Cluster::new(state.clone(), &workers));
    cluster
        .populate(&world, &workers, &envoy_configuration)
        .map_err(LabError::World)?;
    let running = Arc::clone(&cluster);
    let running = tokio::spawn(async move { running.run().await });

    let tls = credentials::tls(&name)?;
    let users = credentials::users();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("cannot listen on", "127.0.0.1")?;
    let address = listener.local_addr().context("cannot listen on", "127.0.0.1")?;
    let url = format!("https://{address}");
    let kubeconfig = state.join("kubeconfig");
    credentials::write_kubeconfig(&kubeconfig, &name, &url, &tls.authority, &users)?;
    step("pods started");

    let ssh = sshd::prepare(state, &parts.ssh_keygen, &hosts)?;
    for host in &hosts {
        let log = state.join("ssh").join(format!("{}.log", host.name));
        start(
            state,
            host,
            &format!("sshd {}", host.name),
            &parts.sshd,
            &sshd::arguments(state, host),
            &log,
            &log,
        )?;
    }
    step("ssh servers started");
    pods_settle(&cluster, world.replicas).await?;
    step("pods Ready");

    let lb = &hosts[0];
    let (config, socket, log) = (
        state.join("lb/haproxy.cfg"),
        state.join("lb/admin.sock"),
        state.join("lb/haproxy.log"),
    );
    let text = haproxy::configuration(&world.load_balancer, world.mode, lb.address, &workers, &socket);
    fs::write(&config, text).context("cannot write", &config)?;
    let arguments = ["-W", "-db", "-f", &config.display().to_string()].map(str::to_owned);
    let master = start(
        state,
        lb,
        "haproxy",
        &parts.haproxy,
        &arguments,
        &log,
        &state.join("lb/haproxy.err"),
    )?;
    servers_settle(&cluster, &world.load_balancer, &socket, master).await?;
    step("load balancer agrees");

    let jump = vec![sshd::JUMP.to_owned()];
    let host_facts = hosts.iter().map(|host| {
        let outside = host.name == "client";
        let name = if outside { sshd::JUMP } else { host.name.as_str() };
        let facts = HostFacts {
            address: host.address.to_string(),
            user: sshd::user(),
            jump: if outside { Vec::new() } else { jump.clone() },
            sudo: false,
            groups: if workers.contains(host) {
                vec!["workers".to_owned()]
            } else {
                Vec::new()
            },
            namespace: host.namespace.0.clone(),
        };
        (name.to_owned(), facts)
    });
    let facts = LabFacts {
        name: name.clone(),
        kubeconfig,
        context: credentials::context(&name, Role::Admin),
        context_viewer: credentials::context(&name, Role::Viewer),
        context_nobody: credentials::context(&name, Role::Nobody),
        api_url: url,
        workload: WorkloadFacts {
            namespace: NAMESPACE.to_owned(),
            deployment: DEPLOYMENT.to_owned(),
            mode_label: MODE_LABEL.to_owned(),
            containers: CONTAINERS
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into_iter()
                .collect(),
            envoy_admin: ENVOY_ADMIN_PORT,
            stat_prefix: envoy::STAT_PREFIX.to_owned(),
            app_cluster: envoy::APP_CLUSTER.to_owned(),
        },
        entry_url: "http://service-a.example.test".to_owned(),
        entry_connect_to: format!("{}:80", lb.address),
        load_balancer: LoadBalancerFacts {
            host: lb.name.clone(),
            socket,
            config,
            log,
            backend: haproxy::BACKEND.to_owned(),
            servers: nodes.iter().map(|n| (n.clone(), n.clone())).collect(),
        },
        hosts: host_facts.collect::<IndexMap<_, _>>(),
        ssh_config: ssh.config,
        ssh_key: ssh.key,
        ssh_known_hosts: ssh.known_hosts,
        environment: state.join("environment.yaml"),
    };
    write_private(&facts.environment, facts.environment_yaml().as_bytes())?;
    cluster.kubelets.take_time();
    let control = Control::new(state, cluster.api(users), listener, tls.acceptor, master)?;
    state.write_facts(&facts)?;
    step("up");
    Ok(Running {
        cluster: running,
        control,
    })
}

/// `gtrun` and `envoy` under their plain names, for the containers.
fn link_programs(state: &StateDir, parts: &Parts) -> Result<(), LabError> {
    let own = std::env::current_exe().context("cannot find", "the gtrun program")?;
    for (name, program) in [("gtrun", &own), ("envoy", &parts.envoy)] {
        let link = state.join("bin").join(name);
        std::os::unix::fs::symlink(program, &link).context("cannot link", link)?;
    }
    Ok(())
}

fn reserve(state: &StateDir, manifest: &mut Manifest, subnet: Subnet) -> Result<(), LabError> {
    manifest.subnet = Some(subnet);
    state.write_manifest(manifest)
}

/// Starts a program on a host and remembers it.
fn start(
    state: &StateDir,
    host: &Host,
    what: &str,
    program: &Path,
    arguments: &[String],
    out: &Path,
    err: &Path,
) -> Result<ProcessId, LabError> {
    let open = |path: &Path| {
        File::options()
            .create(true)
            .append(true)
            .open(path)
            .context("cannot open", path)
    };
    let (out, err) = (open(out)?, open(err)?);
    let runtime = tokio::runtime::Handle::current();
    let spawn = || {
        let _runtime = runtime.enter();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        command.spawn()
    };
    let mut child = host
        .namespace
        .enter(spawn)
        .and_then(|spawned| spawned)
        .context("cannot start", program)?;
    let pid = child.id().and_then(|p| i32::try_from(p).ok()).and_then(ProcessId::of);
    let ended = || {
        LabError::NotReady(format!(
            "{what} ended at once; see the logs in {}",
            state.path().display()
        ))
    };
    let process = pid.ok_or_else(ended)?;
    state.record_process(what, process)?;
    let what = what.to_owned();
    tokio::spawn(async move {
        match child.wait().await {
            Ok(status) => tracing::warn!("{what} has ended: {status}"),
            Err(e) => tracing::warn!("{what}: {e}"),
        }
    });
    Ok(process)
}

/// Until every pod that can be is Ready.
async fn pods_settle(cluster: &Cluster, wanted: u32) -> Result<(), LabError> {
    let until = Instant::now() + PODS_READY;
    loop {
        let (ready, stuck) = cluster.count_pods();
        if ready + stuck >= wanted as usize {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(LabError::NotReady(format!(
                "{ready} of {wanted} pods became Ready within {PODS_READY:?}; their logs are in the folder `pods`"
            )));
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Until HAProxy has checked every server and says what is so: a server is UP from the start until its first check fails.
async fn servers_settle(
    cluster: &Cluster,
    world: &super::world::LoadBalancerWorld,
    socket: &Path,
    haproxy: ProcessId,
) -> Result<(), LabError> {
    let until = Instant::now() + world.inter.to_std() * world.rise.max(world.fall) + Duration::from_secs(10);
    loop {
        let ready = cluster.ready_nodes();
        let seen = haproxy::servers(socket).await;
        let settled = |servers: &[(String, haproxy::ServerState)]| {
            servers.iter().all(|(node, state)| {
                if ready.contains(node) {
                    state.is_proven_up()
                } else {
                    state.is_down()
                }
            })
        };
        match &seen {
            Ok(servers) if !servers.is_empty() && settled(servers) => return Ok(()),
            _ if !haproxy.is_alive() => {
                let said = fs::read_to_string(socket.with_file_name("haproxy.err")).unwrap_or_default();
                return Err(LabError::NotReady(format!(
                    "HAProxy refuses to run:\n{}",
                    said.trim_end()
                )));
            }
            _ if Instant::now() > until => {
                let said = match seen {
                    Ok(servers) => format!("{servers:?}"),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => "no socket; see lb/haproxy.err".to_owned(),
                    Err(e) => e.to_string(),
                };
                return Err(LabError::NotReady(format!(
                    "HAProxy does not agree with the pods: {said}"
                )));
            }
            _ => sleep(Duration::from_millis(20)).await,
        }
    }
}
