//! `gtrun cleanup [RUN]`: undoes what a killed run left behind, from its journal.

use std::fs;
use std::path::{Path, PathBuf};

use super::exit::Exit;
use super::output;
use super::run::place::Place;
use crate::language::plan::{EnvironmentKind, Plan};
use crate::report::find_runs;
use crate::run::cleanup::undo_one;
use crate::run::journal::{self, OpenChange};

/// Undoes what a killed run left behind.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run's folder; without it every run under --artifacts.
    run: Option<PathBuf>,
    /// Where runs are.
    #[arg(long, default_value = "artifacts", value_name = "DIR")]
    artifacts: PathBuf,
}

/// Undoes the open changes of the runs, the last first.
pub(super) fn main(args: Args) -> Exit {
    let folders = match args.run {
        Some(folder) => vec![folder],
        None => find_runs(&args.artifacts).into_iter().map(|r| r.folder).collect(),
    };
    let mut exit = Exit::Success;
    let mut undone = 0;
    for folder in folders {
        match clean(&folder) {
            Ok(number) => undone += number,
            Err(why) => {
                eprintln!(
                    "gtrun: {}: {why}; next: gtrun cleanup {}",
                    folder.display(),
                    folder.display()
                );
                exit = Exit::NothingProved;
            }
        }
    }
    output::print(&format!("{undone} changes undone\n"));
    exit
}

/// Undoes the open changes of one run; the number of them.
fn clean(folder: &Path) -> Result<usize, String> {
    let path = folder.join(journal::FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        // A run that changed nothing has no journal.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => return Ok(0),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let open: Vec<OpenChange> = journal::open_changes(&text);
    if open.is_empty() {
        return Ok(0);
    }
    let plan = fs::read_to_string(folder.join("plan.json")).map_err(|e| format!("cannot read plan.json: {e}"))?;
    let plan: Plan = serde_json::from_str(&plan).map_err(|e| format!("cannot read plan.json: {e}"))?;
    if plan.environment.kind == EnvironmentKind::Lab {
        // A run's lab goes with its run, changes and all, also when that was killed.
        return Ok(0);
    }
    let place = Place::open(&plan.environment).map_err(|e| e.to_string())?;
    let world = place.world();
    let mut failed = Vec::new();
    for change in &open {
        let clock = world.clock.clone();
        let pause = move |d| clock.sleep_until(clock.now() + d);
        let result = place
            .block_on(undo_one(&world, &change.undo, pause))
            .map_err(|stuck| stuck.to_string())?;
        let at = world.clock.now();
        match result {
            Ok(()) => {
                output::print(&format!("undone: {}\n", change.what));
                note(&path, &journal::undone_record(at, change))
                    .map_err(|e| format!("cannot write the journal: {e}"))?;
            }
            Err(error) => failed.push(format!("{}: {error}", change.what)),
        }
    }
    if failed.is_empty() {
        Ok(open.len())
    } else {
        Err(failed.join("; "))
    }
}

/// One more line of the journal, so that nothing is undone twice. A line that was cut by the kill is ended first.
fn note(path: &Path, record: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    writeln!(file, "\n{record}")?;
    file.sync_data()
}
