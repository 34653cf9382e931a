//! A lab for one test, and ways to look at it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use gtrun::world::lab::{Lab, LabError, LabFacts, LabName, LabOptions, LabWorld, Lifetime};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// A lab and the folder that its state is in. Both go with it.
pub(crate) struct TestLab {
    lab: Option<Lab>,
    root: PathBuf,
}

/// A folder for labs that no other test has.
pub(crate) fn new_root() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Not a long one: the paths of sockets are short.
    std::env::temp_dir().join(format!("gtrun-test-{}-{count}", std::process::id()))
}

/// Options of a lab whose name no other test has; it ends with this process at the latest.
pub(crate) fn options(world: LabWorld) -> LabOptions {
    let root = new_root();
    let end = root
        .file_name()
        .expect("name")
        .to_string_lossy()
        .replace("gtrun-test-", "t");
    LabOptions {
        root,
        program: Some(env!("CARGO_BIN_EXE_gtrun").into()),
        lifetime: Lifetime::Attached,
        ..LabOptions::new(LabName::new(&end).expect("name"), world)
    }
}

/// A world from settings as `--set` has them.
pub(crate) fn world(settings: &[&str]) -> LabWorld {
    let settings: Vec<String> = settings.iter().map(|s| (*s).to_owned()).collect();
    LabWorld::with_settings(serde_json::json!({}), &settings).expect("world")
}

/// A lab that is up, or none where the lab's parts are missing.
pub(crate) fn lab(settings: &[&str]) -> Option<TestLab> {
    let options = options(world(settings));
    match Lab::up(&options) {
        Ok(lab) => Some(TestLab {
            lab: Some(lab),
            root: options.root,
        }),
        Err(missing @ LabError::Missing(_)) => {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{missing}");
            eprintln!("\n*** NOT RUN: {missing}\n");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

impl TestLab {
    pub(crate) fn lab(&self) -> &Lab {
        self.lab.as_ref().expect("up")
    }

    pub(crate) fn facts(&self) -> &LabFacts {
        self.lab().facts()
    }

    /// Takes it down and looks for what may be left.
    pub(crate) fn down(mut self) {
        let facts = self.facts().clone();
        self.lab.take().expect("up").down().expect("down");
        assert_nothing_left(&facts, &self.root);
    }

    /// A client of its API.
    pub(crate) async fn client(&self) -> Client {
        self.client_of(&self.facts().context).await
    }

    /// A client with the rights of a context.
    pub(crate) async fn client_of(&self, context: &str) -> Client {
        rustls_provider();
        let options = KubeConfigOptions {
            context: Some(context.to_owned()),
            ..KubeConfigOptions::default()
        };
        let kubeconfig = Kubeconfig::read_from(&self.facts().kubeconfig).expect("kubeconfig");
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .expect("config");
        // Nothing is tried twice behind our back: a refused eviction is an answer.
        config.default_retry = false;
        Client::try_from(config).expect("client")
    }

    /// Runs kubectl to its end.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Output {
        self.kubectl_command(arguments).output().expect("kubectl")
    }

    /// kubectl with the lab's kubeconfig.
    pub(crate) fn kubectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(&self.facts().kubeconfig)
            .args(arguments)
            .env_remove("KUBECONFIG");
        command
    }

    /// What kubectl prints when it succeeds.
    pub(crate) fn kubectl_ok(&self, arguments: &[&str]) -> String {
        let output = self.kubectl(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "kubectl {}: {out}{err}", arguments.join(" "));
        out
    }

    /// The names of the workload's pods.
    pub(crate) fn pods(&self) -> Vec<String> {
        let said = self.kubectl_ok(&[
            "get",
            "pods",
            "-l",
            "app=service-a-igw",
            "-o",
            "jsonpath={.items[*].metadata.name}",
        ]);
        said.split_whitespace().map(str::to_owned).collect()
    }

    /// HAProxy's log so far.
    pub(crate) fn haproxy_log(&self) -> String {
        fs::read_to_string(&self.facts().load_balancer.log).expect("log")
    }

    /// curl from the machine's own namespace through HAProxy.
    pub(crate) fn curl(&self, path: &str) -> Command {
        let mut command = Command::new("curl");
        command.args(["-sS", "-w", "\nstatus=%{http_code} time=%{time_total}\n"]);
        command.arg(format!("http://{}{path}", self.facts().entry_connect_to));
        command
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        if let Some(lab) = self.lab.take() {
            if std::thread::panicking() {
                eprintln!(
                    "--- the lab's HAProxy log:\n{}",
                    self.root_text("lb/haproxy.log", lab.directory())
                );
                eprintln!(
                    "--- the lab's own log:\n{}",
                    self.root_text("serve.log", lab.directory())
                );
            }
            let _ = lab.down();
        }
    }
}

impl TestLab {
    fn root_text(&self, name: &str, directory: &Path) -> String {
        fs::read_to_string(directory.join(name)).unwrap_or_default()
    }
}

/// Fails if a namespace, an address, a process or a file of a lab is there.
pub(crate) fn assert_nothing_left(facts: &LabFacts, root: &Path) {
    let prefix = format!("gtrun-{}-", facts.name);
    let namespaces: Vec<_> = fs::read_dir("/run/netns")
        .map(|d| {
            d.flatten()
                .map(|e| e.file_name().to_string_lossy().into_owned())
                .collect()
        })
        .unwrap_or_default();
    assert!(
        !namespaces.iter().any(|n: &String| n.starts_with(&prefix)),
        "{namespaces:?}"
    );
    assert!(!root.exists(), "{} is still there", root.display());
    let network = facts.entry_connect_to.rsplit_once('.').map_or("", |(net, _)| net);
    let addresses = text(&Command::new("ip").args(["-4", "addr"]).output().expect("ip").stdout);
    assert!(!addresses.contains(&format!("{network}.")), "{addresses}");
    let left = processes_that_mention(root);
    assert!(left.is_empty(), "{left:?}");
}

/// Processes (zombies have no command line) whose command line names a path.
pub(crate) fn processes_that_mention(path: &Path) -> Vec<(i32, String)> {
    let wanted = path.display().to_string();
    let entries = fs::read_dir("/proc").expect("/proc");
    entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = text(&line).replace('\0', " ");
            line.contains(&wanted).then_some((pid, line))
        })
        .collect()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One TLS provider for the clients of this process.
fn rustls_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn eventually(what: &str, patience: Duration, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + patience;
    while !so() {
        assert!(Instant::now() < until, "{what}: not so within {patience:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
