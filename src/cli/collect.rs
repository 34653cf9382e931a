//! `gtrun collect DIR`: evidence to `timeline.jsonl`, `intervals.json`, `verdict.json`; old script folders too.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::exit::Exit;
use super::output;
use crate::evidence::Evidence;
use crate::evidence::run_folder::{self, ReadOptions};
use crate::language::plan::{LogSource, Plan};
use crate::report::{self, terminal};
use crate::time::Duration;
use crate::verdict::judge::{self, Judged, Policy};

/// Reads the evidence of a run folder, also one made by old scripts, and judges it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run folder.
    dir: PathBuf,
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
    match judge_folder(&args.dir, None, args.max_skew, policy) {
        Ok(judged) => print_result(&args.dir, &judged),
        Err(failure) => {
            eprintln!("gtrun: {failure}");
            Exit::NothingProved
        }
    }
}

/// Why a folder could not be judged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The folder cannot be listed.
    #[error("cannot read {}: {error}; give the folder of a run, for example artifacts/20261129-161310/s2", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A plan that this version does not read.
    #[error("{} is no plan that this version reads: {error}; give the scenario: gtrun judge {} --scenario FILE", path.display(), folder.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// What the parser said.
        error: serde_json::Error,
    },
    /// A result that cannot be written.
    #[error("cannot write into {}: {error}; free some space or give the folder write permission, then: gtrun collect {}", path.display(), path.display())]
    Write {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A report that cannot be made.
    #[error(transparent)]
    Report(#[from] report::DocumentError),
}

/// Judges a folder and writes the results into it. `plan` replaces the folder's own.
pub(super) fn judge_folder(
    dir: &Path,
    plan: Option<Plan>,
    max_skew: Duration,
    policy: Policy,
) -> Result<Judged, Failure> {
    let judged = judge_only(dir, plan, max_skew, policy)?;
    write(dir, &judged).map_err(|error| Failure::Write {
        path: dir.to_owned(),
        error,
    })?;
    report::write_all(dir)?;
    Ok(judged)
}

/// Judges a folder and writes nothing.
pub(super) fn judge_only(
    dir: &Path,
    plan: Option<Plan>,
    max_skew: Duration,
    policy: Policy,
) -> Result<Judged, Failure> {
    let (evidence, plan) = evidence_and_plan(dir, plan)?;
    Ok(judge::judge(&evidence, plan.as_ref(), Some(max_skew), policy))
}

/// Reads a folder's evidence, and its plan unless another one is given.
pub(super) fn evidence_and_plan(dir: &Path, plan: Option<Plan>) -> Result<(Evidence, Option<Plan>), Failure> {
    let plan = match plan {
        Some(plan) => Some(plan),
        None => read_plan(dir)?,
    };
    let options = plan.as_ref().map(read_options).unwrap_or_default();
    let evidence = run_folder::read(dir, &options).map_err(|error| Failure::Folder {
        path: dir.to_owned(),
        error,
    })?;
    Ok((evidence, plan))
}

pub(super) fn read_plan(dir: &Path) -> Result<Option<Plan>, Failure> {
    let path = dir.join("plan.json");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|error| Failure::Plan {
        path,
        folder: dir.to_owned(),
        error,
    })
}

fn read_options(plan: &Plan) -> ReadOptions {
    let fsm = &plan.environment.fsm;
    ReadOptions {
        fsm_states: fsm.states.clone(),
        fsm_aliases: fsm
            .aliases
            .iter()
            .map(|(old, new)| (old.clone(), new.clone()))
            .collect(),
        haproxy_log_zone: plan.environment.load_balancer.log.as_ref().and_then(|l| match l {
            LogSource::File { zone, .. } => zone.clone(),
            LogSource::Journal(_) => None,
        }),
        patterns: plan.log_patterns(),
        ..ReadOptions::default()
    }
}

/// Each file is written beside its name and moved there, so that a reader never meets half of one.
fn write(dir: &Path, judged: &Judged) -> std::io::Result<()> {
    let put = |name: &str, text: String| -> std::io::Result<()> {
        let part = dir.join(format!(".{name}.part"));
        let mut file = fs::File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(part, dir.join(name))
    };
    let json = |v: serde_json::Result<String>| v.map(|t| t + "\n").map_err(std::io::Error::other);
    let lines: Result<String, serde_json::Error> = judged
        .timeline
        .iter()
        .map(|line| serde_json::to_string(line).map(|t| t + "\n"))
        .collect();
    put("timeline.jsonl", lines.map_err(std::io::Error::other)?)?;
    put("intervals.json", json(serde_json::to_string_pretty(&judged.intervals))?)?;
    put("verdict.json", json(serde_json::to_string_pretty(&judged.report))?)
}

/// Prints the report; the exit code is the report's.
pub(super) fn print_result(folder: &Path, judged: &Judged) -> Exit {
    match report::Document::read(folder) {
        Ok(document) => {
            output::print(&terminal::render(&document, &output::look()));
            Exit::of_report(judged.report.exit)
        }
        Err(error) => {
            eprintln!("gtrun: {error}");
            Exit::NothingProved
        }
    }
}
