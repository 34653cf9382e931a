//! The kubelet of every node: it runs the pods that are bound to a node of the lab.

pub(crate) mod container;
pub(crate) mod log;
mod pod;
mod probe;
mod status;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::events::Recorder;
use super::object::{text, uid};
use super::resource::Kind;
use super::store::{Object, Store};
use crate::world::lab::network::Host;
use crate::world::lab::state::StateDir;
use container::{Container, Surroundings};

/// What the API needs to know of a pod's processes.
pub(crate) struct PodProcesses {
    /// The node's network, in which its ports are.
    pub(crate) surroundings: Surroundings,
    /// The runs of each container, the newest last.
    runs: Mutex<BTreeMap<String, Vec<Arc<Container>>>>,
    /// Set once the sandbox is being taken down.
    gone: watch::Sender<bool>,
}

impl PodProcesses {
    /// The newest run of a container.
    pub(crate) fn container(&self, name: &str) -> Option<Arc<Container>> {
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)?
            .last()
            .cloned()
    }

    /// The run before the newest.
    pub(crate) fn previous(&self, name: &str) -> Option<Arc<Container>> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(name)?.iter().rev().nth(1).cloned()
    }

    /// How many runs of a container there were.
    fn count(&self, name: &str) -> usize {
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .map_or(0, Vec::len)
    }

    fn add(&self, run: Arc<Container>) {
        self.runs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(run.name.clone())
            .or_default()
            .push(run);
    }

    /// Whether its sandbox is gone, and word of when it goes.
    pub(crate) fn gone(&self) -> watch::Receiver<bool> {
        self.gone.subscribe()
    }
}

/// All kubelets of a lab.
pub(crate) struct Kubelets {
    store: Arc<Store>,
    recorder: Arc<Recorder>,
    state: StateDir,
    nodes: HashMap<String, Host>,
    /// For the programs in containers: where `gtrun` and `envoy` are.
    path: String,
    pods: Mutex<HashMap<String, Arc<PodProcesses>>>,
    /// While the lab comes up nothing is held back to the pace of a real cluster.
    hurry: watch::Sender<bool>,
}

impl Kubelets {
    /// Those of the given nodes.
    pub(crate) fn new(store: Arc<Store>, recorder: Arc<Recorder>, state: StateDir, nodes: &[Host]) -> Self {
        let path = format!(
            "{}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            state.join("bin").display()
        );
        Self {
            store,
            recorder,
            state,
            nodes: nodes.iter().map(|h| (h.name.clone(), h.clone())).collect(),
            path,
            pods: Mutex::default(),
            hurry: watch::Sender::new(true),
        }
    }

    /// The lab is up: from now on pods start at the pace of a real cluster.
    pub(crate) fn take_time(&self) {
        self.hurry.send_replace(false);
    }

    fn hurries(&self) -> bool {
        *self.hurry.borrow()
    }

    /// The processes of a pod.
    pub(crate) fn processes(&self, pod: &Object) -> Option<Arc<PodProcesses>> {
        self.pods
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid(pod))
            .cloned()
    }

    /// Runs every pod that is bound to a node, for as long as the lab is up.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut changes = self.store.subscribe();
        let mut known = HashSet::new();
        loop {
            let (_, pods) = self.store.list(Kind::Pod, None);
            for pod in pods {
                let node = text(&pod, "/spec/nodeName");
                if let Some(host) = self.nodes.get(node)
                    && known.insert(uid(&pod).to_owned())
                {
                    let worker = pod::Worker::new(Arc::clone(&self), host.clone(), pod);
                    tokio::spawn(worker.run());
                }
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    fn log_path(&self, uid: &str, container: &str, run: usize) -> PathBuf {
        self.state
            .join("pods")
            .join(uid)
            .join(container)
            .join(format!("{run}.log"))
    }
}
