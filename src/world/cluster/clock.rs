//! gtrun's reference clock: UTC read once, continued on the monotonic clock.
//!
//! Waiting uses a thread of its own: the runtime's timer has steps of 1 ms, too coarse for a load with a fixed rate or
//! for a delete that must meet a phase of the health check.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant as Monotonic, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

use crate::time::{Duration, Instant};
use crate::world::port::Clock;

/// UTC of this machine as it was when the clock was made, continued without steps.
pub struct SystemClock {
    utc: Instant,
    monotonic: Monotonic,
    timer: Arc<Timer>,
}

#[derive(Default)]
struct Timer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    alarms: BinaryHeap<Reverse<Alarm>>,
    serial: u64,
    stopped: bool,
}

/// One sleeper; ordered by its moment, then by the order of asking.
struct Alarm {
    due: Monotonic,
    serial: u64,
    ring: oneshot::Sender<()>,
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.serial == other.serial
    }
}
impl Eq for Alarm {}
impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.serial).cmp(&(other.due, other.serial))
    }
}

impl SystemClock {
    /// Reads UTC and starts the timer's thread, which ends with the clock.
    pub fn start() -> Self {
        let (utc, monotonic) = both_clocks();
        let timer = Arc::new(Timer::default());
        let ours = Arc::clone(&timer);
        // Without a thread (no memory, no process left) sleeping falls back to the runtime's timer, see `sleep_until`.
        if std::thread::Builder::new()
            .name("gtrun-timer".to_owned())
            .spawn(move || ours.run())
            .is_err()
        {
            timer.lock().stopped = true;
        }
        Self { utc, monotonic, timer }
    }

    fn due(&self, at: Instant) -> Monotonic {
        self.monotonic + (at - self.utc).to_std()
    }
}

/// UTC and the monotonic clock at one moment: the reading that was interrupted least of several.
fn both_clocks() -> (Instant, Monotonic) {
    let reading = |_| {
        let before = Monotonic::now();
        let utc = SystemTime::now();
        let gap = before.elapsed();
        (gap, utc, before + gap / 2)
    };
    let best = (0..8).map(reading).min_by_key(|(gap, ..)| *gap);
    let (_, utc, monotonic) = best.unwrap_or_else(|| reading(0));
    let utc = match utc.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Instant::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
        // A clock before 1970: every stamp is wrong anyway, the order of stamps is not.
        Err(_) => Instant::from_nanos(0),
    };
    (utc, monotonic)
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        self.utc + Duration::from(self.monotonic.elapsed())
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let due = self.due(at);
        if due <= Monotonic::now() {
            return futures::future::ready(()).boxed();
        }
        match self.timer.add(due) {
            Some(rung) => async move {
                if rung.await.is_err() {
                    tokio::time::sleep_until(due.into()).await;
                }
            }
            .boxed(),
            None => tokio::time::sleep_until(due.into()).boxed(),
        }
    }
}

impl Drop for SystemClock {
    fn drop(&mut self) {
        self.timer.lock().stopped = true;
        self.timer.changed.notify_all();
    }
}

impl Timer {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when the thread does not run.
    fn add(&self, due: Monotonic) -> Option<oneshot::Receiver<()>> {
        let (ring, rung) = oneshot::channel();
        let mut queue = self.lock();
        if queue.stopped {
            return None;
        }
        queue.serial += 1;
        let serial = queue.serial;
        let first = queue.alarms.peek().is_none_or(|Reverse(next)| due < next.due);
        queue.alarms.push(Reverse(Alarm { due, serial, ring }));
        drop(queue);
        if first {
            self.changed.notify_one();
        }
        Some(rung)
    }

    fn run(&self) {
        let mut queue = self.lock();
        while !queue.stopped {
            let now = Monotonic::now();
            let next = queue.alarms.peek().map(|Reverse(alarm)| alarm.due);
            queue = match next {
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(due) if due > now => {
                    let wait = self.changed.wait_timeout(queue, due - now);
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
                Some(_) => {
                    if let Some(Reverse(alarm)) = queue.alarms.pop() {
                        // Nobody waits any more when the sleeper was dropped.
                        let _ = alarm.ring.send(());
                    }
                    queue
                }
            };
        }
        queue.alarms.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_wakes_early_and_the_order_is_kept() {
        let clock = SystemClock::start();
        let start = clock.now();
        let sleepers: Vec<_> = [30, 10, 20]
            .iter()
            .map(|ms| {
                let at = start + Duration::from_millis(*ms);
                let sleep = clock.sleep_until(at);
                let clock = &clock;
                async move {
                    sleep.await;
                    (at, clock.now())
                }
            })
            .collect();
        for (at, woke) in futures::future::join_all(sleepers).await {
            assert!(woke >= at, "woke {} early", at - woke);
            assert!(woke - at < Duration::from_secs(5), "woke {} late", woke - at);
        }
    }

    #[tokio::test]
    async fn the_past_is_ready_at_once() {
        let clock = SystemClock::start();
        let past = clock.now() - Duration::from_secs(1);
        assert!(clock.sleep_until(past).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_sleeper_outlives_its_clock() {
        let clock = SystemClock::start();
        let sleep = clock.sleep_until(clock.now() + Duration::from_millis(20));
        drop(clock);
        sleep.await;
    }
}
