//! `gtrun list`.

use std::path::PathBuf;

use super::exit::Exit;
use super::output;
use crate::report::{find_runs, render_list, render_list_json};

/// Arguments of `gtrun list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where runs are.
    #[arg(long, default_value = "artifacts", value_name = "DIR")]
    artifacts: PathBuf,
    /// At most this many, the newest.
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// For a person or for a program.
    #[arg(long, value_enum, default_value_t = Choice::Human)]
    format: Choice,
}

/// The formats by name.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Choice {
    /// One line a run.
    Human,
    /// An array.
    Json,
}

/// Prints the runs, the newest first.
pub(super) fn main(args: Args) -> Exit {
    if let Err(error) = std::fs::read_dir(&args.artifacts) {
        eprintln!(
            "gtrun: cannot read {}: {error}; next: gtrun list --artifacts DIR",
            args.artifacts.display()
        );
        return Exit::NothingProved;
    }
    let mut runs = find_runs(&args.artifacts);
    runs.truncate(args.limit.unwrap_or(usize::MAX));
    output::print(&match args.format {
        Choice::Human if runs.is_empty() => format!("no runs under {}\n", args.artifacts.display()),
        Choice::Human => render_list(&runs, &output::look()),
        Choice::Json => render_list_json(&runs),
    })
}
