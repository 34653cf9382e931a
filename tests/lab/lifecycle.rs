//! Up, down, side by side, and after a crash.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use gtrun::world::lab::{Lab, LabError, LabName, LabOptions, Lifetime, down};

use crate::support::{assert_nothing_left, eventually, lab, options, processes_that_mention, text, world};

#[test]
fn a_request_goes_through_and_nothing_is_left() {
    let began = Instant::now();
    let Some(lab) = lab(&[]) else { return };
    let took = began.elapsed();
    let said = text(&lab.curl("/hello").output().expect("curl").stdout);
    assert!(said.starts_with("ok path=/hello\n\nstatus=200"), "{said}");
    // HAProxy writes its line after the client has its answer.
    let deadline = Instant::now() + Duration::from_secs(5);
    while !lab.haproxy_log().contains("istio-http-backend/worker1 0/0/") {
        assert!(Instant::now() < deadline, "{}", lab.haproxy_log());
        std::thread::sleep(Duration::from_millis(20));
    }
    // 2 s alone; the machine is shared with other tests.
    assert!(took < Duration::from_secs(20), "up took {took:?}");
    lab.down();
}

#[test]
fn four_labs_side_by_side_do_not_meet() {
    let Some(first) = lab(&["mode=current"]) else { return };
    let others: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| lab(&["replicas=2"]).expect("parts are there")))
            .collect();
        started.into_iter().map(|s| s.join().expect("up")).collect()
    });
    let mut entries = vec![first.facts().entry_connect_to.clone()];
    entries.extend(others.iter().map(|l| l.facts().entry_connect_to.clone()));
    entries.sort();
    entries.dedup();
    assert_eq!(entries.len(), 4, "{entries:?}");
    // One host of a lab reaches its neighbours and nobody else's.
    let stranger = &others[0].facts().hosts["worker1"].address;
    let from = &first.facts().hosts["worker1"].namespace;
    let ping = |address: &str| {
        let arguments = [
            "netns",
            "exec",
            from,
            "bash",
            "-c",
            &format!("exec 3<>/dev/tcp/{address}/22"),
        ];
        Command::new("ip")
            .args(arguments)
            .stderr(Stdio::null())
            .status()
            .expect("ip")
            .success()
    };
    assert!(ping(&first.facts().hosts["worker2"].address));
    assert!(!ping(stranger), "{from} reaches {stranger}");
    assert_eq!(first.pods().len(), 1);
    assert_eq!(others[2].pods().len(), 2);
    first.down();
    for (i, lab) in others.into_iter().enumerate() {
        let said = text(&lab.curl("/still").output().expect("curl").stdout);
        assert!(said.contains("status=200"), "lab {i} after another went down: {said}");
        lab.down();
    }
}

