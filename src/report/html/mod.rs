//! One self-contained page: no script is needed to read it, and nothing is fetched. The words stand in
//! `page.hbs`, the looks in `style.css`; this file fills them, `chart` draws.

mod chart;
mod svg;

use handlebars::{Context, Handlebars, Helper, HelperResult, Output, RenderContext};
use serde_json::{Value, json};

use super::next_step::next_command;
use super::scene::{Scene, fate_tone};
use super::wording::{
    SIMULATED_MEANS, answer, bytes, cause_words, client_words, count, ends, fate_word, interval_words, kind_words,
    margin, outcome_word, readable, run_word, seconds,
};
use super::{Document, RunEntry};
use crate::time::{Bracket, Instant};
use crate::verdict::{AttemptFinding, Finding, LoadFinding, Outcome, RequestFinding, RunVerdict};

const PAGE: &str = include_str!("page.hbs");
const INDEX: &str = include_str!("index.hbs");
const STYLE: &str = include_str!("style.css");

/// More rows than this are for `timeline.jsonl` and a program.
const EVENT_ROWS: usize = 1_000;
/// More losses than this are for `verdict.json` and a program.
const LOST_ROWS: usize = 200;

/// The page.
pub(super) fn render(document: &Document) -> String {
    filled(PAGE, &values(document))
}

/// A page that leads to the pages of several runs, by their names relative to it.
pub fn render_index(runs: &[RunEntry]) -> String {
    let row = |run: &RunEntry| {
        let report = run.report.as_ref();
        json!({
            "name": run.name,
            "href": report.map(|_| run.name.split('/').map(encoded).collect::<Vec<_>>().join("/") + "/"),
            "word": report.map_or("not judged", |report| run_word(report.verdict)),
            "tone": report.map_or("plain", |report| run_tone(report.verdict)),
            "environment": report.and_then(|report| report.environment.as_deref()).unwrap_or(""),
            "simulated": report.is_some_and(|report| report.simulated),
            "summary": report.map_or("", |report| report.summary.as_str()),
        })
    };
    let rows: Vec<Value> = runs.iter().map(row).collect();
    filled(
        INDEX,
        &json!({"style": STYLE, "runs": rows, "version": env!("CARGO_PKG_VERSION")}),
    )
}

/// The templates are part of the program and every value in them is given: a failure is a fault that a test shows, and
/// the page then says so instead of pretending to be a report.
fn filled(template: &str, values: &Value) -> String {
    let mut handlebars = Handlebars::new();
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(escaped);
    handlebars.register_helper("prose", Box::new(prose));
    handlebars.render_template(template, values).unwrap_or_else(|error| {
        format!("<!doctype html><title>gtrun</title><p>{FAILED}: {error}. The verdict is in verdict.json.</p>\n")
    })
}

/// Text of the evidence in a page is text and no markup.
fn escaped(text: &str) -> String {
    handlebars::html_escape(&readable(text))
}

/// `{{prose text}}`: a sentence with what stands in backticks as code, all of it escaped.
fn prose(
    helper: &Helper<'_>,
    _: &Handlebars<'_>,
    _: &Context,
    _: &mut RenderContext<'_, '_>,
    out: &mut dyn Output,
) -> HelperResult {
    let text = helper
        .param(0)
        .and_then(|given| given.value().as_str())
        .unwrap_or_default();
    let parts: Vec<String> = text.split('`').map(escaped).collect();
    // An odd number of backticks marks nothing up.
    if parts.len().is_multiple_of(2) {
        out.write(&parts.join("`"))?;
        return Ok(());
    }
    for (i, part) in parts.iter().enumerate() {
        out.write(&if i.is_multiple_of(2) {
            part.clone()
        } else {
            format!("<code>{part}</code>")
        })?;
    }
    Ok(())
}

/// What stands on a page that could not be made.
const FAILED: &str = "This page could not be made";

