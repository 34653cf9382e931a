use serde::{Deserialize, Serialize};

use super::words;

words! {
    /// State of a server on the load balancer.
    LbStatus {
        Up "up" "UP"
        GoingDown "going_down" "UP, with failed checks: `UP 1/2`"
        Down "down" "DOWN"
        ComingUp "coming_up" "DOWN, with good checks: `DOWN 1/2`"
        Drain "drain" "DRAIN: no new sessions"
        Nolb "nolb" "NOLB: the check answered 404"
        Maint "maint" "MAINT"
        NoCheck "no_check" "no check is configured"
        Unknown "unknown" "a state that no version of the load balancer is known to print"
    }
}

words! {
    /// What the health page answers.
    Health {
        Ok "ok" "a success"
        Failing "failing" "a failure such as 503"
        NotFound "not_found" "404: alive, and asking for no new requests"
        Unreachable "unreachable" "nothing answers"
    }
}

words! {
    /// How a request ended for its client.
    Outcome {
        Ok "ok" "the response was whole and its status below 400, or our own side ended a stream as planned"
        HttpError "http_error" "the response was whole, with a status of 400 or more"
        Truncated "truncated" "a status arrived, the body did not"
        Reset "reset" "the connection was reset before a response"
        ClosedEarly "closed_early" "the connection was closed before a response"
        Refused "refused" "the connection was refused"
        RefusedStream "refused_stream" "HTTP/2 REFUSED_STREAM: the server did nothing with it"
        Timeout "timeout" "the request's own time limit passed"
        TlsError "tls_error" "the TLS handshake failed"
        DnsError "dns_error" "the name could not be resolved"
        Aborted "aborted" "ended by us"
    }
}

words! {
    /// How a call to the API, a command or a poll ended.
    StepOutcome {
        Ok "ok" "it was done"
        Refused "refused" "it was refused: 403, 409 or 429 of the API, or the command could not be started"
        Error "error" "it failed"
    }
}

words! {
    /// The judgement of a request.
    Fate {
        Protected "protected" "on the target when it was told to stop, and answered whole"
        Broken "broken" "there, not answered whole, and cut by the load balancer when it marked the server down or put it into maintenance"
        Rescued "rescued" "cut at the target, then answered because the load balancer sent it elsewhere"
        Lost "lost" "not answered whole for another reason"
        NotInFlight "not_in_flight" "it was elsewhere or not yet there"
        Inconclusive "inconclusive" "the evidence cannot say"
    }
}

words! {
    /// Why a request was broken or lost.
    Cause {
        LbDown "lb_down" "the load balancer marked the server DOWN"
        LbMaint "lb_maint" "the server was put into maintenance"
        ListenerClosed "listener_closed" "the pod's own drain had closed its listener"
        ServerTimeout "server_timeout" "the load balancer's `timeout server` passed: 504"
        PodKilled "pod_killed" "the pod ended while it worked"
        NoServer "no_server" "no server was available"
        ClientAbort "client_abort" "the client gave up"
        ClientTimeout "client_timeout" "the client's own time limit passed"
        Refused "refused" "the connection was refused"
        Network "network" "packets were lost on the way"
        Unknown "unknown" "the evidence does not say"
    }
}

words! {
    /// Who sent a packet.
    Party {
        Lb "lb" "the load balancer"
        Target "target" "the target pod or its node"
        Client "client" "gtrun's client"
    }
}

words! {
    /// Which server an `lb_*` event or `down_time` is about; without an argument it is the target's.
    ServerChoice {
        Any "any" "any server of the backend, the target's included"
        Others "others" "any server but the target's"
    }
}

words! {
    /// The sets of words that values are compared with.
    WordSet {
        LbStatus "lb_status" "states of a server"
        Health "health" "answers of the health page"
        Outcome "outcome" "outcomes of a request"
        StepOutcome "step_outcome" "outcomes of a call or a command"
        Fate "fate" "fates of a request"
        Cause "cause" "causes of a loss"
        Party "party" "senders of a packet"
    }
}

/// A word of one of the sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// A state of a server.
    LbStatus(LbStatus),
    /// An answer of the health page.
    Health(Health),
    /// An outcome of a request.
    Outcome(Outcome),
    /// An outcome of a call or a command.
    StepOutcome(StepOutcome),
    /// A fate.
    Fate(Fate),
    /// A cause.
    Cause(Cause),
    /// A sender of a packet.
    Party(Party),
}

impl Word {
    /// The set it belongs to.
    pub const fn set(self) -> WordSet {
        match self {
            Self::LbStatus(_) => WordSet::LbStatus,
            Self::Health(_) => WordSet::Health,
            Self::Outcome(_) => WordSet::Outcome,
            Self::StepOutcome(_) => WordSet::StepOutcome,
            Self::Fate(_) => WordSet::Fate,
            Self::Cause(_) => WordSet::Cause,
            Self::Party(_) => WordSet::Party,
        }
    }

    /// The word as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LbStatus(word) => word.as_str(),
            Self::Health(word) => word.as_str(),
            Self::Outcome(word) => word.as_str(),
            Self::StepOutcome(word) => word.as_str(),
            Self::Fate(word) => word.as_str(),
            Self::Cause(word) => word.as_str(),
            Self::Party(word) => word.as_str(),
        }
    }

    /// What it means.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::LbStatus(word) => word.meaning(),
            Self::Health(word) => word.meaning(),
            Self::Outcome(word) => word.meaning(),
            Self::StepOutcome(word) => word.meaning(),
            Self::Fate(word) => word.meaning(),
            Self::Cause(word) => word.meaning(),
            Self::Party(word) => word.meaning(),
        }
    }
}

impl WordSet {
    /// Every word of the set.
    pub fn words(self) -> Vec<Word> {
        match self {
            Self::LbStatus => LbStatus::ALL.iter().copied().map(Word::LbStatus).collect(),
            Self::Health => Health::ALL.iter().copied().map(Word::Health).collect(),
            Self::Outcome => Outcome::ALL.iter().copied().map(Word::Outcome).collect(),
            Self::StepOutcome => StepOutcome::ALL.iter().copied().map(Word::StepOutcome).collect(),
            Self::Fate => Fate::ALL.iter().copied().map(Word::Fate).collect(),
            Self::Cause => Cause::ALL.iter().copied().map(Word::Cause).collect(),
            Self::Party => Party::ALL.iter().copied().map(Word::Party).collect(),
        }
    }

    /// The word of this set with this text.
    pub fn word(self, text: &str) -> Option<Word> {
        self.words().into_iter().find(|word| word.as_str() == text)
    }
}
