//! SIGINT and SIGTERM of the process, handed to the runs.

use crate::evidence::run_folder::Signal;
use crate::run::interrupt::{Interrupter, Interrupts, interrupts};

/// The signals of this process.
pub(super) struct Signals(Interrupts);

impl Signals {
    /// Listens from now on, on a thread of its own: the simulator has no runtime.
    pub(super) fn listen() -> Self {
        let (to, from) = interrupts();
        // Without a thread signals do what they do by default: they end the process.
        let _ = std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || listen(&to));
        Self(from)
    }

    /// What a run sees of them.
    pub(super) fn interrupts(&self) -> Interrupts {
        self.0.clone()
    }
}

fn listen(to: &Interrupter) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return;
    };
    runtime.block_on(async {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
                return;
            };
            loop {
                tokio::select! {
                    Some(()) = int.recv() => to.raise(Signal::Int),
                    Some(()) = term.recv() => to.raise(Signal::Term),
                    else => return,
                }
            }
        }
        #[cfg(not(unix))]
        while tokio::signal::ctrl_c().await.is_ok() {
            to.raise(Signal::Int);
        }
    });
}
