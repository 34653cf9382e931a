//! From the bytes of a captured frame to a TCP packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::Flags;
use crate::evidence::Endpoint;

/// Link types that are decoded, by the numbers of libpcap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Ethernet, with any number of VLAN tags.
    Ethernet,
    /// Linux cooked capture, version 1 (`-i any` of old, dumpcap).
    Cooked1,
    /// Linux cooked capture, version 2 (`-i any` of tcpdump today).
    Cooked2,
    /// IPv4 or IPv6 without anything in front.
    Raw,
    /// BSD loopback: a protocol family of four bytes in the byte order of the capturing host.
    Null,
}

impl Link {
    /// From libpcap's number.
    pub(crate) fn from_number(n: u32) -> Option<Self> {
        match n {
            1 => Some(Self::Ethernet),
            113 => Some(Self::Cooked1),
            276 => Some(Self::Cooked2),
            12 | 14 | 101 | 228 | 229 => Some(Self::Raw),
            0 | 108 => Some(Self::Null),
            _ => None,
        }
    }
}

/// A TCP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tcp {
    pub(crate) from: Endpoint,
    pub(crate) to: Endpoint,
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) payload: u32,
    pub(crate) outgoing: Option<bool>,
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

/// Decodes a frame; `None` when it is no TCP packet or too short of one.
pub(crate) fn decode(link: Link, frame: &[u8]) -> Option<Tcp> {
    match link {
        Link::Ethernet => {
            let mut at = 12;
            let mut kind = u16_at(frame, at)?;
            // 802.1Q and 802.1ad tags.
            while matches!(kind, 0x8100 | 0x88a8 | 0x9100) {
                at += 4;
                kind = u16_at(frame, at)?;
            }
            by_ether_type(kind, &frame[at + 2..], None)
        }
        Link::Cooked1 => by_ether_type(u16_at(frame, 14)?, frame.get(16..)?, direction(u16_at(frame, 0)?)),
        Link::Cooked2 => by_ether_type(
            u16_at(frame, 0)?,
            frame.get(20..)?,
            direction(u16::from(*frame.get(10)?)),
        ),
        Link::Raw => ip(frame, None),
        Link::Null => ip(frame.get(4..)?, None),
    }
}

/// Packet type of a cooked header: 0 to us, 4 from us; broadcast, multicast and other hosts' tell nothing.
fn direction(packet_type: u16) -> Option<bool> {
    match packet_type {
        0 => Some(false),
        4 => Some(true),
        _ => None,
    }
}

fn by_ether_type(kind: u16, packet: &[u8], outgoing: Option<bool>) -> Option<Tcp> {
    match kind {
        0x0800 | 0x86dd => ip(packet, outgoing),
        0x8100 | 0x88a8 => by_ether_type(u16_at(packet, 2)?, packet.get(4..)?, outgoing),
        _ => None,
    }
}

fn ip(packet: &[u8], outgoing: Option<bool>) -> Option<Tcp> {
    match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 0x0f) * 4;
            let length = usize::from(u16_at(packet, 2)?);
            let fragment = u16_at(packet, 6)? & 0x1fff;
            if header < 20 || *packet.get(9)? != 6 || fragment != 0 {
                return None;
            }
            let address = |at: usize| Some(IpAddr::V4(Ipv4Addr::from(u32_at(packet, at)?)));
            // With segmentation offload the length may be 0: then the captured bytes count.
            let data = if length == 0 { packet.len() } else { length };
            tcp(
                address(12)?,
                address(16)?,
                packet.get(header..)?,
                data.saturating_sub(header),
                outgoing,
            )
        }
        6 => {
            let address = |at: usize| {
                let bytes: [u8; 16] = packet.get(at..at + 16)?.try_into().ok()?;
                Some(IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical())
            };
            let length = usize::from(u16_at(packet, 4)?);
            let mut next = *packet.get(6)?;
            let mut at = 40;
            // Hop-by-hop, routing, destination options, and the first fragment.
            while matches!(next, 0 | 43 | 44 | 60) {
                let header = packet.get(at..at + 8)?;
                if next == 44 && u16_at(header, 2)? & 0xfff8 != 0 {
                    return None;
                }
                at += if next == 44 {
                    8
                } else {
                    (usize::from(header[1]) + 1) * 8
                };
                next = header[0];
            }
            if next != 6 {
                return None;
            }
            tcp(
                address(8)?,
                address(24)?,
                packet.get(at..)?,
                (length + 40).saturating_sub(at),
                outgoing,
            )
        }
        _ => None,
    }
}

