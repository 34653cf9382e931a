//! `gtrun judge DIR`: old evidence judged again, also by other assertions.

use std::io::IsTerminal;
use std::path::PathBuf;

use super::collect::{self, Failure};
use super::exit::Exit;
use super::output;
use crate::diagnostic::{Style, render_human};
use crate::language::plan::Plan;
use crate::language::{Disk, LoadOptions, load};
use crate::report::{Document, terminal};
use crate::time::Duration;
use crate::verdict::judge::Policy;
use crate::verdict::mutate;

/// Judges the evidence of a run folder again. The same folder gives the same bytes.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run folder.
    dir: PathBuf,
    /// Assertions of this scenario instead of the folder's own; nothing is written then.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Another value for a variable of that scenario.
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "scenario")]
    set: Vec<String>,
    /// Names the assertions that would still hold if the evidence were another: they prove nothing.
    #[arg(long)]
    mutate: bool,
    /// Greatest difference assumed of two clocks that nothing ties.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    max_skew: Duration,
    /// Inconclusive counts as passed.
    #[arg(long, value_name = "pass", value_parser = ["pass"])]
    inconclusive: Option<String>,
}

pub(super) fn main(args: Args) -> Exit {
    let policy = Policy {
        inconclusive_passes: args.inconclusive.is_some(),
        ..Policy::default()
    };
    let plan = match &args.scenario {
        None => None,
        Some(file) => match other_plan(&args, file) {
            Ok(plan) => Some(plan),
            Err(exit) => return exit,
        },
    };
    let result = if args.mutate {
        return mutated(&args, plan);
    } else if let Some(plan) = plan {
        collect::judge_only(&args.dir, Some(plan), args.max_skew, policy)
    } else {
        collect::judge_folder(&args.dir, None, args.max_skew, policy)
    };
    match result {
        Ok(judged) => {
            let document = Document::of(&args.dir, &judged);
            output::print(&terminal::render(&document, &output::look()));
            Exit::of_report(judged.report.exit)
        }
        Err(failure) => told(&failure),
    }
}

fn told(failure: &Failure) -> Exit {
    eprintln!("gtrun: {failure}");
    Exit::NothingProved
}

/// The folder's own plan with the assertions of another scenario; that scenario's plan for a folder without one.
fn other_plan(args: &Args, file: &std::path::Path) -> Result<Plan, Exit> {
    let options = LoadOptions {
        set: args.set.clone(),
        ..LoadOptions::default()
    };
    let loaded = load(file, &options, &Disk).map_err(|rejected| {
        let terminal = std::io::stderr().is_terminal();
        let style = Style {
            color: false,
            unicode: terminal,
            width: 100,
        };
        eprint!("{}", render_human(&rejected.diagnostics, &rejected.sources, style));
        eprintln!(
            "gtrun: nothing was judged; next: correct the file above, then gtrun validate {}",
            file.display()
        );
        Exit::InvalidFile
    })?;
    let Some(given) = loaded.suite.runs.into_iter().next().map(|run| run.plan) else {
        eprintln!("gtrun: {} has no run", file.display());
        return Err(Exit::InvalidFile);
    };
    let own = collect::read_plan(&args.dir).map_err(|failure| told(&failure))?;
    Ok(match own {
        Some(own) => Plan {
            name: given.name,
            summary: given.summary,
            expected_failure: given.expected_failure,
            assertions: given.assertions,
            sources: given.sources,
            ..own
        },
        None => given,
    })
}

fn mutated(args: &Args, plan: Option<Plan>) -> Exit {
    let found = collect::evidence_and_plan(&args.dir, plan);
    let (evidence, plan) = match found {
        Ok((evidence, Some(plan))) => (evidence, plan),
        Ok((_, None)) => {
            let dir = args.dir.display();
            eprintln!("gtrun: {dir} has no scenario; next: gtrun judge {dir} --mutate --scenario FILE");
            return Exit::NothingProved;
        }
        Err(failure) => return told(&failure),
    };
    let survivors = mutate::survivors(&evidence, &plan, args.max_skew);
    let mut text = String::new();
    for survivor in &survivors {
        text.push_str(&format!(
            "{}\n  holds in all {} mutations of this evidence: nothing that could have happened would have failed it\n",
            survivor.assert, survivor.mutations
        ));
    }
    if survivors.is_empty() {
        text.push_str("every assertion that passes is broken by some mutation of this evidence\n");
    }
    output::print(&text);
    if survivors.is_empty() {
        Exit::Success
    } else {
        Exit::Failed
    }
}
