//! What a command leaves behind: exit code, standard output, and a file when the scenario names one.

use super::End;
use crate::evidence::run_folder::CallOutcome;
use crate::language::plan::Template;
use crate::language::vocabulary::StepField;
use crate::run::context::Context;
use crate::run::live::Value;
use crate::world::port::{CommandOutput, WorldError};

/// More of a command's output is in its file only.
const KEPT: usize = 64 * 1024;

/// The command, filled in.
pub(super) fn argv(ctx: &Context, words: &[Template]) -> Result<Vec<String>, End> {
    words.iter().map(|w| ctx.fill(w).map_err(End::from)).collect()
}

/// The end of a command.
pub(super) fn end(ctx: &Context, shown: &str, output: Result<CommandOutput, WorldError>, save_as: Option<&str>) -> End {
    let output = match output {
        Ok(output) => output,
        Err(error) => return End::failed(&error),
    };
    if let Some(name) = save_as {
        ctx.recorder.replace(name, &output.stdout);
        if !output.stderr.is_empty() {
            ctx.recorder.replace(&format!("{name}.stderr"), &output.stderr);
        }
    }
    let kept = &output.stdout[..output.stdout.len().min(KEPT)];
    let stdout = String::from_utf8_lossy(kept).trim_end().to_owned();
    let outcome = if output.exit == 0 {
        CallOutcome::Ok
    } else {
        CallOutcome::Error
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    let mut said = format!("{shown}: exit {}", output.exit);
    if output.exit != 0
        && let Some(line) = stderr.lines().next()
    {
        said.push_str(&format!(", {line}"));
    }
    let mut end = End {
        status: Some(i64::from(output.exit)),
        ..End::new(outcome, said)
    };
    end.results
        .insert(StepField::Exit, Value::Number(f64::from(output.exit)));
    end.results.insert(StepField::Stdout, Value::Text(stdout));
    end
}
