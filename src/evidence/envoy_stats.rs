//! Envoy's gauges: `envoy-active[-node].tsv` of gtrun and of the old scripts, port-forward samples as JSON lines.

use super::{FileId, Place, Sampled};

mod gauges;
pub(crate) mod reader;
mod reply;

pub use gauges::GaugeValues;
pub use reply::parse_reply;

/// Samples of one pod's gauges, in file order, on the sampler's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeSeries {
    /// The file.
    pub file: FileId,
    /// Node or pod from the file's name.
    pub subject: Option<String>,
    /// The samples. Runs of equal samples may be thinned to their first and last when a file is very long.
    pub samples: Vec<GaugeSample>,
}

/// One reply, or the failure to get one.
#[derive(Debug, Clone, PartialEq)]
pub struct GaugeSample {
    /// When. Old records: the stamp is floored to 1 s and was taken after the fetch, so the value was read in
    /// (previous stamp, this stamp + 1 s).
    pub when: Sampled,
    /// Where the record begins.
    pub place: Place,
    /// What came back.
    pub reading: Reading,
}

/// What a poll came back with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    /// Every `*_rq_active` gauge and `*_rq_total` counter of the reply by its full name, also where the reply was
    /// JSON or Prometheus text, but for the counters of Envoy's own listeners (admin, agent, stats); a name that is not
    /// here was absent, which is not zero.
    Values(GaugeValues),
    /// `exec-failed`, an empty reply, a broken connection: unknown, never zero.
    Unknown(String),
}
