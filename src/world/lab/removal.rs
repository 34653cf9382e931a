//! Taking a lab away: only what it made, whatever state it was left in.

use std::fs;
use std::time::Duration;

use super::LabError;
use super::error::IoContext;
use super::namespace::Namespace;
use super::network;
use super::process::{ProcessId, boot_id, end_all};
use super::state::StateDir;

/// How long processes have between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_millis(700);

/// Ends every process of a lab but this one.
///
/// # Errors
/// The manifest cannot be read.
pub(crate) fn end_processes(state: &StateDir) -> Result<(), LabError> {
    let Some(manifest) = state.manifest()?.filter(|m| m.boot == boot_id()) else {
        return Ok(());
    };
    let own = ProcessId::own();
    let namespaces: Vec<Namespace> = manifest.namespaces.into_iter().map(Namespace).collect();
    let all = || {
        let mut all: Vec<ProcessId> = state.processes().into_iter().map(|(_, p)| p).collect();
        // Whoever runs in the lab's own namespaces belongs to it: captures over SSH, commands of pods, and what was
        // started in the moment before it could be recorded.
        all.extend(namespaces.iter().flat_map(Namespace::processes));
        all.retain(|p| Some(*p) != own && p.is_alive());
        all
    };
    end_all(&all(), PATIENCE);
    // What was started while the others ended.
    end_all(&all(), Duration::ZERO);
    Ok(())
}

/// Ends every process of a lab but this one, removes its namespaces, then its directory. What is gone already is no
/// error, so it can be repeated at any point.
///
/// # Errors
/// A namespace or a file cannot be removed; the directory then stays for another attempt.
pub(crate) fn remove(state: &StateDir) -> Result<(), LabError> {
    end_processes(state)?;
    if let Some(manifest) = state.manifest()?
        && manifest.boot == boot_id()
    {
        network::remove(&manifest.namespaces, manifest.subnet)?;
    }
    match fs::remove_dir_all(state.path()) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).context("cannot remove", state.path()),
        _ => {
            // The folder of all labs goes with the last one; any other keeps it.
            if let Some(root) = state.path().parent() {
                let _ = fs::remove_dir(root);
            }
            Ok(())
        }
    }
}
