//! Which environment a scenario runs in, and where its file is.

use std::io;
use std::path::{Path, PathBuf};

use super::{LoadOptions, Reading};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::language::check::shape::ENVIRONMENT;
use crate::language::environment::{EnvironmentFile, built_in};
use crate::language::nearest::nearest;
use crate::language::plan::{Environment, EnvironmentKind, resolve};
use crate::language::scenario::Document;

/// Who named the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentChoice {
    /// `--env`.
    CommandLine,
    /// `GTRUN_ENV`.
    Variable,
    /// The scenario's `environment:`.
    Scenario,
    /// Nobody: `sim`.
    Default,
}

/// The environment of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The environment, without what the scenario's preconditions say about its world.
    pub environment: Environment,
    /// What the file's `world` says, to be laid over the preconditions.
    pub world: Option<crate::language::environment::WorldFile>,
    /// Who named it.
    pub by: EnvironmentChoice,
}

impl Reading<'_> {
    /// `--env`, else `GTRUN_ENV`, else the scenario's `environment:`, else `sim`.
    pub(super) fn environment_of(
        &mut self,
        scenario: &Path,
        document: &Document,
        options: &LoadOptions,
    ) -> Option<Chosen> {
        let own = document.environment.as_ref();
        let (name, by, span) = match (&options.environment, &options.gtrun_env, own) {
            (Some(name), _, _) => (name.clone(), EnvironmentChoice::CommandLine, None),
            (None, Some(name), _) if !name.is_empty() => (name.clone(), EnvironmentChoice::Variable, None),
            (None, _, Some(at)) => (at.value.clone(), EnvironmentChoice::Scenario, Some(at.span)),
            (None, _, None) => ("sim".to_owned(), EnvironmentChoice::Default, None),
        };
        self.environment_named(&name, by, span, scenario, options)
    }

    /// The environment of the command line, without a scenario.
    pub(super) fn environment_alone(&mut self, options: &LoadOptions, beside: &Path) -> Option<Environment> {
        let (name, by) = match (&options.environment, &options.gtrun_env) {
            (Some(name), _) => (name.clone(), EnvironmentChoice::CommandLine),
            (None, Some(name)) if !name.is_empty() => (name.clone(), EnvironmentChoice::Variable),
            (None, _) => ("sim".to_owned(), EnvironmentChoice::Default),
        };
        let chosen = self.environment_named(&name, by, None, beside, options)?;
        let mut environment = chosen.environment;
        let preconditions = crate::language::plan::Preconditions::default();
        environment.world = resolve::world(environment.kind, &preconditions, chosen.world.as_ref(), None);
        Some(environment)
    }

    fn environment_named(
        &mut self,
        name: &str,
        by: EnvironmentChoice,
        span: Option<Span>,
        scenario: &Path,
        options: &LoadOptions,
    ) -> Option<Chosen> {
        let is_file = name.contains(['/', '\\']) || name.ends_with(".yaml") || name.ends_with(".yml");
        let path = if is_file {
            Some(PathBuf::from(name))
        } else {
            self.find(name, scenario)
        };
        let Some(path) = path else {
            let kind = match name {
                "sim" => EnvironmentKind::Sim,
                "lab" => EnvironmentKind::Lab,
                _ => {
                    self.missing(name, by, span, scenario);
                    return None;
                }
            };
            let mut environment = built_in(name, kind);
            environment.seed = options.seed.unwrap_or(environment.seed);
            return Some(Chosen {
                environment,
                world: None,
                by,
            });
        };
        let tree = self.tree(&path)?;
        let document: EnvironmentFile = self.typed(tree, &ENVIRONMENT)?;
        let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let mut environment =
            resolve::environment(&document, &name_of(&path), &path, &directory, &mut self.diagnostics)?;
        environment.seed = options.seed.unwrap_or(environment.seed);
        Some(Chosen {
            environment,
            world: document.world.0.map(|world| world.value),
            by,
        })
    }

    /// `environments/NAME.yaml` beside the scenario, then in every folder above it up to the root of the repository.
    fn find(&self, name: &str, scenario: &Path) -> Option<PathBuf> {
        self.environment_folders(scenario)
            .into_iter()
            .map(|folder| folder.join(format!("{name}.yaml")))
            .find(|file| self.files.exists(file))
    }

    fn environment_folders(&self, scenario: &Path) -> Vec<PathBuf> {
        let root = self.repository(scenario);
        let own = scenario.parent().unwrap_or(Path::new(""));
        let mut folders = vec![own.join("environments")];
        let Ok(canonical) = self.files.canonical(if own.as_os_str().is_empty() {
            Path::new(".")
        } else {
            own
        }) else {
            return folders;
        };
        // Written relative to the scenario as long as it goes, so that messages show short paths.
        let mut up = own.to_path_buf();
        for folder in canonical.ancestors().skip(1) {
            if !folder.starts_with(&root) {
                break;
            }
            up = if up.file_name().is_some() {
                up.parent().map(Path::to_path_buf).unwrap_or_default()
            } else {
                up.join("..")
            };
            folders.push(up.join("environments"));
        }
        folders
    }

    fn missing(&mut self, name: &str, by: EnvironmentChoice, span: Option<Span>, scenario: &Path) {
        let folders = self.environment_folders(scenario);
        let whose = match by {
            EnvironmentChoice::CommandLine => "--env says",
            EnvironmentChoice::Variable => "GTRUN_ENV says",
            EnvironmentChoice::Scenario | EnvironmentChoice::Default => "the scenario says",
        };
        let searched = folders
            .iter()
            .map(|folder| folder.join(format!("{name}.yaml")).display().to_string())
            .collect::<Vec<_>>()
            .join(", ");
        let mut diagnostic = Diagnostic::error(
            Code::EnvironmentMissing,
            format!("there is no environment `{name}`, as {whose}"),
        );
        if let Some(span) = span {
            diagnostic = diagnostic.at(span, "");
        }
        let own = ["sim", "lab"].map(str::to_owned).into_iter();
        let named = folders.iter().flat_map(|folder| self.files.list(folder));
        let known: Vec<String> = own
            .chain(named.filter_map(|name| Some(name.strip_suffix(".yaml")?.to_owned())))
            .collect();
        let close = nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`? "));
        self.diagnostics
            .push(diagnostic.help(format!("{}looked for {searched}", close.unwrap_or_default())));
    }
}

/// The name of an environment file: `homelab` of `environments/homelab.yaml`.
pub(super) fn name_of(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Why a file cannot be read, in a few words.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => error.to_string(),
    }
}
