//! Captures by a real tcpdump.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use gtrun::time::Duration;
use gtrun::world::port::{Capture, CaptureEnd, ErrorKind, Hosts};

use super::sshd::Sshd;
use super::{argv, connect};
use crate::part::{self, processes, within};

/// Daemons, when this machine can capture at all.
fn parts() -> Option<Sshd> {
    part::program("tcpdump")?;
    if !nix::unistd::geteuid().is_root() {
        part::missing("root, for tcpdump");
        return None;
    }
    Sshd::start()
}

/// A connection that is opened and closed; its client's port.
pub(super) fn connection() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bind");
    let client = TcpStream::connect(listener.local_addr().expect("address")).expect("connect");
    let port = client.local_addr().expect("address").port();
    drop((listener.accept().expect("accept"), client));
    port
}

/// What a capture file shows, read by tcpdump itself.
pub(super) fn read(bytes: &[u8]) -> String {
    let folder = tempfile::TempDir::new().expect("folder");
    let file = folder.path().join("x.pcap");
    std::fs::write(&file, bytes).expect("write");
    let output = Command::new("tcpdump")
        .args(["-n", "-r"])
        .arg(&file)
        .stdin(Stdio::null())
        .output()
        .expect("tcpdump");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn marker(name: &str) -> String {
    format!("gtrun-test-{name}-{}", std::process::id())
}

async fn start(ssh: &gtrun::world::cluster::ssh::Ssh, marker: &str, limit: i64) -> Box<dyn Capture> {
    let capture = ssh.start_capture("lb", marker, Duration::from_secs(limit)).await;
    capture.expect("capture")
}

#[tokio::test]
async fn the_file_comes_in_pieces_whole_and_leaves_nothing() {
    let Some(sshd) = parts() else { return };
    let ssh = connect(&sshd);
    let marker = marker("whole");
    let mut capture = start(&ssh, &marker, 60).await;
    assert!(!processes(&marker).is_empty(), "the marker stands in no command line");
    let first = connection();
    let mut bytes = Vec::new();
    while !read_or_empty(&bytes).contains(&format!(".{first} ")) {
        bytes.extend(capture.next().await.expect("a piece"));
    }
    // The packets right before the end belong to the file.
    let last = connection();
    let CaptureEnd { rest, words, fault } = capture.finish().await;
    bytes.extend(rest);
    assert_eq!(fault, None);
    let shown = read(&bytes);
    let flags = |port: u16, flag: &str| {
        shown
            .lines()
            .any(|l| l.contains(&format!(".{port} ")) && l.contains(flag))
    };
    for port in [first, last] {
        assert!(flags(port, "Flags [S]") && flags(port, "Flags [F.]"), "{port}: {shown}");
    }
    assert!(
        !shown.contains("Flags [.]"),
        "only SYN, FIN and RST are asked for:\n{shown}"
    );
    assert!(words.contains("listening on any"), "{words}");
    assert!(words.contains("0 packets dropped by kernel"), "{words}");
    assert!(
        within(5, || processes(&marker).is_empty()).await,
        "left behind: {:?}",
        processes(&marker)
    );
    let left = ssh
        .run("lb", &argv(&["sh", "-c", &format!("ls -d /tmp/{marker}*")]), false)
        .await
        .expect("ls");
    assert_ne!(left.exit, 0, "left behind: {}", String::from_utf8_lossy(&left.stdout));
}

fn read_or_empty(bytes: &[u8]) -> String {
    if bytes.is_empty() { String::new() } else { read(bytes) }
}

#[tokio::test]
async fn a_capture_ends_by_its_limit_and_is_whole() {
    let Some(sshd) = parts() else { return };
    let ssh = connect(&sshd);
    let mut capture = start(&ssh, &marker("limit"), 2).await;
    let port = connection();
    let mut bytes = Vec::new();
    while let Some(piece) = capture.next().await {
        bytes.extend(piece);
    }
    let end = capture.finish().await;
    bytes.extend(end.rest);
    assert_eq!(end.fault, None);
    assert!(read(&bytes).contains(&format!(".{port} ")));
    assert!(end.words.contains("packets captured"), "{}", end.words);
}

#[tokio::test]
async fn a_capture_dropped_or_cut_off_ends_on_the_host() {
    let Some(sshd) = parts() else { return };
    let ssh = connect(&sshd);
    let dropped = marker("dropped");
    drop(start(&ssh, &dropped, 600).await);
    assert!(
        within(10, || processes(&dropped).is_empty()).await,
        "left behind: {:?}",
        processes(&dropped)
    );

    let cut = marker("cut");
    let mut capture = start(&ssh, &cut, 600).await;
    sshd.cut("lb");
    while capture.next().await.is_some() {}
    let end = capture.finish().await;
    assert!(end.fault.is_some_and(|fault| fault.contains("lost")));
    assert!(
        within(10, || processes(&cut).is_empty()).await,
        "left behind: {:?}",
        processes(&cut)
    );
    assert!(within(5, || !folder_left(&cut)).await, "a folder is left");
}

/// The capture's folder is still there.
pub(super) fn folder_left(marker: &str) -> bool {
    let mut entries = std::fs::read_dir("/tmp").expect("/tmp").flatten();
    entries.any(|entry| entry.file_name().to_string_lossy().starts_with(marker))
}

#[tokio::test]
async fn without_base64_the_bytes_come_raw() {
    let Some(sshd) = parts() else { return };
    // A PATH without base64 for everything that runs in the sessions.
    let tools = sshd.folder().join("tools");
    std::fs::create_dir(&tools).expect("folder");
    for tool in [
        "sh",
        "mktemp",
        "mkfifo",
        "cat",
        "rm",
        "timeout",
        "tcpdump",
        "wc",
        "tr",
        "cut",
        "sha256sum",
        "tail",
        "head",
        "id",
        "sleep",
    ] {
        let path = part::program(tool).expect("a tool");
        std::os::unix::fs::symlink(path, tools.join(tool)).expect("link");
    }
    sshd.set_environment("lb", &format!("PATH={}", tools.display()));
    let ssh = connect(&sshd);
    let shown = ssh.run("lb", &argv(&["base64"]), false).await.expect("run");
    assert_eq!(shown.exit, 127, "the test's PATH is not used");
    let capture = start(&ssh, &marker("raw"), 60).await;
    let port = connection();
    let end = capture.finish().await;
    assert_eq!(end.fault, None);
    assert!(read(&end.rest).contains(&format!(".{port} ")));
}

#[tokio::test]
async fn a_host_that_cannot_capture_is_unsupported() {
    let Some(sshd) = parts() else { return };
    let tools = sshd.folder().join("tools");
    std::fs::create_dir(&tools).expect("folder");
    for tool in [
        "sh", "mktemp", "mkfifo", "cat", "rm", "timeout", "wc", "tr", "id", "sleep", "base64",
    ] {
        std::os::unix::fs::symlink(part::program(tool).expect("a tool"), tools.join(tool)).expect("link");
    }
    sshd.set_environment("lb", &format!("PATH={}", tools.display()));
    let ssh = connect(&sshd);
    let error = ssh
        .start_capture("lb", &marker("none"), Duration::from_secs(5))
        .await
        .err()
        .expect("no tcpdump");
    assert!(within(5, || !folder_left(&marker("none"))).await, "a folder is left");
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("install tcpdump"), "{error}");
    let error = ssh
        .start_capture("lb", "a b", Duration::from_secs(5))
        .await
        .err()
        .expect("a bad word");
    assert_eq!(error.kind, ErrorKind::Failed);
}
