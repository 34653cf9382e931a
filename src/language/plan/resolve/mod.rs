//! From documents to plans: every default filled in, every name resolved, every variable replaced, all findings at once.

mod assertion;
mod context;
mod environment;
mod precondition;
mod probe;
mod request;
mod scope;
mod step;
mod template;
mod variation;
mod verb;
mod world;

pub(crate) use environment::environment;
pub(crate) use scope::LostStep;
pub(crate) use world::world;

use context::Context;

use super::{Control, Plan, PlannedRun, Suite};
use std::collections::BTreeSet;

use crate::diagnostic::{Code, Diagnostic, Severity, SourceMap};
use crate::language::Id;
use crate::language::check;
use crate::language::load::{Chosen, LoadOptions};
use crate::language::scenario::{Control as ControlFile, Document, IdText};
use crate::language::value::At;
use crate::time::Duration;

/// Limit of a whole run, when the scenario names none.
const RUN_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// All runs of a scenario, and everything that is wrong with them. With an error among the findings the suite is of no use.
pub(crate) fn suite(
    document: &Document,
    chosen: &Chosen,
    options: &LoadOptions,
    lost: &[LostStep],
    sources: &SourceMap,
) -> (Suite, Vec<Diagnostic>) {
    let (specs, mut found) = variation::expand(document, chosen, options, sources);
    let name = document
        .name
        .as_ref()
        .map(|name| name.value.0.clone())
        .unwrap_or_default();
    let mut runs = Vec::new();
    let mut used = BTreeSet::new();
    for spec in specs {
        let mut context = Context::new(document, chosen, options, lost, sources, spec.vars.clone());
        let control = spec.control.as_ref().map(|(_, control)| *control);
        let plan = plan(&mut context, control, &name, &spec);
        used.append(&mut context.used);
        let mut new: Vec<Diagnostic> = context.found.into_iter().filter(|d| !found.contains(d)).collect();
        // What cannot fit in a control is what it is for.
        let right = found.iter().chain(&new).all(|d| d.severity != Severity::Error);
        if right && control.is_none() && spec.repetition == 1 {
            new.extend(check::plan(&plan).into_iter().filter(|d| !found.contains(d)));
        }
        found.append(&mut new);
        let control = spec.control.map(|(id, _)| id);
        runs.push(PlannedRun {
            path: spec.path,
            key: spec.key,
            repetition: spec.repetition,
            control,
            plan,
        });
    }
    if found.iter().all(|d| d.severity != Severity::Error) {
        found.extend(unused_variables(document, &used));
    }
    let controls = document
        .controls
        .iter()
        .map(|(id, control)| {
            (
                id.value.0.clone(),
                Control {
                    must: control.must.value,
                },
            )
        })
        .collect();
    (Suite { name, runs, controls }, found)
}

/// Variables that are declared and that no template and no expression names.
fn unused_variables(document: &Document, used: &BTreeSet<Id>) -> Vec<Diagnostic> {
    let unused = document.vars.keys().filter(|id| !used.contains(&id.value.0));
    let warning = |id: &At<IdText>| {
        let name = &id.value.0;
        let diagnostic = Diagnostic::warning(Code::UnusedVariable, format!("nothing uses the variable `{name}`"));
        diagnostic.at(id.span, "").help(format!(
            "in templates it is `{{{{ vars.{name} }}}}`, in expressions `vars.{name}`"
        ))
    };
    unused.map(warning).collect()
}

fn plan(context: &mut Context<'_>, control: Option<&ControlFile>, name: &str, spec: &variation::RunSpec<'_>) -> Plan {
    let document = context.document;
    let preconditions = context.preconditions(control);
    let mut environment = context.chosen.environment.clone();
    let control_world = control.and_then(|control| control.world.as_ref());
    environment.world = world::world(
        environment.kind,
        &preconditions,
        context.chosen.world.as_ref(),
        control_world,
    );
    context.grace = preconditions
        .pod
        .grace
        .or(environment.world.as_ref().map(|world| world.pod.grace));
    let probes = context.probes();
    context.complete_scope(&probes);
    let steps = document
        .steps
        .as_ref()
        .map(|steps| context.steps(&steps.value))
        .unwrap_or_default();
    context.all_steps_ran();
    let finally = document
        .finally
        .as_ref()
        .map(|steps| context.steps(&steps.value))
        .unwrap_or_default();
    let assertions = context.assertions();
    let timeout = document
        .timeout
        .as_ref()
        .and_then(|timeout| context.value(timeout))
        .unwrap_or(RUN_TIMEOUT);
    Plan {
        name: name.to_owned(),
        summary: document.summary.as_ref().map(|summary| summary.value.trim().to_owned()),
        expected_failure: document.expected_failure.as_ref().is_some_and(|flag| flag.value.0),
        vars: context.vars.clone(),
        preconditions,
        ensure: context.ensure(control),
        probes,
        steps,
        finally,
        timeout,
        assertions,
        environment,
        phase: spec.phase.clone(),
        sources: context.sources.clone(),
        secrets: std::mem::take(&mut context.secrets),
    }
}