fn tcp(from: IpAddr, to: IpAddr, segment: &[u8], length: usize, outgoing: Option<bool>) -> Option<Tcp> {
    let bits = *segment.get(13)?;
    let header = usize::from(segment[12] >> 4) * 4;
    if header < 20 {
        return None;
    }
    Some(Tcp {
        from: SocketAddr::new(from, u16_at(segment, 0)?),
        to: SocketAddr::new(to, u16_at(segment, 2)?),
        flags: Flags {
            syn: bits & 0x02 != 0,
            ack: bits & 0x10 != 0,
            fin: bits & 0x01 != 0,
            rst: bits & 0x04 != 0,
        },
        seq: u32_at(segment, 4)?,
        ack: u32_at(segment, 8)?,
        window: u16_at(segment, 14)?,
        payload: u32::try_from(length.saturating_sub(header)).unwrap_or(0),
        outgoing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment() -> Vec<u8> {
        let mut s = vec![0u8; 20];
        s[..2].copy_from_slice(&8080u16.to_be_bytes());
        s[2..4].copy_from_slice(&4711u16.to_be_bytes());
        s[4..8].copy_from_slice(&7u32.to_be_bytes());
        s[8..12].copy_from_slice(&9u32.to_be_bytes());
        s[12] = 5 << 4;
        s[13] = 0x14;
        s[14..16].copy_from_slice(&502u16.to_be_bytes());
        s
    }

    fn v4() -> Vec<u8> {
        let mut p = vec![0u8; 20];
        p[0] = 0x45;
        p[2..4].copy_from_slice(&43u16.to_be_bytes());
        p[9] = 6;
        p[12..16].copy_from_slice(&[10, 77, 0, 211]);
        p[16..20].copy_from_slice(&[10, 77, 0, 11]);
        [p, segment(), b"abc".to_vec()].concat()
    }

    fn v6() -> Vec<u8> {
        let mut p = vec![0u8; 40];
        p[0] = 0x60;
        p[4..6].copy_from_slice(&28u16.to_be_bytes());
        p[6] = 0;
        p[23] = 1;
        p[39] = 2;
        let mut options = vec![0u8; 8];
        options[0] = 6;
        [p, options, segment()].concat()
    }

    #[test]
    fn every_link_type() {
        let ethernet = [vec![0; 12], vec![0x81, 0, 0, 5, 0x08, 0], v4()].concat();
        let mut cooked1 = vec![0u8; 16];
        cooked1[1] = 4;
        cooked1[14] = 0x08;
        let mut cooked2 = vec![0u8; 20];
        cooked2[0] = 0x08;
        cooked2[10] = 0;
        for (link, frame, outgoing) in [
            (Link::Ethernet, ethernet, None),
            (Link::Cooked1, [cooked1, v4()].concat(), Some(true)),
            (Link::Cooked2, [cooked2, v4()].concat(), Some(false)),
            (Link::Raw, v4(), None),
            (Link::Null, [vec![2, 0, 0, 0], v4()].concat(), None),
        ] {
            let t = decode(link, &frame).expect("tcp");
            assert_eq!(
                (t.from.to_string(), t.to.port()),
                ("10.77.0.211:8080".into(), 4711),
                "{link:?}"
            );
            assert_eq!(
                (t.flags.rst, t.flags.ack, t.flags.syn, t.flags.fin),
                (true, true, false, false)
            );
            assert_eq!(
                (t.seq, t.ack, t.window, t.payload, t.outgoing),
                (7, 9, 502, 3, outgoing)
            );
        }
        let t = decode(Link::Raw, &v6()).expect("tcp");
        assert_eq!((t.from.to_string(), t.payload), ("[::1]:8080".into(), 0));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(frame in proptest::collection::vec(any::<u8>(), 0..120)) {
            for link in [Link::Ethernet, Link::Cooked1, Link::Cooked2, Link::Raw, Link::Null] {
                let _ = decode(link, &frame);
            }
        }

        #[test]
        fn no_ip_panics(first in prop_oneof![Just(0x45u8), Just(0x4f), Just(0x60)], frame in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(Link::Raw, &[vec![first], frame].concat());
        }
    }
}
