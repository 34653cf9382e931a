//! What a run is about to change, what it changed and what it undid: written down and on disk before it is done, so
//! that even after `kill -9` it can be undone.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::recorder::Recorder;
use crate::time::Instant;
use crate::world::port::PodIdentity;

/// Name of the file.
pub const FILE: &str = "journal.jsonl";

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalRecord {
    /// Number of the change, from 1.
    pub change: u32,
    /// When, on gtrun's clock.
    pub at: Instant,
    /// What about it.
    pub stage: Stage,
    /// For a person: `scale service-a/service-a-igw from 2 to 1`.
    pub what: String,
    /// How it is undone; in the first line of a change only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
}

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is about to be made.
    About,
    /// It was made.
    Done,
    /// It was not made: refused, nothing to undo.
    NotDone,
    /// It was undone.
    Undone,
    /// It could not be undone.
    UndoFailed,
}

/// How a change is undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Undo {
    /// Set the number of replicas back.
    Scale {
        /// To this number.
        replicas: u32,
    },
    /// Set the Deployment's labels back; `null` removes one.
    Labels {
        /// As they were.
        labels: BTreeMap<String, Option<String>>,
    },
    /// Let pods be scheduled on the node again.
    Uncordon {
        /// Node.
        node: String,
    },
    /// Set a pod's deletion cost back.
    DeletionCost {
        /// Pod.
        pod: String,
        /// Its uid.
        uid: String,
        /// As it was; `null`: none.
        cost: Option<i32>,
    },
    /// Give the lease back.
    Lease {
        /// Holder.
        holder: String,
    },
    /// Nothing: a deletion cannot be undone, the controller replaces the pod.
    Nothing,
}

impl Undo {
    /// The pod of a deletion cost.
    pub(crate) fn pod(&self) -> Option<PodIdentity> {
        match self {
            Self::DeletionCost { pod, uid, .. } => Some(PodIdentity {
                name: pod.clone(),
                uid: uid.clone(),
            }),
            Self::Scale { .. } | Self::Labels { .. } | Self::Uncordon { .. } | Self::Lease { .. } | Self::Nothing => {
                None
            }
        }
    }
}

/// A change that is not undone.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenChange {
    /// Its number.
    pub change: u32,
    /// For a person.
    pub what: String,
    /// How it is undone.
    pub undo: Undo,
}

/// The journal of a run; clones write the same one.
#[derive(Clone)]
pub(crate) struct Journal {
    recorder: Recorder,
    open: Arc<Mutex<(u32, Vec<OpenChange>)>>,
}

impl Journal {
    pub(crate) fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            open: Arc::default(),
        }
    }

    fn write(&self, change: u32, at: Instant, stage: Stage, what: &str, undo: Option<Undo>) {
        let record = JournalRecord {
            change,
            at,
            stage,
            what: what.to_owned(),
            undo,
        };
        self.recorder.record(FILE, &record);
        self.recorder.sync(FILE);
    }

    fn open(&self) -> std::sync::MutexGuard<'_, (u32, Vec<OpenChange>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what is about to be changed, and how it is undone; to be called before acting.
    pub(crate) fn about(&self, at: Instant, what: &str, undo: Undo) -> u32 {
        let mut open = self.open();
        open.0 += 1;
        let change = open.0;
        open.1.push(OpenChange {
            change,
            what: what.to_owned(),
            undo: undo.clone(),
        });
        self.write(change, at, Stage::About, what, Some(undo));
        change
    }

    /// It was done (or may have been: the answer was lost).
    pub(crate) fn done(&self, at: Instant, change: u32) {
        let what = self.what(change);
        self.write(change, at, Stage::Done, &what, None);
    }

    /// It was refused: there is nothing to undo.
    pub(crate) fn not_done(&self, at: Instant, change: u32) {
        let what = self.what(change);
        self.open().1.retain(|c| c.change != change);
        self.write(change, at, Stage::NotDone, &what, None);
    }

    fn what(&self, change: u32) -> String {
        let open = self.open();
        open.1
            .iter()
            .find(|c| c.change == change)
            .map_or_else(String::new, |c| c.what.clone())
    }

    /// Changes that are not undone, the last first.
    pub(crate) fn to_undo(&self) -> Vec<OpenChange> {
        self.open().1.iter().rev().cloned().collect()
    }

    /// The outcome of undoing.
    pub(crate) fn undone(&self, at: Instant, change: &OpenChange, failure: Option<&str>) {
        match failure {
            None => {
                self.open().1.retain(|c| c.change != change.change);
                self.write(change.change, at, Stage::Undone, &change.what, None);
            }
            Some(why) => self.write(
                change.change,
                at,
                Stage::UndoFailed,
                &format!("{}: {why}", change.what),
                None,
            ),
        }
    }
}

/// The line that says that an open change was undone afterwards.
pub fn undone_record(at: Instant, change: &OpenChange) -> String {
    let record = JournalRecord {
        change: change.change,
        at,
        stage: Stage::Undone,
        what: change.what.clone(),
        undo: None,
    };
    // Every type of the record serializes.
    serde_json::to_string(&record).unwrap_or_default()
}

/// Changes of a journal that were begun and are not undone, the last first. A cut last line is no error: it was being
/// written when the run was killed, and nothing was changed yet.
pub fn open_changes(journal: &str) -> Vec<OpenChange> {
    let mut open: Vec<OpenChange> = Vec::new();
    for line in journal.lines() {
        let Ok(record) = serde_json::from_str::<JournalRecord>(line) else {
            continue;
        };
        match record.stage {
            Stage::About => {
                if let Some(undo) = record.undo {
                    open.push(OpenChange {
                        change: record.change,
                        what: record.what,
                        undo,
                    });
                }
            }
            Stage::Done | Stage::UndoFailed => {}
            Stage::NotDone | Stage::Undone => open.retain(|c| c.change != record.change),
        }
    }
    open.retain(|c| c.undo != Undo::Nothing);
    open.reverse();
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_undone_is_open() {
        let at = Instant::from_nanos(0);
        let recorder = Recorder::memory("s2", at);
        let journal = Journal::new(recorder.clone());
        let scale = journal.about(at, "scale from 2 to 1", Undo::Scale { replicas: 2 });
        journal.done(at, scale);
        let cordon = journal.about(
            at,
            "cordon worker1",
            Undo::Uncordon {
                node: "worker1".to_owned(),
            },
        );
        journal.not_done(at, cordon);
        journal.about(
            at,
            "label mode",
            Undo::Labels {
                labels: BTreeMap::new(),
            },
        );
        let text = |r: &Recorder| String::from_utf8_lossy(&r.take_memory()[FILE]).into_owned();
        let mut written = text(&recorder);
        let open: Vec<_> = open_changes(&written).into_iter().map(|c| c.what).collect();
        assert_eq!(open, ["label mode", "scale from 2 to 1"]);
        for change in journal.to_undo() {
            journal.undone(at, &change, None);
        }
        written.push_str(&text(&recorder));
        assert_eq!(open_changes(&written), []);
        // Killed in the midst of the next line.
        written.push_str("{\"change\":9,\"at\":\"1970-01-");
        assert_eq!(open_changes(&written), []);
    }
}
