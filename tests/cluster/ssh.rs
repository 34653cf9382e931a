//! Hosts by SSH against real sshd, through a jump host.

mod capture;
pub(crate) mod sshd;
mod sudo;

use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use gtrun::time::Duration;
use gtrun::world::cluster::SystemClock;
use gtrun::world::cluster::ssh::Ssh;
use gtrun::world::port::{ErrorKind, Hosts};
use sshd::Sshd;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::part::{processes, within};

pub(crate) fn connect(sshd: &Sshd) -> Ssh {
    Ssh::new(&sshd.environment(), &sshd.options(), Arc::new(SystemClock::start())).expect("ssh")
}

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test]
async fn commands_run_through_a_jump_host_as_they_are_written() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    for (words, exit, stdout, stderr) in [
        (
            &["printf", "%s|", "$HOME", "a'b\"c", "", "x\ny", "; exit 3"][..],
            0,
            "$HOME|a'b\"c||x\ny|; exit 3|",
            "",
        ),
        (&["sh", "-c", "echo out; echo err >&2; exit 7"], 7, "out\n", "err\n"),
        (&["sh", "-c", "kill -9 $$"], 137, "", ""),
        (&["sh", "-c", "exit 255"], 255, "", ""),
        (&["sh", "-c", "exit 127"], 127, "", ""),
    ] {
        let output = ssh.run("lb", &argv(words), false).await.expect("run");
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(
            (output.exit, said(&output.stdout).as_str()),
            (exit, stdout),
            "{words:?}: {output:?}"
        );
        assert_eq!(said(&output.stderr).replace("Killed\n", ""), stderr, "{words:?}");
    }
    let missing = ssh.run("lb", &argv(&["no-such-command"]), false).await.expect("run");
    assert_eq!(missing.exit, 127, "{missing:?}");
    let binary = ssh
        .run("lb", &argv(&["head", "-c", "3000000", "/dev/zero"]), false)
        .await
        .expect("run");
    assert_eq!((binary.exit, binary.stdout.len()), (0, 3_000_000));
    assert!(
        sshd.log("gate").contains("Accepted publickey"),
        "the jump host was not used"
    );
}

#[tokio::test]
async fn what_cannot_be_reached_says_why_and_what_to_do() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    let refused = ssh
        .run("nobody", &argv(&["true"]), false)
        .await
        .expect_err("nothing listens");
    assert_eq!(refused.kind, ErrorKind::Unreachable);
    assert!(refused.to_string().contains("Connection refused"), "{refused}");
    assert!(refused.help.is_some());
    let unknown = ssh
        .run("elsewhere", &argv(&["true"]), false)
        .await
        .expect_err("no such host");
    assert_eq!(unknown.kind, ErrorKind::Unsupported);
    let root = ssh
        .run("direct", &argv(&["true"]), true)
        .await
        .expect_err("no sudo there");
    assert_eq!(root.kind, ErrorKind::Unsupported);

    // A key that the host does not know.
    let mut options = sshd.options();
    let other = sshd.folder().join("other.conf");
    let config = std::fs::read_to_string(sshd.folder().join("client.conf")).expect("config");
    let key = sshd.folder().join("host").display().to_string();
    let user = sshd.folder().join("user").display().to_string();
    std::fs::write(
        &other,
        config.replace(&format!("IdentityFile {user}\n"), &format!("IdentityFile {key}\n")),
    )
    .expect("write");
    options.config_files = Some(vec![other]);
    let ssh = Ssh::new(&sshd.environment(), &options, Arc::new(SystemClock::start())).expect("ssh");
    let denied = ssh.run("direct", &argv(&["true"]), false).await.expect_err("denied");
    assert!(denied.to_string().contains("Permission denied"), "{denied}");
    assert!(denied.to_string().contains("ssh-agent"), "{denied}");
}

#[tokio::test]
async fn many_commands_at_once_keep_within_the_hosts_sessions() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    let commands: Vec<_> = (0..20)
        .map(|n| {
            let ssh = ssh.clone();
            async move {
                ssh.run("lb", &argv(&["sh", "-c", &format!("sleep 0.05; echo {n}")]), false)
                    .await
            }
        })
        .collect();
    for (n, output) in futures::future::join_all(commands).await.into_iter().enumerate() {
        assert_eq!(output.expect("run").stdout, format!("{n}\n").into_bytes());
    }
    assert_eq!(
        sshd.log("lb").matches("Accepted publickey").count(),
        1,
        "one connection a host"
    );
}

#[tokio::test]
async fn a_command_given_up_ends_on_the_host() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    let mark = format!("sleep 4321.{}", std::process::id());
    let words = argv(&mark.split(' ').collect::<Vec<_>>());
    let given_up = tokio::time::timeout(std::time::Duration::from_secs(1), ssh.run("lb", &words, false)).await;
    assert!(given_up.is_err());
    assert!(
        within(15, || processes(&mark).is_empty()).await,
        "left behind: {:?}",
        processes(&mark)
    );
}

#[tokio::test]
async fn a_command_given_up_in_the_moment_it_starts_ends_too() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    assert_eq!(ssh.run("lb", &argv(&["true"]), false).await.expect("run").exit, 0);
    let mark = format!("sleep 6543.{}", std::process::id());
    let words = argv(&["sh", "-c", &format!("trap '' HUP INT; {mark}")]);
    for ms in 0..40 {
        let soon = std::time::Duration::from_millis(ms);
        let ended = tokio::time::timeout(soon, ssh.run("lb", &words, false)).await;
        assert!(ended.is_err(), "after {ms} ms: {ended:?}");
    }
    assert!(
        within(15, || processes(&mark).is_empty()).await,
        "left behind: {:?}",
        processes(&mark)
    );
}

