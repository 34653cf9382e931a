//! `gtrun selfcheck --runs N --seed S`: random simulated worlds against the truth.

use super::exit::Exit;
use super::output;
use crate::selfcheck;

/// Draws random simulated worlds and compares every judgement with what really happened in them.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// How many worlds.
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    runs: u64,
    /// The first world's seed; world k has seed + k.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

/// Prints the counts, and every judgement that was wrong with the seed that makes it again.
pub(super) fn main(args: Args) -> Exit {
    match selfcheck::run(args.runs, args.seed) {
        Ok(summary) => {
            output::print(&summary.to_string());
            if summary.wrong.is_empty() {
                Exit::Success
            } else {
                Exit::Fault
            }
        }
        Err(error) => {
            eprintln!("gtrun: {error}");
            Exit::NothingProved
        }
    }
}
