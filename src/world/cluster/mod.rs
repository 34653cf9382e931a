//! The world for real: Kubernetes by its API, hosts by SSH, HAProxy by its socket and log, requests over HTTP.
//!
//! The only room that names kube, openssh and hyper's client. Every foreign error is mapped once to a
//! [`WorldError`](super::port::WorldError) that says what may be concluded and what to do about it.

mod clock;
mod error;
pub mod haproxy;
pub mod http;
mod kept;
pub mod kubernetes;
pub mod ssh;
mod tls;

pub use clock::SystemClock;
pub use tls::install_provider;

use std::path::PathBuf;
use std::sync::Arc;

use self::haproxy::Haproxy;
use self::http::{Client, Entry};
use self::kubernetes::Kubernetes;
use self::ssh::{Ssh, SshOptions};
use super::port::{Clock, ErrorKind, World, WorldError, WorldKind};
use crate::language::plan;

/// How an environment is reached, beside what its file says.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `None`: `KUBECONFIG`, else `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// Files of ssh, and limits.
    pub ssh: SshOptions,
}

/// The world of an environment. Nothing is contacted yet: what cannot be reached says so when it is used.
///
/// # Errors
///
/// `Unsupported` when something that the environment names cannot be used at all: no such context, a certificate file
/// that is not there, a URL that makes no sense.
pub async fn connect(environment: &plan::Environment, options: &Options) -> Result<World, WorldError> {
    install_provider();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let cluster = Kubernetes::connect(environment, options.kubeconfig.as_deref(), Arc::clone(&clock)).await?;
    let ssh = Ssh::new(environment, &options.ssh, Arc::clone(&clock))?;
    let entry = &environment.entry;
    let ca_pem = match &entry.ca_file {
        None => None,
        Some(path) => Some(tokio::fs::read(path).await.map_err(|e| {
            WorldError::new(ErrorKind::Unsupported, format!("read {path}"), e.to_string())
                .with_help("`entry.ca_file` is relative to the environment file")
        })?),
    };
    let entry = Entry::new(&entry.url, entry.connect_to.as_deref(), ca_pem)?;
    let workload = &environment.workload;
    let (kind, place) = match environment.kind {
        plan::EnvironmentKind::Cluster => (
            WorldKind::Cluster,
            environment.context.as_deref().unwrap_or("(current)"),
        ),
        plan::EnvironmentKind::Lab => (WorldKind::Lab, "lab"),
        plan::EnvironmentKind::Sim => {
            let error = WorldError::new(
                ErrorKind::Unsupported,
                "connect to the environment",
                "it is a simulation",
            );
            return Err(error.with_help("use an environment of kind cluster or lab"));
        }
    };
    Ok(World {
        kind,
        title: format!("context {place}, {}/{}", workload.namespace, workload.deployment),
        cluster: Arc::new(cluster),
        load_balancer: Arc::new(Haproxy::new(ssh.clone(), &environment.load_balancer)),
        hosts: Arc::new(ssh),
        http: Arc::new(Client::new(entry, Arc::clone(&clock))?),
        clock,
        truth: None,
    })
}
