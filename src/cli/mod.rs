//! The command line: one file per command, no domain logic.
//!
//! A new command is one file with `Args` and `pub(super) fn main(args: Args) -> Exit`, one variant of [`Command`] and
//! one arm in [`dispatch`]. Exit codes are those of [`exit::Exit`]: wrong use is 64 (clap's own 2 would read as a failed
//! assertion), a panic 70.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

mod cleanup;
mod collect;
mod completions;
mod diff;
pub mod exit;
mod explain;
mod judge;
#[cfg(all(target_os = "linux", feature = "lab"))]
mod lab;
mod list;
mod new;
mod output;
mod plan;
mod report;
mod run;
mod schema;
mod selfcheck;
mod serve;
mod validate;

use exit::Exit;

/// Proves with scenarios and hard evidence whether a Kubernetes workload behind a load balancer loses the requests it
/// has already accepted when its pods are told to stop.
#[derive(Debug, Parser)]
#[command(name = "gtrun", version = concat!(env!("CARGO_PKG_VERSION"), env!("GTRUN_COMMIT")), max_term_width = 120)]
#[command(after_help = "`gtrun SCENARIO...` is the same as `gtrun run SCENARIO...`.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Carry out scenarios and judge what was seen.
    Run(run::Args),
    /// Read the evidence of a run folder, also one made by old scripts, and judge it.
    Collect(collect::Args),
    /// Judge old evidence again, also by other assertions.
    Judge(judge::Args),
    /// Print the report of a run, as text or in another format.
    Report(report::Args),
    /// List the runs, the newest first.
    List(list::Args),
    /// What changed between two runs.
    Diff(diff::Args),
    /// Show reports in a browser, on loopback only.
    Serve(serve::Args),
    /// The local lab: bring it up, take it down, see what is there.
    #[cfg(all(target_os = "linux", feature = "lab"))]
    Lab(lab::Args),
    /// Check scenario and environment files.
    Validate(validate::Args),
    /// Random simulated worlds against the truth.
    Selfcheck(selfcheck::Args),
    /// Undo what a killed run left behind.
    Cleanup(cleanup::Args),
    /// Show everything that a scenario would do, with the expected timeline. Touches nothing.
    Plan(plan::Args),
    /// Write a commented scenario to start from.
    New(new::Args),
    /// Say what an event, a function, a verb, a key or a code means.
    Explain(explain::Args),
    /// Print the JSON Schema of a kind of file, for editors and other tools.
    Schema(schema::Args),
    /// Print completions for a shell.
    Completions(completions::Args),
}

/// Runs a command. No arm for "anything else": a new variant does not compile until it is dispatched.
fn dispatch(command: Command) -> Exit {
    match command {
        Command::Run(args) => run::main(args),
        Command::Collect(args) => collect::main(args),
        Command::Judge(args) => judge::main(args),
        Command::Report(args) => report::main(args),
        Command::List(args) => list::main(args),
        Command::Diff(args) => diff::main(args),
        Command::Serve(args) => serve::main(args),
        #[cfg(all(target_os = "linux", feature = "lab"))]
        Command::Lab(args) => lab::main(args),
        Command::Validate(args) => validate::main(args),
        Command::Selfcheck(args) => selfcheck::main(args),
        Command::Cleanup(args) => cleanup::main(args),
        Command::Plan(args) => plan::main(args),
        Command::New(args) => new::main(args),
        Command::Explain(args) => explain::main(args),
        Command::Schema(args) => schema::main(args),
        Command::Completions(args) => completions::main(args),
    }
}

/// Reads the arguments, runs the command and maps its outcome to an exit code.
pub fn main() -> ExitCode {
    let exit = panic::catch_unwind(AssertUnwindSafe(|| with(std::env::args_os().collect()))).unwrap_or_else(|_| {
        eprintln!("gtrun: this is a fault in gtrun itself; please report it with the lines above");
        Exit::Fault
    });
    exit.into()
}

fn with(arguments: Vec<OsString>) -> Exit {
    match Cli::try_parse_from(with_run(arguments)) {
        Ok(cli) => dispatch(cli.command),
        Err(error) => {
            // Printing can only fail when nobody reads: there is nobody to tell.
            let _ = error.print();
            match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Success,
                _ => Exit::Usage,
            }
        }
    }
}

/// `gtrun scenarios/s2.yaml` becomes `gtrun run scenarios/s2.yaml`: when the first argument is no command and looks like
/// a file, or is an option that only `run` has. Anything else is left for clap to complain about.
fn with_run(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let Some(first) = arguments.get(1).map(|a| a.to_string_lossy().into_owned()) else {
        return arguments;
    };
    let is_command = first == "help" || Cli::command().get_subcommands().any(|c| c.get_name() == first);
    let is_own_option = matches!(first.as_str(), "-h" | "--help" | "-V" | "--version");
    let looks_like_file = first.contains(['/', '\\', '.']) || Path::new(&first).exists();
    if !is_command && !is_own_option && (looks_like_file || first.starts_with('-')) {
        arguments.insert(1, "run".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_file_alone_is_run() {
        let given = |a: &[&str]| with_run(a.iter().map(OsString::from).collect());
        assert_eq!(given(&["gtrun", "s/s2.yaml"]), ["gtrun", "run", "s/s2.yaml"]);
        assert_eq!(
            given(&["gtrun", "--seed", "7", "s2.yaml"]),
            ["gtrun", "run", "--seed", "7", "s2.yaml"]
        );
        assert_eq!(
            given(&["gtrun", "completions", "bash"]),
            ["gtrun", "completions", "bash"]
        );
        assert_eq!(given(&["gtrun", "--version"]), ["gtrun", "--version"]);
        assert_eq!(given(&["gtrun", "vaildate"]), ["gtrun", "vaildate"]);
    }

    #[test]
    fn wrong_use_is_64_and_help_is_0() {
        let exit = |a: &[&str]| with(a.iter().map(OsString::from).collect());
        assert_eq!(exit(&["gtrun", "vaildate"]), Exit::Usage);
        assert_eq!(exit(&["gtrun"]), Exit::Usage);
        assert_eq!(exit(&["gtrun", "completions", "--help"]), Exit::Success);
        assert_eq!(exit(&["gtrun", "--version"]), Exit::Success);
    }
}
