//! What a lab is made of, on disk before it is made: the state directory that lets `gtrun lab down` remove it whatever
//! happened in between.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::IoContext;
use super::network::Subnet;
use super::process::ProcessId;
use super::world::LabWorld;
use super::{LabError, LabFacts};

/// A lab's name: part of the names of its namespaces and of its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabName(String);

impl LabName {
    /// Takes a name of 1 to 24 characters out of a-z, 0-9 and `-`.
    ///
    /// # Errors
    /// Anything else.
    pub fn new(name: &str) -> Result<Self, LabError> {
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if (1..=24).contains(&name.len()) && plain && !name.starts_with('-') {
            Ok(Self(name.to_owned()))
        } else {
            Err(LabError::Name(name.to_owned()))
        }
    }

    /// The name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the lab is made of. Written before anything is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The lab's name.
    pub(crate) name: String,
    /// The boot of the machine in which it was made: after another one nothing of it is left.
    pub(crate) boot: String,
    /// Every namespace that it makes; none of these names existed before.
    pub(crate) namespaces: Vec<String>,
    /// Its address block, once one is being taken.
    pub(crate) subnet: Option<Subnet>,
    /// What was asked for.
    pub(crate) world: LabWorld,
}

/// The directory of one lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateDir(PathBuf);

/// Where labs keep their state: `$XDG_RUNTIME_DIR/gtrun-lab`, else `gtrun-lab-UID` in the system's directory for
/// temporary files.
pub fn default_state_root() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_dir() => runtime.join("gtrun-lab"),
        _ => std::env::temp_dir().join(format!("gtrun-lab-{}", nix::unistd::geteuid())),
    }
}

impl StateDir {
    /// The directory of a lab under `root`.
    pub(crate) fn of(root: &Path, name: &LabName) -> Self {
        Self(root.join(name.as_str()))
    }

    /// A directory that was passed on as a path.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// A file or folder in it.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.join(name)
    }

    /// Makes the directory, for this user alone.
    ///
    /// # Errors
    /// The parent belongs to somebody else, or the directory exists.
    pub(crate) fn create(&self) -> Result<(), LabError> {
        fs::create_dir(&self.0).context("cannot create", &self.0)?;
        for folder in ["bin", "lb", "ssh", "pods", "kubernetes"] {
            let path = self.join(folder);
            fs::create_dir(&path).context("cannot create", path)?;
        }
        Ok(())
    }

    /// Held while the lab is made or removed, so that two commands never work on the same one. It is a lock on the
    /// directory itself: no lock file stays behind.
    ///
    /// # Errors
    /// Another command holds it, or there is no such directory.
    pub(crate) fn lock(&self) -> Result<Flock<File>, LabError> {
        let directory = File::open(&self.0).context("cannot open", &self.0)?;
        let name = self
            .0
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        Flock::lock(directory, FlockArg::LockExclusiveNonblock).map_err(|(_, _)| LabError::Busy(name))
    }

    /// The manifest, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn manifest(&self) -> Result<Option<Manifest>, LabError> {
        self.read("lab.json")
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn write_manifest(&self, manifest: &Manifest) -> Result<(), LabError> {
        self.write("lab.json", manifest)
    }

    /// What a user of the lab needs to know; there once the lab is up.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn facts(&self) -> Result<Option<LabFacts>, LabError> {
        self.read("facts.json")
    }

    /// Says that the lab is up.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn write_facts(&self, facts: &LabFacts) -> Result<(), LabError> {
        self.write("facts.json", facts)
    }

    /// Remembers a process that was started.
    ///
    /// # Errors
    /// The file system refuses.
    pub(crate) fn record_process(&self, what: &str, process: ProcessId) -> Result<(), LabError> {
        let path = self.join("processes.jsonl");
        let line = serde_json::json!({ "what": what, "process": process }).to_string() + "\n";
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .context("cannot open", &path)?;
        file.write_all(line.as_bytes()).context("cannot write", path)
    }

    /// Every process that was recorded, the supervisor first. A last line cut short by a crash is left out: that process
    /// is found by its namespace.
    pub(crate) fn processes(&self) -> Vec<(String, ProcessId)> {
        #[derive(Deserialize)]
        struct Line {
            what: String,
            process: ProcessId,
        }
        let text = fs::read_to_string(self.join("processes.jsonl")).unwrap_or_default();
        text.lines()
            .filter_map(|l| serde_json::from_str::<Line>(l).ok())
            .map(|l| (l.what, l.process))
            .collect()
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, LabError> {
        let path = self.join(name);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e).context("cannot read", path),
        };
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(io::Error::from)
            .context("cannot read", path)
    }

    /// Replaces a file in one step: a reader sees the old one or the new one.
    fn write<T: Serialize>(&self, name: &str, value: &T) -> Result<(), LabError> {
        let (path, next) = (self.join(name), self.join(format!("{name}.new")));
        let text = serde_json::to_vec_pretty(value)
            .map_err(io::Error::from)
            .context("cannot write", &path)?;
        write_private(&next, &text)?;
        fs::rename(&next, &path).context("cannot write", path)
    }
}

/// Writes a file that only this user can read, and waits until it is on disk.
///
/// # Errors
/// The file system refuses.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<(), LabError> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .context("cannot write", path)?;
    file.write_all(content)
        .and_then(|()| file.sync_data())
        .context("cannot write", path)
}

/// Makes the root of the state directories if it is missing, and refuses one that somebody else could write to.
///
/// # Errors
/// It belongs to another user, or is open to others.
pub(crate) fn prepare_root(root: &Path) -> Result<(), LabError> {
    match DirBuilder::new().mode(0o700).recursive(true).create(root) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e).context("cannot create", root),
    }
    let found = fs::metadata(root).context("cannot read", root)?;
    if found.uid() != nix::unistd::geteuid().as_raw() || found.mode() & 0o022 != 0 {
        let why = io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user or is open to others",
        );
        return Err(why).context("cannot use", root);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_short() {
        for good in ["a", "run-1", "0"] {
            LabName::new(good).expect(good);
        }
        for bad in ["", "A", "a b", "../x", "-a", "aaaaaaaaaaaaaaaaaaaaaaaaa", "ä"] {
            LabName::new(bad).expect_err(bad);
        }
    }

    #[test]
    fn a_half_written_process_line_hides_nothing_else() {
        let root = tempfile::tempdir().expect("directory");
        let dir = StateDir::of(root.path(), &LabName::new("a").expect("name"));
        dir.create().expect("created");
        let own = ProcessId::own().expect("this process");
        dir.record_process("supervisor", own).expect("recorded");
        let mut file = OpenOptions::new()
            .append(true)
            .open(dir.join("processes.jsonl"))
            .expect("open");
        file.write_all(b"{\"what\":\"hapr").expect("cut short");
        assert_eq!(dir.processes(), [("supervisor".to_owned(), own)]);
    }

    #[test]
    fn one_command_at_a_time_works_on_a_lab() {
        let root = tempfile::tempdir().expect("directory");
        let dir = StateDir::of(root.path(), &LabName::new("a").expect("name"));
        dir.create().expect("created");
        let held = dir.lock().expect("free");
        assert!(matches!(dir.lock(), Err(LabError::Busy(name)) if name == "a"));
        drop(held);
        dir.lock().expect("free again");
    }
}
