//! What changed between two runs: verdict, assertions, fates, losses, intervals. Differences are of these two runs and
//! prove no trend.

use super::Document;
use super::terminal::Look;
use super::terminal::ink::{Colour, Sheet};
use super::wording::{SIMULATED, answer, fate_word, interval_words, outcome_word, run_word, seconds};
use crate::verdict::{Finding, LoadFinding, RequestFinding};

/// The differences, for a person; what is the same is counted and not listed.
pub fn render_comparison(before: &Document, after: &Document, look: &Look) -> String {
    let mut sheet = Sheet::new(look);
    for (sign, document) in [("-", before), ("+", after)] {
        let report = &document.report;
        let simulated = if report.simulated {
            format!(", {SIMULATED}")
        } else {
            String::new()
        };
        let environment = report.environment.as_deref().unwrap_or("environment not known");
        sheet.paint(
            Colour::Bold,
            &format!(
                "{sign} {}: {} ({environment}{simulated})",
                document.folder.display(),
                run_word(report.verdict)
            ),
        );
    }
    if before.report.simulated != after.report.simulated {
        sheet.headed(
            Colour::Yellow,
            "!",
            2,
            "one of the two is simulated: their figures cannot be compared",
        );
    }
    let mut same = 0;
    pairs(
        &mut sheet,
        "assertions",
        (&before.report.assertions, &after.report.assertions),
        |f| f.assert.clone(),
        finding,
        &mut same,
    );
    pairs(
        &mut sheet,
        "requests",
        (&before.report.requests, &after.report.requests),
        |r| r.id.clone(),
        request,
        &mut same,
    );
    pairs(
        &mut sheet,
        "loads",
        (&before.report.loads, &after.report.loads),
        |l| l.id.clone(),
        load,
        &mut same,
    );
    let mut lines = Vec::new();
    for ((name, old), (_, new)) in before.intervals.named().into_iter().zip(after.intervals.named()) {
        if old == new {
            same += 1;
            continue;
        }
        let shown = |value: Option<f64>| value.map_or_else(|| "not measured".to_owned(), seconds);
        let change = match (old.value_s, new.value_s) {
            (Some(old), Some(new)) => format!(" ({:+.3} s)", new - old),
            _ => String::new(),
        };
        lines.push(format!(
            "{}: {} became {}{change}",
            interval_words(name),
            shown(old.value_s),
            shown(new.value_s)
        ));
    }
    if !lines.is_empty() {
        sheet.heading("intervals");
        lines
            .iter()
            .for_each(|line| sheet.headed(Colour::Plain, "  ~", 4, line));
    }
    sheet.blank();
    sheet.line(&format!("{same} of the compared results are the same"));
    sheet.into_text()
}

/// Results of the same name side by side: gone, new, or different in what `shown` says of them.
fn pairs<T>(
    sheet: &mut Sheet,
    title: &str,
    (before, after): (&[T], &[T]),
    name: impl Fn(&T) -> String,
    shown: impl Fn(&T) -> String,
    same: &mut usize,
) {
    let mut lines = Vec::new();
    let mut unmatched: Vec<&T> = after.iter().collect();
    for old in before {
        let partner = unmatched
            .iter()
            .position(|new| name(new) == name(old))
            .map(|at| unmatched.remove(at));
        match partner {
            Some(new) if shown(new) == shown(old) => *same += 1,
            Some(new) => lines.push((
                Colour::Plain,
                "  ~",
                format!("{}: {} became {}", name(old), shown(old), shown(new)),
            )),
            None => lines.push((Colour::Red, "  -", format!("{}: {}", name(old), shown(old)))),
        }
    }
    lines.extend(
        unmatched
            .into_iter()
            .map(|new| (Colour::Green, "  +", format!("{}: {}", name(new), shown(new)))),
    );
    if !lines.is_empty() {
        sheet.heading(title);
        lines
            .iter()
            .for_each(|(colour, sign, line)| sheet.headed(*colour, sign, 4, line));
    }
}

fn finding(finding: &Finding) -> String {
    let margin = finding
        .margin_s
        .map(|margin| format!(" by {}", seconds(margin)))
        .unwrap_or_default();
    format!("{}{margin}", outcome_word(finding.verdict))
}

fn request(request: &RequestFinding) -> String {
    format!("{}, {}", fate_word(request.fate), answer(request))
}

fn load(load: &LoadFinding) -> String {
    let hidden = if load.hidden > 0 {
        format!(" and {} hidden", load.hidden)
    } else {
        String::new()
    };
    format!("{} disrupted{hidden} of {}", load.disrupted, load.requests)
}
