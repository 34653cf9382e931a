//! A real HAProxy behind real sshd: statistics, log from file and journal, configuration.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use gtrun::language::plan;
use gtrun::world::cluster::haproxy::Haproxy;
use gtrun::world::port::{ErrorKind, LoadBalancer, LogEnd, LogItem};

use crate::part::{self, within};
use crate::ssh::connect;
use crate::ssh::sshd::Sshd;

/// HAProxy with one server that nobody answers for; its files are in the folder of the daemons.
struct Parts {
    sshd: Sshd,
    program: PathBuf,
    process: Child,
}

impl Parts {
    fn start() -> Option<Self> {
        let program = part::program("haproxy")?;
        let sshd = Sshd::start()?;
        let folder = sshd.folder();
        let config = format!(
            "global\n  stats socket {}/admin.sock mode 600 level user\n  log stdout format iso local0\n\
             defaults\n  mode http\n  log global\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n\
             frontend in\n  bind unix@{}/in.sock\n  default_backend istio-http-backend\n\
             backend istio-http-backend\n  option httpchk\n  server worker1 127.0.0.1:1 check inter 200ms fall 2\n",
            folder.display(),
            folder.display(),
        );
        fs::write(folder.join("haproxy.cfg"), config).expect("config");
        let process = launch(&program, folder);
        Some(Self { sshd, program, process })
    }

    fn again(&mut self) {
        self.kill();
        self.process = launch(&self.program, self.sshd.folder());
    }

    fn kill(&mut self) {
        self.process.kill().expect("kill");
        self.process.wait().expect("wait");
    }

    fn spec(&self) -> plan::LoadBalancer {
        let path = |name: &str| self.sshd.folder().join(name).display().to_string();
        let mut spec = self.sshd.environment().load_balancer;
        spec.socket = path("admin.sock");
        spec.config = Some(path("haproxy.cfg"));
        spec.log = Some(plan::LogSource::File {
            path: path("haproxy.log"),
            zone: None,
        });
        spec
    }

    fn haproxy(&self, change: impl FnOnce(&mut plan::LoadBalancer)) -> Haproxy {
        let mut spec = self.spec();
        change(&mut spec);
        Haproxy::new(connect(&self.sshd), &spec)
    }

