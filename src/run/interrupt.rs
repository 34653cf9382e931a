//! Signals: the first ends the steps, the second skips every wait.

use tokio::sync::watch;

use crate::evidence::run_folder::Signal;

/// Who sends signals to runs.
#[derive(Debug)]
pub struct Interrupter(watch::Sender<State>);

/// What a run sees of them; clones see the same.
#[derive(Debug, Clone)]
pub struct Interrupts(watch::Receiver<State>);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    first: Option<Signal>,
    count: u32,
}

/// A pair that belongs together.
pub fn interrupts() -> (Interrupter, Interrupts) {
    let (to, from) = watch::channel(State::default());
    (Interrupter(to), Interrupts(from))
}

impl Interrupter {
    /// A signal has come.
    pub fn raise(&self, signal: Signal) {
        self.0.send_modify(|s| {
            s.first = s.first.or(Some(signal));
            s.count += 1;
        });
    }
}

impl Interrupts {
    /// None will ever come.
    pub fn none() -> Self {
        interrupts().1
    }

    /// The first signal, when one has come.
    pub fn signal(&self) -> Option<Signal> {
        self.0.borrow().first
    }

    /// Ready when a signal has come; pending for ever when nobody can send one.
    pub async fn first(&self) -> Signal {
        let mut from = self.0.clone();
        loop {
            if let Some(signal) = from.borrow_and_update().first {
                return signal;
            }
            if from.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Ready when a second signal has come.
    pub async fn second(&self) {
        let mut from = self.0.clone();
        while from.borrow_and_update().count < 2 {
            if from.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
