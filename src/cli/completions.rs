//! `gtrun completions SHELL`.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::exit::Exit;

/// Arguments of `gtrun completions`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which shell.
    shell: Shell,
}

/// Prints the completions to standard output.
pub(super) fn main(args: Args) -> Exit {
    clap_complete::generate(args.shell, &mut Cli::command(), "gtrun", &mut std::io::stdout());
    Exit::Success
}
