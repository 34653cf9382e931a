//! `gtrun run SCENARIO...`: execute, then exactly what `gtrun collect` does.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::collect;
use super::exit::Exit;
use super::output;
use crate::diagnostic::{Diagnostic, SourceMap, Style, render_human};
use crate::language::plan::{Plan, PlannedRun};
use crate::language::{Disk, LoadOptions, Loaded, load};
use crate::report::{self, Document, Format, terminal};
use crate::run::folder;
use crate::run::recorder::{Progress, Recorder};
use crate::run::{Order, execute};
use crate::time::Duration;
use crate::verdict::judge::Policy;

pub(super) mod place;
mod signals;
mod suite;

use place::Place;
use signals::Signals;
use suite::Tally;

/// Difference assumed of two clocks that nothing ties, as for `gtrun collect`.
const MAX_SKEW: Duration = Duration::from_secs(1);

/// Carries out scenarios and judges what was seen.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Scenario files.
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// Where: a name (environments/NAME.yaml beside the scenario or above it, sim, lab) or a file.
    #[arg(long = "env", value_name = "NAME|FILE")]
    environment: Option<String>,
    /// Another value for a variable of the scenario.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// So often, instead of what the scenario says.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Where run folders are made.
    #[arg(long, default_value = "artifacts", value_name = "DIR")]
    artifacts: PathBuf,
    /// Seed of the simulator.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Carry the scenarios out at the same time; at most one of them may act on the cluster.
    #[arg(long)]
    parallel: bool,
    /// A scenario that no host can carry out (S4 without a capture) is no failure.
    #[arg(long)]
    allow_skip: bool,
    /// Inconclusive counts as passed.
    #[arg(long, value_name = "pass", value_parser = ["pass"])]
    inconclusive: Option<String>,
    /// Simulated evidence is a failure.
    #[arg(long, env = "GTRUN_REQUIRE_REAL", value_parser = clap::builder::FalseyValueParser::new())]
    require_real: bool,
    /// Do not ask before acting on a real cluster.
    #[arg(long)]
    yes: bool,
    /// What to print at the end instead of the report for people; progress then goes to standard error.
    #[arg(long, value_enum)]
    format: Option<Choice>,
}

/// The formats by name.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Choice {
    /// For a program.
    Json,
    /// For CI.
    Junit,
    /// For a comment on a pull request.
    Md,
}

impl Args {
    fn policy(&self) -> Policy {
        Policy {
            inconclusive_passes: self.inconclusive.is_some(),
            allow_skip: self.allow_skip,
            require_real: self.require_real,
        }
    }
}

/// Loads every scenario first: a mistake in the last one is told before the first one is carried out.
pub(super) fn main(args: Args) -> Exit {
    let mut loaded = Vec::new();
    let mut invalid = false;
    for scenario in &args.scenarios {
        match load_one(scenario, &args) {
            Some(one) => loaded.push(one),
            None => invalid = true,
        }
    }
    if invalid {
        eprintln!("gtrun: nothing was run; next: correct the files above, then gtrun validate");
        return Exit::InvalidFile;
    }
    // The executor does not move a step to a phase yet: every point would look measured and be the same one.
    if loaded
        .iter()
        .flat_map(|l| &l.suite.runs)
        .any(|run| run.plan.phase.is_some())
    {
        eprintln!(
            "gtrun: a sweep over phases cannot be carried out yet; nothing was run; next: the scenario without `sweep`"
        );
        return Exit::NothingProved;
    }
    let start = match folder::create_start(&args.artifacts, chrono::Utc::now()) {
        Ok(start) => start,
        Err(error) => {
            let place = args.artifacts.display();
            eprintln!("gtrun: cannot make a folder in {place}: {error}; next: the same command with --artifacts DIR");
            return Exit::NothingProved;
        }
    };
    let signals = Signals::listen();
    let mut tally = Tally::default();
    if args.parallel {
        let plans: Vec<PlannedRun> = loaded.iter().flat_map(|l| l.suite.runs.clone()).collect();
        if let Err(why) = suite::may_run_together(&plans) {
            eprintln!("gtrun: {why}");
            return Exit::Usage;
        }
        for (run, result) in plans.iter().zip(carry_out(&args, &start, &plans, &signals)) {
            tally.add(&run.plan.name, run, result);
        }
    } else {
        'all: for one in &loaded {
            for run in &one.suite.runs {
                let results = carry_out(&args, &start, std::slice::from_ref(run), &signals);
                for result in results {
                    tally.add(&one.suite.name, run, result);
                }
                if signals.interrupts().signal().is_some() {
                    break 'all;
                }
            }
        }
    }
    finish(&args, &tally)
}

fn load_one(scenario: &Path, args: &Args) -> Option<Loaded> {
    let options = LoadOptions {
        set: args.set.clone(),
        environment: args.environment.clone(),
        gtrun_env: std::env::var("GTRUN_ENV").ok(),
        env: std::env::vars_os()
            .filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)))
            .collect::<BTreeMap<_, _>>(),
        repeat: args.repeat,
        seed: args.seed,
        env_known: true,
    };
    match load(scenario, &options, &Disk) {
        Ok(loaded) => {
            show(&loaded.warnings, &loaded.sources);
            Some(loaded)
        }
        Err(rejected) => {
            show(&rejected.diagnostics, &rejected.sources);
            None
        }
    }
}

fn show(diagnostics: &[Diagnostic], sources: &SourceMap) {
    let terminal = std::io::stderr().is_terminal();
    let color = terminal && std::env::var_os("NO_COLOR").is_none();
    eprint!(
        "{}",
        render_human(
            diagnostics,
            sources,
            Style {
                color,
                unicode: terminal,
                width: 100
            }
        )
    );
}

