//! `summary.json`: the verdict without its reasons, for a program that wants a number.

use serde_json::{Map, Value, json};

use super::Document;
use super::next_step::next_command;
use crate::verdict::Outcome;

/// The file.
pub(super) fn render(document: &Document) -> String {
    let report = &document.report;
    let of = |outcome: Outcome| report.assertions.iter().filter(|f| f.verdict == outcome).count();
    let interval = |interval: super::Interval| json!({"seconds": interval.value_s, "bounds": interval.bounds_s});
    let intervals: Map<String, Value> = document
        .intervals
        .named()
        .into_iter()
        .map(|(name, i)| (name.to_owned(), interval(i)))
        .collect();
    let summary = json!({
        "gtrun": env!("CARGO_PKG_VERSION"),
        "scenario": document.title(),
        "verdict": report.verdict,
        "exit": report.exit,
        "environment": report.environment,
        "simulated": report.simulated,
        "interrupted": report.interrupted,
        "summary": report.summary,
        "assertions": {
            "pass": of(Outcome::Pass),
            "fail": of(Outcome::Fail),
            "inconclusive": of(Outcome::Inconclusive),
            "each": report.assertions.iter().map(|f| json!({
                "assert": f.assert,
                "verdict": f.verdict,
                "margin_s": f.margin_s,
                "margin_error_s": f.margin_error_s,
            })).collect::<Vec<_>>(),
        },
        "requests": report.requests.iter().map(|r| json!({
            "id": r.id,
            "fate": r.fate,
            "cause": r.cause,
            "outcome": r.outcome,
            "status": r.status,
            "duration_s": r.duration_s,
        })).collect::<Vec<_>>(),
        "loads": report.loads.iter().map(|l| json!({
            "id": l.id,
            "requests": l.requests,
            "disrupted": l.disrupted,
            "rate": l.rate,
            "rate_interval": l.rate_interval,
        })).collect::<Vec<_>>(),
        "active_zero_before_lb_down": report.order.active_zero_before_lb_down,
        "intervals": intervals,
        "warnings": document.warnings().count(),
        "cleanup": report.cleanup,
        "next": next_command(document),
    });
    format!("{summary:#}\n")
}
