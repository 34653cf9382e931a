//! Parts of this machine that a test needs.

use std::path::{Path, PathBuf};

/// The program, or nothing, said loudly: without it the test shows nothing. With `CI=true` that is a failure.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        missing(name);
    }
    found
}

/// Says that something is missing.
pub(crate) fn missing(what: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "{what} is missing"
    );
    eprintln!("NOT TESTED: {what} is missing on this machine");
}

/// True when `path` is there within some seconds; false when it is not.
pub(crate) async fn within(seconds: u64, mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..seconds * 50 {
        if condition() {
            return true;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    false
}

/// Ids of the processes whose command line holds this text (Linux).
pub(crate) fn processes(text: &str) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let id: u32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(Path::new("/proc").join(id.to_string()).join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            (line.contains(text) && id != std::process::id()).then_some(id)
        })
        .collect()
}
