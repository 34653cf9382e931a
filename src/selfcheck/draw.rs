//! Draws a world, a scenario for it, and which of its evidence is missing.

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::time::Duration;
use crate::world::sim::spec::{
    ClockSpec, DrainListeners, Hook, LoadBalancerSpec, LogStamps, Mode, NetworkSpec, Observation, PodSpec, Version,
    WorldSpec,
};

/// A world and what is done in it.
pub(super) struct Drawn {
    pub(super) spec: WorldSpec,
    /// The scenario's text.
    pub(super) scenario: String,
    /// Files that are taken away before the judgement.
    pub(super) missing: Vec<&'static str>,
}

/// Evidence that may be missing, each independently.
const SOURCES: [&str; 6] = [
    "haproxy.log",
    "haproxy-stat-timeline.csv",
    "envoy.log",
    "hc.log",
    "envoy-active.tsv",
    "rst-lb.pcap",
];

fn millis(rng: &mut StdRng, lo: i64, hi: i64) -> Duration {
    Duration::from_millis(rng.random_range(lo..=hi))
}

/// The world of a seed.
pub(super) fn draw(seed: u64) -> Drawn {
    let rng = &mut StdRng::seed_from_u64(seed ^ 0x5e1f_c4ec);
    let mode = *[Mode::Current, Mode::Improved, Mode::Nolb]
        .choose(rng)
        .unwrap_or(&Mode::Current);
    let version = *[Version::V2_6, Version::V2_8, Version::V3_0, Version::V3_2]
        .choose(rng)
        .unwrap_or(&Version::V2_6);
    let inter = millis(rng, 500, 3_000);
    let load_balancer = LoadBalancerSpec {
        version,
        inter,
        fastinter: rng.random_bool(0.2).then(|| millis(rng, 200, 1_000)),
        fall: rng.random_range(1..=4),
        rise: rng.random_range(1..=3),
        shutdown_sessions: rng.random_bool(0.9),
        disable_on_404: mode == Mode::Nolb,
        timeout_server: if rng.random_bool(0.1) {
            millis(rng, 4_000, 9_000)
        } else {
            Duration::from_secs(300)
        },
        log: *[LogStamps::Iso, LogStamps::Rfc5424]
            .choose(rng)
            .unwrap_or(&LogStamps::Iso),
        log_health_checks: rng.random_bool(0.8),
        ..LoadBalancerSpec::default()
    };
    let drain_listeners = *[
        DrainListeners::AtClosing,
        DrainListeners::AtClosing,
        DrainListeners::AtDraining,
        DrainListeners::Never,
    ]
    .choose(rng)
    .unwrap_or(&DrainListeners::AtClosing);
    let sleeps = rng.random_bool(0.1).then(|| millis(rng, 1_000, 6_000));
    let pod = PodSpec {
        lb_wait: millis(rng, 3_000, 8_000),
        drain_max: rng.random_bool(0.2).then(|| millis(rng, 2_000, 8_000)),
        drain_listeners,
        drain_time: millis(rng, 3_000, 45_000),
        app_hook: sleeps.map_or(Hook::Fsm, Hook::Sleep),
        health_delay: if rng.random_bool(0.1) {
            millis(rng, 10, 400)
        } else {
            Duration::from_micros(300)
        },
        ..PodSpec::default()
    };
    let clock = |rng: &mut StdRng| ClockSpec {
        offset: millis(rng, -2_500, 2_500),
        drift_ppm: rng.random_range(-40.0..40.0),
    };
    let hosts = ["lb", "worker1", "worker2"].map(|h| (h.to_owned(), clock(rng)));
    let clocks = if rng.random_bool(0.5) {
        hosts.into_iter().collect()
    } else {
        Default::default()
    };
    let spec = WorldSpec {
        mode,
        pod,
        load_balancer,
        clocks,
        network: NetworkSpec {
            rtt: Duration::from_micros(rng.random_range(50..4_000)),
            host_port: rng.random_bool(0.3),
        },
        traffic: if rng.random_bool(0.15) {
            rng.random_range(0.2..3.0)
        } else {
            0.0
        },
        observation: Observation {
            lost_samples: if rng.random_bool(0.3) {
                rng.random_range(0.0..0.3)
            } else {
                0.0
            },
            followers_break: rng.random_bool(0.05),
            xds_stream: rng.random_bool(0.5),
            ..Observation::default()
        },
        ..WorldSpec::default()
    };
    let missing = SOURCES.into_iter().filter(|_| rng.random_bool(0.15)).collect();
    Drawn {
        scenario: scenario(rng),
        spec,
        missing,
    }
}

/// One to three requests, one of them perhaps given up by its client, and the deletion of their pod.
fn scenario(rng: &mut StdRng) -> String {
    let grace = if rng.random_bool(0.1) {
        rng.random_range(3..8)
    } else {
        60
    };
    let mut text = String::from("gtrun: 1\nname: selfcheck\nsteps:\n");
    let requests = rng.random_range(1..=3);
    for n in 1..=requests {
        let work = rng.random_range(20..140);
        let timeout = if rng.random_bool(0.08) {
            rng.random_range(2..8)
        } else {
            60
        };
        text.push_str(&format!(
            "  - id: r{n}\n    request: {{ path: \"/sleep?seconds={}.{}&id=r{n}\", timeout: {timeout}s, background: true }}\n  \
             - wait: {}ms\n",
            work / 10,
            work % 10,
            rng.random_range(20..900)
        ));
    }
    text.push_str(&format!("  - id: kill\n    delete_pod: {{ grace: {grace}s }}\n"));
    for n in 1..=requests {
        text.push_str(&format!(
            "  - {{ wait_for: ended(r{n}), timeout: 60s, on_timeout: continue }}\n"
        ));
    }
    text.push_str("  - { wait_for: lb_down, timeout: 30s, on_timeout: continue }\n");
    text.push_str(&format!("  - wait: {}ms\n", rng.random_range(300..7_000)));
    text.push_str("assertions:\n  - active_zero_before(lb_down)\n  - lb_down_before(active_zero)\n");
    for n in 1..=requests {
        text.push_str(&format!("  - protected(r{n})\n  - broken(r{n})\n"));
    }
    text
}
