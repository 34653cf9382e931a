//! `gtrun new NAME [--like s2]`: a commented scenario that validates.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::output;

/// Arguments of `gtrun new`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the scenario: lower-case letters, digits and `-`.
    name: String,
    /// Begin with a copy of one of the scenarios that come with gtrun.
    #[arg(long, value_enum)]
    like: Option<Like>,
    /// Folder to write into. Default: `scenarios`, when there is one, else the current folder.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Scenarios to begin with.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Like {
    /// A request that is cut: mode current.
    S1,
    /// A request that outlives its pod: mode improved.
    S2,
    /// A rolling restart under load.
    S3,
    /// Packet capture alone.
    S4,
}

const BLANK: &str = include_str!("new/scenario.yaml");
const S1: &str = include_str!("../../scenarios/s1.yaml");
const S2: &str = include_str!("../../scenarios/s2.yaml");
const S3: &str = include_str!("../../scenarios/s3.yaml");
const S4: &str = include_str!("../../scenarios/s4-watch.yaml");

/// Writes the file; never over one that exists.
pub(super) fn main(args: Args) -> Exit {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if args.name.is_empty() || args.name.len() > 63 || !args.name.chars().all(inner) {
        eprintln!(
            "gtrun: `{}` is no name of a scenario; next: lower-case letters, digits and `-`, as in gtrun new s7-my-claim",
            args.name
        );
        return Exit::Usage;
    }
    let folder = args.folder.unwrap_or_else(|| {
        PathBuf::from(if Path::new("scenarios").is_dir() {
            "scenarios"
        } else {
            "."
        })
    });
    let path = if folder == Path::new(".") {
        PathBuf::from(format!("{}.yaml", args.name))
    } else {
        folder.join(format!("{}.yaml", args.name))
    };
    let template = match args.like {
        None => BLANK,
        Some(Like::S1) => S1,
        Some(Like::S2) => S2,
        Some(Like::S3) => S3,
        Some(Like::S4) => S4,
    };
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .and_then(|mut file| file.write_all(named(template, &args.name).as_bytes()));
    match written {
        Ok(()) => output::print(&format!("{} written; next: gtrun {}\n", path.display(), path.display())),
        Err(error) => {
            let reason = match error.kind() {
                ErrorKind::AlreadyExists => "it exists already; next: choose another name".to_owned(),
                ErrorKind::NotFound => format!(
                    "there is no folder {}; next: create it, or name another with --folder",
                    folder.display()
                ),
                _ => format!("{error}"),
            };
            eprintln!("gtrun: {} cannot be written: {reason}", path.display());
            Exit::NothingProved
        }
    }
}

/// The template under another name.
fn named(template: &str, name: &str) -> String {
    let line = |line: &str| {
        if line.starts_with("name: ") {
            format!("name: {name}\n")
        } else {
            format!("{line}\n")
        }
    };
    template.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::{LoadOptions, Memory, load};

    #[test]
    fn every_beginning_validates() {
        for template in [BLANK, S1, S2, S3, S4] {
            let files = Memory(vec![(
                PathBuf::from("s7.yaml"),
                named(template, "s7-mine").into_bytes(),
            )]);
            let loaded = load(Path::new("s7.yaml"), &LoadOptions::default(), &files)
                .unwrap_or_else(|rejected| panic!("{:?}", rejected.diagnostics));
            assert_eq!(
                (loaded.suite.name.as_str(), loaded.warnings.as_slice()),
                ("s7-mine", [].as_slice())
            );
        }
    }
}
