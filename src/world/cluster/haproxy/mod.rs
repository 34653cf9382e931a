//! HAProxy on a host reached by SSH: its statistics, its log, its configuration. Nothing here changes it.

mod file_log;
mod follow;
mod journal;
mod stats;

use std::sync::Arc;

use futures::FutureExt;
use futures::stream::BoxStream;

use super::ssh::Ssh;
use crate::language::plan;
use crate::world::port::{ErrorKind, LoadBalancer, LogItem, Pending, Sampler, WorldError};

/// The load balancer of an environment.
pub struct Haproxy {
    ssh: Ssh,
    spec: Arc<plan::LoadBalancer>,
}

impl Haproxy {
    /// Nothing is contacted yet.
    pub fn new(ssh: Ssh, spec: &plan::LoadBalancer) -> Self {
        Self {
            ssh,
            spec: Arc::new(spec.clone()),
        }
    }

    async fn read_configuration(&self) -> Result<String, WorldError> {
        let host = &self.spec.host;
        let Some(path) = &self.spec.config else {
            let error = WorldError::new(
                ErrorKind::Unsupported,
                "read HAProxy's configuration",
                "the environment does not say where it is",
            );
            return Err(error.with_help("write `config: /etc/haproxy/haproxy.cfg`, or the facts under `facts:`"));
        };
        let doing = format!("read {path} on {host}");
        let argv = ["cat".to_owned(), "--".to_owned(), path.clone()];
        let mut output = self.ssh.command(host, &argv, false).await?;
        if output.exit != 0 && self.ssh.sudo(host) {
            output = self.ssh.command(host, &argv, true).await?;
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.exit != 0 {
            let error = WorldError::new(ErrorKind::Failed, doing, text(&output.stderr).trim().to_owned());
            return Err(error.with_help(
                "let the ssh user read it (its group, or `sudo: true`), correct `config:`, or declare the facts under `facts:`",
            ));
        }
        Ok(text(&output.stdout))
    }
}

impl LoadBalancer for Haproxy {
    fn configuration(&self) -> Pending<'_, String> {
        self.read_configuration().boxed()
    }

    fn stats(&self) -> Pending<'_, Box<dyn Sampler>> {
        stats::open(&self.ssh, &self.spec).boxed()
    }

    fn follow_log(&self) -> Pending<'_, BoxStream<'static, LogItem>> {
        async move {
            match &self.spec.log {
                None => {
                    let doing = "follow HAProxy's log";
                    let error = WorldError::new(
                        ErrorKind::Unsupported,
                        doing,
                        "the environment does not say where it is",
                    );
                    Err(error.with_help("write `log: { journal: haproxy }` or `log: { file: /var/log/haproxy.log }`"))
                }
                Some(plan::LogSource::File { path, zone: _ }) => {
                    let source = file_log::FileLog::new(&self.ssh, &self.spec.host, path).await?;
                    follow::start(&self.ssh, source).await
                }
                Some(plan::LogSource::Journal(name)) => {
                    let source = journal::Journal::new(&self.ssh, &self.spec.host, name).await?;
                    follow::start(&self.ssh, source).await
                }
            }
        }
        .boxed()
    }
}
