//! The commit that the program was built from, for `gtrun --version`; empty where there is no git.

use std::path::Path;
use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok()?;
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

fn main() {
    // A commit on the present branch changes one of these two; both lie outside the folder in a git worktree.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|p| Path::new(p).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).map(|commit| {
        let dirty = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
        format!(" ({commit}{})", if dirty { ", modified" } else { "" })
    });
    println!("cargo:rustc-env=GTRUN_COMMIT={}", commit.unwrap_or_default());
}
