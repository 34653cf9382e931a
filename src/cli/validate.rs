//! `gtrun validate FILE|DIR...`: are scenario and environment files right? Runs nothing of them.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::exit::Exit;
use crate::cli::output;
use crate::diagnostic::{Code, Diagnostic, Severity, SourceMap, Style, github, json, junit, render_human, sarif};
use crate::language::{Disk, FileKind, LoadOptions, validate};

/// Arguments of `gtrun validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Scenario and environment files, or folders of them.
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Environment to check scenarios in, instead of the one that they name.
    #[arg(long = "env", value_name = "NAME|FILE")]
    environment: Option<String>,
    /// How to print what was found: for people on standard error, everything else on standard output.
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
    /// Only files that differ from this commit, or include or use a file that does.
    #[arg(long, value_name = "REV")]
    changed_since: Option<String>,
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// With the lines of the file.
    Human,
    /// One object.
    Json,
    /// Annotations of GitHub Actions.
    Github,
    /// For code scanning.
    Sarif,
    /// One test case a file.
    Junit,
}

/// A file and what was found in it.
struct Checked {
    name: String,
    diagnostics: Vec<Diagnostic>,
    sources: SourceMap,
}

/// Checks the files and says what is wrong with them.
pub(super) fn main(args: Args) -> Exit {
    let files = match files(&args.paths) {
        Ok(files) => files,
        Err(path) => {
            eprintln!(
                "gtrun: there is no file and no folder {}; next: gtrun validate scenarios",
                path.display()
            );
            return Exit::InvalidFile;
        }
    };
    if files.is_empty() {
        eprintln!("gtrun: no YAML file there; next: name a file, or a folder with scenarios");
        return Exit::InvalidFile;
    }
    let changed = match args.changed_since.as_deref().map(changed).transpose() {
        Ok(changed) => changed,
        Err(reason) => {
            eprintln!("gtrun: {reason}; next: run it inside a git repository, with a commit that exists there");
            return Exit::Usage;
        }
    };
    let options = LoadOptions {
        environment: args.environment,
        ..LoadOptions::default()
    };
    let mut checked = Vec::new();
    for file in &files {
        let (kind, found) = validate(file, &options, &Disk);
        // A manifest that was not asked for by name is none of ours.
        if kind == Some(FileKind::Manifest) && !args.paths.contains(file) {
            continue;
        }
        if changed
            .as_ref()
            .is_none_or(|changed| uses(file, &found.sources, changed))
        {
            checked.push(Checked {
                name: file.display().to_string(),
                diagnostics: found.diagnostics,
                sources: found.sources,
            });
        }
    }
    show(&checked, args.format)
}

fn show(checked: &[Checked], format: Format) -> Exit {
    let total = Total::of(checked);
    let printed = match format {
        Format::Human => {
            for file in checked {
                eprint!("{}", render_human(&file.diagnostics, &file.sources, style()));
            }
            total.say(checked.len());
            if total.errors + total.warnings == 0 {
                output::print(&format!("{} right\n", plural(checked.len(), "file")))
            } else {
                Exit::Success
            }
        }
        Format::Json => {
            let diagnostics: Vec<_> = checked
                .iter()
                .flat_map(|file| json(&file.diagnostics, &file.sources))
                .collect();
            let value = serde_json::json!({ "files": checked.len(), "errors": total.errors, "warnings": total.warnings, "diagnostics": diagnostics });
            output::print(&format!("{value:#}\n"))
        }
        Format::Github => output::print(
            &checked
                .iter()
                .map(|file| github(&file.diagnostics, &file.sources))
                .collect::<String>(),
        ),
        Format::Sarif => {
            let found = checked.iter().map(|file| (file.diagnostics.as_slice(), &file.sources));
            output::print(&format!("{:#}\n", sarif(found, env!("CARGO_PKG_VERSION"))))
        }
        Format::Junit => match junit(
            checked
                .iter()
                .map(|file| (file.name.as_str(), file.diagnostics.as_slice(), &file.sources)),
        ) {
            Ok(text) => output::print(&text),
            Err(error) => {
                eprintln!("gtrun: the report cannot be written as XML: {error}");
                Exit::Fault
            }
        },
    };
    if format != Format::Human {
        total.say(checked.len());
    }
    if total.errors > 0 {
        printed.worst(Exit::InvalidFile)
    } else {
        printed
    }
}

