//! A user who is not root, with a real sudo and the rights of docs/cluster.md.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use gtrun::time;
use gtrun::world::cluster::haproxy::Haproxy;
use gtrun::world::port::{ErrorKind, Hosts, LoadBalancer};

use super::sshd::Sshd;
use super::{argv, connect};
use crate::part::{self, processes, within};

const USER: &str = "gtrun";

/// A host on which `gtrun` is a user; `/etc` there is this machine's with its own changes on top.
fn host(sudoers: &str) -> Option<Sshd> {
    for program in ["sudo", "useradd", "usermod", "visudo", "unshare", "tcpdump"] {
        part::program(program)?;
    }
    if !nix::unistd::geteuid().is_root() {
        part::missing("root, for a user of the test's own");
        return None;
    }
    let sshd = Sshd::start_within_as(
        "set -e; mount -t tmpfs none /mnt; mkdir /mnt/up /mnt/work /mnt/sudoers.d; \
         mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work /etc; \
         useradd -M -d / -s /bin/sh gtrun; usermod -p '*' gtrun; \
         mkdir {folder}/sudoers.d; chmod 755 {folder}/sudoers.d; mount --bind {folder}/sudoers.d /etc/sudoers.d; set +e",
        USER,
    )?;
    grant(&sshd, sudoers);
    Some(sshd)
}

fn grant(sshd: &Sshd, sudoers: &str) {
    let file = sshd.folder().join("sudoers.d/gtrun");
    fs::write(&file, format!("{sudoers}\n")).expect("sudoers");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o440)).expect("mode");
    let valid = std::process::Command::new("visudo")
        .args(["-c", "-q", "-f"])
        .arg(&file)
        .status()
        .expect("visudo");
    assert!(valid.success(), "{sudoers}");
}

/// The lines of the documentation that begin so.
fn documented(what: &str) -> String {
    let text = include_str!("../../../docs/cluster.md");
    let (_, after) = text
        .split_once(&format!("# {what}\n"))
        .unwrap_or_else(|| panic!("`# {what}` is not in docs/cluster.md"));
    let lines = after
        .lines()
        .take_while(|line| !line.starts_with("```") && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn with_every_right_everything_runs_and_ends_as_root() {
    let Some(sshd) = host("gtrun ALL=(root) NOPASSWD: ALL") else {
        return;
    };
    let ssh = connect(&sshd);
    let id = async |sudo| {
        let output = ssh.run("lb", &argv(&["id", "-un"]), sudo).await.expect("id");
        String::from_utf8(output.stdout).expect("text")
    };
    assert_eq!(
        (id(false).await.as_str(), id(true).await.as_str()),
        ("gtrun\n", "root\n")
    );
    let failed = ssh
        .run("lb", &argv(&["sh", "-c", "echo err >&2; exit 3"]), true)
        .await
        .expect("run");
    assert_eq!((failed.exit, failed.stderr.as_slice()), (3, &b"err\n"[..]));

    let mark = format!("sleep 7654.{}", std::process::id());
    let words = argv(&mark.split(' ').collect::<Vec<_>>());
    let given_up = tokio::time::timeout(Duration::from_secs(2), ssh.run("lb", &words, true)).await;
    assert!(given_up.is_err());
    assert!(
        within(10, || processes(&mark).is_empty()).await,
        "left behind: {:?}",
        processes(&mark)
    );
    whole_capture(&ssh, "all").await;
}

async fn whole_capture(ssh: &gtrun::world::cluster::ssh::Ssh, name: &str) {
    let marker = format!("gtrun-test-{name}-{}", std::process::id());
    let capture = ssh
        .start_capture("lb", &marker, time::Duration::from_secs(60))
        .await
        .expect("capture");
    let port = super::capture::connection();
    let begun = std::time::Instant::now();
    let end = capture.finish().await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(end.fault, None, "{}", end.words);
    assert!(super::capture::read(&end.rest).contains(&format!(".{port} ")));
    assert!(end.words.contains("packets captured"), "{}", end.words);
    assert!(
        within(10, || processes(&marker).is_empty()).await,
        "left behind: {:?}",
        processes(&marker)
    );
    assert!(!super::capture::folder_left(&marker), "a folder is left");
}

#[tokio::test]
async fn the_documented_right_to_capture_is_enough_and_gives_nothing_else() {
    let Some(sshd) = host(&documented("captures")) else {
        return;
    };
    let ssh = connect(&sshd);
    whole_capture(&ssh, "narrow").await;
    for words in [
        &["id"][..],
        &["tcpdump", "-z", "/bin/sh"],
        &["timeout", "-k", "5", "60", "sh"],
        &[
            "timeout",
            "-k",
            "5",
            "60",
            "tcpdump",
            "-i",
            "any",
            "-n",
            "-U",
            "--immediate-mode",
            "-s",
            "192",
            "-w",
            "-",
            "tcp",
            "-z",
            "sh",
        ],
        &["kill", "1"],
    ] {
        let refused = ssh.run("lb", &argv(words), true).await.expect_err("not granted");
        assert_eq!(refused.kind, ErrorKind::Unsupported, "{words:?}: {refused}");
        assert!(refused.to_string().contains("sudoers"), "{refused}");
    }
}

#[tokio::test]
async fn a_user_without_rights_cannot_capture_and_is_told_why() {
    let Some(sshd) = host("") else { return };
    let ssh = connect(&sshd);
    let refused = ssh
        .start_capture("lb", "gtrun-test-none", time::Duration::from_secs(5))
        .await
        .err()
        .expect("refused");
    assert_eq!(refused.kind, ErrorKind::Unsupported, "{refused}");
    assert!(
        refused.to_string().contains("sudo: a password is required"),
        "{refused}"
    );
    assert!(refused.to_string().contains("docs/cluster.md"), "{refused}");
}

#[tokio::test]
async fn the_load_balancers_files_are_read_as_root_where_that_is_needed() {
    let Some(sshd) = host("gtrun ALL=(root) NOPASSWD: ALL") else {
        return;
    };
    let secret = sshd.folder().join("secret");
    fs::create_dir(&secret).expect("folder");
    fs::set_permissions(&secret, PermissionsExt::from_mode(0o700)).expect("mode");
    fs::write(secret.join("haproxy.log"), "before\n").expect("log");
    fs::write(secret.join("haproxy.cfg"), "global\n").expect("config");
    let mut spec = sshd.environment().load_balancer;
    spec.config = Some(secret.join("haproxy.cfg").display().to_string());
    spec.log = Some(gtrun::language::plan::LogSource::File {
        path: secret.join("haproxy.log").display().to_string(),
        zone: None,
    });
    let haproxy = Haproxy::new(connect(&sshd), &spec);
    assert_eq!(haproxy.configuration().await.expect("configuration"), "global\n");
    let mut log = haproxy.follow_log().await.expect("log");
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(secret.join("haproxy.log"))
        .expect("log");
    std::io::Write::write_all(&mut file, b"after\n").expect("log");
    use futures::StreamExt;
    let item = tokio::time::timeout(Duration::from_secs(10), log.next())
        .await
        .expect("nothing comes");
    assert!(
        matches!(&item, Some(gtrun::world::port::LogItem::Line { text, .. }) if text == b"after"),
        "{item:?}"
    );
}
