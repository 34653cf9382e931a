//! Verbs: their options, defaults and time limits.

use indexmap::IndexMap;

use super::context::Context;
use crate::diagnostic::Code;
use crate::language::expression::Place;
use crate::language::nearest::did_you_mean;
use crate::language::plan::{
    DeletePod, DrainNode, Exec, Label, Mark, Parallel, Poll, PollRead, RolloutRestart, Scale, Snapshot, Ssh, Template,
    Verb, Wait, WaitFor,
};
use crate::language::scenario::{self, PollKind};
use crate::language::value::{At, Count, Flag, Opt, Templated};
use crate::time::Duration;

const POLL_EVERY: Duration = Duration::from_secs(1);
const WAIT_LIMIT: Duration = Duration::from_secs(60);
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// The pod's grace period where nothing says it: what the workloads that this tool is for usually have.
const UNKNOWN_GRACE: Duration = Duration::from_secs(210);

impl Context<'_> {
    pub(super) fn verb(&mut self, file: &scenario::Verb) -> Option<Verb> {
        Some(match file {
            scenario::Verb::Request(request) => Verb::Request(self.request(request)?),
            scenario::Verb::Load(load) => Verb::Load(self.load(load)?),
            scenario::Verb::DeletePod(delete) => Verb::DeletePod(self.delete(delete)?),
            scenario::Verb::EvictPod(delete) => Verb::EvictPod(self.delete(delete)?),
            scenario::Verb::Scale(scale) => {
                let replicas = self.value(&scale.replicas).map(|Count(n)| n);
                let wait = self.flag(&scale.wait);
                Verb::Scale(Scale {
                    replicas: replicas?,
                    victim: scale.victim.0.unwrap_or_default(),
                    wait: wait?,
                })
            }
            scenario::Verb::RolloutRestart(restart) => Verb::RolloutRestart(RolloutRestart {
                wait: self.flag(&restart.wait)?,
            }),
            scenario::Verb::DrainNode(drain) => {
                let grace = self.grace(&drain.grace);
                Verb::DrainNode(DrainNode {
                    grace: grace?,
                    wait: self.flag(&drain.wait)?,
                })
            }
            scenario::Verb::Label(labels) => {
                let mut out = IndexMap::new();
                for (name, value) in labels {
                    out.insert(name.value.clone(), self.as_written(value)?);
                }
                Verb::Label(Label { labels: out })
            }
            scenario::Verb::Wait(duration) => Verb::Wait(Wait {
                duration: self.value(duration)?,
            }),
            scenario::Verb::WaitFor(condition) => Verb::WaitFor(WaitFor {
                condition: self.expression(condition, Place::WaitFor)?,
            }),
            scenario::Verb::Poll(poll) => Verb::Poll(self.poll(poll)?),
            scenario::Verb::Exec(exec) => Verb::Exec(self.exec(exec)?),
            scenario::Verb::Ssh(ssh) => Verb::Ssh(self.ssh(ssh)?),
            scenario::Verb::Snapshot(name) => Verb::Snapshot(Snapshot {
                name: name.value.0.clone(),
            }),
            scenario::Verb::Mark(name) => Verb::Mark(Mark {
                name: name.value.0.clone(),
            }),
            scenario::Verb::Parallel(branches) => Verb::Parallel(self.parallel(branches)),
        })
    }

    pub(super) fn default_timeout(&self, verb: &Verb) -> Option<Duration> {
        let with_grace = |grace: Option<Duration>| grace.or(self.grace).unwrap_or(UNKNOWN_GRACE) + CALL_LIMIT;
        match verb {
            Verb::WaitFor(_) | Verb::Poll(_) => Some(WAIT_LIMIT),
            Verb::DeletePod(delete) | Verb::EvictPod(delete) if delete.wait => Some(with_grace(delete.grace)),
            Verb::DrainNode(drain) if drain.wait => Some(with_grace(drain.grace)),
            Verb::Scale(Scale { wait: true, .. }) | Verb::RolloutRestart(RolloutRestart { wait: true }) => {
                Some(with_grace(None))
            }
            Verb::DeletePod(_)
            | Verb::EvictPod(_)
            | Verb::DrainNode(_)
            | Verb::Scale(_)
            | Verb::RolloutRestart(_)
            | Verb::Label(_)
            | Verb::Exec(_)
            | Verb::Ssh(_)
            | Verb::Snapshot(_) => Some(CALL_LIMIT),
            Verb::Request(_) | Verb::Load(_) | Verb::Wait(_) | Verb::Mark(_) | Verb::Parallel(_) => None,
        }
    }

    /// A flag that is false when it is not written; `None` when it is written wrong.
    pub(super) fn flag(&mut self, file: &Opt<Templated<Flag>>) -> Option<bool> {
        match file.as_ref() {
            None => Some(false),
            Some(flag) => self.value(flag).map(|Flag(value)| value),
        }
    }

    /// A value that may be left out; the outer `None` when it is written wrong.
    pub(super) fn maybe<T: crate::language::value::Scalar + Clone>(
        &mut self,
        file: &Opt<Templated<T>>,
    ) -> Option<Option<T>> {
        match file.as_ref() {
            None => Some(None),
            Some(value) => self.value(value).map(Some),
        }
    }

    /// A text that may be left out; the outer `None` when it is written wrong.
    pub(super) fn maybe_text(&mut self, file: &Opt<Templated<String>>) -> Option<Option<Template>> {
        match file.as_ref() {
            None => Some(None),
            Some(text) => self.text(text).map(Some),
        }
    }

    /// A grace period of a call: whole seconds.
    fn grace(&mut self, file: &Opt<Templated<Duration>>) -> Option<Option<Duration>> {
        let grace = self.maybe(file)?;
        if let (Some(grace), Some(written)) = (grace, file.as_ref())
            && grace.as_nanos() % 1_000_000_000 != 0
        {
            return self.error(
                Code::OutOfRange,
                format!("Kubernetes counts a grace period in whole seconds, and this is {grace}"),
                written.span,
                None,
            );
        }
        Some(grace)
    }

    fn delete(&mut self, file: &scenario::DeletePod) -> Option<DeletePod> {
        let (grace, wait, pod) = (
            self.grace(&file.grace),
            self.flag(&file.wait),
            self.maybe_text(&file.pod),
        );
        Some(DeletePod {
            grace: grace?,
            wait: wait?,
            pod: pod?,
        })
    }

    fn poll(&mut self, file: &scenario::Poll) -> Option<Poll> {
        let read = match &file.kind {
            PollKind::Http(http) => self.text(&http.path).map(|path| PollRead::Http { path }),
            PollKind::Exec(exec) => self.exec(exec).map(PollRead::Exec),
        };
        let every = match &file.every {
            None => Some(POLL_EVERY),
            Some(every) => self.value(every),
        };
        let until = match &file.until {
            None => Some(None),
            Some(text) => self.expression(text, Place::PollUntil).map(Some),
        };
        Some(Poll {
            read: read?,
            every: every?,
            until: until?,
        })
    }

    fn exec(&mut self, file: &scenario::Exec) -> Option<Exec> {
        let container = self.container(&file.container);
        let argv = self.argv(&file.argv);
        Some(Exec {
            container: container?,
            argv: argv?,
            save_as: file.save_as.as_ref().map(|name| name.value.0.clone()),
        })
    }

    fn argv(&mut self, file: &[Templated<crate::language::value::AsWritten>]) -> Option<Vec<Template>> {
        let parts: Vec<Option<Template>> = file.iter().map(|part| self.as_written(part)).collect();
        parts.into_iter().collect()
    }

    fn ssh(&mut self, file: &scenario::Ssh) -> Option<Ssh> {
        let host = self.text(&file.host);
        let argv = self.argv(&file.argv);
        let sudo = self.flag(&file.sudo);
        let host = host?;
        if let Some(name) = host.as_literal()
            && !self.chosen.environment.hosts.contains_key(name)
        {
            let environment = &self.chosen.environment;
            let help = did_you_mean(name, environment.hosts.keys().map(String::as_str));
            let message = format!("environment `{}` has no host `{name}`", environment.name);
            return self.error(Code::UnknownName, message, file.host.span, help);
        }
        Some(Ssh {
            host,
            sudo: sudo?,
            argv: argv?,
            save_as: file.save_as.as_ref().map(|name| name.value.0.clone()),
        })
    }

    fn parallel(&mut self, file: &IndexMap<At<scenario::IdText>, Vec<At<scenario::Step>>>) -> Parallel {
        // Branches run side by side: results of the others may be there.
        let mut inner = Vec::new();
        file.values().for_each(|branch| super::scope::all(branch, &mut inner));
        let ids: Vec<_> = inner
            .iter()
            .filter_map(|step| step.value.id.as_ref())
            .map(|id| id.value.0.clone())
            .collect();
        self.ran.extend(ids);
        Parallel {
            branches: file
                .iter()
                .map(|(name, branch)| (name.value.0.clone(), self.steps(branch)))
                .collect(),
        }
    }
}
