//! Exit codes: the contract with scripts and CI.

use std::process::ExitCode;

/// How the program ended. The numbers never change their meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// 0: every assertion passed, or the command did what it was asked.
    Success,
    /// 1: preflight or environment, a step that could not be carried out, the run's timeout: nothing was proved about
    /// the drain.
    NothingProved,
    /// 2: an assertion or a `wait_for` failed: the drain does not do what was claimed.
    Failed,
    /// 3: the evidence cannot decide.
    Inconclusive,
    /// 64: wrong use of the command line (`EX_USAGE`; clap's own 2 would read as a failed assertion).
    Usage,
    /// 65: a scenario or environment file is invalid (`EX_DATAERR`).
    InvalidFile,
    /// 70: a fault in gtrun itself (`EX_SOFTWARE`).
    Fault,
    /// 130: interrupted by SIGINT; cleaned up, evidence kept, what could be judged was judged.
    Interrupted,
    /// 143: the same by SIGTERM.
    Terminated,
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::NothingProved => 1,
            Self::Failed => 2,
            Self::Inconclusive => 3,
            Self::Usage => 64,
            Self::InvalidFile => 65,
            Self::Fault => 70,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The exit code that a verdict states; a number that no verdict has is a fault.
    pub fn of_report(code: i32) -> Self {
        match code {
            0 => Self::Success,
            1 => Self::NothingProved,
            2 => Self::Failed,
            3 => Self::Inconclusive,
            130 => Self::Interrupted,
            143 => Self::Terminated,
            _ => Self::Fault,
        }
    }

    /// The exit of a suite of several runs: the first of fault, interruption, invalid file, wrong use, failed, nothing
    /// proved, inconclusive that is among them. A run that proved nothing never hides a failed one.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        let rank = |e: Self| match e {
            Self::Success => 0,
            Self::Inconclusive => 1,
            Self::NothingProved => 2,
            Self::Failed => 3,
            Self::Usage => 4,
            Self::InvalidFile => 5,
            Self::Interrupted => 6,
            Self::Terminated => 7,
            Self::Fault => 8,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_never_hidden() {
        let all = [Exit::Success, Exit::Inconclusive, Exit::NothingProved, Exit::Failed];
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                assert_eq!((a.worst(*b), b.worst(*a)), (*b, *b));
            }
        }
    }
}
