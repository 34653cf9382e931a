//! What happens to a request in flight when its pod is deleted, as the recorded runs have it.

use std::process::Stdio;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::support::{TestLab, eventually, lab, text};

/// What became of a request that was in flight when its pod was deleted.
struct Story {
    /// What curl said, with its exit code.
    client: String,
    /// When the deletion was sent.
    deleted: DateTime<Utc>,
    /// The hc container's log.
    hc: String,
    /// The proxy's log.
    proxy: String,
    /// HAProxy's log.
    haproxy: String,
}

impl Story {
    /// Seconds from the deletion to HAProxy's DOWN of the pod's server.
    fn down_after(&self, server: &str) -> f64 {
        let wanted = format!("Server istio-http-backend/{server} is DOWN");
        let line = self.haproxy.lines().rev().find(|l| l.contains(&wanted)).expect("DOWN");
        since(self.deleted, line.split_ascii_whitespace().next().expect("stamp"))
    }

    /// HAProxy's line of the request.
    fn request_line(&self) -> &str {
        self.haproxy
            .lines()
            .rev()
            .find(|l| l.contains("/sleep?"))
            .expect("the request's line")
    }
}

fn since(from: DateTime<Utc>, stamp: &str) -> f64 {
    let at = DateTime::parse_from_rfc3339(stamp).expect("stamp").with_timezone(&Utc);
    (at - from).num_microseconds().expect("short") as f64 / 1e6
}

