//! `gtrun validate FILE|DIR...`: are scenario and environment files right? Executes nothing.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::output;
use crate::diagnostic::{Diagnostic, Severity, Style, render_human};
use crate::language::{Disk, LoadOptions, validate};

/// Arguments of `gtrun validate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Scenario and environment files, or folders of them.
    #[arg(required = true, value_name = "FILE|DIR")]
    paths: Vec<PathBuf>,
    /// Environment to check scenarios in, instead of the one that they name.
    #[arg(long = "env", value_name = "NAME|FILE")]
    environment: Option<String>,
}

/// Checks the files and says what is wrong with them.
pub(super) fn main(args: Args) -> Exit {
    let options = LoadOptions {
        environment: args.environment,
        ..LoadOptions::default()
    };
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() {
            collect(path, &mut files)
        } else {
            files.push(path.clone())
        }
    }
    let mut total = Total::default();
    for file in &files {
        let (_, found) = validate(file, &options, &Disk);
        total.add(&found.diagnostics);
        eprint!("{}", render_human(&found.diagnostics, &found.sources, style()));
    }
    let files = plural(files.len(), "file");
    if total.errors > 0 {
        let code = total
            .first
            .map_or(String::new(), |code| format!("; next: gtrun explain {code}"));
        eprintln!("gtrun: {} in {files}{code}", total.words());
        return Exit::InvalidFile;
    }
    if total.warnings > 0 {
        eprintln!("gtrun: {} in {files}", total.words());
        return Exit::Success;
    }
    output::print(&format!("{files} right\n"))
}

/// What was found in all files.
#[derive(Default)]
struct Total {
    errors: usize,
    warnings: usize,
    first: Option<crate::diagnostic::Code>,
}

impl Total {
    fn add(&mut self, diagnostics: &[Diagnostic]) {
        let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
        self.errors += count(Severity::Error);
        self.warnings += count(Severity::Warning);
        self.first = self.first.or_else(|| {
            diagnostics
                .iter()
                .find(|d| d.severity == Severity::Error)
                .map(|d| d.code)
        });
    }

    fn words(&self) -> String {
        match (self.errors, self.warnings) {
            (0, warnings) => plural(warnings, "warning"),
            (errors, 0) => plural(errors, "error"),
            (errors, warnings) => format!("{} and {}", plural(errors, "error"), plural(warnings, "warning")),
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// What standard error can show.
fn style() -> Style {
    let terminal = std::io::stderr().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Style {
        color: terminal && !no_color,
        unicode: terminal,
        width: 100,
    }
}

fn collect(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, out);
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "yml") {
            out.push(path);
        }
    }
}
