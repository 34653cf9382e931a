//! The language from outside: what the command says about whole files, and what is generated from its types.
//!
//! Files that hold expected text are rewritten when `GTRUN_BLESS` is set; look at the difference before you commit it.

mod action;
mod corpus;
mod formats;
mod generated;

use std::path::{Path, PathBuf};

/// A path in the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// YAML files of a folder, by name.
fn yaml_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files
}

/// Compares a text with a file of the repository, or rewrites the file.
fn expect_file(path: &Path, actual: &str) -> Result<(), String> {
    if std::env::var_os("GTRUN_BLESS").is_some() {
        std::fs::write(path, actual).map_err(|error| format!("{}: {error}", path.display()))?;
        return Ok(());
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    Err(format!(
        "{} differs (GTRUN_BLESS=1 rewrites it)\n--- expected\n{expected}\n--- actual\n{actual}",
        path.display()
    ))
}
