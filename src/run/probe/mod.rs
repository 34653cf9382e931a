//! Probes: what is watched while the steps run. One file a kind.
//!
//! A probe is started before the first step: ready means that nothing which happens from then on escapes it. It ends with a
//! last sample after the last step.

use futures::future::join_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::context::Context;
use super::executor::only_captures;
use crate::evidence::run_folder::{StopKind, Stopped};
use crate::language::plan::{Probe, ProbeKind};
use crate::time::Duration;
use crate::world::port::WorldError;

mod clock;
mod container_log;
mod envoy_active;
mod haproxy_log;
mod haproxy_stat;
mod health;
mod pod_watch;
mod rst_capture;

/// A probe may take this long to start.
const START_LIMIT: Duration = Duration::from_secs(30);
/// And this long to end: a capture's file is fetched over the network.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// The probes of a run.
#[derive(Default)]
pub(crate) struct Probes {
    running: Vec<Running>,
    /// Names and reasons of those that did not start.
    missing: Vec<(String, WorldError)>,
}

/// A probe that was started.
pub(crate) struct Running {
    stop: CancellationToken,
    done: Vec<oneshot::Receiver<()>>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            done: Vec::new(),
        }
    }

    /// Ends when the probe is to end.
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a part of the probe; the probe is over when all its parts are.
    pub(crate) fn part(&mut self, ctx: &Context, part: impl Future<Output = ()> + Send + 'static) {
        let (done, over) = oneshot::channel();
        self.done.push(over);
        ctx.tasks.spawn(async move {
            part.await;
            // Whoever waited may have given up.
            let _ = done.send(());
        });
    }
}

/// Why a probe that must start did not.
fn cannot_start(probe: &Probe, error: &WorldError) -> Stopped {
    Stopped {
        kind: StopKind::Preflight,
        message: format!(
            "probe {} ({}) cannot start: {error}; correct that, or say `required: false` in the scenario",
            probe.name,
            probe.kind.name()
        ),
    }
}

impl Probes {
    /// Starts all of them, side by side. One that the file requires and that cannot start
    /// stops the run.
    pub(crate) async fn start(&mut self, ctx: &Context) -> Result<(), Option<Stopped>> {
        let starts = ctx.plan.probes.iter().map(|p| async move {
            match ctx.within(START_LIMIT, start(ctx, p)).await {
                Some(result) => result,
                None => Err(WorldError::new(
                    crate::world::port::ErrorKind::Unreachable,
                    format!("start probe {}", p.name),
                    format!("not ready within {START_LIMIT}"),
                )),
            }
        });
        let started = join_all(starts).await;
        let skippable = only_captures(&ctx.plan);
        let mut refused = None;
        for (probe, result) in ctx.plan.probes.iter().zip(started) {
            match result {
                Ok(running) => self.running.push(running),
                Err(error) => {
                    ctx.say(&format!("probe {} did not start: {error}", probe.name));
                    if probe.required && refused.is_none() {
                        refused = Some(cannot_start(probe, &error));
                    }
                    self.missing.push((probe.name.to_string(), error));
                }
            }
        }
        match refused {
            Some(_) if skippable && self.no_host_captures(ctx) => Err(Some(Stopped {
                kind: StopKind::Skipped,
                message: "skipped: no host can capture packets; allow `sudo -n tcpdump` on one, or say --allow-skip"
                    .to_owned(),
            })),
            Some(stopped) => Err(Some(stopped)),
            None => {
                ctx.say(&format!("{} probes are watching", self.running.len()));
                Ok(())
            }
        }
    }

    fn no_host_captures(&self, ctx: &Context) -> bool {
        let captures = ctx
            .plan
            .probes
            .iter()
            .filter(|p| matches!(p.kind, ProbeKind::RstCapture { .. }));
        captures
            .into_iter()
            .all(|p| self.missing.iter().any(|(name, _)| *name == p.name.as_str()))
    }

    /// Takes the last samples, ends all of them and reads the hosts' clocks, as preflight did.
    pub(crate) async fn stop(&mut self, ctx: &Context) {
        if self.running.is_empty() {
            return;
        }
        for probe in &self.running {
            probe.stop.cancel();
        }
        let parts = self.running.drain(..).flat_map(|p| p.done);
        let over = async {
            let _: (Vec<_>, ()) = futures::join!(join_all(parts), clock::exchange(ctx));
        };
        tokio::select! {
            biased;
            () = over => {}
            () = ctx.interrupts.second() => ctx.say("a second signal: the rest of the evidence is not waited for"),
            () = ctx.sleep(STOP_LIMIT) => ctx.say(&format!("a probe did not end within {STOP_LIMIT}; its evidence may be cut")),
        }
    }

    /// Nothing at all was watched: the run proves nothing.
    pub(crate) fn why_nothing_was_seen(&self, ctx: &Context) -> Option<Stopped> {
        let all_missing = !ctx.plan.probes.is_empty() && self.missing.len() == ctx.plan.probes.len();
        all_missing.then(|| Stopped {
            kind: StopKind::Preflight,
            message: "no probe could start: nothing was seen".to_owned(),
        })
    }
}

async fn start(ctx: &Context, probe: &Probe) -> Result<Running, WorldError> {
    match &probe.kind {
        ProbeKind::ContainerLog { container } => container_log::start(ctx, &probe.name, container).await,
        ProbeKind::EnvoyActive { every } => envoy_active::start(ctx, *every).await,
        ProbeKind::HaproxyStat { every } => haproxy_stat::start(ctx, *every).await,
        ProbeKind::HaproxyLog => haproxy_log::start(ctx, &probe.name).await,
        ProbeKind::RstCapture { hosts } => rst_capture::start(ctx, hosts).await,
        ProbeKind::PodWatch => pod_watch::start(ctx).await,
        ProbeKind::Health { every } => health::start(ctx, *every).await,
    }
}
