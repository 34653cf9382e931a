//! One pod from its binding to its removal.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::join_all;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::events::Source;
use super::super::object::{is_terminating, list, name, namespace, now, number, uid};
use super::super::resource::Kind;
use super::super::store::Object;
use super::super::timing;
use super::container::{Container, Run, Surroundings, exit_code};
use super::probe::Probe;
use super::status::{self, Seen, Stage};
use super::{Kubelets, PodProcesses};
use crate::world::lab::network::Host;

/// The kubelet gives every container at least this long between SIGTERM and SIGKILL.
const SHORTEST_GRACE: Duration = Duration::from_secs(2);
/// First and longest wait before a container that ends again and again is started anew.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));

/// What happened to a container.
enum Notice {
    /// A run has ended.
    Ended(String),
    /// A probe has changed its mind.
    Ready,
}

/// Runs one pod.
pub(super) struct Worker {
    kubelets: Arc<Kubelets>,
    host: Host,
    pod: Object,
    source: Source,
    processes: Arc<PodProcesses>,
    began: DateTime<Utc>,
    ready: Mutex<BTreeMap<String, watch::Sender<bool>>>,
    stage: Mutex<Stage>,
}

impl Worker {
    pub(super) fn new(kubelets: Arc<Kubelets>, host: Host, pod: Object) -> Self {
        let environment = vec![
            ("PATH".to_owned(), kubelets.path.clone()),
            ("HOSTNAME".to_owned(), name(&pod).to_owned()),
            ("HOME".to_owned(), "/".to_owned()),
        ];
        let processes = Arc::new(PodProcesses {
            surroundings: Surroundings {
                namespace: host.namespace.clone(),
                environment,
            },
            runs: Mutex::default(),
            gone: watch::Sender::new(false),
        });
        let pods = &kubelets.pods;
        pods.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(uid(&pod).to_owned(), Arc::clone(&processes));
        let source = Source::Kubelet(host.name.clone());
        let (ready, stage) = (Mutex::default(), Mutex::new(Stage::Running));
        Self {
            kubelets,
            host,
            pod,
            source,
            processes,
            began: Utc::now(),
            ready,
            stage,
        }
    }

    pub(super) async fn run(self) {
        let worker = Arc::new(self);
        let (notices, mut heard) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let started = async {
            if !worker.kubelets.hurries() {
                timing::SANDBOX_CREATED.pass().await;
            }
            let spec = &worker.pod["spec"];
            for container in list(spec, "/initContainers").iter().chain(list(spec, "/containers")) {
                worker.event(
                    container,
                    "Normal",
                    "Pulled",
                    format!("Container image {} already present on machine", container["image"]),
                );
                worker.start(container, &notices, &mut tasks);
                if !worker.kubelets.hurries() {
                    timing::CONTAINER_STARTS.pass().await;
                }
            }
        };
        tokio::select! {
            () = started => {}
            () = worker.told_to_stop() => {}
        }
        worker.post();
        worker.live(&notices, &mut heard, &mut tasks).await;
        worker.stop(&mut heard).await;
        tasks.abort_all();
        worker.remove().await;
    }

