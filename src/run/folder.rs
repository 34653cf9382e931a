//! Where a run's files go: a folder of its own, whatever else starts in the same second.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};

/// The folder that all runs of one start share: `artifacts/<YYYYMMDD-HHMMSS>`, with `-2`, `-3` behind it when it is
/// there already.
///
/// # Errors
/// What the file system says.
pub fn create_start(artifacts: &Path, now: DateTime<Utc>) -> io::Result<PathBuf> {
    fs::create_dir_all(artifacts)?;
    let name = now.format("%Y%m%d-%H%M%S").to_string();
    for number in 1..10_000 {
        let folder = match number {
            1 => artifacts.join(&name),
            n => artifacts.join(format!("{name}-{n}")),
        };
        // Creating it decides: of two that start in the same second one gets it.
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!(
        "there are 10,000 folders {name} in {}",
        artifacts.display()
    )))
}

/// The folder of one run below it: `<scenario>`, or `<scenario>/<key=value,...>/<phase>/<n>`.
///
/// # Errors
/// What the file system says; that it is there already is one.
pub fn create_run(start: &Path, scenario: &str, path: &str) -> io::Result<PathBuf> {
    let parts = std::iter::once(scenario).chain(path.split('/').filter(|part| !part.is_empty()));
    let mut folder = start.to_owned();
    for part in parts {
        folder.push(safe(part));
    }
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    fs::create_dir(&folder)?;
    Ok(folder)
}

/// A part of a path that stays one part, whatever a variable's value holds.
fn safe(part: &str) -> String {
    let kept = |c: char| {
        if c.is_alphanumeric() || "-_.,=+".contains(c) {
            c
        } else {
            '_'
        }
    };
    let text: String = part.chars().map(kept).take(120).collect();
    if text.chars().all(|c| c == '.') {
        "_".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_starts_in_one_second_have_two_folders() {
        let home = tempfile::tempdir().expect("a folder");
        let now = DateTime::from_timestamp(1_796_000_000, 0).expect("a time");
        let [a, b] = [0, 1].map(|_| create_start(home.path(), now).expect("created"));
        assert_ne!(a, b);
        assert!(b.to_string_lossy().ends_with("-2"), "{}", b.display());
    }

    #[test]
    fn a_value_cannot_leave_the_folder() {
        let home = tempfile::tempdir().expect("a folder");
        let run = create_run(home.path(), "s2", "work=../../etc/x y:z/../1").expect("created");
        assert!(run.starts_with(home.path()) && run.is_dir(), "{}", run.display());
        let leaves = |c: std::path::Component<'_>| c == std::path::Component::ParentDir;
        assert!(!run.components().any(leaves), "{}", run.display());
        assert!(
            create_run(home.path(), "s2", "work=../../etc/x y:z/../1").is_err(),
            "never shared"
        );
    }
}
