//! Random simulated worlds: what is judged from their evidence against what really happened in them.
//!
//! Each world is a real run of a plan in the simulator, with random knobs (modes, timers, versions, clocks, latencies,
//! lost samples) and with some of its evidence taken away, judged as `gtrun collect` judges a folder. A judgement is wrong
//! when it is another than the truth and not *inconclusive*.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

mod draw;
mod oracle;
mod world;

/// Counts over all worlds.
#[derive(Debug, Default)]
pub struct Summary {
    /// Worlds.
    pub worlds: u64,
    /// Judgements by kind: right, inconclusive.
    pub counts: BTreeMap<&'static str, (u64, u64)>,
    /// Every wrong one: the world's seed and what was wrong.
    pub wrong: Vec<(u64, String)>,
}

impl Summary {
    fn add(&mut self, other: Self) {
        self.worlds += other.worlds;
        for (kind, (right, open)) in other.counts {
            let entry = self.counts.entry(kind).or_default();
            entry.0 += right;
            entry.1 += open;
        }
        self.wrong.extend(other.wrong);
    }

    /// One comparison: `None` is inconclusive.
    pub(crate) fn compare(
        &mut self,
        seed: u64,
        kind: &'static str,
        right: Option<bool>,
        what: impl FnOnce() -> String,
    ) {
        let entry = self.counts.entry(kind).or_default();
        match right {
            Some(true) => entry.0 += 1,
            None => entry.1 += 1,
            Some(false) => self.wrong.push((seed, format!("{kind}: {}", what()))),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} worlds", self.worlds)?;
        for (kind, (right, open)) in &self.counts {
            writeln!(f, "  {kind:<10} {right} right, {open} inconclusive")?;
        }
        for (seed, what) in &self.wrong {
            writeln!(f, "  WRONG in the world of seed {seed}: {what}")?;
        }
        writeln!(f, "{} wrong", self.wrong.len())
    }
}

/// Checks worlds on every core.
///
/// # Errors
/// What the file system says: the evidence of a world is written to a temporary folder, as that of a run is.
pub fn run(worlds: u64, seed: u64) -> std::io::Result<Summary> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    let home = std::env::temp_dir().join(format!("gtrun-selfcheck-{}", std::process::id()));
    std::fs::create_dir(&home)?;
    let parts: Vec<std::io::Result<Summary>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let folder = home.join(thread.to_string());
                scope.spawn(move || part(&folder, (thread..worlds).step_by(threads as usize).map(|n| seed + n)))
            })
            .collect();
        let ended = |w: std::thread::ScopedJoinHandle<'_, std::io::Result<Summary>>| {
            w.join()
                .unwrap_or_else(|_| Err(std::io::Error::other("a world made the judgement panic")))
        };
        workers.into_iter().map(ended).collect()
    });
    std::fs::remove_dir_all(&home)?;
    let mut summary = Summary::default();
    for part in parts {
        summary.add(part?);
    }
    summary.wrong.sort();
    Ok(summary)
}

fn part(folder: &Path, seeds: impl Iterator<Item = u64>) -> std::io::Result<Summary> {
    let mut summary = Summary::default();
    for seed in seeds {
        std::fs::create_dir(folder)?;
        world::check(folder, seed, &mut summary)?;
        std::fs::remove_dir_all(folder)?;
        summary.worlds += 1;
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_few_worlds_are_judged_rightly() {
        let summary = super::run(6, 1_000).expect("a temporary folder");
        assert!(summary.wrong.is_empty(), "{summary}");
        assert!(
            summary.counts.get("fate").is_some_and(|(right, _)| *right > 0),
            "{summary}"
        );
    }
}
