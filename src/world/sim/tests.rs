//! The model against what was measured on real parts.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use super::Sim;
use super::spec::{Mode, WorldSpec};
use super::truth::{AttemptEnd, Happened, TruthLog};
use crate::evidence::client::Outcome;
use crate::time::{Duration, Instant};
use crate::world::port::{ConnectionUse, HttpRequest, HttpResult, LogItem, Protocol, World};

/// A plain request.
fn get(path: &str, timeout: Duration) -> Arc<HttpRequest> {
    Arc::new(HttpRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: None,
        timeout,
        connection: ConnectionUse::New,
        protocol: Protocol::H1,
        read_rate: None,
        stop_after: None,
        cancel: CancellationToken::new(),
        keep_body: 100,
    })
}

fn secs(s: i64) -> Duration {
    Duration::from_secs(s)
}

/// What the classic scenario leaves: a long request, its pod deleted five seconds into it.
struct Classic {
    result: HttpResult,
    deleted: Instant,
    lb_log: Vec<String>,
    truth: TruthLog,
}

async fn lines(world: &World, until: Instant) -> Vec<String> {
    let Ok(mut log) = world.load_balancer.follow_log().await else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let mut end = world.clock.sleep_until(until);
    loop {
        tokio::select! {
            biased;
            item = log.next() => match item {
                Some(LogItem::Line { text, .. }) => out.push(String::from_utf8_lossy(&text).into_owned()),
                _ => return out,
            },
            () = &mut end => return out,
        }
    }
}

fn classic(spec: WorldSpec, seed: u64, work: i64) -> Classic {
    let sim = Sim::new(spec, seed);
    let world = sim.world();
    let run = async {
        let start = world.clock.now();
        let log = lines(&world, start + secs(work + 25));
        let act = async {
            world.clock.sleep_until(start + Duration::from_millis(300)).await;
            let request = world.http.send(get(&format!("/sleep?seconds={work}"), secs(200)), None);
            let delete = async {
                world.clock.sleep_until(start + Duration::from_millis(5_300)).await;
                let pods = world.cluster.pods().await.expect("pods");
                let target = pods.iter().find(|p| p.ready).expect("a ready pod");
                world
                    .cluster
                    .delete_pod(&target.identity, Some(secs(210)))
                    .await
                    .expect("deleted");
                world.clock.now()
            };
            futures::join!(request, delete)
        };
        let (log, (result, deleted)) = futures::join!(log, act);
        (log, result, deleted)
    };
    let (lb_log, result, deleted) = sim.block_on(run).expect("the world goes on");
    Classic {
        result,
        deleted,
        lb_log,
        truth: sim.truth(),
    }
}

fn when(truth: &TruthLog, is: impl Fn(&Happened) -> bool) -> Option<Instant> {
    truth.events.iter().find(|e| is(&e.what)).map(|e| e.at)
}

fn server_state(truth: &TruthLog, after: Instant, wanted: &str) -> Option<Instant> {
    let matches = |what: &Happened| matches!(what, Happened::Server { state, .. } if state == wanted);
    truth
        .events
        .iter()
        .find(|e| e.at > after && matches(&e.what))
        .map(|e| e.at)
}

#[test]
fn current_mode_cuts_the_request_two_to_four_seconds_after_the_delete() {
    for seed in 0..40 {
        let spec = WorldSpec {
            mode: Mode::Current,
            ..WorldSpec::default()
        };
        let c = classic(spec, seed, 60);
        assert_eq!(
            (c.result.status, c.result.outcome),
            (Some(502), Outcome::HttpError),
            "seed {seed}"
        );
        let down = server_state(&c.truth, c.deleted, "down").expect("down");
        let lag = down - c.deleted;
        assert!(
            lag > secs(2) && lag < Duration::from_millis(4_200),
            "seed {seed}: DOWN {lag} after the delete"
        );
        let kill = c.result.ended - down;
        assert!(
            kill > Duration::ZERO && kill < Duration::from_millis(3),
            "seed {seed}: answered {kill} after DOWN"
        );
        assert_eq!(c.truth.requests[0].attempts[0].end, AttemptEnd::CutByDown);
        let cut = c.lb_log.iter().filter(|l| l.contains(" 502 209 - - DH-- ")).count();
        assert_eq!(cut, 1, "seed {seed}: {:#?}", c.lb_log);
    }
}

#[test]
fn improved_mode_answers_before_the_server_goes_down() {
    for seed in 0..20 {
        let c = classic(WorldSpec::default(), seed, 15);
        assert_eq!(
            (c.result.status, c.result.outcome),
            (Some(200), Outcome::Ok),
            "seed {seed}"
        );
        let zero = c.truth.events.iter().rev().find(|e| {
            matches!(
                e.what,
                Happened::Active {
                    downstream: 0,
                    upstream: 0,
                    ..
                }
            )
        });
        let zero = zero.expect("a zero").at;
        let down = server_state(&c.truth, c.deleted, "down").expect("down");
        let gap = down - zero;
        assert!(
            gap > secs(2) && gap < Duration::from_millis(5_200),
            "seed {seed}: DOWN {gap} after active zero"
        );
        let closed = when(
            &c.truth,
            |w| matches!(w, Happened::Transition { to, .. } if to == "CLOSED"),
        );
        assert!(closed.is_some(), "seed {seed}: never CLOSED");
        assert_eq!(c.truth.requests[0].attempts[0].end, AttemptEnd::Whole);
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let world = |seed| {
        let c = classic(WorldSpec::default(), seed, 15);
        (c.lb_log, format!("{:?}", c.truth))
    };
    assert_eq!(world(5), world(5));
    assert_ne!(world(5), world(6));
}

#[test]
fn nothing_ever_gets_stuck_without_saying_so() {
    let sim = Sim::new(WorldSpec::default(), 1);
    let world = sim.world();
    // Health checks go on for ever: an hour of nothing is no problem.
    sim.block_on(world.clock.sleep_until(world.clock.now() + secs(3_600)))
        .expect("an hour");
    let many: FuturesUnordered<_> = (0..50).map(|_| world.http.send(get("/", secs(5)), None)).collect();
    let results: Vec<HttpResult> = sim.block_on(many.collect()).expect("answers");
    assert!(results.iter().all(|r| r.status == Some(200)), "{results:?}");
}
