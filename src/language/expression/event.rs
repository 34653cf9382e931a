use std::fmt;

use super::TextSpan;
use crate::language::Id;
use crate::language::vocabulary::{EventName, ServerChoice, words};

/// An event in an expression, and where it is named.
#[derive(Debug, Clone, PartialEq)]
pub struct EventRef {
    /// Where it stands in the expression's text.
    pub at: TextSpan,
    /// The event.
    pub event: Event,
}

/// An event with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The call of the step with this id, from sent to acknowledged.
    Step(Id),
    /// The call that told the target to stop.
    Delete,
    /// The drain began.
    Drain,
    /// An FSM transition.
    Transition(Side, Side),
    /// Envoy drains its listeners.
    DrainListeners,
    /// The settled zero of the in-flight count.
    ActiveZero,
    /// The first zero after the drain began.
    FirstActiveZero,
    /// The health page first answered with a failure.
    HealthFail,
    /// A server's state on the load balancer changed: the target's server, unless a choice says otherwise.
    Lb(LbChange, Option<ServerChoice>),
    /// The load balancer was reloaded.
    LbReload,
    /// A reset on a connection of any request of the run, or of this one.
    Rst(Option<Id>),
    /// The load balancer ended the request's connection before the response was whole.
    Cut(Id),
    /// The request, load or step was sent.
    Started(Id),
    /// It is over, in whatever way.
    Ended(Id),
    /// It is over and its response was whole.
    Finished(Id),
    /// It is over without a whole response.
    Failed(Id),
    /// HTTP/2 GOAWAY on the request's connection.
    Goaway(Id),
    /// SIGTERM in any container of the target, or in this one (a key of the environment's `containers`).
    Sigterm(Option<Id>),
    /// The end of any container of the target, or of this one.
    ContainerExit(Option<Id>),
    /// The target has a deletion timestamp.
    PodTerminating,
    /// The target is gone from the API.
    PodGone,
    /// A pod of the workload became Ready.
    PodReady,
    /// The target is no longer Ready.
    NotReady,
    /// The target left the EndpointSlice.
    EndpointRemoved,
    /// The rollout began.
    RolloutStarted,
    /// The rollout is over.
    RolloutFinished,
    /// A line of this probe that matches.
    Log(Id, Pattern),
    /// A `mark` step of this name.
    Mark(Id),
}

words! {
    /// What happened to a server on the load balancer.
    LbChange {
        Down "lb_down" "marked DOWN"
        Up "lb_up" "marked UP"
        Drain "lb_drain" "set to DRAIN"
        Nolb "lb_nolb" "set to NOLB"
        Maint "lb_maint" "put into maintenance"
    }
}

impl LbChange {
    /// The event of this change.
    pub const fn event_name(self) -> EventName {
        match self {
            Self::Down => EventName::LbDown,
            Self::Up => EventName::LbUp,
            Self::Drain => EventName::LbDrain,
            Self::Nolb => EventName::LbNolb,
            Self::Maint => EventName::LbMaint,
        }
    }
}

/// One side of an FSM transition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Side {
    /// `any`: whatever state.
    Any,
    /// This state, by its name in the environment's `fsm.states` (aliases are already replaced).
    State(String),
}

impl Side {
    /// True when the state is meant.
    pub fn matches(&self, state: &str) -> bool {
        match self {
            Self::Any => true,
            Self::State(name) => name == state,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::State(name) => f.write_str(name),
        }
    }
}

/// A regular expression that compiles; `/regex/` in the text.
#[derive(Debug, Clone)]
pub struct Pattern(regex::Regex);

