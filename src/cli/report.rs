//! `gtrun report [DIR] [--format ...]`.

use std::path::PathBuf;

use super::exit::Exit;
use super::output;
use crate::report::{self, Document, Format, find_runs, terminal};

/// Arguments of `gtrun report`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run's folder; without it the newest one under --artifacts.
    folder: Option<PathBuf>,
    /// What to print; without it the report that a run ends with.
    #[arg(long, value_enum)]
    format: Option<Choice>,
    /// Where runs are.
    #[arg(long, default_value = "artifacts", value_name = "DIR")]
    artifacts: PathBuf,
    /// Also write report.html, report.md, junit.xml and summary.json into the folder again.
    #[arg(long)]
    write: bool,
}

/// The formats by name.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Choice {
    /// One self-contained page.
    Html,
    /// For a comment on a pull request.
    Md,
    /// For CI.
    Junit,
    /// For a program.
    Json,
    /// Trace events for a Perfetto viewer.
    Perfetto,
}

/// Prints the report in the format that was asked for.
pub(super) fn main(args: Args) -> Exit {
    let newest = || {
        find_runs(&args.artifacts)
            .into_iter()
            .find(|run| run.report.is_some())
            .map(|run| run.folder)
    };
    let Some(folder) = args.folder.or_else(newest) else {
        eprintln!(
            "gtrun: there is no judged run under {}; next: gtrun run SCENARIO, or gtrun report DIR",
            args.artifacts.display()
        );
        return Exit::NothingProved;
    };
    let document = if args.write {
        report::write_all(&folder)
    } else {
        Document::read(&folder)
    };
    let document = match document {
        Ok(document) => document,
        Err(error) => {
            eprintln!("gtrun: {error}");
            return Exit::NothingProved;
        }
    };
    let text = match args.format {
        None => terminal::render(&document, &output::look()),
        Some(Choice::Html) => report::render(&document, Format::Html),
        Some(Choice::Md) => report::render(&document, Format::Markdown),
        Some(Choice::Junit) => report::render(&document, Format::Junit),
        Some(Choice::Json) => report::render(&document, Format::Json),
        Some(Choice::Perfetto) => report::render(&document, Format::Perfetto),
    };
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::verdict::RunVerdict;

    #[test]
    fn the_next_command_is_one_that_there_is() {
        let cli = super::super::Cli::command();
        let known = |word: &str| cli.get_subcommands().any(|command| command.get_name() == word);
        let mut document = Document::read("tests/report/passed-simulated".as_ref()).expect("a sample");
        for exit in [1, 2, 3, 130] {
            for simulated in [true, false] {
                for verdict in [
                    None,
                    Some(RunVerdict::Pass),
                    Some(RunVerdict::Fail),
                    Some(RunVerdict::Inconclusive),
                    Some(RunVerdict::Invalid),
                ] {
                    document.report.exit = exit;
                    document.report.simulated = simulated;
                    document.report.interrupted = exit == 130;
                    document.report.verdict = verdict;
                    let next = report::next_command(&document).expect("a command");
                    let words: Vec<&str> = next.split_whitespace().collect();
                    assert!(words[0] != "gtrun" || known(words[1]), "{next}");
                }
            }
        }
    }
}
