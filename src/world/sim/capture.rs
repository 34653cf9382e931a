//! The bytes of a capture: pcap with Linux cooked v2 headers, as `tcpdump -i any` writes it, and tcpdump's own words.

use std::net::Ipv4Addr;

use super::clocks::HostClock;
use crate::time::Instant;

/// Which way a packet went, as the cooked header tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// By this host (type 4).
    Sent,
    /// To this host (type 0).
    Received,
}

/// One TCP packet with SYN, FIN or RST, as one host saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packet {
    /// True time.
    pub(super) at: Instant,
    /// Direction.
    pub(super) direction: Direction,
    /// Source.
    pub(super) from: (Ipv4Addr, u16),
    /// Destination.
    pub(super) to: (Ipv4Addr, u16),
    /// TCP flags.
    pub(super) flags: u8,
    /// Sequence number.
    pub(super) seq: u32,
    /// Acknowledgement number.
    pub(super) ack: u32,
}

const SNAPSHOT: u32 = 160;
const LINUX_SLL2: u32 = 276;
const SYN: u8 = 2;
const RST: u8 = 4;

/// The file header: little endian, microseconds.
pub(super) fn file_header() -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    out.extend(0xa1b2_c3d4_u32.to_le_bytes());
    out.extend(2u16.to_le_bytes());
    out.extend(4u16.to_le_bytes());
    out.extend([0; 8]);
    out.extend(SNAPSHOT.to_le_bytes());
    out.extend(LINUX_SLL2.to_le_bytes());
    out
}

/// One record, stamped with the host's clock.
pub(super) fn record(out: &mut Vec<u8>, packet: &Packet, clock: &HostClock) {
    let micros = clock.read(packet.at).as_nanos().div_euclid(1_000);
    let options: &[u8] = match packet.flags {
        // MSS, SACK permitted, timestamps, window scale on a SYN; timestamps later; none on the RST to a refused SYN.
        f if f & SYN != 0 => &[
            2, 4, 5, 0xb4, 4, 2, 8, 10, 0x3a, 0x2c, 0x9b, 0xf8, 0x1b, 0x59, 0xbc, 0x0e, 1, 3, 3, 10,
        ],
        f if f & RST != 0 && packet.seq == 0 => &[],
        _ => &[1, 1, 8, 10, 0x1b, 0x59, 0xbc, 0x0f, 0x3a, 0x2c, 0x9b, 0xf9],
    };
    let ip_len = 20 + 20 + options.len();
    let len = (20 + ip_len) as u32;
    out.extend((micros.div_euclid(1_000_000) as u32).to_le_bytes());
    out.extend((micros.rem_euclid(1_000_000) as u32).to_le_bytes());
    out.extend(len.to_le_bytes());
    out.extend(len.to_le_bytes());
    // Cooked v2: protocol, reserved, interface, ARPHRD_ETHER, packet type, address length, address.
    out.extend([0x08, 0x00, 0, 0, 0, 0, 0, 2, 0, 1]);
    out.push(match packet.direction {
        Direction::Sent => 4,
        Direction::Received => 0,
    });
    out.extend([6, 0x06, 0x32, 0x16, 0x99, 0xc6, 0xaf, 0, 0]);
    // IPv4, don't fragment; the checksums stay zero, as offloading leaves them.
    let window: u16 = match packet.flags {
        f if f & SYN != 0 => 64_240,
        f if f & RST != 0 && packet.seq == 0 => 0,
        _ => 63,
    };
    out.extend([0x45, 0]);
    out.extend((ip_len as u16).to_be_bytes());
    out.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    out.extend(packet.from.0.octets());
    out.extend(packet.to.0.octets());
    out.extend(packet.from.1.to_be_bytes());
    out.extend(packet.to.1.to_be_bytes());
    out.extend(packet.seq.to_be_bytes());
    out.extend(packet.ack.to_be_bytes());
    out.push((((20 + options.len()) / 4) << 4) as u8);
    out.push(packet.flags);
    out.extend(window.to_be_bytes());
    out.extend([0; 4]);
    out.extend(options);
}

/// What tcpdump says when it starts.
pub(super) const WORDS_AT_START: &str = "tcpdump: data link type LINUX_SLL2\ntcpdump: listening on any, link-type \
     LINUX_SLL2 (Linux cooked v2), snapshot length 160 bytes\n";

/// What tcpdump says when it ends.
pub(super) fn words_at_end(captured: usize) -> String {
    format!("{captured} packets captured\n{captured} packets received by filter\n0 packets dropped by kernel\n")
}
