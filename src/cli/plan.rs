//! `gtrun plan SCENARIO`: everything that would happen. Touches nothing.

use std::path::PathBuf;

use crate::cli::exit::Exit;
use crate::cli::output;
use crate::cli::validate::style;
use crate::diagnostic::render_human;
use crate::language::plan::predict::{Prediction, predict};
use crate::language::plan::{Ensure, Plan, Step, Suite, Verb, show};
use crate::language::{Disk, LoadOptions, load};

/// Arguments of `gtrun plan`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The scenario.
    scenario: PathBuf,
    /// Environment to plan for.
    #[arg(long = "env", value_name = "NAME|FILE")]
    environment: Option<String>,
    /// Replaces the default of a variable.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Runs of each combination.
    #[arg(long, value_name = "N")]
    repeat: Option<u32>,
    /// Print plan.json of the first run instead.
    #[arg(long)]
    json: bool,
}

/// Prints the plan.
pub(super) fn main(args: Args) -> Exit {
    let options = LoadOptions {
        set: args.set,
        environment: args.environment,
        gtrun_env: std::env::var("GTRUN_ENV").ok(),
        env: std::env::vars().collect(),
        env_known: true,
        repeat: args.repeat,
        ..LoadOptions::default()
    };
    let loaded = match load(&args.scenario, &options, &Disk) {
        Ok(loaded) => loaded,
        Err(rejected) => {
            eprint!("{}", render_human(&rejected.diagnostics, &rejected.sources, style()));
            eprintln!(
                "gtrun: {} is not right; next: gtrun validate {}",
                args.scenario.display(),
                args.scenario.display()
            );
            return Exit::InvalidFile;
        }
    };
    eprint!("{}", render_human(&loaded.warnings, &loaded.sources, style()));
    let Some(first) = loaded.suite.runs.first() else {
        return Exit::Fault;
    };
    if args.json {
        return match serde_json::to_string_pretty(&first.plan) {
            Ok(text) => output::print(&format!("{text}\n")),
            Err(error) => {
                eprintln!("gtrun: the plan cannot be written: {error}");
                Exit::Fault
            }
        };
    }
    output::print(&text(&loaded.suite, &first.plan))
}

fn text(suite: &Suite, plan: &Plan) -> String {
    let prediction = predict(plan);
    let mut out = format!("{} in {}\n", plan.name, show::place(plan));
    if let Some(summary) = &plan.summary {
        out.push_str(&format!("{summary}\n"));
    }
    if plan.expected_failure {
        out.push_str("It exists to show a loss: it passes only if something is really lost.\n");
    }
    out.push_str(&runs(suite));
    section(&mut out, "preconditions", preconditions(plan));
    section(&mut out, "probes", plan.probes.iter().map(show::probe).collect());
    section(&mut out, "steps", steps(&plan.steps, plan, 0));
    section(&mut out, "finally", steps(&plan.finally, plan, 0));
    if let Some(prediction) = &prediction {
        let lines = prediction
            .events
            .iter()
            .map(|(event, range)| format!("{:<24} {event}", range.to_string()))
            .collect();
        section(
            &mut out,
            &format!(
                "expected, from {} (seconds since the start; no bound, a guess)",
                prediction.timers
            ),
            lines,
        );
    }
    section(&mut out, "assertions", assertions(plan, prediction.as_ref()));
    out
}

fn section(out: &mut String, title: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        out.push_str(&format!("\n{title}\n"));
        lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
}

/// How many runs, and how long they take.
fn runs(suite: &Suite) -> String {
    let times: Option<Vec<Prediction>> = suite.runs.iter().map(|run| predict(&run.plan)).collect();
    let time = times.map(|list| {
        let sum = |pick: fn(&Prediction) -> crate::time::Duration| {
            list.iter()
                .fold(crate::time::Duration::ZERO, |sum, one| sum + pick(one))
        };
        format!(", {} to {}", sum(|p| p.total.lo), sum(|p| p.total.hi))
    });
    let time = time.unwrap_or_default();
    match suite.runs.as_slice() {
        [_] => format!("1 run{time}\n"),
        runs => {
            let mut out = format!("{} runs{time}; the first is shown\n", runs.len());
            let shown = runs
                .iter()
                .take(12)
                .map(|run| format!("  {}\n", run.path))
                .collect::<String>();
            out.push_str(&shown);
            if runs.len() > 12 {
                out.push_str(&format!("  ... and {} more\n", runs.len() - 12));
            }
            out
        }
    }
}

fn preconditions(plan: &Plan) -> Vec<String> {
    let facts = &plan.preconditions;
    let mut out = Vec::new();
    out.extend(facts.mode.as_ref().map(|mode| format!("mode is {mode}")));
    out.extend(facts.replicas.map(|replicas| {
        let set = if plan.ensure.contains(&Ensure::Replicas) {
            "; set when it differs, restored at the end"
        } else {
            ""
        };
        format!("replicas is {replicas}{set}")
    }));
    // The rest as it is written to plan.json: every fact has a name there.
    let value = serde_json::to_value(facts).unwrap_or_default();
    for part in ["pod", "load_balancer", "rollout"] {
        let facts = value
            .get(part)
            .and_then(serde_json::Value::as_object)
            .into_iter()
            .flatten();
        let said = facts.filter(|(_, value)| {
            !value.is_null()
                && value.as_array().is_none_or(|list| !list.is_empty())
                && value.as_object().is_none_or(|map| !map.is_empty())
        });
        out.extend(said.map(|(key, value)| {
            format!(
                "{part}.{key} is {}",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            )
        }));
    }
    out
}

fn steps(steps: &[Step], plan: &Plan, depth: usize) -> Vec<String> {
    let mut out = Vec::new();
    let pad = "  ".repeat(depth);
    for (index, step) in steps.iter().enumerate() {
        let id = step.id.as_ref().map(|id| format!("{id}: ")).unwrap_or_default();
        out.push(format!("{pad}{:>2}  {id}{}", index + 1, show::step(step)));
        out.extend(show::command(step, &plan.environment).map(|command| format!("{pad}      $ {command}")));
        if let Verb::Parallel(parallel) = &step.verb {
            for (name, branch) in &parallel.branches {
                out.push(format!("{pad}      {name}"));
                out.extend(self::steps(branch, plan, depth + 3));
            }
        }
    }
    out
}

fn assertions(plan: &Plan, prediction: Option<&Prediction>) -> Vec<String> {
    let mut out = Vec::new();
    for assertion in &plan.assertions {
        out.push(assertion.text().trim().to_owned());
        let against = prediction.and_then(|prediction| {
            prediction
                .contradictions
                .iter()
                .find(|(text, _)| text == assertion.text())
        });
        out.extend(against.map(|(_, why)| format!("    ! this will probably not hold: {why}")));
    }
    out
}
