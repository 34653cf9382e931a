//! The commit that a release is built from, for `gtrun --version`: `GTRUN_COMMIT` is ` (0123456789ab)`, or empty where
//! nothing is known. Read straight from `.git`: no git binary is needed, and a folder that another user owns is no
//! obstacle.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=GTRUN_COMMIT");
    // A development build does not follow the commits: each would compile the whole package again.
    let commit = match std::env::var("GTRUN_COMMIT") {
        Ok(given) if !given.is_empty() => Some(given),
        _ if std::env::var("PROFILE").as_deref() == Ok("release") => commit(),
        _ => Some("development build".to_owned()),
    };
    println!(
        "cargo::rustc-env=GTRUN_COMMIT={}",
        commit.map(|commit| format!(" ({commit})")).unwrap_or_default()
    );
}

/// The first twelve digits of the commit that is checked out; `None` outside a clone.
fn commit() -> Option<String> {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let git = git_dir(&root)?;
    let head = read(&git.join("HEAD"))?;
    let Some(name) = head.trim().strip_prefix("ref: ") else {
        return short(&head);
    };
    // A worktree keeps its HEAD beside it and the branches in the common folder.
    let common = read_if_there(&git.join("commondir")).map_or_else(|| git.clone(), |path| git.join(path.trim()));
    let loose = common.join(name);
    if loose.is_file() {
        return short(&read(&loose)?);
    }
    let packed = read(&common.join("packed-refs"))?;
    packed
        .lines()
        .find_map(|line| line.strip_suffix(name)?.strip_suffix(' ').and_then(short))
}

/// `.git`, or where a `.git` file of a worktree points.
fn git_dir(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let text = read_if_there(&dot_git)?;
    Some(root.join(text.trim().strip_prefix("gitdir: ")?))
}

/// The text of a file that the answer depends on: cargo runs this script again when it changes.
fn read(path: &Path) -> Option<String> {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).ok()
}

/// The text of a file that may be absent; an absent file must not be watched, it would always count as changed.
fn read_if_there(path: &Path) -> Option<String> {
    path.is_file().then(|| read(path)).flatten()
}

fn short(hash: &str) -> Option<String> {
    let hash = hash.trim();
    (hash.len() >= 40 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then(|| hash[..12].to_owned())
}