/// Sends `/sleep?seconds=N`, deletes its pod two seconds later with a grace period, and waits for the pod to go.
fn delete_under_a_request(lab: &TestLab, seconds: u32, grace: u32) -> Story {
    let pod = lab.pods().remove(0);
    let follow = |container: &str| {
        let arguments = ["logs", "-f", &pod, "-c", container];
        lab.kubectl_command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl")
    };
    let (hc, proxy) = (follow("hc"), follow("istio-proxy"));
    let client = lab
        .curl(&format!("/sleep?seconds={seconds}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let client = client.expect("curl");
    std::thread::sleep(Duration::from_secs(2));
    let deleted = Utc::now();
    lab.kubectl_ok(&[
        "delete",
        "pod",
        &pod,
        &format!("--grace-period={grace}"),
        "--wait=false",
    ]);
    let client = client.wait_with_output().expect("curl");
    eventually("the pod goes", Duration::from_secs(40), || !lab.pods().contains(&pod));
    Story {
        client: format!(
            "{}{}exit={:?}",
            text(&client.stdout),
            text(&client.stderr),
            client.status.code()
        ),
        deleted,
        hc: text(&hc.wait_with_output().expect("kubectl").stdout),
        proxy: text(&proxy.wait_with_output().expect("kubectl").stdout),
        haproxy: lab.haproxy_log(),
    }
}

#[test]
fn current_cuts_the_request_when_the_server_goes_down() {
    let Some(lab) = lab(&["mode=current", "pod.lb_wait=2s"]) else {
        return;
    };
    let story = delete_under_a_request(&lab, 30, 210);
    let down = story.down_after("worker1");
    assert!((1.9..4.4).contains(&down), "DOWN {down} s after the deletion");
    assert!(
        story.client.contains("status=502") && story.client.contains("exit=Some(0)"),
        "{}",
        story.client
    );
    assert!(
        story.request_line().contains(" 502 ") && story.request_line().contains(" DH-- "),
        "{}",
        story.request_line()
    );
    assert!(
        story.proxy.lines().any(|l| l.contains("/sleep") && l.contains(" DC ")),
        "{}",
        story.proxy
    );
    let states: Vec<_> = story
        .hc
        .lines()
        .filter_map(|l| l.split_once("event=transition ").map(|(_, t)| t))
        .collect();
    assert_eq!(
        states,
        [
            "from=OPEN to=DRAINING",
            "from=DRAINING to=CLOSING",
            "from=CLOSING to=CLOSED"
        ]
    );
    assert!(
        story.hc.trim_end().ends_with("event=sigterm"),
        "the log is whole: {}",
        story.hc
    );
    lab.down();
}

#[test]
fn improved_lets_the_request_end_first() {
    let Some(lab) = lab(&["pod.lb_wait=5s"]) else { return };
    let story = delete_under_a_request(&lab, 6, 210);
    assert!(
        story.client.contains("status=200") && story.client.contains("exit=Some(0)"),
        "{}",
        story.client
    );
    assert!(
        story.request_line().contains(" 200 ") && story.request_line().contains(" ---- "),
        "{}",
        story.request_line()
    );
    // 4 s until the request ends, then at most 1 s until hc sees it, then 2 to 4 s of failing checks.
    let down = story.down_after("worker1");
    assert!((5.9..9.5).contains(&down), "DOWN {down} s after the deletion");
    let events: Vec<_> = story
        .hc
        .lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(_, event)| event)
        .collect();
    let place = |what: &str| {
        events
            .iter()
            .position(|e| e.starts_with(what))
            .unwrap_or_else(|| panic!("{what}: {events:?}"))
    };
    assert!(place("event=prestop who=hc") < place("event=transition from=OPEN"));
    assert!(place("event=poll downstream=1 upstream=1") < place("event=poll downstream=0 upstream=0"));
    assert!(place("event=health from=200 to=503") < place("event=drain_listeners status=200 body='OK'"));
    lab.down();
}

#[test]
fn without_a_hook_the_proxy_ends_at_once() {
    let Some(lab) = lab(&["pod.prestop.sidecar=none", "pod.drain_max=2s", "pod.lb_wait=1s"]) else {
        return;
    };
    let story = delete_under_a_request(&lab, 10, 30);
    assert!(story.client.contains("status=502"), "{}", story.client);
    assert!(story.request_line().contains(" SH-- "), "{}", story.request_line());
    let gone = story
        .proxy
        .lines()
        .find(|l| l.contains("shutting down server instance"))
        .expect("the proxy's end");
    let gone = since(story.deleted, gone.split_ascii_whitespace().next().expect("stamp"));
    // Measured on a real cluster: SIGTERM 0.04 s after the deletion (here with kubectl's own start in front).
    assert!((0.03..0.40).contains(&gone), "{gone}");
    assert!(story.hc.contains("event=poll_error"), "{}", story.hc);
    assert!(
        story.hc.contains("event=drain_timeout"),
        "an absent gauge is no zero: {}",
        story.hc
    );
    lab.down();
}

#[test]
fn a_hook_that_overruns_the_grace_period_is_cut_short() {
    let Some(lab) = lab(&[]) else { return };
    let pod = lab.pods().remove(0);
    let story = delete_under_a_request(&lab, 30, 3);
    // SIGTERM comes with the end of the grace period, and everything ends.
    let gone = story
        .proxy
        .lines()
        .find(|l| l.contains("shutting down server instance"))
        .expect("the proxy's end");
    let gone = since(story.deleted, gone.split_ascii_whitespace().next().expect("stamp"));
    assert!((3.0..3.5).contains(&gone), "{gone}");
    // Whichever of proxy and application ends first: the proxy's connection breaks, or it answers 503 by itself.
    let line = story.request_line();
    assert!(line.contains(" SH-- ") || line.contains(" 503 "), "{line}");
    let events = lab.kubectl_ok(&[
        "get",
        "events",
        "--field-selector",
        &format!("involvedObject.name={pod}"),
    ]);
    assert!(events.contains("FailedPreStopHook"), "{events}");
    lab.down();
}

#[test]
fn a_native_sidecar_outlives_the_containers() {
    let Some(lab) = lab(&["pod.sidecar=native", "pod.prestop.sidecar=none", "pod.lb_wait=1s"]) else {
        return;
    };
    let story = delete_under_a_request(&lab, 5, 60);
    assert!(story.client.contains("status=200"), "{}", story.client);
    let sigterm = story
        .hc
        .lines()
        .find(|l| l.ends_with("event=sigterm"))
        .expect("hc's end");
    let proxy = story
        .proxy
        .lines()
        .find(|l| l.contains("shutting down server instance"))
        .expect("the proxy's end");
    let stamp = |line: &str| line.split_ascii_whitespace().next().expect("stamp").to_owned();
    let after = since(
        DateTime::parse_from_rfc3339(&stamp(sigterm)).expect("stamp").to_utc(),
        &stamp(proxy),
    );
    assert!(
        (0.05..0.25).contains(&after),
        "measured on a real cluster: 0.07 s; here {after}"
    );
    lab.down();
}

#[test]
fn nolb_takes_the_server_out_of_rotation_and_kills_nothing() {
    let Some(lab) = lab(&["mode=nolb", "pod.lb_wait=3s"]) else {
        return;
    };
    let story = delete_under_a_request(&lab, 6, 60);
    assert!(story.client.contains("status=200"), "{}", story.client);
    assert!(
        story.haproxy.contains("Server istio-http-backend/worker1 is stopping"),
        "{}",
        story.haproxy
    );
    assert!(story.hc.contains("event=health from=200 to=404"), "{}", story.hc);
    lab.down();
}