impl Pattern {
    /// Compiles it.
    ///
    /// # Errors
    /// What the regex crate says about the text.
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        regex::RegexBuilder::new(text).size_limit(1 << 20).build().map(Self)
    }

    /// The text between the slashes.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The compiled expression.
    pub fn regex(&self) -> &regex::Regex {
        &self.0
    }

    /// True when the line matches anywhere.
    pub fn is_match(&self, line: &str) -> bool {
        self.0.is_match(line)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Event {
    /// Its name; a step's call has none of its own.
    pub const fn name(&self) -> Option<EventName> {
        Some(match self {
            Self::Step(_) => return None,
            Self::Delete => EventName::Delete,
            Self::Drain => EventName::Drain,
            Self::Transition(..) => EventName::Transition,
            Self::DrainListeners => EventName::DrainListeners,
            Self::ActiveZero => EventName::ActiveZero,
            Self::FirstActiveZero => EventName::FirstActiveZero,
            Self::HealthFail => EventName::HealthFail,
            Self::Lb(change, _) => change.event_name(),
            Self::LbReload => EventName::LbReload,
            Self::Rst(_) => EventName::Rst,
            Self::Cut(_) => EventName::Cut,
            Self::Started(_) => EventName::Started,
            Self::Ended(_) => EventName::Ended,
            Self::Finished(_) => EventName::Finished,
            Self::Failed(_) => EventName::Failed,
            Self::Goaway(_) => EventName::Goaway,
            Self::Sigterm(_) => EventName::Sigterm,
            Self::ContainerExit(_) => EventName::ContainerExit,
            Self::PodTerminating => EventName::PodTerminating,
            Self::PodGone => EventName::PodGone,
            Self::PodReady => EventName::PodReady,
            Self::NotReady => EventName::NotReady,
            Self::EndpointRemoved => EventName::EndpointRemoved,
            Self::RolloutStarted => EventName::RolloutStarted,
            Self::RolloutFinished => EventName::RolloutFinished,
            Self::Log(..) => EventName::Log,
            Self::Mark(_) => EventName::Mark,
        })
    }
}

impl fmt::Display for Event {
    /// As an author writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let with = |f: &mut fmt::Formatter<'_>, name: EventName, argument: Option<&str>| match argument {
            Some(argument) => write!(f, "{name}({argument})"),
            None => write!(f, "{name}"),
        };
        match self {
            Self::Step(id) => write!(f, "{id}"),
            Self::Transition(from, to) => write!(f, "transition({from}, {to})"),
            Self::Lb(change, server) => with(f, change.event_name(), server.map(ServerChoice::as_str)),
            Self::Rst(request) => with(f, EventName::Rst, request.as_ref().map(Id::as_str)),
            Self::Sigterm(container) => with(f, EventName::Sigterm, container.as_ref().map(Id::as_str)),
            Self::ContainerExit(container) => with(f, EventName::ContainerExit, container.as_ref().map(Id::as_str)),
            Self::Cut(id) => with(f, EventName::Cut, Some(id.as_str())),
            Self::Started(id) => with(f, EventName::Started, Some(id.as_str())),
            Self::Ended(id) => with(f, EventName::Ended, Some(id.as_str())),
            Self::Finished(id) => with(f, EventName::Finished, Some(id.as_str())),
            Self::Failed(id) => with(f, EventName::Failed, Some(id.as_str())),
            Self::Goaway(id) => with(f, EventName::Goaway, Some(id.as_str())),
            Self::Mark(id) => with(f, EventName::Mark, Some(id.as_str())),
            Self::Log(probe, pattern) => write!(f, "log({probe}, /{}/)", pattern.as_str().replace('/', "\\/")),
            Self::Delete
            | Self::Drain
            | Self::DrainListeners
            | Self::ActiveZero
            | Self::FirstActiveZero
            | Self::HealthFail
            | Self::LbReload
            | Self::PodTerminating
            | Self::PodGone
            | Self::PodReady
            | Self::NotReady
            | Self::EndpointRemoved
            | Self::RolloutStarted
            | Self::RolloutFinished => f.write_str(self.name().map_or("", EventName::as_str)),
        }
    }
}
