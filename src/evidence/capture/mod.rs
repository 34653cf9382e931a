//! Packet captures: pcap and pcapng of any byte order and resolution; SLL, SLL2, Ethernet, raw, loopback.

use super::{Endpoint, FileId, Place};
use crate::time::Bracket;

pub(crate) mod losses;
mod packet;
pub(crate) mod reader;

/// One host's capture, on that host's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Capture {
    /// The file.
    pub file: FileId,
    /// Host from the file's name: `lb`, `worker1`.
    pub host: String,
    /// TCP packets with SYN, FIN or RST (others are dropped by the reader), in file order; copies of one packet on
    /// several interfaces are one.
    pub packets: Vec<Packet>,
    /// What tcpdump's own words (`rst-<host>.err`) say about its losses.
    pub losses: Losses,
    /// The capture holds packets other than resets, so that SYN and FIN are evidence too.
    pub has_syn: bool,
}

/// What is known about the capture's completeness.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Losses {
    /// "listening on" was seen.
    pub listening: Option<bool>,
    /// `packets captured`.
    pub captured: Option<u64>,
    /// `packets dropped by kernel`.
    pub dropped_by_kernel: Option<u64>,
    /// The file ends in the middle of a record.
    pub cut: bool,
    /// `rst-<host>.SKIPPED`: it never ran, and why.
    pub skipped: Option<String>,
}

/// One packet.
#[derive(Debug, Clone, PartialEq)]
pub struct Packet {
    /// Capture stamp with the file's resolution.
    pub at: Bracket,
    /// Record number, from 1.
    pub place: Place,
    /// Source.
    pub from: Endpoint,
    /// Destination.
    pub to: Endpoint,
    /// Flags.
    pub flags: Flags,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number; meaningless without ACK.
    pub ack: u32,
    /// Window.
    pub window: u16,
    /// Bytes of payload.
    pub payload: u32,
    /// Direction as the cooked header tells: sent by this host, or received.
    pub outgoing: Option<bool>,
}

/// TCP flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// SYN.
    pub syn: bool,
    /// ACK.
    pub ack: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
}
