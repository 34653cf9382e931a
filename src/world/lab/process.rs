//! Which process is ours: a pid together with its start time, so that a recycled pid is never signalled.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A process of this machine since it was booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    /// Its number, which the kernel gives to others later.
    pub(crate) pid: i32,
    /// When it started, in clock ticks since boot (field 22 of `/proc/PID/stat`).
    pub(crate) start: u64,
}

impl ProcessId {
    /// The process that has this number now; none when there is none or when it has ended and waits to be reaped.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the program's name in parentheses and may hold anything, parentheses too.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let start = fields.nth(18)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self { pid, start })
    }

    /// This process.
    pub(crate) fn own() -> Option<Self> {
        Self::of(i32::try_from(std::process::id()).ok()?)
    }

    /// Whether it is still there and has not ended.
    pub(crate) fn is_alive(self) -> bool {
        Self::of(self.pid) == Some(self)
    }

    /// Sends the signal if the number still belongs to this process.
    pub(crate) fn signal(self, signal: Signal) {
        if self.is_alive() {
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// SIGTERM to all, then SIGKILL to those that are left after `patience`; returns when all have ended or after one
/// more second.
pub(crate) fn end_all(processes: &[ProcessId], patience: Duration) {
    for (signal, patience) in [(Signal::SIGTERM, patience), (Signal::SIGKILL, Duration::from_secs(1))] {
        for process in processes {
            process.signal(signal);
        }
        let until = Instant::now() + patience;
        while processes.iter().any(|p| p.is_alive()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Identifies this boot of the machine: recorded processes and namespaces of another boot are gone.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let own = ProcessId::own().expect("this process");
        assert!(own.is_alive());
        assert!(
            !ProcessId {
                start: own.start + 1,
                ..own
            }
            .is_alive(),
            "same number, other process"
        );
        assert_eq!(ProcessId::of(i32::MAX), None);
    }

    #[test]
    fn only_the_recorded_process_is_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = i32::try_from(child.id()).expect("pid");
        let id = ProcessId::of(pid).expect("alive");
        end_all(
            &[ProcessId {
                start: id.start + 1,
                ..id
            }],
            Duration::ZERO,
        );
        assert!(id.is_alive(), "a recycled number was signalled");
        end_all(&[id], Duration::from_secs(2));
        assert!(!id.is_alive());
        child.wait().expect("reaped");
    }
}
