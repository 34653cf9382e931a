//! `gtrun diff RUN RUN`.

use std::path::PathBuf;

use super::exit::Exit;
use super::output;
use crate::report::{Document, render_comparison};

/// Arguments of `gtrun diff`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the earlier run.
    before: PathBuf,
    /// Folder of the later run.
    after: PathBuf,
}

/// Prints what changed. Both runs could be compared: 0, whatever changed.
pub(super) fn main(args: Args) -> Exit {
    match (Document::read(&args.before), Document::read(&args.after)) {
        (Ok(before), Ok(after)) => output::print(&render_comparison(&before, &after, &output::look())),
        (before, after) => {
            for error in [before.err(), after.err()].into_iter().flatten() {
                eprintln!("gtrun: {error}");
            }
            Exit::NothingProved
        }
    }
}
