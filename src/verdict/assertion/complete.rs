//! `complete(P)`: the probe was live before the first step and lost nothing.

use super::Scope;
use super::judgement::Judgement;
use super::occurrence::{self, Watched};
use crate::evidence::{Evidence, FileId, NoteKind, SourceKind};
use crate::language::plan::ProbeKind;
use crate::time::{Bracket, Instant};
use crate::timeline::message;
use crate::verdict::Outcome;

/// Judges a probe.
pub fn of(scope: &Scope<'_>, name: &str) -> Judgement {
    let Some(probe) = scope.plan.probe(name) else {
        return Judgement::inconclusive(format!("there is no probe {name}"));
    };
    if let ProbeKind::RstCapture { hosts } = &probe.kind {
        return captures(scope, hosts);
    }
    let evidence = scope.timeline.evidence;
    let kind = match &probe.kind {
        ProbeKind::ContainerLog { container } => match container.as_str() {
            "hc" => SourceKind::HcLog,
            "sidecar" => SourceKind::EnvoyLog,
            _ => SourceKind::ContainerLog,
        },
        ProbeKind::EnvoyActive { .. } => SourceKind::EnvoyStats,
        ProbeKind::HaproxyStat { .. } => SourceKind::HaproxyCsv,
        ProbeKind::HaproxyLog => SourceKind::HaproxyLog,
        ProbeKind::PodWatch => SourceKind::Watch,
        ProbeKind::Health { .. } => SourceKind::ContainerLog,
        ProbeKind::RstCapture { .. } => SourceKind::Capture,
    };
    let files: Vec<FileId> = (0..evidence.files.len() as u32)
        .map(FileId)
        .filter(|f| evidence.file(*f).kind == kind)
        .collect();
    if files.is_empty() {
        return Judgement::new(Outcome::Fail, format!("{name} left no evidence"));
    }
    let lossy = |n: &&crate::evidence::Note| {
        n.place.is_some_and(|p| files.contains(&p.file))
            && matches!(n.kind, NoteKind::Incomplete | NoteKind::Unreadable)
    };
    if let Some(note) = evidence.notes.iter().find(lossy) {
        return Judgement::new(Outcome::Fail, format!("{name} is not complete: {}", note.text));
    }
    match (first_step(evidence), live_since(evidence, &files)) {
        (Some(step), Some(since)) if since <= step => Judgement::new(
            Outcome::Pass,
            format!("{name} was live before the first step and lost nothing"),
        ),
        (Some(_), Some(since)) => {
            Judgement::inconclusive(format!("{name} is known to have been live only since {since}"))
        }
        _ => Judgement::inconclusive(format!("nothing shows since when {name} was live")),
    }
}

fn first_step(evidence: &Evidence) -> Option<Instant> {
    evidence.own_calls.iter().map(|c| c.sent).min()
}

fn live_since(evidence: &Evidence, files: &[FileId]) -> Option<Instant> {
    files
        .iter()
        .filter_map(|f| message::span(evidence, *f))
        .filter_map(|b: Bracket| b.hi.and(b.lo))
        .min()
}

/// All hosts that were asked for captured, were seen listening, and lost nothing.
fn captures(scope: &Scope<'_>, hosts: &[String]) -> Judgement {
    let captures = &scope.timeline.evidence.captures;
    let missing: Vec<&str> = hosts
        .iter()
        .filter(|h| !captures.iter().any(|c| c.host == **h && c.losses.skipped.is_none()))
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        return Judgement::new(Outcome::Fail, format!("no capture from {}", missing.join(", ")));
    }
    match occurrence::captures_complete(scope) {
        Watched::Yes => Judgement::new(
            Outcome::Pass,
            format!(
                "captures of {} hosts: listening before the first step, nothing dropped, whole",
                captures.len()
            ),
        ),
        Watched::No(why) => Judgement::new(Outcome::Fail, why),
    }
}