    /// Until the pod is told to stop: containers that end are started anew.
    async fn live(
        self: &Arc<Self>,
        notices: &mpsc::UnboundedSender<Notice>,
        heard: &mut mpsc::UnboundedReceiver<Notice>,
        tasks: &mut JoinSet<()>,
    ) {
        let told = self.told_to_stop();
        tokio::pin!(told);
        let mut due: Vec<(Instant, String)> = Vec::new();
        loop {
            let next = due.iter().map(|(at, _)| *at).min();
            tokio::select! {
                () = &mut told => return,
                Some(notice) = heard.recv() => match notice {
                    Notice::Ready => self.post(),
                    Notice::Ended(container) => {
                        timing::RELIST.pass().await;
                        self.set_ready(&container, false);
                        self.post();
                        due.push((Instant::now() + self.back_off(&container), container));
                    }
                },
                () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    let at = Instant::now();
                    let (now, later) = due.into_iter().partition::<Vec<_>, _>(|(due, _)| *due <= at);
                    due = later;
                    for (_, container) in now {
                        if let Some(spec) = self.containers().find(|c| c["name"] == container.as_str()) {
                            self.start(spec, notices, tasks);
                        }
                    }
                    self.post();
                }
            }
        }
    }

    /// At once after the first end, then after 10 s, 20 s, 40 s, ... up to 5 min.
    fn back_off(&self, container: &str) -> Duration {
        match self.processes.count(container) {
            0 | 1 => Duration::ZERO,
            n => BACK_OFF.0.saturating_mul(1 << (n - 2).min(5)).min(BACK_OFF.1),
        }
    }

    fn containers(&self) -> impl Iterator<Item = &Value> {
        list(&self.pod, "/spec/initContainers")
            .iter()
            .chain(list(&self.pod, "/spec/containers"))
    }

    fn event(&self, container: &Value, kind: &'static str, reason: &'static str, message: String) {
        let name = container["name"].as_str().unwrap_or_default();
        self.kubelets
            .recorder
            .container(&self.pod, name, &self.source, kind, reason, message);
    }

    fn start(self: &Arc<Self>, spec: &Value, notices: &mpsc::UnboundedSender<Notice>, tasks: &mut JoinSet<()>) {
        let name = spec["name"].as_str().unwrap_or_default().to_owned();
        let command: Vec<String> = list(spec, "/command")
            .iter()
            .chain(list(spec, "/args"))
            .filter_map(|w| Some(w.as_str()?.to_owned()))
            .collect();
        let mut surroundings = self.processes.surroundings.clone();
        surroundings
            .environment
            .extend(list(spec, "/env").iter().filter_map(|e| {
                Some((
                    e["name"].as_str()?.to_owned(),
                    e["value"].as_str().unwrap_or_default().to_owned(),
                ))
            }));
        let log = self
            .kubelets
            .log_path(uid(&self.pod), &name, self.processes.count(&name));
        let run = match Container::start(&name, &command, surroundings, log) {
            Ok(run) => run,
            Err(e) => {
                self.event(
                    spec,
                    "Warning",
                    "Failed",
                    format!("Error: failed to start container \"{name}\": {e}"),
                );
                return;
            }
        };
        let what = format!("{} {name}", status::full_name(&self.pod));
        if let Err(e) = self.kubelets.state.record_process(&what, run.process) {
            tracing::warn!("{e}");
        }
        self.event(spec, "Normal", "Created", format!("Created container: {name}"));
        self.event(spec, "Normal", "Started", format!("Started container {name}"));
        self.processes.add(Arc::clone(&run));
        let ready = watch::Sender::new(false);
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), ready.clone());
        match Probe::of(spec, self.host.address) {
            None => {
                ready.send_replace(true);
            }
            Some(probe) => {
                let (worker, spec, network) = (Arc::clone(self), spec.clone(), self.host.namespace.clone());
                let (mut changed, tell) = (ready.subscribe(), notices.clone());
                tasks.spawn(async move {
                    let failed = |why| worker.event(&spec, "Warning", "Unhealthy", why);
                    let telling = async {
                        while changed.changed().await.is_ok() {
                            let _ = tell.send(Notice::Ready);
                        }
                    };
                    tokio::join!(probe.watch(network, ready, failed), telling);
                });
            }
        }
        let tell = notices.clone();
        tasks.spawn(async move {
            run.ended().await;
            let _ = tell.send(Notice::Ended(name));
        });
    }

    fn set_ready(&self, container: &str, to: bool) {
        if let Some(ready) = self.ready.lock().unwrap_or_else(PoisonError::into_inner).get(container) {
            ready.send_replace(to);
        }
    }

    fn set_stage(&self, stage: Stage) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    /// The pod as it is stored, if it is still this one.
    fn stored(&self) -> Option<Object> {
        let pod = self
            .kubelets
            .store
            .get(Kind::Pod, namespace(&self.pod), name(&self.pod))?;
        (uid(&pod) == uid(&self.pod)).then_some(pod)
    }

    /// Returns when the pod is terminating, or was removed by force.
    async fn told_to_stop(&self) {
        let mut changes = self.kubelets.store.subscribe();
        while self.stored().is_some_and(|pod| !is_terminating(&pod)) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Posts the status if it has changed.
    fn post(&self) {
        let stage = *self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        let own = uid(&self.pod).to_owned();
        let posted = self
            .kubelets
            .store
            .update(Kind::Pod, namespace(&self.pod), name(&self.pod), |pod| {
                if uid(pod) != own {
                    return Ok(());
                }
                let runs: Vec<_> = self
                    .containers()
                    .filter_map(|c| c["name"].as_str())
                    .map(|n| {
                        (
                            self.processes.container(n),
                            self.processes.previous(n),
                            self.processes.count(n),
                        )
                    })
                    .collect();
                let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
                let seen: Vec<Seen<'_>> = self
                    .containers()
                    .zip(&runs)
                    .map(|(spec, (run, last, count))| Seen {
                        spec,
                        run: run.as_deref(),
                        last: last.as_deref(),
                        restarts: u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX),
                        ready: spec["name"]
                            .as_str()
                            .and_then(|n| ready.get(n))
                            .is_some_and(|r| *r.borrow()),
                    })
                    .collect();
                let (init, main) = seen.split_at(list(&self.pod, "/spec/initContainers").len());
                status::write(pod, stage, &self.host.address.to_string(), self.began, main, init);
                Ok(())
            });
        if let Err(gone) = posted {
            tracing::debug!("pod {} is gone: {}", name(&self.pod), gone.message);
        }
    }

    /// preStop, SIGTERM, SIGKILL. Returns when every container has ended.
    async fn stop(self: &Arc<Self>, heard: &mut mpsc::UnboundedReceiver<Notice>) {
        let asked = Instant::now();
        let deadline = watch::Sender::new(asked + self.grace_left());
        let patience = self.follow_deadline(asked, &deadline);
        self.set_stage(Stage::Stopping);
        timing::KUBELET_NOTICES.pass().await;
        let stopping = async {
            for container in self.containers() {
                let stopped = format!("Stopping container {}", container["name"].as_str().unwrap_or_default());
                self.event(container, "Normal", "Killing", stopped);
            }
            self.post();
            let main_ended = watch::Sender::new(false);
            let main = async {
                join_all(
                    list(&self.pod, "/spec/containers")
                        .iter()
                        .map(|c| self.stop_container(c, &deadline, None)),
                )
                .await;
                main_ended.send_replace(true);
            };
            let turn = &main_ended;
            let sidecars = join_all(
                list(&self.pod, "/spec/initContainers")
                    .iter()
                    .map(|c| self.stop_container(c, &deadline, Some(turn))),
            );
            tokio::join!(main, sidecars);
        };
        tokio::pin!(stopping, patience);
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = &mut patience => {}
                Some(Notice::Ready) = heard.recv() => self.post(),
            }
        }
    }

    fn grace_left(&self) -> Duration {
        let seconds = match self.stored() {
            Some(pod) => number(&pod, "/metadata/deletionGracePeriodSeconds").unwrap_or(30),
            // Removed by force.
            None => 1,
        };
        Duration::from_secs(seconds.max(1).unsigned_abs())
    }

    /// A second deletion can shorten the grace period, a forced one ends it.
    async fn follow_deadline(&self, asked: Instant, deadline: &watch::Sender<Instant>) {
        let mut changes = self.kubelets.store.subscribe();
        loop {
            let until = if self.stored().is_some() {
                asked + self.grace_left()
            } else {
                Instant::now() + Duration::from_secs(1)
            };
            deadline.send_if_modified(|d| {
                until < *d && {
                    *d = until;
                    true
                }
            });
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    async fn stop_container(
        self: &Arc<Self>,
        spec: &Value,
        deadline: &watch::Sender<Instant>,
        turn: Option<&watch::Sender<bool>>,
    ) {
        let name = spec["name"].as_str().unwrap_or_default();
        let Some(run) = self.processes.container(name) else {
            return;
        };
        if matches!(run.run(), Run::Ended { .. }) {
            return;
        }
        let hooked = !spec["lifecycle"]["preStop"].is_null();
        if hooked {
            timing::HOOK_STARTS.pass().await;
            let (worker, spec, own) = (Arc::clone(self), spec.clone(), Arc::clone(&run));
            let hook = tokio::spawn(async move { worker.hook(&spec, &own).await });
            tokio::select! {
                _ = hook => timing::HOOK_ENDS.pass().await,
                _ = run.ended() => return,
                () = passed(deadline) => {}
            }
        }
        if let Some(turn) = turn {
            let mut turn = turn.subscribe();
            let come = async {
                let _ = turn.wait_for(|ended| *ended).await;
            };
            tokio::select! {
                () = come => timing::SIDECAR_TURN.pass().await,
                () = passed(deadline) => {}
            }
        }
        if !hooked || *deadline.borrow() <= Instant::now() {
            timing::SIGNALS_SPREAD.pass().await;
        }
        run.terminate();
        let shortest = Instant::now() + SHORTEST_GRACE;
        let patience = async {
            passed(deadline).await;
            sleep_until(shortest).await;
        };
        tokio::select! {
            _ = run.ended() => return,
            () = patience => {}
        }
        run.kill();
        run.ended().await;
    }

    /// Runs a preStop hook to its end, for which nobody waits longer than the grace period: the process of one that does
    /// not end goes with its container.
    async fn hook(&self, spec: &Value, run: &Container) {
        let hook = &spec["lifecycle"]["preStop"];
        if let Some(seconds) = number(hook, "/sleep/seconds") {
            sleep(Duration::from_secs(seconds.max(0).unsigned_abs())).await;
            return;
        }
        let command: Vec<String> = list(hook, "/exec/command")
            .iter()
            .filter_map(|w| Some(w.as_str()?.to_owned()))
            .collect();
        let failed = |why: &str| {
            tracing::info!("preStop of {} {}: {why}", status::full_name(&self.pod), run.name);
            self.event(spec, "Warning", "FailedPreStopHook", "PreStopHook failed".to_owned());
        };
        match run.execute(&command, Stdio::null(), Stdio::null(), Stdio::null()) {
            Err(e) => failed(&e.to_string()),
            Ok(mut guest) => {
                let code = guest.child.wait().await.map_or(-1, exit_code);
                run.forget(&guest);
                if code != 0 {
                    failed(&format!("exit code {code}"));
                }
            }
        }
    }

    /// Shows the pod as ended, takes its sandbox down and removes it.
    async fn remove(&self) {
        timing::RELIST.pass().await;
        self.set_stage(Stage::Over);
        for ready in self.ready.lock().unwrap_or_else(PoisonError::into_inner).values() {
            ready.send_replace(false);
        }
        self.post();
        timing::SANDBOX_REMOVED.pass().await;
        self.processes.gone.send_replace(true);
        let (store, own) = (&self.kubelets.store, uid(&self.pod).to_owned());
        let last = store.update(Kind::Pod, namespace(&self.pod), name(&self.pod), |pod| {
            if uid(pod) == own {
                pod["metadata"]["deletionTimestamp"] = now().into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            }
            Ok(())
        });
        if last.is_ok_and(|pod| uid(&pod) == own) {
            timing::REMOVED.pass().await;
            if self.stored().is_some() {
                let _ = store.remove(Kind::Pod, namespace(&self.pod), name(&self.pod));
            }
        }
        self.kubelets
            .pods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&own);
    }
}

/// Waits until a deadline that may move has passed.
async fn passed(deadline: &watch::Sender<Instant>) {
    let mut moved = deadline.subscribe();
    loop {
        let until = *moved.borrow_and_update();
        tokio::select! {
            () = sleep_until(until) => return,
            changed = moved.changed() => if changed.is_err() {
                sleep_until(until).await;
                return;
            },
        }
    }
}