/// What became of one run.
pub(super) struct RunResult {
    /// Its folder, when there is one.
    folder: Option<PathBuf>,
    /// What it ends with.
    exit: Exit,
    /// How its claims ended, where it was judged.
    verdict: Option<crate::verdict::RunVerdict>,
    /// The last line for a person.
    line: String,
}

impl RunResult {
    fn failed(exit: Exit, line: String) -> Self {
        Self {
            folder: None,
            exit,
            verdict: None,
            line,
        }
    }
}

/// Carries out runs side by side in one world, and judges each.
fn carry_out(args: &Args, start: &Path, runs: &[PlannedRun], signals: &Signals) -> Vec<RunResult> {
    let acting = runs.iter().find(|r| suite::acts(&r.plan)).or(runs.first());
    let Some(first) = acting else { return Vec::new() };
    if !args.yes && !place::confirmed(&first.plan) {
        let line = "not confirmed; nothing was touched".to_owned();
        return runs
            .iter()
            .map(|_| RunResult::failed(Exit::NothingProved, line.clone()))
            .collect();
    }
    let place = match Place::open(&first.plan.environment) {
        Ok(place) => place,
        Err(error) => {
            let line = format!("environment {}: {error}", first.plan.environment.name);
            eprintln!(
                "gtrun: {line}; next: gtrun doctor --env {}",
                first.plan.environment.name
            );
            return runs
                .iter()
                .map(|_| RunResult::failed(Exit::NothingProved, line.clone()))
                .collect();
        }
    };
    let mut orders = Vec::new();
    let mut results: Vec<Option<RunResult>> = Vec::new();
    let mut folders = Vec::new();
    for run in runs {
        match folder::create_run(start, &run.plan.name, &run.path) {
            Ok(folder) => {
                orders.push(order(args, run, &place, &folder, signals));
                folders.push(Some(folder));
                results.push(None);
            }
            Err(error) => {
                let line = format!("cannot make the run's folder in {}: {error}", start.display());
                eprintln!("gtrun: {line}");
                results.push(Some(RunResult::failed(Exit::NothingProved, line)));
                folders.push(None);
            }
        }
    }
    let kept: Vec<PathBuf> = folders.iter().flatten().cloned().collect();
    let policy = args.policy();
    let executions = orders.into_iter().zip(&kept).map(|(order, folder)| {
        execute(order, move |_| {
            // A verdict before anything is undone; the one that counts is made at the end.
            if let Err(failure) = collect::judge_folder(folder, None, MAX_SKEW, policy) {
                eprintln!("gtrun: {failure}");
            }
        })
    });
    let carried = place.block_on(futures::future::join_all(executions));
    if let Err(stuck) = &carried {
        eprintln!("gtrun: {stuck}");
    }
    for (result, folder) in results.iter_mut().zip(folders) {
        let Some(folder) = folder else { continue };
        let judged = judge(args, &folder);
        *result = Some(match carried.is_ok() {
            true => judged,
            false => RunResult {
                exit: Exit::Fault,
                ..judged
            },
        });
    }
    results.into_iter().flatten().collect()
}

fn order(args: &Args, run: &PlannedRun, place: &Place, folder: &Path, signals: &Signals) -> Order {
    let world = place.world();
    let to_stderr = args.format.is_some();
    let progress: Progress = Arc::new(move |text| {
        if to_stderr {
            eprint!("{text}");
        } else {
            output::print(text);
        }
    });
    let mut plan: Plan = run.plan.clone();
    plan.environment = place.environment(&plan.environment);
    let recorder = Recorder::folder(folder, &plan.name, world.clock.now(), Some(progress));
    let id = match place {
        // Nothing outside of the simulator meets it, and the same seed gives the same bytes.
        Place::Sim(_) => format!("seed-{}", plan.environment.seed),
        Place::Real(..) => {
            let parts: Vec<_> = folder.iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
            parts.into_iter().rev().collect::<Vec<_>>().join("-")
        }
    };
    Order {
        plan: Arc::new(plan),
        world,
        recorder,
        interrupts: signals.interrupts(),
        id,
        folder: folder.display().to_string(),
    }
}

/// Judges a finished run and prints what it came to.
fn judge(args: &Args, folder: &Path) -> RunResult {
    let judged = match collect::judge_folder(folder, None, MAX_SKEW, args.policy()) {
        Ok(judged) => judged,
        Err(failure) => {
            eprintln!("gtrun: {failure}");
            let line = failure.to_string();
            return RunResult {
                folder: Some(folder.to_owned()),
                ..RunResult::failed(Exit::NothingProved, line)
            };
        }
    };
    let exit = Exit::of_report(judged.report.exit);
    let verdict = judged.report.verdict;
    let line = match Document::read(folder) {
        Ok(document) => {
            if args.format.is_none() {
                output::print(&terminal::render(&document, &output::look()));
            }
            report::last_line(&document)
        }
        Err(error) => {
            eprintln!("gtrun: {error}");
            error.to_string()
        }
    };
    RunResult {
        folder: Some(folder.to_owned()),
        exit,
        verdict,
        line,
    }
}

/// What all runs together come to.
fn finish(args: &Args, tally: &Tally) -> Exit {
    if let Some(format) = args.format {
        let documents: Vec<Document> = tally.folders().filter_map(|f| Document::read(f).ok()).collect();
        let text = match format {
            Choice::Junit => report::render_junit(&documents),
            Choice::Json => documents.iter().map(|d| report::render(d, Format::Json)).collect(),
            Choice::Md => documents.iter().map(|d| report::render(d, Format::Markdown)).collect(),
        };
        output::print(&text);
    }
    if let Some(summary) = tally.summary() {
        if args.format.is_some() {
            eprint!("{summary}");
        } else {
            output::print(&summary);
        }
    }
    tally.exit()
}
