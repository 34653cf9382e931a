//! The runs of a scenario: matrix, then sweep, then repeat; and the controls.

use indexmap::IndexMap;

use crate::diagnostic::{Code, Diagnostic, SourceMap, Span};
use crate::language::load::{Chosen, LoadOptions};
use crate::language::nearest::did_you_mean;
use crate::language::plan::{EnvironmentKind, PhasePoint};
use crate::language::scenario::{Control, Document, Row, Sweep, VariableSweep};
use crate::language::value::{At, Plain};
use crate::language::{Id, Scalar, Variable};
use crate::time::Duration;

/// Most runs of one scenario.
const MAX_RUNS: usize = 10_000;

/// One run before its plan is made.
pub(super) struct RunSpec<'a> {
    pub(super) path: String,
    /// Values that make the run different from the others.
    pub(super) key: IndexMap<Id, Variable>,
    /// All variables.
    pub(super) vars: IndexMap<Id, Variable>,
    pub(super) phase: Option<PhasePoint>,
    pub(super) repetition: u32,
    pub(super) control: Option<(Id, &'a Control)>,
}

/// All runs, in their order. There is always at least one, so that everything else can be checked.
pub(super) fn expand<'a>(
    document: &'a Document,
    chosen: &Chosen,
    options: &LoadOptions,
    sources: &SourceMap,
) -> (Vec<RunSpec<'a>>, Vec<Diagnostic>) {
    let mut expansion = Expansion {
        document,
        chosen,
        found: Vec::new(),
        defaults: IndexMap::new(),
        pinned: Vec::new(),
    };
    expansion.variables(options, sources);
    let repeat = options
        .repeat
        .unwrap_or_else(|| document.repeat.as_ref().map_or(1, |repeat| repeat.value.0))
        .max(1);
    let points = expansion.sweep();
    let rows = expansion.matrix(&[]);
    let total = rows.len().saturating_mul(points.len()).saturating_mul(repeat as usize);
    let mut runs = Vec::new();
    if total > MAX_RUNS {
        let span = document
            .repeat
            .as_ref()
            .map(|repeat| repeat.span)
            .or(document.sweep.as_ref().map(|sweep| sweep.span))
            .or(document.matrix.as_ref().map(|matrix| matrix.span));
        let message = format!(
            "{} combinations, {} points and {repeat} repetitions are {total} runs; at most {MAX_RUNS} are allowed",
            rows.len(),
            points.len()
        );
        let diagnostic = Diagnostic::error(Code::TooManyRuns, message);
        expansion.found.push(match span {
            Some(span) => diagnostic.at(
                Span {
                    end: span.start,
                    ..span
                },
                "",
            ),
            None => diagnostic,
        });
        runs.extend(expansion.run(IndexMap::new(), &Point::default(), None, None));
        return (runs, expansion.found);
    }
    for row in &rows {
        for point in &points {
            for repetition in 1..=repeat {
                runs.extend(expansion.run(row.clone(), point, (repeat > 1).then_some(repetition), None));
            }
        }
    }
    expansion.controls(&mut runs);
    (runs, expansion.found)
}

/// A point of a sweep: nothing, a phase, or a value of a variable.
#[derive(Default)]
struct Point {
    phase: Option<PhasePoint>,
    value: Option<(Id, Variable)>,
}

struct Expansion<'a, 'c> {
    document: &'a Document,
    chosen: &'c Chosen,
    found: Vec<Diagnostic>,
    /// Variables without any variation: those of the file, those of `--set` over them.
    defaults: IndexMap<Id, Variable>,
    /// Variables that `--set` names: an axis over one of them keeps this value only.
    pinned: Vec<Id>,
}

