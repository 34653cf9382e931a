//! One world: carried out, judged, compared.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Summary;
use super::draw::{Drawn, draw};
use super::oracle;
use crate::evidence::run_folder::{self, ReadOptions};
use crate::language::{LoadOptions, Memory, load};
use crate::run::interrupt::Interrupts;
use crate::run::recorder::Recorder;
use crate::run::{Order, execute};
use crate::timeline::event::What;
use crate::timeline::{Timeline, event, record};
use crate::verdict::judge::{Policy, judge, knowledge};
use crate::verdict::{Fate, Outcome};
use crate::world::sim::Sim;

/// The only server that a target is ever behind at the start.
const SERVER: &str = "worker1";

/// Carries out the world of a seed and compares every judgement with its truth.
pub(super) fn check(folder: &Path, seed: u64, summary: &mut Summary) -> io::Result<()> {
    let Drawn {
        spec,
        scenario,
        missing,
    } = draw(seed);
    let path = PathBuf::from("selfcheck.yaml");
    let files = Memory(vec![(path.clone(), scenario.into_bytes())]);
    let loaded = load(&path, &LoadOptions::default(), &files);
    let plan = loaded
        .ok()
        .and_then(|l| l.suite.runs.into_iter().next())
        .map(|r| r.plan);
    let plan = Arc::new(plan.ok_or_else(|| io::Error::other("the drawn scenario is not valid"))?);
    let sim = Sim::new(spec, seed);
    let world = sim.world();
    let recorder = Recorder::memory(&plan.name, world.clock.now());
    let order = Order {
        plan: Arc::clone(&plan),
        world,
        recorder: recorder.clone(),
        interrupts: Interrupts::none(),
        id: seed.to_string(),
        folder: String::new(),
    };
    let carried = sim.block_on(execute(order, |_| {})).map_err(io::Error::other)?;
    for (name, bytes) in recorder.take_memory() {
        if !missing.contains(&name.as_str()) && name != "truth.json" {
            std::fs::write(folder.join(name), bytes)?;
        }
    }
    if let Some(stopped) = carried.stopped {
        summary.compare(seed, "run", None, || stopped.message);
        return Ok(());
    }
    let evidence = run_folder::read(folder, &ReadOptions::default())?;
    let judged = judge(&evidence, Some(&plan), None, Policy::default());
    let truth = sim.truth();
    let Some(facts) = oracle::facts(&truth, SERVER) else {
        return Ok(());
    };

    for finding in &judged.report.requests {
        let request = truth
            .requests
            .iter()
            .find(|r| r.path.ends_with(&format!("id={}", finding.id)));
        let Some(fate) = request.and_then(|r| oracle::fate(r, &facts)) else {
            continue;
        };
        let right = (finding.fate != Fate::Inconclusive).then_some(finding.fate == fate);
        summary.compare(seed, "fate", right, || {
            format!(
                "{} is {fate:?}, judged {:?}: {}",
                finding.id, finding.fate, finding.explanation
            )
        });
    }
    // A kill drives the count to zero within a few milliseconds of DOWN: there the order is that of the cut.
    if let (Some(zero), Some(down)) = (facts.zero, facts.down) {
        let cut =
            truth.requests.iter().flat_map(|r| &r.attempts).any(|a| {
                a.pod.as_deref() == Some(&facts.pod) && a.end == crate::world::sim::truth::AttemptEnd::CutByDown
            });
        let before = zero < down && !cut;
        let said = judged.report.order.active_zero_before_lb_down;
        let right = match said {
            Outcome::Pass => Some(before),
            Outcome::Fail => Some(!before),
            Outcome::Inconclusive => None,
        };
        summary.compare(seed, "order", right, || {
            format!(
                "active_zero {zero}, lb_down {down}, judged {said:?}: {}",
                judged.report.order.explanation
            )
        });
    }
    brackets(&evidence, &plan, seed, &facts, summary);
    Ok(())
}

/// True instants lie inside their brackets.
fn brackets(
    evidence: &crate::evidence::Evidence,
    plan: &crate::language::plan::Plan,
    seed: u64,
    facts: &oracle::Facts,
    summary: &mut Summary,
) {
    let timeline = Timeline::build(evidence, knowledge(plan, None));
    for e in event::all(&timeline) {
        let (name, truth) = match &e.what {
            What::Delete => ("delete", Some(facts.deleted)),
            What::Lb(crate::evidence::haproxy_log::ServerChange::Down) if e.server.as_deref() == Some(SERVER) => {
                ("lb_down", facts.down)
            }
            _ => continue,
        };
        let Some(truth) = truth else { continue };
        let at = record::bracket(&timeline, &e.sightings);
        summary.compare(seed, "bracket", Some(at.contains(truth)), || {
            format!("{name} at {truth} is not in {at}")
        });
    }
}
