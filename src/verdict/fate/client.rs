//! What the client's side says, from its own record or from the run log's summary.

use super::*;

/// What the client's side says, from its own record or from the run log's summary.
#[derive(Debug, Clone, Default)]
pub(super) struct ClientView {
    pub(super) outcome: Option<ClientOutcome>,
    pub(super) status: Option<u16>,
    pub(super) total: Option<Duration>,
    pub(super) connects: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) by: Option<String>,
    /// The run log saw it end long before the load balancer's side did.
    pub(super) left_early: bool,
}

impl ClientView {
    pub(super) fn of(timeline: &Timeline<'_>, request: &Request, warnings: &mut Vec<String>) -> Self {
        let evidence = timeline.evidence;
        let summary = evidence
            .run_log
            .iter()
            .filter(|l| l.file.is_none_or(|f| timeline.clocks.belongs(f)));
        let summary = summary.flat_map(|l| &l.entries).find_map(|e| match &e.what {
            RunLogLine::Summary {
                id,
                status,
                total,
                exit,
            } if *id == request.id => Some((*status, *total, *exit)),
            _ => None,
        });
        let client = request.client.map(|i| &evidence.clients[i]);
        let client = client.filter(|c| timeline.clocks.belongs(c.place.file));
        if let Some(c) = client {
            let trouble = request.client_trouble.clone().or_else(|| contradicts(c, summary));
            match trouble {
                None => {
                    return Self {
                        outcome: Some(c.outcome),
                        status: c.status,
                        total: c.total,
                        connects: c.connects,
                        bytes: c.bytes,
                        ..Self::default()
                    };
                }
                Some(why) => warnings.push(format!("{}: {why}; it is not used", evidence.file(c.place.file).name)),
            }
            // A record that is not of this run: nothing else of the client's side is believed either.
            return Self::default();
        }
        match summary {
            Some((status, total, exit)) => Self {
                outcome: Some(outcome_of_summary(status, exit)),
                status,
                total,
                by: Some("run.log".to_owned()),
                ..Self::default()
            },
            None => Self::default(),
        }
    }

    pub(super) fn whole(&self) -> Option<bool> {
        self.outcome.and_then(ClientOutcome::whole)
    }

    /// The client went away by itself.
    pub(super) fn gave_up(&self) -> bool {
        matches!(self.outcome, Some(ClientOutcome::Timeout | ClientOutcome::Aborted)) || self.left_early
    }

    /// The answer was made by the load balancer, or there was none: nothing whole came from a pod.
    pub(super) fn unanswered(&self) -> bool {
        self.whole() == Some(false) || matches!(self.status, Some(502..=504))
    }
}

/// By the run log's own clock the client was over in less time than HAProxy's side took: it had given up. Asked only
/// where the client left no record of its own.
pub(super) fn left_early(timeline: &Timeline<'_>, request: &Request, views: &[AttemptView<'_>]) -> bool {
    if request.client.is_some() {
        return false;
    }
    let (sent, over) = message::client_moments(timeline.evidence, request, &timeline.clocks);
    let gaps = sent
        .iter()
        .flat_map(|s| over.iter().map(move |o| timeline.clocks.gap(s, o)));
    let longest = gaps.filter_map(|g| g.max).min();
    let total = views.iter().filter_map(|v| v.haproxy?.2.time_total).max();
    matches!((longest, total), (Some(client), Some(lb)) if client + Duration::from_millis(200) < lb)
}

pub(super) type Summary = (Option<u16>, Option<Duration>, Option<i32>);

/// The run log's summary was made from the same output: they must agree.
pub(super) fn contradicts(client: &ClientRequest, summary: Option<Summary>) -> Option<String> {
    let (status, total, exit) = summary?;
    let differs = client.status != status
        || matches!((client.total, total), (Some(a), Some(b)) if (a - b).abs() > Duration::from_millis(1))
        || matches!((client.exit, exit), (Some(a), Some(b)) if a != b);
    differs.then(|| "it does not agree with the summary in run.log".to_owned())
}

pub(super) fn outcome_of_summary(status: Option<u16>, exit: Option<i32>) -> ClientOutcome {
    match (status, exit) {
        (Some(s), Some(0)) if s < 400 => ClientOutcome::Ok,
        (Some(_), Some(0)) => ClientOutcome::HttpError,
        (_, Some(28)) => ClientOutcome::Timeout,
        (Some(_), Some(18 | 56 | 92)) => ClientOutcome::Truncated,
        (None, Some(7)) => ClientOutcome::Refused,
        (None, Some(52)) => ClientOutcome::ClosedEarly,
        (None, Some(56)) => ClientOutcome::Reset,
        (None, Some(6)) => ClientOutcome::DnsError,
        (None, Some(35 | 60)) => ClientOutcome::TlsError,
        _ => ClientOutcome::Unknown,
    }
}
