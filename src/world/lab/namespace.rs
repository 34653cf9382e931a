//! A named network namespace of the machine (`ip netns`), and how to do something inside it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::sched::{CloneFlags, setns};

use super::process::ProcessId;

/// Where iproute2 keeps the names; shared by the whole machine.
const DIRECTORY: &str = "/run/netns";

/// A network namespace by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    /// The file that names it.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(DIRECTORY).join(&self.0)
    }

    /// Whether the name is taken.
    pub(crate) fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Runs `work` on a thread of its own inside the namespace. Sockets opened and processes started there belong to
    /// the namespace for ever; the calling thread stays where it is.
    ///
    /// # Errors
    /// The namespace is gone, or this process may not enter it.
    pub(crate) fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        let file = File::open(self.path())?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(move || {
                setns(&file, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)?;
                Ok(work())
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Every process of the machine that is in the namespace, whoever started it (a shell over ssh, a capture).
    pub(crate) fn processes(&self) -> Vec<ProcessId> {
        let Ok(own) = fs::metadata(self.path()) else {
            return Vec::new();
        };
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let inside = |pid: i32| {
            fs::metadata(format!("/proc/{pid}/ns/net")).is_ok_and(|m| (m.dev(), m.ino()) == (own.dev(), own.ino()))
        };
        entries
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse().ok())
            .filter(|pid| inside(*pid))
            .filter_map(ProcessId::of)
            .collect()
    }
}