#[test]
fn a_lab_is_removed_after_kill_9_of_everything() {
    let options = LabOptions {
        lifetime: Lifetime::Detached,
        ..options(world(&[]))
    };
    let lab = match Lab::up(&options) {
        Ok(lab) => lab,
        Err(missing @ LabError::Missing(_)) if std::env::var("CI").as_deref() != Ok("true") => {
            eprintln!("\n*** NOT RUN: {missing}\n");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let facts = lab.facts().clone();
    // A capture and a shell over SSH are the lab's as well.
    let mut capture = Command::new("ssh")
        .args([
            "-F",
            &facts.ssh_config.display().to_string(),
            "worker1",
            "tcpdump -i any -w /dev/null",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("ssh");
    let inside = || {
        text(
            &Command::new("ip")
                .args(["netns", "pids", &facts.hosts["worker1"].namespace])
                .output()
                .expect("ip")
                .stdout,
        )
    };
    let before = inside().lines().count();
    eventually("the capture runs", Duration::from_secs(5), || {
        inside()
            .lines()
            .any(|pid| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|c| c == b"tcpdump\n"))
    });
    assert!(before > 0);
    for (pid, _) in processes_that_mention(&options.root)
        .iter()
        .filter(|(_, line)| line.contains("lab serve"))
    {
        Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .expect("kill");
    }
    // The rest in two halves: what down finds is a random part of the lab.
    for (pid, _) in processes_that_mention(&options.root).iter().step_by(2) {
        Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status()
            .expect("kill");
    }
    drop(lab);
    assert!(down(&options.root, &options.name).expect("down"), "there was one");
    assert_nothing_left(&facts, &options.root);
    assert!(
        !down(&options.root, &options.name).expect("down again"),
        "there is none any more"
    );
    let _ = capture.kill();
    capture.wait().expect("ssh");
}

#[test]
fn an_attached_lab_goes_with_its_owner() {
    let Some(lab) = lab(&[]) else { return };
    let facts = lab.facts().clone();
    let root = lab.lab().directory().parent().expect("root").to_owned();
    // What a killed owner does: its end of the pipe is closed, and nothing else happens.
    std::mem::forget(lab);
    let supervisor = processes_that_mention(&root)
        .into_iter()
        .find(|(_, line)| line.contains("lab serve"));
    let (pid, _) = supervisor.expect("supervisor");
    let held = std::fs::read_link(format!("/proc/{pid}/fd/0")).expect("standard input");
    for entry in std::fs::read_dir("/proc/self/fd").expect("fds").flatten() {
        if std::fs::read_link(entry.path()).is_ok_and(|to| to == held) {
            let fd: i32 = entry.file_name().to_string_lossy().parse().expect("number");
            nix::unistd::close(fd).expect("closed");
        }
    }
    eventually("the lab removes itself", Duration::from_secs(5), || !root.exists());
    assert_nothing_left(&facts, &root);
}

#[test]
fn a_second_lab_of_the_same_name_is_refused() {
    let Some(lab) = lab(&[]) else { return };
    let root = lab.lab().directory().parent().expect("root").to_owned();
    let name = LabName::new(&lab.facts().name).expect("name");
    let same = LabOptions {
        root: root.clone(),
        name: name.clone(),
        ..options(world(&[]))
    };
    assert!(matches!(Lab::up(&same), Err(LabError::AlreadyUp(n)) if n == name.as_str()));
    // The same name under another root would take the same namespaces.
    let elsewhere = LabOptions {
        name,
        ..options(world(&[]))
    };
    assert!(matches!(Lab::up(&elsewhere), Err(LabError::Foreign(_))));
    assert!(
        text(&lab.curl("/").output().expect("curl").stdout).contains("status=200"),
        "the lab that is up stays"
    );
    lab.down();
}

#[test]
fn a_lab_that_cannot_come_up_leaves_nothing() {
    let Some(lab) = lab(&[]) else { return };
    lab.down();
    // HAProxy refuses its configuration.
    let options = options(world(&["load_balancer.retry_on=[\"no-such-thing\"]"]));
    let error = Lab::up(&options).expect_err("refused").to_string();
    assert!(error.contains("HAProxy") || error.contains("haproxy"), "{error}");
    assert!(!options.root.exists());
    let namespaces = text(&Command::new("ip").args(["netns", "list"]).output().expect("ip").stdout);
    assert!(
        !namespaces.contains(&format!("gtrun-{}-", options.name.as_str())),
        "{namespaces}"
    );
}

#[test]
fn hosts_are_reached_by_ssh_through_the_jump_host() {
    let Some(lab) = lab(&[]) else { return };
    for (name, host) in &lab.facts().hosts {
        let config = lab.facts().ssh_config.display().to_string();
        let output = Command::new("ssh")
            .args(["-F", &config, name, "ip -4 -br addr show eth0; echo $SSH_CONNECTION"])
            .output();
        let output = output.expect("ssh");
        let said = text(&output.stdout);
        assert!(
            said.contains(&format!("{}/24", host.address)),
            "{name}: {said}{}",
            text(&output.stderr)
        );
        let from = if host.jump.is_empty() {
            "198.18."
        } else {
            lab.facts().hosts["jump"].address.as_str()
        };
        assert!(
            said.lines().last().is_some_and(|l| l.starts_with(from)),
            "{name}: {said}"
        );
    }
    lab.down();
}