    fn log(&self) -> PathBuf {
        self.sshd.folder().join("haproxy.log")
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(program: &Path, folder: &Path) -> Child {
    let socket = folder.join("admin.sock");
    let _ = fs::remove_file(&socket);
    let log = File::create(folder.join("haproxy.log")).expect("log");
    let mut process = Command::new(program)
        .args(["-db", "-f"])
        .arg(folder.join("haproxy.cfg"))
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .expect("haproxy");
    for _ in 0..500 {
        if socket.exists() {
            return process;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = process.kill();
    panic!("haproxy does not start: {:?}", process.wait());
}

#[tokio::test]
async fn every_sample_is_statistics_or_says_why_not() {
    let Some(mut parts) = Parts::start() else { return };
    let haproxy = parts.haproxy(|_| ());
    let mut stats = haproxy.stats().await.expect("statistics");
    let mut last = None;
    let mut times = Vec::new();
    for _ in 0..50 {
        let sample = stats.sample().await;
        let csv = sample.reply.expect("a reply");
        assert!(csv.starts_with("# pxname,svname,"), "{csv}");
        assert!(csv.contains("\nistio-http-backend,worker1,"), "{csv}");
        assert!(last.is_none_or(|last| last <= sample.sent) && sample.sent < sample.received);
        last = Some(sample.received);
        times.push(sample.received - sample.sent);
    }
    times.sort();
    eprintln!("show stat over ssh: median {}, longest {}", times[25], times[49]);

    parts.kill();
    let begun = Instant::now();
    let gone = stats.sample().await;
    assert!(begun.elapsed() < Duration::from_millis(600));
    assert!(
        gone.reply
            .as_ref()
            .is_err_and(|why| why.contains("refused") || why.contains("No such file")),
        "{gone:?}"
    );
    parts.again();
    assert!(stats.sample().await.reply.is_ok());
}

#[tokio::test]
async fn a_session_that_breaks_is_made_again_between_samples() {
    let Some(parts) = Parts::start() else { return };
    let haproxy = parts.haproxy(|_| ());
    let mut stats = haproxy.stats().await.expect("statistics");
    assert!(stats.sample().await.reply.is_ok());
    parts.sshd.cut("lb");
    let (mut failed, begun) = (0, Instant::now());
    loop {
        let asked = Instant::now();
        let sample = stats.sample().await;
        assert!(asked.elapsed() < Duration::from_millis(600), "{:?}", asked.elapsed());
        match sample.reply {
            Ok(_) if failed > 0 => break,
            // What was on its way when the connection was cut.
            Ok(_) => (),
            Err(_) => failed += 1,
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "not made again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_socket_that_is_not_there_says_what_to_do() {
    let Some(parts) = Parts::start() else { return };
    let missing = parts.haproxy(|spec| spec.socket = "/no/such.sock".to_owned());
    let error = missing.stats().await.err().expect("no socket");
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("stats socket"), "{error}");
}

#[tokio::test]
async fn tools_that_hosts_have_instead_of_socat_do_as_well() {
    let Some(parts) = Parts::start() else { return };
    for tool in ["perl", "python3"] {
        let Some(program) = part::program(tool) else { continue };
        let tools = parts.sshd.folder().join(format!("tools-{tool}"));
        fs::create_dir(&tools).expect("folder");
        for name in ["sh", "id", "timeout", "grep"] {
            std::os::unix::fs::symlink(part::program(name).expect("a tool"), tools.join(name)).expect("link");
        }
        // A link to a version manager's shim would not find itself.
        let wrapper = format!(
            "#!/bin/sh\nPATH={} exec {} \"$@\"\n",
            std::env::var("PATH").expect("PATH"),
            program.display()
        );
        fs::write(tools.join(tool), wrapper).expect("write");
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(tools.join(tool), executable).expect("mode");
        parts.sshd.set_environment("lb", &format!("PATH={}", tools.display()));
        let mut stats = parts.haproxy(|_| ()).stats().await.expect(tool);
        // A slow start of the interpreter may be late; it is then told so, and never wrong.
        let good = {
            let mut good = false;
            for _ in 0..20 {
                good = good || stats.sample().await.reply.is_ok();
            }
            good
        };
        assert!(good, "{tool}");
    }
}

#[tokio::test]
async fn the_configuration_is_read_as_it_is() {
    let Some(parts) = Parts::start() else { return };
    let text = parts.haproxy(|_| ()).configuration().await.expect("configuration");
    assert_eq!(
        text,
        fs::read_to_string(parts.sshd.folder().join("haproxy.cfg")).expect("config")
    );
    let missing = parts.haproxy(|spec| spec.config = Some("/no/such.cfg".to_owned()));
    let error = missing.configuration().await.expect_err("no file");
    assert!(
        error.to_string().contains("No such file") && error.help.is_some(),
        "{error}"
    );
    let none = parts
        .haproxy(|spec| spec.config = None)
        .configuration()
        .await
        .expect_err("none named");
    assert_eq!(none.kind, ErrorKind::Unsupported);
}

/// The next item, which must come soon.
async fn next(log: &mut BoxStream<'static, LogItem>) -> LogItem {
    let item = tokio::time::timeout(Duration::from_secs(15), log.next()).await;
    item.expect("nothing comes").expect("the stream has ended")
}

async fn line(log: &mut BoxStream<'static, LogItem>) -> String {
    match next(log).await {
        LogItem::Line {
            text, runtime: None, ..
        } => String::from_utf8(text).expect("text"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn haproxys_own_lines_are_followed() {
    let Some(mut parts) = Parts::start() else { return };
    let mut log = parts.haproxy(|_| ()).follow_log().await.expect("log");
    // The restart empties the file, as a real one does that logs to its standard output.
    parts.again();
    let mut gaps = 0;
    loop {
        match next(&mut log).await {
            LogItem::Gap { .. } => gaps += 1,
            LogItem::Line { text, .. } => {
                let text = String::from_utf8(text).expect("text");
                if text.contains("Server istio-http-backend/worker1 is DOWN") {
                    break;
                }
            }
            LogItem::End { why, .. } => panic!("{why:?}"),
        }
    }
    assert_eq!(gaps, 1, "the file was truncated");
}

#[tokio::test]
async fn a_file_is_followed_from_now_on_over_rotations_and_breaks() {
    let Some(mut parts) = Parts::start() else { return };
    parts.kill();
    let path = parts.log();
    fs::write(&path, "old 1\nold 2\n").expect("write");
    let mut log = parts.haproxy(|_| ()).follow_log().await.expect("log");
    let write = |text: &str| {
        let mut file = OpenOptions::new().append(true).create(true).open(&path).expect("open");
        file.write_all(text.as_bytes()).expect("write");
    };
    write("new 1\nnew");
    assert_eq!(line(&mut log).await, "new 1");
    write(" 2\n");
    assert_eq!(line(&mut log).await, "new 2");

    // A break: taken up at the very place, nothing twice, nothing lost, no gap.
    write("half");
    parts.sshd.cut("lb");
    tokio::time::sleep(Duration::from_millis(300)).await;
    write(" a line\nnew 3\n");
    assert_eq!(line(&mut log).await, "half a line");
    assert_eq!(line(&mut log).await, "new 3");

    // logrotate: the file moves away, a new one takes its name.
    fs::rename(&path, path.with_extension("log.1")).expect("rename");
    write("rotated 1\n");
    let mut seen = Vec::new();
    while !seen.contains(&"rotated 1".to_owned()) {
        match next(&mut log).await {
            LogItem::Gap { reason, .. } => seen.push(reason),
            LogItem::Line { text, .. } => seen.push(String::from_utf8(text).expect("text")),
            LogItem::End { why, .. } => panic!("{why:?}"),
        }
    }
    assert!(seen[0].contains("rotated: lines"), "{seen:?}");

    // A rotation during a break is a gap.
    parts.sshd.cut("lb");
    fs::rename(&path, path.with_extension("log.2")).expect("rename");
    write("rotated 2\n");
    let LogItem::Gap { reason, .. } = next(&mut log).await else {
        panic!("no gap")
    };
    assert!(reason.contains("rotated"), "{reason}");
    assert_eq!(line(&mut log).await, "rotated 2");

    drop(log);
    let tails = || part::processes(&format!("-F -- {}", path.display()));
    assert!(within(5, || tails().is_empty()).await, "left behind: {:?}", tails());
}

#[tokio::test]
async fn a_log_that_is_lost_for_good_ends() {
    let Some(mut parts) = Parts::start() else { return };
    parts.kill();
    fs::write(parts.log(), "").expect("write");
    let mut log = parts.haproxy(|_| ()).follow_log().await.expect("log");
    fs::remove_file(parts.log()).expect("remove");
    parts.sshd.cut("lb");
    let end = tokio::time::timeout(Duration::from_secs(30), log.next())
        .await
        .expect("no end");
    assert!(
        matches!(
            end,
            Some(LogItem::End {
                why: LogEnd::Lost(_),
                ..
            })
        ),
        "{end:?}"
    );
    assert_eq!(log.next().await, None);
}

#[tokio::test]
async fn a_log_that_is_not_there_says_what_to_do() {
    let Some(parts) = Parts::start() else { return };
    let missing = parts.haproxy(|spec| {
        spec.log = Some(plan::LogSource::File {
            path: "/no/such.log".to_owned(),
            zone: None,
        });
    });
    let error = missing.follow_log().await.err().expect("no file");
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    let none = parts
        .haproxy(|spec| spec.log = None)
        .follow_log()
        .await
        .err()
        .expect("none named");
    assert!(none.to_string().contains("log:"), "{none}");
}

#[tokio::test]
async fn the_journal_is_followed_from_now_on_and_over_breaks() {
    let journald = Path::new("/lib/systemd/systemd-journald");
    if !journald.is_file() || !nix::unistd::geteuid().is_root() {
        return part::missing("systemd-journald, and root to start it");
    }
    let Some(haproxy_program) = part::program("haproxy") else {
        return;
    };
    let (Some(_), Some(_)) = (part::program("unshare"), part::program("logger")) else {
        return;
    };
    // sshd and a journal in a mount namespace of their own.
    let Some(sshd) = Sshd::start_within(
        "mount -t tmpfs none /run && mount -t tmpfs none /var/log && mkdir -p /run/systemd/journal /run/log/journal /run/sshd \
         && { /lib/systemd/systemd-journald >/dev/null 2>&1 & }; i=0; \
         while [ ! -S /run/systemd/journal/dev-log ] && [ $i -lt 100 ]; do sleep 0.1; i=$((i + 1)); done",
    ) else {
        return;
    };
    let mut spec = sshd.environment().load_balancer;
    spec.log = Some(plan::LogSource::Journal("haproxy".to_owned()));
    let ssh = connect(&sshd);
    let inside = async |command: &str| {
        use gtrun::world::port::Hosts;
        let argv = ["sh".to_owned(), "-c".to_owned(), command.to_owned()];
        let output = match ssh.run("lb", &argv, false).await {
            // In the moment of a cut nobody knows whether the command has begun.
            Err(error) if error.kind == ErrorKind::Interrupted => ssh.run("lb", &argv, false).await,
            other => other,
        };
        let output = output.expect("run");
        assert_eq!(output.exit, 0, "{output:?}");
    };
    let log_line = |text: &str| format!("logger -u /run/systemd/journal/dev-log -t haproxy '{text}'");
    inside(&log_line("before")).await;
    inside("logger -u /run/systemd/journal/dev-log -t other 'not this'; sleep 0.3").await;
    let mut log = Haproxy::new(ssh.clone(), &spec).follow_log().await.expect("log");
    inside(&log_line("first")).await;
    let first = line(&mut log).await;
    let (stamp, text) = first.split_once(' ').expect("a stamp");
    assert_eq!(text, "first");
    assert!(
        stamp.ends_with("+00:00") && stamp.len() == "2026-11-29T16:13:19.326939+00:00".len(),
        "{stamp}"
    );
    sshd.cut("lb");
    for n in 0..15 {
        inside(&log_line(&format!("later {n}"))).await;
    }
    for n in 0..15 {
        let line = line(&mut log).await;
        assert!(line.ends_with(&format!(" later {n}")), "{line}");
    }
    // HAProxy itself, by syslog: its own name and no stamp of its own.
    let config = sshd.folder().join("syslog.cfg");
    let text = "global\n  log /run/systemd/journal/dev-log local0\ndefaults\n  mode http\n  log global\n  timeout connect 1s\n  \
                timeout client 1s\n  timeout server 1s\nlisten istio-http-backend\n  bind unix@/tmp/gtrun-test-unused.sock\n  \
                server worker1 127.0.0.1:1 check inter 100ms fall 1\n";
    fs::write(
        &config,
        text.replace(
            "/tmp/gtrun-test-unused.sock",
            &sshd.folder().join("in.sock").display().to_string(),
        ),
    )
    .expect("config");
    inside(&format!(
        "timeout 2 {} -db -f {} >/dev/null 2>&1; true",
        haproxy_program.display(),
        config.display()
    ))
    .await;
    loop {
        let line = line(&mut log).await;
        if line.contains("is DOWN") {
            assert!(
                line.contains("+00:00 Server istio-http-backend/worker1 is DOWN"),
                "{line}"
            );
            break;
        }
    }
}