fn values(document: &Document) -> Value {
    let report = &document.report;
    let origin = document.origin();
    let scene = Scene::of(document);
    let began = scene.as_ref().map(|scene| scene.window.0.to_rfc3339());
    let cleanup_failed = report.cleanup.as_deref().is_some_and(|how| how.starts_with("failed"));
    json!({
        "style": STYLE,
        "title": document.title(),
        "word": run_word(report.verdict),
        "tone": run_tone(report.verdict),
        "summary": report.summary,
        "simulated": report.simulated,
        "simulated_means": SIMULATED_MEANS,
        "environment": report.environment.as_deref().unwrap_or("not known"),
        "exit": report.exit,
        "began": began,
        "interrupted": report.interrupted,
        "cleanup": report.cleanup,
        "cleanup_failed": cleanup_failed,
        "next": next_command(document),
        "warnings": document.warnings().collect::<Vec<_>>(),
        "assertions": report.assertions.iter().map(|f| assertion(f, origin)).collect::<Vec<_>>(),
        "origin": document.origin_name(),
        "origin_at": origin.map(Instant::to_rfc3339),
        "decisive": scene.as_ref().and_then(chart::decisive_seconds),
        "whole": scene.as_ref().map(chart::whole),
        "order": order(document),
        "intervals": intervals(document),
        "requests": report.requests.iter().map(|r| request(r, origin)).collect::<Vec<_>>(),
        "loads": report.loads.iter().map(|l| load(l, origin)).collect::<Vec<_>>(),
        "clock_trouble": report.clocks.iter().any(|clock| clock.trouble.is_some()),
        "clock_count": count(report.clocks.len() as u64, "clock"),
        "clocks": clocks(document),
        "event_count": document.events.len(),
        "event_rows": EVENT_ROWS,
        "events_left_out": document.events.len() > EVENT_ROWS,
        "events": document.events.iter().take(EVENT_ROWS).map(|record| json!({
            "when": when(record.bracket(), origin),
            "event": record.event,
            "details": record.details(),
            "source": record.source,
        })).collect::<Vec<_>>(),
        "files": document.files.iter().map(|file| json!({
            "name": file.name,
            "href": format!("./{}", encoded(&file.name)),
            "size": bytes(file.size),
        })).collect::<Vec<_>>(),
        "folder": document.folder.display().to_string(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn assertion(finding: &Finding, origin: Option<Instant>) -> Value {
    json!({
        "word": outcome_word(finding.verdict),
        "tone": outcome_tone(finding.verdict),
        "assert": finding.assert,
        "name": finding.name,
        "because": finding.because,
        "kind": kind_words(finding.kind),
        "explanation": finding.explanation,
        "reason": finding.reason,
        "margin": margin(finding).map(|text| text.trim_start_matches("margin ").to_owned()),
        "budget": finding.error_budget,
        "events": finding.events.iter().map(|event| json!({
            "event": event.event,
            "when": when(event.at, origin),
            "source": event.source,
        })).collect::<Vec<_>>(),
    })
}

fn order(document: &Document) -> Value {
    let order = &document.report.order;
    let servers = order.by_server.iter().filter(|_| order.by_server.len() > 1);
    json!({
        "word": outcome_word(order.active_zero_before_lb_down),
        "tone": outcome_tone(order.active_zero_before_lb_down),
        "explanation": order.explanation,
        "reason": order.reason,
        "by_server": servers.map(|(server, outcome)| json!({"server": server, "word": outcome_word(*outcome)})).collect::<Vec<_>>(),
    })
}

fn intervals(document: &Document) -> Vec<Value> {
    let shown = |value: Option<f64>, absent: &str| value.map_or_else(|| absent.to_owned(), seconds);
    let row = |(name, interval): (&str, super::Interval)| {
        json!({
            "name": interval_words(name),
            "value": shown(interval.value_s, "not measured"),
            "least": shown(interval.bounds_s.0, "open"),
            "most": shown(interval.bounds_s.1, "open"),
        })
    };
    document.intervals.named().into_iter().map(row).collect()
}

fn request(request: &RequestFinding, origin: Option<Instant>) -> Value {
    json!({
        "id": request.id,
        "fate": fate_word(request.fate),
        "tone": chart_tone(fate_tone(request.fate)),
        "cause": request.cause.map(cause_words),
        "answer": answer(request),
        "client_by": request.client_by,
        "explanation": request.explanation,
        "reason": request.reason,
        "target_by": request.target_by,
        "attempt_count": count(request.attempts.len() as u64, "attempt"),
        "attempts": request.attempts.iter().map(|a| attempt(a, origin)).collect::<Vec<_>>(),
    })
}

fn attempt(attempt: &AttemptFinding, origin: Option<Instant>) -> Value {
    json!({
        "server": attempt.server.as_deref().unwrap_or("none"),
        "on_target": match attempt.on_target { Some(true) => "yes", Some(false) => "no", None => "not known" },
        "started": when(attempt.started, origin),
        "ended": when(attempt.ended, origin),
        "client_port": attempt.client_port,
        "lb_port": attempt.lb_port,
        "termination": attempt.termination,
        "envoy_flags": attempt.envoy_flags,
    })
}

fn load(load: &LoadFinding, origin: Option<Instant>) -> Value {
    let percent = |rate: f64| format!("{:.2} %", rate * 100.0);
    let rate = load.rate.map(|rate| match load.rate_interval {
        Some((least, most)) => format!("{} (95 %: {} to {})", percent(rate), percent(least), percent(most)),
        None => percent(rate),
    });
    let listed = |what: &str, counts: &std::collections::BTreeMap<String, u64>| {
        let parts: Vec<String> = counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        (!parts.is_empty()).then(|| format!("{what}: {}", parts.join(", ")))
    };
    let mut facts: Vec<String> = Vec::new();
    facts.extend(listed("By outcome", &load.by_outcome));
    facts.extend(listed("By cause", &load.by_cause));
    if load.hidden > 0 {
        facts.push(format!(
            "Hidden from the load's own file, found in other sources: {}",
            count(load.hidden, "request")
        ));
    }
    if !load.latency_s.is_empty() {
        let parts: Vec<String> = load
            .latency_s
            .iter()
            .map(|(name, s)| format!("{name} {}", seconds(*s)))
            .collect();
        facts.push(format!("Latency: {}", parts.join(", ")));
    }
    facts.extend(load.down_intervals.iter().map(|down| {
        let killed = down
            .killed
            .map(|n| format!(", {n} in flight killed"))
            .unwrap_or_default();
        format!(
            "{} DOWN from {} until {}{killed}",
            down.server,
            when(down.from, origin),
            when(down.until, origin)
        )
    }));
    let lost = load.lost.iter().take(LOST_ROWS).map(|lost| {
        let status = lost.status.map(|s| format!("{s} ")).unwrap_or_default();
        json!({
            "line": lost.line,
            "started": when(lost.started, origin),
            "ended": when(lost.ended, origin),
            "answer": format!("{status}{}", client_words(lost.outcome)),
            "cause": cause_words(lost.cause),
            "server": lost.server,
            "termination": lost.termination,
            "envoy_flags": lost.envoy_flags,
        })
    });
    json!({
        "id": load.id,
        "requests": load.requests,
        "disrupted": load.disrupted,
        "tone": if load.disrupted > 0 { "bad" } else { "good" },
        "rate": rate,
        "reason": load.reason,
        "facts": facts,
        "lost": lost.collect::<Vec<_>>(),
        "lost_left_out": load.lost.len().saturating_sub(LOST_ROWS),
    })
}

fn clocks(document: &Document) -> Vec<Value> {
    let row = |clock: &crate::verdict::ClockFinding| {
        let offset = clock
            .offset_s
            .map(|(least, most)| format!("{} to {}", seconds(least), seconds(most)));
        let by = if clock.ties > 0 {
            format!("{}, {} ties", clock.by, clock.ties)
        } else {
            clock.by.clone()
        };
        json!({
            "clock": clock.clock,
            "against": clock.against,
            "offset": offset.as_deref().unwrap_or("not known"),
            "by": by,
            "trouble": clock.trouble,
        })
    };
    document.report.clocks.iter().map(row).collect()
}

fn when(at: Bracket, origin: Option<Instant>) -> String {
    origin.map_or_else(|| "not seen".to_owned(), |origin| ends(at, origin))
}

/// One part of a path as a part of a URL: everything but unreserved characters percent-encoded.
fn encoded(name: &str) -> String {
    let mut url = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

const fn outcome_tone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "good",
        Outcome::Fail => "bad",
        Outcome::Inconclusive => "unsure",
    }
}

const fn run_tone(verdict: Option<RunVerdict>) -> &'static str {
    match verdict {
        Some(RunVerdict::Pass) => "good",
        Some(RunVerdict::Fail | RunVerdict::Invalid) => "bad",
        Some(RunVerdict::Inconclusive | RunVerdict::Skipped) => "unsure",
        None => "plain",
    }
}

const fn chart_tone(tone: super::scene::Tone) -> &'static str {
    match tone {
        super::scene::Tone::Good => "good",
        super::scene::Tone::Bad => "bad",
        super::scene::Tone::Unsure => "unsure",
        super::scene::Tone::Plain | super::scene::Tone::Accent => "plain",
    }
}
