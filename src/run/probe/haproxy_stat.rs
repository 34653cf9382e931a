//! HAProxy's statistics: before, after, and every so often in between.

use std::collections::BTreeMap;

use super::super::context::Context;
use super::super::live::Seen;
use super::super::live::change_of;
use super::Running;
use crate::evidence::haproxy_csv::{StatusClass, parse_snapshot};
use crate::language::vocabulary::LbStatus;
use crate::time::Duration;
use crate::world::port::{Sample, Sampler, WorldError};

const TIMELINE: &str = "haproxy-stat-timeline.csv";

pub(super) async fn start(ctx: &Context, every: Duration) -> Result<Running, WorldError> {
    let mut sampler = ctx.world.load_balancer.stats().await?;
    // Proves that it answers at all; the next ones may fail.
    let first = sampler.sample().await;
    match &first.reply {
        Ok(text) => ctx.recorder.replace("haproxy-stat-before.csv", text.as_bytes()),
        Err(why) => {
            let kind = crate::world::port::ErrorKind::Failed;
            return Err(WorldError::new(
                kind,
                "read the load balancer's statistics",
                why.clone(),
            ));
        }
    }
    let mut running = Running::new();
    let stop = running.stop();
    let ctx2 = ctx.clone();
    running.part(ctx, async move {
        let mut timeline = Timeline::new(&ctx2);
        timeline.write(&first);
        let mut next = first.sent + every;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = ctx2.world.clock.sleep_until(next) => {}
            }
            let sample = sampler.sample().await;
            timeline.write(&sample);
            next = after(next, every, ctx2.now());
        }
        last(&ctx2, &mut *sampler, &mut timeline).await;
    });
    Ok(running)
}

/// The last sample, after the last step: it is `after` too.
async fn last(ctx: &Context, sampler: &mut dyn Sampler, timeline: &mut Timeline) {
    let sample = sampler.sample().await;
    timeline.write(&sample);
    if let Ok(text) = &sample.reply {
        ctx.recorder.replace("haproxy-stat-after.csv", text.as_bytes());
    }
}

/// The next multiple of the period that is not over: a slow reply skips samples and does not shift them.
pub(super) fn after(
    previous: crate::time::Instant,
    every: Duration,
    now: crate::time::Instant,
) -> crate::time::Instant {
    let mut next = previous + every;
    if next <= now && every > Duration::ZERO {
        let missed = (now - previous).as_nanos() / every.as_nanos();
        next = previous + every.times(missed + 1);
    }
    next
}

struct Timeline {
    ctx: Context,
    header: String,
    servers: BTreeMap<String, LbStatus>,
}

impl Timeline {
    fn new(ctx: &Context) -> Self {
        Self {
            ctx: ctx.clone(),
            header: String::new(),
            servers: BTreeMap::new(),
        }
    }

    fn write(&mut self, sample: &Sample) {
        let stamps = format!("{},{},", sample.sent, sample.received);
        let mut out = String::new();
        match &sample.reply {
            Err(why) => {
                let why = why.replace(['\n', ',', '"'], " ");
                out.push_str(&format!("{stamps}unknown: {why}\n"));
            }
            Ok(text) => {
                for line in text.lines().filter(|l| !l.is_empty()) {
                    if line.starts_with('#') {
                        // Again when a reload has brought another version's columns.
                        if line != self.header {
                            line.clone_into(&mut self.header);
                            out.push_str(&format!("sent,received,{line}\n"));
                        }
                    } else {
                        out.push_str(&stamps);
                        out.push_str(line);
                        out.push('\n');
                    }
                }
                self.see(sample, text);
            }
        }
        self.ctx.recorder.append(TIMELINE, out.as_bytes());
    }

    fn see(&mut self, sample: &Sample, text: &str) {
        let backend = self.ctx.plan.environment.load_balancer.backend.clone();
        for row in parse_snapshot(text) {
            if row.is_backend || *row.proxy != *backend {
                continue;
            }
            let status = match row.status.class {
                StatusClass::Up => LbStatus::Up,
                StatusClass::GoingDown => LbStatus::GoingDown,
                StatusClass::Down => LbStatus::Down,
                StatusClass::ComingUp => LbStatus::ComingUp,
                StatusClass::Drain => LbStatus::Drain,
                StatusClass::Nolb => LbStatus::Nolb,
                StatusClass::Maint => LbStatus::Maint,
                StatusClass::NoCheck => LbStatus::NoCheck,
                StatusClass::NotAServer | StatusClass::Unknown => LbStatus::Unknown,
            };
            let server = row.server.to_string();
            let sessions = row.scur.unwrap_or(0);
            self.ctx.live.update(|s| {
                s.servers.insert(server.clone(), (status, sessions));
            });
            let before = self.servers.insert(server.clone(), status);
            if let (Some(before), Some(change)) = (before, change_of(status))
                && change_of(before) != Some(change)
            {
                self.ctx.live.saw(sample.received, Seen::Lb { server, change });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    #[test]
    fn a_slow_reply_skips_samples_and_does_not_shift_them() {
        let at = |ms| Instant::from_nanos(0) + Duration::from_millis(ms);
        let every = Duration::from_millis(200);
        assert_eq!(after(at(0), every, at(3)), at(200));
        assert_eq!(after(at(0), every, at(200)), at(400));
        assert_eq!(after(at(0), every, at(450)), at(600));
    }
}
