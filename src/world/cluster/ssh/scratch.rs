//! A folder that goes when gtrun goes, however it goes.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::session::random;

/// A private folder with a short path: a control socket's path may have 104 bytes at most.
pub(super) struct Scratch {
    path: PathBuf,
    /// Removes the folder when its standard input ends, which also `kill -9` brings about.
    keeper: Child,
}

impl Scratch {
    /// Makes the folder, mode 0700, under `/tmp` where there is one.
    pub(super) fn make() -> io::Result<Self> {
        let base = if Path::new("/tmp").is_dir() {
            PathBuf::from("/tmp")
        } else {
            std::env::temp_dir()
        };
        let path = base.join(format!("gtrun-ssh-{:016x}", random()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let keeper = Command::new("sh")
            .args(["-c", r#"trap '' INT HUP QUIT; cat >/dev/null; rm -rf -- "$0""#])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in a terminal goes to the whole foreground group: this one must see gtrun's end, not the key.
            .process_group(0)
            .spawn();
        match keeper {
            Ok(keeper) => Ok(Self { path, keeper }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_with_its_owner_also_when_that_is_killed() {
        let scratch = Scratch::make().expect("folder");
        let path = scratch.path().to_owned();
        fs::write(path.join("x"), "y").expect("write");
        drop(scratch);
        assert!(!path.exists());

        // Killed: nothing of `drop` runs, only the pipe closes.
        let mut scratch = Scratch::make().expect("folder");
        let path = scratch.path().to_owned();
        fs::write(path.join("x"), "y").expect("write");
        drop(scratch.keeper.stdin.take());
        scratch.keeper.wait().expect("keeper");
        assert!(!path.exists());
    }
}
