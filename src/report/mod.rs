//! The same verdict for a terminal, a browser, a pull request and a machine.
//!
//! From the result files of a run folder ([`Document`]) to text. Rendering is pure: one function a format, from the
//! document to a `String`, the same bytes for the same folder; [`write_all`] is the one writer. Everything that a report
//! says of a simulated run says SIMULATED.

mod axis;
mod comparison;
mod document;
mod html;
mod intervals;
mod junit;
mod markdown;
mod next_step;
mod perfetto;
mod run_list;
mod scene;
mod summary;
pub mod terminal;
mod timeline_record;
mod wording;

use std::path::Path;
use std::{fs, io};

pub use comparison::render_comparison;
pub use document::{Document, DocumentError, EvidenceFile};
pub use html::render_index;
pub use intervals::{Interval, Intervals};
pub use next_step::{last_line, next_command};
pub use run_list::{RunEntry, find_runs, render_list, render_list_json};
pub use timeline_record::TimelineRecord;
pub use wording::{fate_word, outcome_word, run_word};

/// The formats of `gtrun report`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One self-contained page: `report.html`.
    Html,
    /// For a comment on a pull request: `report.md`.
    Markdown,
    /// For CI: `junit.xml`.
    Junit,
    /// For a program: `summary.json`.
    Json,
    /// Trace events for a Perfetto viewer: `perfetto.json`, written only when asked for.
    Perfetto,
    /// What a run prints at its end; not a file.
    Terminal,
}

impl Format {
    /// The formats that every run folder gets.
    pub const IN_FOLDER: [Self; 4] = [Self::Html, Self::Markdown, Self::Junit, Self::Json];

    /// The file's name in the run folder.
    pub const fn file_name(self) -> &'static str {
        match self {
            Self::Html => "report.html",
            Self::Markdown => "report.md",
            Self::Junit => "junit.xml",
            Self::Json => "summary.json",
            Self::Perfetto => "perfetto.json",
            Self::Terminal => "report.txt",
        }
    }
}

/// The document in one format, with the newline at its end.
pub fn render(document: &Document, format: Format) -> String {
    match format {
        Format::Html => html::render(document),
        Format::Markdown => markdown::render(document),
        Format::Junit => junit::render(std::slice::from_ref(document)),
        Format::Json => summary::render(document),
        Format::Perfetto => perfetto::render(document),
        Format::Terminal => terminal::render(document, &terminal::Look::plain(100)),
    }
}

/// Reads the results of a run folder, writes `report.html`, `report.md`, `junit.xml` and `summary.json` into it, and
/// returns what was read, for the terminal.
///
/// Fails when `verdict.json` cannot be read or a file cannot be written; a missing `timeline.jsonl` or
/// `intervals.json` only leaves its part of the reports out, and the reports say so.
pub fn write_all(folder: &Path) -> Result<Document, DocumentError> {
    let document = Document::read(folder)?;
    for format in Format::IN_FOLDER {
        let path = folder.join(format.file_name());
        write_whole(&path, &render(&document, format)).map_err(|error| DocumentError::Write { path, error })?;
    }
    Ok(document)
}

/// A reader never sees half a report: written beside, then renamed.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

/// One JUnit file for several runs.
pub fn render_junit(documents: &[Document]) -> String {
    junit::render(documents)
}

#[cfg(test)]
mod tests;