/// What was found in all files.
#[derive(Default)]
struct Total {
    errors: usize,
    warnings: usize,
    first: Option<Code>,
}

impl Total {
    fn of(checked: &[Checked]) -> Self {
        let all = || checked.iter().flat_map(|file| &file.diagnostics);
        let count = |severity| all().filter(|d| d.severity == severity).count();
        Self {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            first: all().find(|d| d.severity == Severity::Error).map(|d| d.code),
        }
    }

    /// The last line: what happened, and what to try next.
    fn say(&self, files: usize) {
        let files = plural(files, "file");
        let (errors, warnings) = (plural(self.errors, "error"), plural(self.warnings, "warning"));
        match (self.errors, self.warnings, self.first) {
            (0, 0, _) => {}
            (0, _, _) => eprintln!("gtrun: {warnings} in {files}"),
            (_, 0, Some(code)) => eprintln!("gtrun: {errors} in {files}; next: gtrun explain {code}"),
            (_, _, Some(code)) => eprintln!("gtrun: {errors} and {warnings} in {files}; next: gtrun explain {code}"),
            (_, _, None) => eprintln!("gtrun: {errors} in {files}"),
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// What standard error can show.
pub(super) fn style() -> Style {
    let terminal = std::io::stderr().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style {
        color: terminal && !no_color,
        unicode: terminal,
        width: 100,
    }
}

/// The files to check, folders searched; `Err` is a path where nothing is.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, PathBuf> {
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() {
            search(path, &mut out);
        } else if path.exists() {
            out.push(path.clone());
        } else {
            return Err(path.clone());
        }
    }
    let mut seen = BTreeSet::new();
    out.retain(|path| seen.insert(path.clone()));
    Ok(out)
}

/// YAML files below a folder, by name. Hidden folders and those of build tools and of runs hold no scenarios; links are not followed.
fn search(folder: &Path, out: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<(PathBuf, bool)> = entries
        .filter_map(|entry| Some((entry.path(), entry.file_type().ok()?)))
        .filter(|(_, kind)| !kind.is_symlink())
        .map(|(path, kind)| (path, kind.is_dir()))
        .collect();
    entries.sort();
    for (path, is_folder) in entries {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        if is_folder {
            if !name.starts_with('.') && !matches!(name.as_str(), "target" | "node_modules" | "artifacts") {
                search(&path, out);
            }
        } else if name.ends_with(".yaml") || name.ends_with(".yml") {
            out.push(path);
        }
    }
}

/// Files that differ from a commit, the uncommitted and untracked ones included. Runs git and nothing else.
fn changed(revision: &str) -> Result<BTreeSet<PathBuf>, String> {
    let git = |arguments: &[&str]| -> Result<String, String> {
        let output = Command::new("git")
            .args(arguments)
            .output()
            .map_err(|error| format!("git cannot be started: {error}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("git says: {}", said.lines().next().unwrap_or("nothing").trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?.trim_end_matches('\n'));
    // What a pull request changes is counted from where it left the other branch.
    let base = git(&["merge-base", "--end-of-options", revision, "HEAD"]).or_else(|_| {
        git(&[
            "rev-parse",
            "--verify",
            "--end-of-options",
            &format!("{revision}^{{commit}}"),
        ])
    })?;
    let root_text = root.to_string_lossy().into_owned();
    let tracked = git(&[
        "-C",
        &root_text,
        "diff",
        "--name-only",
        "--no-renames",
        "-z",
        base.trim(),
        "--",
    ])?;
    let new = git(&["-C", &root_text, "ls-files", "--others", "--exclude-standard", "-z"])?;
    let names = tracked
        .split('\0')
        .chain(new.split('\0'))
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| root.join(name))
        .map(|path| path.canonicalize().unwrap_or(path))
        .collect())
}

/// True when the file, or one that it includes or uses, is among the changed ones.
fn uses(file: &Path, sources: &SourceMap, changed: &BTreeSet<PathBuf>) -> bool {
    let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    changed.contains(&canonical(file))
        || sources
            .iter()
            .any(|(_, source)| changed.contains(&canonical(Path::new(&source.name))))
}
