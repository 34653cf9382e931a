use std::io;
use std::path::PathBuf;

/// Why a lab could not be built, found or removed. Each says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A name that cannot be part of the names of namespaces.
    #[error("`{0}` is no name for a lab; use 1 to 24 of a-z, 0-9 and `-`")]
    Name(String),
    /// The world that was asked for cannot be built.
    #[error("the lab's world: {0}")]
    World(String),
    /// Programs or rights that are missing, one a line.
    #[error("the lab cannot run here:\n{}\n  `scripts/lab-install` installs what is missing", .0.iter().map(|m| format!("  - {m}")).collect::<Vec<_>>().join("\n"))]
    Missing(Vec<String>),
    /// A lab of this name is running.
    #[error("lab `{0}` is already up; `gtrun lab down --name {0}` ends it")]
    AlreadyUp(String),
    /// Something of this name exists that no state directory of ours speaks of.
    #[error("{0}; it was not made by this lab, so it stays: choose another `--name`")]
    Foreign(String),
    /// No lab of this name.
    #[error("there is no lab `{0}`; `gtrun lab status` lists those that are up")]
    NotUp(String),
    /// Another `up` or `down` of the same lab is at work.
    #[error("another `gtrun lab` is working on lab `{0}`; wait for it to end")]
    Busy(String),
    /// A command that the lab needs did not do its work.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The command as a shell would take it.
        command: String,
        /// What it wrote, or how it ended.
        said: String,
    },
    /// A part that did not become ready in time.
    #[error("{0}")]
    NotReady(String),
    /// A file or a system call.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was being done, as "cannot write".
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Names the path in an error of a file operation.
pub(crate) trait IoContext<T> {
    /// `doing` is a phrase like "cannot write".
    fn context(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, LabError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, doing: &'static str, path: impl Into<PathBuf>) -> Result<T, LabError> {
        self.map_err(|source| LabError::Io {
            doing,
            path: path.into(),
            source,
        })
    }
}
