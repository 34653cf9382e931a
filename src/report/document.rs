use std::path::{Path, PathBuf};
use std::{fs, io};

use super::{Intervals, TimelineRecord};
use crate::diagnostic::{SourceMap, Span};
use crate::time::Instant;
use crate::verdict::judge::Judged;
use crate::verdict::{Finding, Report};

/// What a report is made of: the result files of one run folder.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The folder, as it was given; commands in a report name it.
    pub folder: PathBuf,
    /// `verdict.json`.
    pub report: Report,
    /// `timeline.jsonl`, in its order.
    pub events: Vec<TimelineRecord>,
    /// `intervals.json`.
    pub intervals: Intervals,
    /// `scenario.yaml` as it was run.
    pub scenario_text: Option<String>,
    /// The evidence, by name.
    pub files: Vec<EvidenceFile>,
    /// What of the result files could not be read.
    pub gaps: Vec<String>,
}

/// One file of raw evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceFile {
    /// Name in the run folder.
    pub name: String,
    /// Bytes.
    pub size: u64,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// No `verdict.json`: nothing was judged yet.
    #[error("{} holds no verdict.json; judge its evidence first: gtrun collect {}", .0.display(), .0.display())]
    NotJudged(PathBuf),
    /// A result file that cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// `verdict.json` is not what this version writes.
    #[error("{} is no verdict that this version reads: {error}; judge the folder again: gtrun collect {}", path.display(), folder.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
        /// What the parser said, with line and column.
        error: serde_json::Error,
    },
    /// A report that cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Results and reports, and what only the simulator's self-check may read: no evidence.
const NOT_EVIDENCE: [&str; 10] = [
    "intervals.json",
    "junit.xml",
    "meta.json",
    "perfetto.json",
    "report.html",
    "report.md",
    "summary.json",
    "timeline.jsonl",
    "truth.json",
    "verdict.json",
];

impl Document {
    /// Reads `verdict.json`, and `timeline.jsonl` and `intervals.json` as far as they are there.
    pub fn read(folder: &Path) -> Result<Self, DocumentError> {
        let path = folder.join("verdict.json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(DocumentError::NotJudged(folder.to_owned()));
            }
            Err(error) => return Err(DocumentError::Read { path, error }),
        };
        let report = serde_json::from_str(&text).map_err(|error| DocumentError::Malformed {
            path,
            folder: folder.to_owned(),
            error,
        })?;
        let mut gaps = Vec::new();
        let mut result = |name: &str, what: &str| match fs::read_to_string(folder.join(name)) {
            Ok(text) => Some(text),
            Err(error) => {
                let how = if error.kind() == io::ErrorKind::NotFound {
                    "is missing".to_owned()
                } else {
                    format!("cannot be read ({error})")
                };
                gaps.push(format!("{name} {how}: no {what} are shown"));
                None
            }
        };
        let timeline_text = result("timeline.jsonl", "events");
        let intervals_text = result("intervals.json", "intervals");
        let events = timeline(timeline_text.as_deref().unwrap_or_default(), &mut gaps);
        let intervals = intervals_text
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .unwrap_or_else(|error| {
                gaps.push(format!(
                    "intervals.json cannot be read ({error}): no intervals are shown"
                ));
                None
            });
        let intervals = intervals.as_ref().map(Intervals::from_json).unwrap_or_default();
        let scenario_text = fs::read_to_string(folder.join("scenario.yaml")).ok();
        Ok(Self {
            folder: folder.to_owned(),
            scenario_text,
            report,
            events,
            intervals,
            files: evidence(folder),
            gaps,
        })
    }

    /// Of results that are not, or not yet, in the folder.
    pub fn of(folder: &Path, judged: &Judged) -> Self {
        let record = |line: &serde_json::Map<String, serde_json::Value>| {
            serde_json::from_value(serde_json::Value::Object(line.clone())).ok()
        };
        let intervals = match serde_json::to_value(&judged.intervals) {
            Ok(serde_json::Value::Object(file)) => Intervals::from_json(&file),
            _ => Intervals::default(),
        };
        Self {
            folder: folder.to_owned(),
            report: judged.report.clone(),
            scenario_text: None,
            events: judged.timeline.iter().filter_map(record).collect(),
            intervals,
            files: evidence(folder),
            gaps: Vec::new(),
        }
    }

    /// Name of the scenario, else of the folder.
    pub fn title(&self) -> String {
        let folder = || self.folder.file_name().map(|name| name.to_string_lossy().into_owned());
        self.report
            .scenario
            .clone()
            .or_else(folder)
            .unwrap_or_else(|| self.folder.display().to_string())
    }

    /// The moment that reports count seconds from: the delete, else the first event.
    pub fn origin(&self) -> Option<Instant> {
        let start = |r: &TimelineRecord| r.bracket().lo.or(r.bracket().hi);
        let delete = self
            .events
            .iter()
            .find(|r| matches!(r.event.as_str(), "pod_delete" | "delete"))
            .and_then(start);
        let used = || {
            let events = self.report.assertions.iter().flat_map(|finding| &finding.events);
            events.filter(|e| e.event == "delete").find_map(|e| e.at.lo.or(e.at.hi))
        };
        delete
            .or_else(used)
            .or_else(|| self.events.iter().filter_map(start).min())
    }

    /// What the origin is, for a caption.
    pub fn origin_name(&self) -> &'static str {
        let in_timeline = self
            .events
            .iter()
            .any(|r| matches!(r.event.as_str(), "pod_delete" | "delete"));
        let used = self
            .report
            .assertions
            .iter()
            .flat_map(|f| &f.events)
            .any(|e| e.event == "delete" && e.at.lo.is_some());
        if in_timeline || used {
            "the delete"
        } else {
            "the first event"
        }
    }

    /// Where a finding stands in the scenario as it was run: `<folder>/scenario.yaml:9:5`.
    ///
    /// Only where the text there is the assertion: what came from an included file is not in the folder's copy, and a
    /// wrong line would be worse than none.
    pub fn place(&self, finding: &Finding) -> Option<String> {
        let text = self.scenario_text.as_ref()?;
        let (start, end) = finding.span.map(|(start, end)| (start as usize, end as usize))?;
        (text.get(start..end)? == finding.assert).then_some(())?;
        let mut sources = SourceMap::default();
        let file = sources.add(self.folder.join("scenario.yaml").display().to_string(), text);
        Some(sources.place(Span::new(file, start, end)))
    }

    /// Every warning: the verdict's, then what of the results could not be read.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.report.warnings.iter().chain(&self.gaps).map(String::as_str)
    }
}

/// The readable lines; the first one that is not is said.
fn timeline(text: &str, gaps: &mut Vec<String>) -> Vec<TimelineRecord> {
    let mut events = Vec::new();
    let mut unread = 0;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str(line) {
            Ok(record) => events.push(record),
            Err(error) => {
                if unread == 0 {
                    gaps.push(format!("timeline.jsonl line {} could not be read: {error}", number + 1));
                }
                unread += 1;
            }
        }
    }
    if unread > 1 {
        gaps.push(format!("timeline.jsonl: {unread} lines could not be read"));
    }
    events
}

/// The raw evidence of a folder; an unreadable folder has none to show.
fn evidence(folder: &Path) -> Vec<EvidenceFile> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<EvidenceFile> = entries
        .filter_map(|entry| {
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let shown = !NOT_EVIDENCE.contains(&name.as_str()) && !name.ends_with(".tmp");
            shown.then_some(EvidenceFile { name, size: meta.len() })
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}