impl<'a> Expansion<'a, '_> {
    fn run(
        &self,
        row: IndexMap<Id, Variable>,
        point: &Point,
        repetition: Option<u32>,
        control: Option<(Id, &'a Control)>,
    ) -> Option<RunSpec<'a>> {
        let mut key = row;
        key.extend(point.value.clone());
        let mut vars = self.defaults.clone();
        vars.extend(key.clone());
        let mut parts = Vec::new();
        let mut values: Vec<String> = control.iter().map(|(id, _)| format!("control={id}")).collect();
        values.extend(key.iter().map(|(id, value)| format!("{id}={}", folder(&value.text))));
        if !values.is_empty() {
            parts.push(values.join(","));
        }
        parts.extend(point.phase.as_ref().map(|phase| format!("phase-{:02}", phase.index)));
        parts.extend(repetition.map(|n| n.to_string()));
        if let Some((_, control)) = &control {
            vars.extend(
                control
                    .vars
                    .iter()
                    .map(|(id, value)| (id.value.0.clone(), value.value.clone())),
            );
        }
        Some(RunSpec {
            path: parts.join("/"),
            key,
            vars,
            phase: point.phase.clone(),
            repetition: repetition.unwrap_or(1),
            control,
        })
    }

    fn error(&mut self, code: Code, message: impl Into<String>, span: Span, help: Option<String>) {
        self.found
            .push(Diagnostic::error(code, message).at(span, "").maybe_help(help));
    }

    /// Defaults and `--set`.
    fn variables(&mut self, options: &LoadOptions, _sources: &SourceMap) {
        for (id, value) in &self.document.vars {
            self.defaults.insert(id.value.0.clone(), value.value.clone());
        }
        for set in &options.set {
            let Some((name, text)) = set.split_once('=') else {
                let diagnostic = Diagnostic::error(Code::SetValue, format!("`--set {set}` has no `=`"));
                self.found.push(diagnostic.help("write --set name=value"));
                continue;
            };
            let Some((id, default)) = self.document.vars.iter().find(|(id, _)| id.value.0 == name) else {
                let known: Vec<&str> = self.document.vars.keys().map(|id| id.value.0.as_str()).collect();
                let help = did_you_mean(name, known.iter().copied())
                    .unwrap_or_else(|| "the scenario declares no variables".to_owned());
                self.found.push(
                    Diagnostic::error(
                        Code::SetValue,
                        format!("`--set {set}`: the scenario has no variable `{name}`"),
                    )
                    .help(help),
                );
                continue;
            };
            let value = crate::language::source::scalar(text);
            let ty = default.value.ty();
            match value {
                Some(value) if value.ty() == ty || ty == crate::language::expression::Type::Text => {
                    // A variable that is a text takes what is written, even where it looks like a number.
                    let value = if value.ty() == ty {
                        value
                    } else {
                        Variable {
                            text: text.to_owned(),
                            value: Scalar::Text(text.to_owned()),
                        }
                    };
                    self.defaults.insert(id.value.0.clone(), value);
                    self.pinned.push(id.value.0.clone());
                }
                other => {
                    let is = other.map_or("no scalar".to_owned(), |value| value.ty().to_string());
                    let message = format!("`--set {set}`: `{name}` is {ty}, and `{text}` is {is}");
                    let diagnostic =
                        Diagnostic::error(Code::SetValue, message).at(default.span, format!("the default is {ty}"));
                    let help = (ty == crate::language::expression::Type::Duration)
                        .then(|| format!("write the unit: --set {name}={text}s"));
                    self.found.push(diagnostic.maybe_help(help));
                }
            }
        }
    }

    /// A variable that is varied must be declared, and its values have the type of its default.
    fn check(&mut self, id: &At<crate::language::scenario::IdText>, values: &[&Plain<Variable>]) -> bool {
        let Some((_, default)) = self.document.vars.iter().find(|(known, _)| known.value == id.value) else {
            let known: Vec<&str> = self.document.vars.keys().map(|id| id.value.0.as_str()).collect();
            let name = &id.value.0;
            let help = did_you_mean(name.as_str(), known.iter().copied())
                .unwrap_or_else(|| format!("declare it: `vars: {{ {name}: ... }}`"));
            self.error(
                Code::UnknownName,
                format!("there is no variable `{name}`"),
                id.span,
                Some(help),
            );
            return false;
        };
        let ty = default.value.ty();
        let mut good = true;
        for value in values {
            let own = value.value.ty();
            if own != ty && ty != crate::language::expression::Type::Text {
                let diagnostic = Diagnostic::error(
                    Code::Variation,
                    format!("`{}` is {ty}, and `{}` is {own}", id.value.0, value.value.text),
                );
                self.found.push(
                    diagnostic
                        .at(value.span, "")
                        .at(default.span, format!("the default is {ty}")),
                );
                good = false;
            }
        }
        good
    }

    fn row(&mut self, row: &At<Row>) -> Option<IndexMap<Id, Variable>> {
        let mut good = true;
        for (id, value) in &row.value {
            good &= self.check(id, &[value]);
        }
        good.then(|| {
            row.value
                .iter()
                .map(|(id, value)| (id.value.0.clone(), value.value.clone()))
                .collect()
        })
    }

    /// All combinations of the axes but those of `without`.
    fn matrix(&mut self, without: &[Id]) -> Vec<IndexMap<Id, Variable>> {
        let one = vec![IndexMap::new()];
        let Some(matrix) = self.document.matrix.as_ref() else {
            return one;
        };
        let mut rows = one;
        for (id, values) in &matrix.value.axes {
            if !self.check(id, &values.iter().collect::<Vec<_>>()) || without.contains(&id.value.0) {
                continue;
            }
            if rows.len().saturating_mul(values.len()) > MAX_RUNS * 10 {
                self.error(
                    Code::TooManyRuns,
                    format!("the matrix has more than {} combinations", MAX_RUNS * 10),
                    id.span,
                    None,
                );
                return vec![IndexMap::new()];
            }
            let pinned = self
                .pinned
                .contains(&id.value.0)
                .then(|| self.defaults.get(&id.value.0).cloned())
                .flatten();
            let values: Vec<Variable> = pinned.map_or_else(
                || values.iter().map(|value| value.value.clone()).collect(),
                |value| vec![value],
            );
            rows = rows
                .iter()
                .flat_map(|row| {
                    values.iter().map(|value| {
                        let mut row = row.clone();
                        row.insert(id.value.0.clone(), value.clone());
                        row
                    })
                })
                .collect();
        }
        if matrix.value.axes.is_empty() {
            rows.clear();
        }
        for exclude in &matrix.value.exclude {
            let Some(row) = self.row(exclude) else { continue };
            let before = rows.len();
            rows.retain(|candidate| !row.iter().all(|(id, value)| candidate.get(id) == Some(value)));
            if rows.len() == before && without.is_empty() && self.pinned.is_empty() {
                let diagnostic = Diagnostic::warning(Code::Variation, "this excludes no combination");
                self.found.push(
                    diagnostic
                        .at(exclude.span, "")
                        .help("are the values written as in the lists?"),
                );
            }
        }
        for include in &matrix.value.include {
            let Some(mut row) = self.row(include) else { continue };
            row.retain(|id, _| !without.contains(id));
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        if rows.is_empty() {
            let span = Span {
                end: matrix.span.start,
                ..matrix.span
            };
            self.error(Code::Variation, "the matrix leaves no combination", span, None);
            return vec![IndexMap::new()];
        }
        rows
    }

    fn sweep(&mut self) -> Vec<Point> {
        let none = || vec![Point::default()];
        let Some(sweep) = self.document.sweep.as_ref() else {
            return none();
        };
        match &sweep.value {
            Sweep::Phase(phase) => {
                let mut steps = Vec::new();
                super::scope::all(self.document.steps.iter().flat_map(|steps| &steps.value), &mut steps);
                let known: Vec<&str> = steps
                    .iter()
                    .filter_map(|step| step.value.id.as_ref())
                    .map(|id| id.value.0.as_str())
                    .collect();
                if !known.contains(&phase.of.value.0.as_str()) {
                    let help = did_you_mean(phase.of.value.0.as_str(), known.iter().copied())
                        .or_else(|| Some("`of` is the id of a step".to_owned()));
                    self.error(
                        Code::UnknownName,
                        format!("there is no step `{}`", phase.of.value.0),
                        phase.of.span,
                        help,
                    );
                    return none();
                }
                let points = phase.points.value.0;
                if points as usize > MAX_RUNS {
                    self.error(
                        Code::TooManyRuns,
                        format!("at most {MAX_RUNS} points"),
                        phase.points.span,
                        None,
                    );
                    return none();
                }
                let of = &phase.of.value.0;
                let point = |index| Point {
                    phase: Some(PhasePoint {
                        of: of.clone(),
                        against: phase.against,
                        index,
                        points,
                    }),
                    value: None,
                };
                (0..points).map(point).collect()
            }
            Sweep::Variable(variable) => self.values(variable).unwrap_or_else(none),
        }
    }

    fn values(&mut self, sweep: &VariableSweep) -> Option<Vec<Point>> {
        let id = &sweep.name;
        let VariableSweep { values: file, .. } = sweep;
        let point = |value: Variable| Point {
            phase: None,
            value: Some((id.value.0.clone(), value)),
        };
        if let Some(pinned) = self
            .pinned
            .contains(&id.value.0)
            .then(|| self.defaults.get(&id.value.0).cloned())
            .flatten()
        {
            return Some(vec![point(pinned)]);
        }
        if let Some(values) = file.values.as_ref() {
            if file.from.is_some() || file.to.is_some() || file.points.is_some() {
                self.error(
                    Code::Variation,
                    "a sweep goes through `values`, or from `from` to `to` in `points`",
                    id.span,
                    Some("remove one of both".into()),
                );
                return None;
            }
            return self
                .check(id, &values.iter().collect::<Vec<_>>())
                .then(|| values.iter().map(|value| point(value.value.clone())).collect());
        }
        let (Some(from), Some(to), Some(points)) = (file.from.as_ref(), file.to.as_ref(), file.points.as_ref()) else {
            self.error(
                Code::MissingKey,
                "a sweep needs `from`, `to` and `points`, or `values`",
                id.span,
                None,
            );
            return None;
        };
        if !self.check(id, &[from, to]) {
            return None;
        }
        let n = points.value.0;
        if n < 2 || n as usize > MAX_RUNS {
            self.error(
                Code::OutOfRange,
                format!("a range has 2 to {MAX_RUNS} points"),
                points.span,
                Some("both ends are points".into()),
            );
            return None;
        }
        let share = |index: u32| f64::from(index) / f64::from(n - 1);
        let value = |index: u32| -> Option<Variable> {
            let between = |a: f64, b: f64| a + (b - a) * share(index);
            match (&from.value.value, &to.value.value) {
                (Scalar::Duration(a), Scalar::Duration(b)) => {
                    // Rounded to the millisecond: finer is no author's intention, and the value names a folder.
                    let millis = between(a.as_secs_f64() * 1e3, b.as_secs_f64() * 1e3).round();
                    Some(Variable::from_text(&Duration::from_millis(millis as i64).to_string()))
                }
                (Scalar::Number(a), Scalar::Number(b)) => {
                    let number = (between(*a, *b) * 1e6).round() / 1e6;
                    Some(Variable::from_number(&number.to_string(), number))
                }
                (Scalar::Rate(a), Scalar::Rate(b)) => Some(Variable::from_text(&format!(
                    "{}/s",
                    (between(*a, *b) * 1e3).round() / 1e3
                ))),
                (Scalar::Percent(a), Scalar::Percent(b)) => Some(Variable::from_text(&format!(
                    "{}%",
                    (between(*a, *b) * 1e3).round() / 1e3
                ))),
                _ => None,
            }
        };
        let values: Option<Vec<Variable>> = (0..n).map(value).collect();
        let Some(values) = values else {
            self.error(
                Code::Variation,
                format!("{} has no values between two others", from.value.ty()),
                from.span,
                Some("name them: `values: [...]`".into()),
            );
            return None;
        };
        Some(values.into_iter().map(point).collect())
    }

    fn controls(&mut self, runs: &mut Vec<RunSpec<'a>>) {
        for (id, control) in &self.document.controls {
            let mut good = true;
            for (name, value) in &control.vars {
                good &= self.check(name, &[value]);
            }
            let axes: Vec<&Id> = self
                .document
                .matrix
                .iter()
                .flat_map(|matrix| matrix.value.axes.keys())
                .map(|id| &id.value.0)
                .collect();
            let changes_vars = control.vars.iter().any(|(name, value)| {
                axes.contains(&&name.value.0) || self.defaults.get(&name.value.0) != Some(&value.value)
            });
            if !changes_vars && control.preconditions.is_none() && control.world.is_none() {
                let help = Some("change `vars`, `preconditions` or `world`".to_owned());
                self.error(
                    Code::Variation,
                    format!(
                        "control `{}` changes nothing: it would run what must hold, and demand that it fails",
                        id.value.0
                    ),
                    id.span,
                    help,
                );
                good = false;
            }
            let only_world = !changes_vars && control.preconditions.is_none();
            if self.chosen.environment.kind == EnvironmentKind::Cluster && only_world && control.world.is_some() {
                let help = Some("change `vars` or `preconditions`, or run it in `sim` or `lab`".to_owned());
                self.error(
                    Code::EnvironmentConflict,
                    format!(
                        "control `{}` changes only the world, and a cluster is as it is",
                        id.value.0
                    ),
                    id.span,
                    help,
                );
                good = false;
            }
            if !good {
                continue;
            }
            let overridden: Vec<Id> = control.vars.keys().map(|name| name.value.0.clone()).collect();
            for row in self.matrix(&overridden) {
                runs.extend(self.run(row, &Point::default(), None, Some((id.value.0.clone(), control))));
            }
        }
    }
}

/// A value in the name of a folder.
fn folder(text: &str) -> String {
    text.chars()
        .take(60)
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-%+".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}
