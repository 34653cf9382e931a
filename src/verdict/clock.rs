//! What is known about the clocks, for the reader of a verdict.

use super::ClockFinding;
use crate::evidence::FileId;
use crate::timeline::Timeline;
use crate::timeline::clocks::Trouble;
use crate::timeline::message::MessageKind;

/// One finding a clock, against the reference.
pub fn findings(timeline: &Timeline<'_>) -> Vec<ClockFinding> {
    let clocks = &timeline.clocks;
    let Some(reference) = clocks.reference(timeline.evidence) else {
        return Vec::new();
    };
    let middle = clocks.messages().iter().filter_map(|m| m.later.at.hi).min();
    clocks
        .all()
        .filter(|c| *c != reference)
        .filter(|c| {
            timeline
                .evidence
                .files
                .iter()
                .enumerate()
                .any(|(i, _)| clocks.of(FileId(i as u32)) == Some(*c))
                || clocks.trouble.contains_key(c)
        })
        .map(|clock| {
            let offset = middle.map(|t| clocks.offset(clock, reference, t));
            let kinds: Vec<MessageKind> = clocks
                .messages()
                .iter()
                .filter(|m| m.earlier.clock == clock || m.later.clock == clock)
                .map(|m| m.kind)
                .collect();
            let by = match (offset, kinds.contains(&MessageKind::Exchange)) {
                (Some(o), true) if o.tied => "exchange",
                (Some(o), false) if o.tied => "messages",
                _ => "assumption",
            };
            ClockFinding {
                clock: clocks.name(clock).to_owned(),
                against: clocks.name(reference).to_owned(),
                offset_s: offset.and_then(|o| Some((o.min?.as_secs_f64(), o.max?.as_secs_f64()))),
                by: by.to_owned(),
                ties: kinds.len() as u64,
                trouble: clocks.trouble.get(&clock).map(trouble_text),
            }
        })
        .collect()
}

fn trouble_text(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Disagrees { with, by } => {
            format!(
                "clocks disagree: its messages and those of {with} contradict each other by {:.3} s",
                by.as_secs_f64()
            )
        }
        Trouble::Off { with, offset } => format!(
            "clocks disagree: {:+.3} to {:+.3} s against {with}, by their messages",
            offset.0.as_secs_f64(),
            offset.1.as_secs_f64()
        ),
        Trouble::Foreign => "foreign: it shares no message with the other files and is of another time".to_owned(),
        Trouble::UnknownZone => "local time of an unknown zone: its facts are used, its times are not".to_owned(),
    }
}

/// A sentence for each clock with trouble.
pub fn warnings(timeline: &Timeline<'_>) -> Vec<String> {
    let clocks = &timeline.clocks;
    clocks
        .trouble
        .iter()
        .map(|(clock, trouble)| {
            let remedy = match trouble {
                Trouble::Disagrees { .. } => "; nothing is ordered by it. Check NTP on that host",
                Trouble::Off { .. } => "; its times are corrected by this. Check NTP on that host",
                Trouble::Foreign => "; it is used for nothing",
                Trouble::UnknownZone => "; set `load_balancer.log.zone` in the environment",
            };
            format!("{}: {}{remedy}", clocks.name(*clock), trouble_text(trouble))
        })
        .collect()
}
