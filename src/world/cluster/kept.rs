//! Something that is kept open, and opened again in the background when it was lost.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// Longest time that a sample may take.
pub(super) const SAMPLE: Duration = Duration::from_millis(300);

/// A kept `T`. Opening may take longer than a sample: it goes on between samples.
pub(super) struct Kept<T> {
    current: Option<T>,
    /// The open one has been of use.
    proved: bool,
    open: Box<dyn Fn() -> BoxFuture<'static, Result<T, String>> + Send>,
    opening: Option<AbortOnDropHandle<Result<T, String>>>,
    /// Why the last attempt failed, and when the next may begin.
    failed: Option<(String, Instant)>,
    pause: Duration,
}

/// Pauses between attempts grow up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl<T: Send + 'static> Kept<T> {
    /// With one that is open already.
    pub(super) fn new(current: T, open: impl Fn() -> BoxFuture<'static, Result<T, String>> + Send + 'static) -> Self {
        Self {
            current: Some(current),
            proved: true,
            open: Box::new(open),
            opening: None,
            failed: None,
            pause: Duration::ZERO,
        }
    }

    /// The open one; waits for one until the deadline.
    pub(super) async fn get(&mut self, deadline: Instant) -> Result<&mut T, String> {
        if self.current.is_none() {
            self.current = Some(self.reopen(deadline).await?);
            self.proved = false;
        }
        self.current.as_mut().ok_or_else(|| "not open".to_owned())
    }

    async fn reopen(&mut self, deadline: Instant) -> Result<T, String> {
        let mut opening = match self.opening.take() {
            Some(opening) => opening,
            None => {
                if let Some((why, next)) = &self.failed
                    && Instant::now() < *next
                {
                    return Err(why.clone());
                }
                AbortOnDropHandle::new(tokio::spawn((self.open)()))
            }
        };
        match tokio::time::timeout_at(deadline, &mut opening).await {
            Ok(Ok(Ok(opened))) => {
                self.failed = None;
                Ok(opened)
            }
            Ok(Ok(Err(why))) => Err(self.fail(why)),
            Ok(Err(fault)) => Err(self.fail(fault.to_string())),
            Err(_) => {
                self.opening = Some(opening);
                Err("not connected".to_owned())
            }
        }
    }

    fn fail(&mut self, why: String) -> String {
        self.pause = (self.pause * 2).clamp(Duration::from_millis(100), LONGEST_PAUSE);
        self.failed = Some((why.clone(), Instant::now() + self.pause));
        why
    }

    /// The open one has been of use.
    pub(super) fn proved(&mut self) {
        self.proved = true;
        self.pause = Duration::ZERO;
    }

    /// The open one is of no use any more. When it never was, the next one is not opened at once.
    pub(super) fn give_up(&mut self, why: &str) {
        self.current = None;
        if !self.proved {
            self.fail(why.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn deadline() -> Instant {
        Instant::now() + SAMPLE
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_opening_goes_on_between_samples() {
        let mut kept = Kept::new(1, || {
            async {
                tokio::time::sleep(Duration::from_millis(700)).await;
                Ok(2)
            }
            .boxed()
        });
        assert_eq!(kept.get(deadline()).await, Ok(&mut 1));
        kept.give_up("x");
        for _ in 0..2 {
            assert_eq!(kept.get(deadline()).await, Err("not connected".to_owned()));
        }
        assert_eq!(kept.get(deadline()).await, Ok(&mut 2));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_opens_and_is_of_no_use_is_no_better_than_none() {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let mut kept = Kept::new((), move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }.boxed()
        });
        for _ in 0..100 {
            if kept.get(deadline()).await.is_ok() {
                kept.give_up("closed at once");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let tries = tries.load(Ordering::Relaxed);
        assert!((5..=12).contains(&tries), "{tries} in 10 s");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_cannot_be_opened_is_tried_ever_less_often() {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let mut kept = Kept::new((), move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Err("refused".to_owned()) }.boxed()
        });
        kept.give_up("x");
        for _ in 0..100 {
            assert_eq!(kept.get(deadline()).await, Err("refused".to_owned()));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let tries = tries.load(Ordering::Relaxed);
        assert!((5..=12).contains(&tries), "{tries} in 10 s");
    }
}
