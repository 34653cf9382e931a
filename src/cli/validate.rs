//! `gtrun validate FILE|DIR...`: are scenario and environment files right? Executes nothing.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
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
        gtrun_env: None,
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
    let (mut errors, mut warnings) = (0, 0);
    for file in &files {
        let (_, found) = validate(file, &options, &Disk);
        errors += count(&found.diagnostics, Severity::Error);
        warnings += count(&found.diagnostics, Severity::Warning);
        eprint!("{}", render_human(&found.diagnostics, &found.sources, style()));
    }
    eprintln!("{errors} errors, {warnings} warnings in {} files", files.len());
    if errors > 0 { Exit::InvalidFile } else { Exit::Success }
}

fn count(diagnostics: &[Diagnostic], severity: Severity) -> usize {
    diagnostics.iter().filter(|d| d.severity == severity).count()
}

fn style() -> Style {
    let terminal = std::io::stderr().is_terminal();
    Style {
        color: terminal && std::env::var_os("NO_COLOR").is_none(),
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