#[tokio::test]
async fn a_connection_that_breaks_is_an_interruption_and_made_again() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    assert_eq!(ssh.run("lb", &argv(&["true"]), false).await.expect("run").exit, 0);
    let mark = format!("sleep 5432.{}", std::process::id());
    let words = argv(&mark.split(' ').collect::<Vec<_>>());
    let begun = Instant::now();
    let (broken, ()) = futures::future::join(ssh.run("lb", &words, false), async {
        assert!(within(5, || !processes(&mark).is_empty()).await, "not started");
        sshd.cut("gate");
    })
    .await;
    let broken = broken.expect_err("cut");
    assert_eq!(broken.kind, ErrorKind::Interrupted, "{broken}");
    assert!(begun.elapsed().as_secs() < 15);
    assert!(within(10, || processes(&mark).is_empty()).await, "left behind");
    assert_eq!(ssh.run("lb", &argv(&["true"]), false).await.expect("again").exit, 0);
}

#[tokio::test]
async fn clocks_are_read_between_sent_and_received() {
    let Some(sshd) = Sshd::start() else { return };
    let ssh = connect(&sshd);
    let exchanges = ssh.exchange_clocks("lb").await.expect("exchanges");
    assert!(exchanges.len() >= 5, "{exchanges:?}");
    let mut best = Duration::from_secs(60);
    for exchange in &exchanges {
        assert_eq!(exchange.host, "lb");
        assert!(exchange.sent < exchange.received);
        // One machine: both clocks show the same time, but for the microseconds that the host's stamp is cut to.
        let cut = Duration::from_micros(1);
        assert!(
            exchange.sent - cut <= exchange.remote && exchange.remote <= exchange.received,
            "{exchange:?}"
        );
        best = best.min(exchange.received - exchange.sent);
    }
    assert!(best < Duration::from_millis(50), "{best}");
}

/// Parents of a process, up to the first.
fn ancestors(mut id: u32) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(parent) = std::fs::read_to_string(format!("/proc/{id}/stat"))
        .ok()
        .and_then(|stat| {
            let after_name = stat.rsplit_once(')')?.1;
            after_name.split_whitespace().nth(1)?.parse::<u32>().ok()
        })
    {
        all.push(parent);
        id = parent;
    }
    all
}

/// Name of a process.
fn name(id: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Not a test by itself: the process that [`a_killed_gtrun_leaves_nothing_behind`] kills.
#[tokio::test]
async fn holds_sessions_until_killed() {
    let Ok(folder) = std::env::var("GTRUN_TEST_VICTIM") else {
        return;
    };
    let environment = std::fs::read(format!("{folder}/environment.json")).expect("environment");
    let environment = serde_json::from_slice(&environment).expect("environment");
    let options = gtrun::world::cluster::ssh::SshOptions {
        config_files: Some(vec![format!("{folder}/client.conf").into()]),
        ..Default::default()
    };
    let ssh = Ssh::new(&environment, &options, Arc::new(SystemClock::start())).expect("ssh");
    let mark = std::env::var("GTRUN_TEST_MARK").expect("mark");
    let stubborn = argv(&["sh", "-c", &format!("trap '' HUP INT; while :; do sleep {mark}; done")]);
    let (mine, _) = (ssh.clone(), std::io::Write::flush(&mut std::io::stdout()));
    let running = tokio::spawn(async move { mine.run("lb", &stubborn, false).await });
    assert!(within(10, || processes(&mark).iter().any(|id| name(*id) == "sleep")).await);
    eprintln!("victim ready");
    let _ = running.await;
}

#[tokio::test]
async fn a_killed_gtrun_leaves_nothing_behind() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = sshd.folder().display().to_string();
    let environment = serde_json::to_vec(&sshd.environment()).expect("json");
    std::fs::write(sshd.folder().join("environment.json"), environment).expect("write");
    let mark = format!("3456.{}", std::process::id());
    let mut victim = tokio::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "ssh::holds_sessions_until_killed", "--nocapture"])
        .env("GTRUN_TEST_VICTIM", &folder)
        .env("GTRUN_TEST_MARK", &mark)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("victim");
    let mut lines = BufReader::new(victim.stderr.take().expect("pipe")).lines();
    loop {
        let line = lines.next_line().await.expect("read").expect("the victim ended early");
        if line.contains("victim ready") {
            break;
        }
    }
    let victim_id = victim.id().expect("it runs");
    let masters: Vec<u32> = processes(" -M -N ")
        .into_iter()
        .filter(|id| ancestors(*id).contains(&victim_id))
        .collect();
    assert!(!masters.is_empty());
    let scratch = processes("gtrun-ssh")
        .into_iter()
        .filter(|id| ancestors(*id).contains(&victim_id))
        .collect::<Vec<_>>();
    victim.kill().await.expect("kill -9");
    let runs = |id: &u32| std::path::Path::new(&format!("/proc/{id}")).exists();
    let gone = || processes(&mark).is_empty() && !masters.iter().chain(&scratch).any(runs);
    assert!(within(10, gone).await, "left behind: {:?}", processes(&mark));
}
