//! Captures in pcap and pcapng, told apart by their first bytes and never by their names.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};

use super::packet::{Link, Tcp, decode};
use super::{Capture, Losses, Packet};
use crate::evidence::reading::Reading;
use crate::evidence::thinning::Keeper;
use crate::evidence::{FileId, NoteKind, Place};
use crate::time::{Bracket, Duration, Instant};

/// Text in front of the capture (tcpdump's own words) is looked through this far.
const BANNER_LIMIT: usize = 4096;
/// No captured packet is larger: tcpdump's longest snapshot.
const SNAPSHOT_LIMIT: u32 = 262_144;
/// Room for one record at a time.
const BUFFER: usize = 1 << 19;
/// Copies of a packet on several interfaces come within this time; a retransmission comes after 200 ms or more.
const COPY_WINDOW: Duration = Duration::from_millis(10);
/// A capture is damaged when a stamp is further than this from the first.
const RUN_LIMIT: Duration = Duration::from_secs(30 * 86_400);

/// Reads a capture.
pub(crate) fn read<R: BufRead>(
    mut source: R,
    file: FileId,
    host: &str,
    room: usize,
    reading: &mut Reading,
) -> io::Result<Capture> {
    let mut builder = Builder {
        capture: Capture {
            file,
            host: host.to_owned(),
            packets: Vec::new(),
            losses: Losses::default(),
            has_syn: false,
        },
        packets: Keeper::new(room),
        recent: VecDeque::new(),
        first: None,
        record: 0,
        unknown_link: None,
    };
    let Some((head, format)) = find_magic(&mut source)? else {
        reading.note_file(
            file,
            NoteKind::Unreadable,
            "not a capture: none of the magic numbers of pcap and pcapng is at its beginning",
        );
        return Ok(builder.capture);
    };
    if head.skipped > 0 {
        reading.note_file(
            file,
            NoteKind::Remark,
            format!(
                "{} bytes of text stand before the capture and were skipped; keep tcpdump's messages apart with 2>",
                head.skipped
            ),
        );
    }
    let source = io::Cursor::new(head.bytes).chain(source);
    let end = match format {
        Format::Pcap { nanoseconds } => builder.pcap(source, nanoseconds),
        Format::PcapNg => builder.pcapng(source),
    };
    builder.finish(end, reading);
    Ok(builder.capture)
}

enum Format {
    Pcap { nanoseconds: bool },
    PcapNg,
}

struct Head {
    bytes: Vec<u8>,
    skipped: usize,
}

fn format_at(bytes: &[u8]) -> Option<Format> {
    match *bytes.get(..4)? {
        [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0xc3, 0xd4] => Some(Format::Pcap { nanoseconds: false }),
        [0x4d, 0x3c, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] => Some(Format::Pcap { nanoseconds: true }),
        [0x0a, 0x0d, 0x0d, 0x0a] => Some(Format::PcapNg),
        _ => None,
    }
}

fn find_magic(source: &mut impl Read) -> io::Result<Option<(Head, Format)>> {
    let mut bytes = Vec::with_capacity(BANNER_LIMIT);
    source.by_ref().take(BANNER_LIMIT as u64).read_to_end(&mut bytes)?;
    for at in 0..bytes.len() {
        if let Some(format) = format_at(&bytes[at..]) {
            // Behind text, blank lines look like the beginning of pcapng.
            if at > 0 && matches!(format, Format::PcapNg) {
                continue;
            }
            bytes.drain(..at);
            return Ok(Some((Head { bytes, skipped: at }, format)));
        }
    }
    Ok(None)
}

/// How reading came to its end.
enum End {
    /// After the last record.
    Whole,
    /// In the middle of a record, as when the capture was killed or is still being written.
    Cut,
    /// At something that is no record.
    Damaged(String),
}

struct Builder {
    capture: Capture,
    packets: Keeper<Packet>,
    recent: VecDeque<(Instant, Tcp)>,
    first: Option<Instant>,
    record: u32,
    unknown_link: Option<u32>,
}

impl Builder {
    fn pcap(&mut self, source: impl Read, nanoseconds: bool) -> End {
        let mut reader = match LegacyPcapReader::new(BUFFER, source) {
            Ok(r) => r,
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof | PcapError::Eof) => return End::Cut,
            Err(e) => return End::Damaged(format!("its header cannot be read ({e})")),
        };
        let mut link = 0;
        let mut limit = SNAPSHOT_LIMIT;
        self.blocks(&mut reader, |this, block| {
            match block {
                PcapBlockOwned::LegacyHeader(h) => {
                    // The upper half may hold the length of a checksum.
                    link = u32::try_from(h.network.0).unwrap_or(u32::MAX) & 0x0fff_ffff;
                    if h.snaplen > 0 {
                        limit = limit.max(h.snaplen.min(1 << 20));
                    }
                    Ok(())
                }
                PcapBlockOwned::Legacy(p) => {
                    let fraction = if nanoseconds { 1_000_000_000 } else { 1_000_000 };
                    if p.caplen > limit || p.ts_usec >= fraction || p.origlen < p.caplen {
                        return Err(format!(
                            "record {} says {} of {} bytes, {} parts of a second",
                            this.record + 1,
                            p.caplen,
                            p.origlen,
                            p.ts_usec
                        ));
                    }
                    let resolution = Duration::from_nanos(if nanoseconds { 1 } else { 1_000 });
                    let nanos = i64::from(p.ts_sec) * 1_000_000_000 + i64::from(p.ts_usec) * resolution.as_nanos();
                    this.packet(link, Instant::from_nanos(nanos), resolution, p.data)
                }
                PcapBlockOwned::NG(_) => Ok(()),
            }
        })
    }

    fn pcapng(&mut self, source: impl Read) -> End {
        let mut reader = match PcapNGReader::new(BUFFER, source) {
            Ok(r) => r,
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof | PcapError::Eof) => return End::Cut,
            Err(e) => return End::Damaged(format!("its header cannot be read ({e})")),
        };
        let mut interfaces: Vec<Interface> = Vec::new();
        self.blocks(&mut reader, |this, block| {
            let PcapBlockOwned::NG(block) = block else {
                return Ok(());
            };
            match block {
                Block::SectionHeader(_) => interfaces.clear(),
                Block::InterfaceDescription(i) => interfaces.push(Interface {
                    link: u32::try_from(i.linktype.0).unwrap_or(u32::MAX),
                    resolution: i.if_tsresol,
                    offset: i.if_tsoffset,
                }),
                Block::EnhancedPacket(p) => {
                    let Some(interface) = interfaces.get(p.if_id as usize) else {
                        return Err(format!(
                            "record {} names an interface that was not described",
                            this.record + 1
                        ));
                    };
                    let (at, resolution) = interface.time((u64::from(p.ts_high) << 32) | u64::from(p.ts_low));
                    let data = p.data.get(..p.caplen as usize).unwrap_or(p.data);
                    return this.packet(interface.link, at, resolution, data);
                }
                // A simple packet has no stamp: nothing can be said about it.
                Block::SimplePacket(_) => this.record += 1,
                _ => {}
            }
            Ok(())
        })
    }

    fn blocks<R: PcapReaderIterator>(
        &mut self,
        reader: &mut R,
        mut each: impl FnMut(&mut Self, &PcapBlockOwned<'_>) -> Result<(), String>,
    ) -> End {
        let mut stuck = None;
        loop {
            match reader.next() {
                Ok((length, block)) => {
                    let result = each(self, &block);
                    drop(block);
                    reader.consume(length);
                    stuck = None;
                    if let Err(what) = result {
                        return End::Damaged(what);
                    }
                }
                Err(PcapError::Eof) => return End::Whole,
                Err(PcapError::UnexpectedEof) => return End::Cut,
                Err(PcapError::Incomplete(needed)) => {
                    // A record that claims more than the buffer holds, or the end of the file inside one.
                    if needed > BUFFER {
                        return End::Damaged(format!("record {} says that it has {needed} bytes", self.record + 1));
                    }
                    let here = (reader.position(), reader.data().len());
                    if reader.reader_exhausted() && stuck == Some(here) {
                        return End::Cut;
                    }
                    stuck = Some(here);
                    if let Err(e) = reader.refill() {
                        return match e {
                            PcapError::BufferTooSmall => {
                                End::Damaged(format!("record {} does not fit", self.record + 1))
                            }
                            _ => End::Cut,
                        };
                    }
                }
                Err(e) => return End::Damaged(format!("record {} cannot be read ({e})", self.record + 1)),
            }
        }
    }

    fn packet(&mut self, link: u32, at: Instant, resolution: Duration, data: &[u8]) -> Result<(), String> {
        self.record = self.record.saturating_add(1);
        let first = *self.first.get_or_insert(at);
        if (at - first).abs() > RUN_LIMIT {
            return Err(format!("record {} is stamped {at}, days from the first", self.record));
        }
        let Some(link) = Link::from_number(link) else {
            self.unknown_link = Some(link);
            return Ok(());
        };
        let Some(tcp) = decode(link, data) else {
            return Ok(());
        };
        if !tcp.flags.rst {
            self.capture.has_syn = true;
        }
        if !(tcp.flags.syn || tcp.flags.fin || tcp.flags.rst) {
            return Ok(());
        }
        while self.recent.front().is_some_and(|(t, _)| at - *t > COPY_WINDOW) || self.recent.len() > 4096 {
            self.recent.pop_front();
        }
        let copy = |other: &Tcp| {
            Tcp {
                outgoing: None,
                ..*other
            } == Tcp { outgoing: None, ..tcp }
        };
        if self.recent.iter().any(|(_, other)| copy(other)) {
            return Ok(());
        }
        self.recent.push_back((at, tcp));
        let packet = Packet {
            at: Bracket::floored(at, resolution),
            place: Place {
                file: self.capture.file,
                line: self.record,
            },
            from: tcp.from,
            to: tcp.to,
            flags: tcp.flags,
            seq: tcp.seq,
            ack: tcp.ack,
            window: tcp.window,
            payload: tcp.payload,
            outgoing: tcp.outgoing,
        };
        self.packets.push(packet, Some(at), !tcp.flags.rst);
        Ok(())
    }

    fn finish(&mut self, end: End, reading: &mut Reading) {
        let file = self.capture.file;
        let (packets, omitted, lost) = std::mem::replace(&mut self.packets, Keeper::new(0)).finish();
        self.capture.packets = packets;
        if omitted + lost > 0 {
            // The absence of a packet needs all of them.
            self.capture.losses.cut = true;
            reading.note_file(
                file,
                NoteKind::Incomplete,
                format!(
                    "{} packets of this very long capture found no room: cut it to the time of the run",
                    omitted + lost
                ),
            );
        }
        if let Some(link) = self.unknown_link {
            reading.note_file(
                file,
                NoteKind::Unreadable,
                format!(
                    "link type {link} is not known; capture with `tcpdump -i any` or on an Ethernet interface (Ethernet, \
                     Linux cooked, raw IP and loopback are read)"
                ),
            );
        }
        match end {
            End::Whole => {}
            End::Cut => {
                self.capture.losses.cut = true;
                reading.note(
                    file,
                    self.record,
                    NoteKind::Incomplete,
                    "the capture ends in the middle of a record; stop tcpdump before the file is fetched, and use -U",
                );
            }
            End::Damaged(what) => {
                // Where the damage begins is not where it shows: nothing of it can be trusted.
                self.capture.losses.cut = true;
                self.capture.packets.clear();
                self.capture.has_syn = false;
                reading.note(
                    file,
                    self.record,
                    NoteKind::Unreadable,
                    format!(
                        "the capture is damaged: {what}; this looks like CR/LF translation of a terminal: pull it with \
                         base64, or by ssh without a tty"
                    ),
                );
            }
        }
    }
}

struct Interface {
    link: u32,
    resolution: u8,
    offset: i64,
}

impl Interface {
    /// A stamp in units of `if_tsresol`: a power of ten, or of two with the upper bit.
    fn time(&self, units: u64) -> (Instant, Duration) {
        let exponent = u32::from(self.resolution & 0x7f);
        let a_second: u128 = if self.resolution & 0x80 == 0 {
            10u128.checked_pow(exponent).unwrap_or(u128::MAX)
        } else {
            1u128.checked_shl(exponent).unwrap_or(u128::MAX)
        };
        let nanos = u128::from(units).saturating_mul(1_000_000_000) / a_second;
        let resolution = (1_000_000_000 / a_second).max(1);
        let at = i64::try_from(nanos)
            .unwrap_or(i64::MAX)
            .saturating_add(self.offset.saturating_mul(1_000_000_000));
        (
            Instant::from_nanos(at),
            Duration::from_nanos(i64::try_from(resolution).unwrap_or(1)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reset as an Ethernet frame.
    fn frame(port: u16, seq: u32) -> Vec<u8> {
        let mut f = vec![0u8; 54];
        f[12] = 0x08;
        f[14] = 0x45;
        f[17] = 40;
        f[23] = 6;
        f[26..30].copy_from_slice(&[10, 77, 0, 211]);
        f[30..34].copy_from_slice(&[10, 77, 0, 11]);
        f[34..36].copy_from_slice(&port.to_be_bytes());
        f[36..38].copy_from_slice(&8080u16.to_be_bytes());
        f[38..42].copy_from_slice(&seq.to_be_bytes());
        f[46] = 5 << 4;
        f[47] = 0x14;
        f
    }

    #[derive(Clone, Copy)]
    struct Order {
        big: bool,
    }

    impl Order {
        fn u32(self, n: u32) -> [u8; 4] {
            if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
        }
        fn u16(self, n: u16) -> [u8; 2] {
            if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
        }
    }

    /// Second, fraction, frame.
    type Record = (u32, u32, Vec<u8>);

    fn pcap(order: Order, nanoseconds: bool, link: u32, records: &[Record]) -> Vec<u8> {
        let mut out = order.u32(if nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 }).to_vec();
        out.extend([order.u16(2), order.u16(4)].concat());
        for n in [0, 0, 262_144, link] {
            out.extend(order.u32(n));
        }
        for (s, f, frame) in records {
            for n in [*s, *f, frame.len() as u32, frame.len() as u32] {
                out.extend(order.u32(n));
            }
            out.extend(frame);
        }
        out
    }

    fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
        let padding = (4 - body.len() % 4) % 4;
        let length = order.u32((12 + body.len() + padding) as u32);
        [&order.u32(kind)[..], &length, body, &vec![0; padding], &length].concat()
    }

    /// `resolution` is the byte of `if_tsresol`; stamps are in its units.
    fn pcapng(order: Order, resolution: u8, records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut header = order.u32(0x1a2b_3c4d).to_vec();
        header.extend([order.u16(1), order.u16(0)].concat());
        header.extend([0xff; 8]);
        let mut interface = [order.u16(1), order.u16(0)].concat();
        interface.extend(order.u32(0));
        interface.extend([order.u16(9), order.u16(1)].concat());
        interface.extend([resolution, 0, 0, 0]);
        interface.extend(order.u32(0));
        let mut out = block(order, 0x0a0d_0d0a, &header);
        out.extend(block(order, 1, &interface));
        for (stamp, frame) in records {
            let mut body = order.u32(0).to_vec();
            for n in [
                (stamp >> 32) as u32,
                *stamp as u32,
                frame.len() as u32,
                frame.len() as u32,
            ] {
                body.extend(order.u32(n));
            }
            body.extend(frame);
            out.extend(block(order, 6, &body));
        }
        out
    }

    fn read_bytes(bytes: &[u8]) -> (Capture, String) {
        let mut reading = Reading::default();
        let capture = read(bytes, FileId(0), "lb", 1000, &mut reading).expect("memory cannot fail");
        let notes: Vec<_> = reading.into_notes().into_iter().map(|n| n.text).collect();
        (capture, notes.join("; "))
    }

    fn seen(capture: &Capture) -> Vec<(u16, String, i64)> {
        capture
            .packets
            .iter()
            .map(|p| {
                let lo = p.at.lo.expect("a stamp") + Duration::from_nanos(1);
                (
                    p.from.port(),
                    lo.to_rfc3339(),
                    p.at.width().expect("a width").as_nanos(),
                )
            })
            .collect()
    }

    const SECOND: u32 = 1_795_968_765;

    #[test]
    fn every_byte_order_and_resolution() {
        for big in [false, true] {
            let order = Order { big };
            for (bytes, width) in [
                (pcap(order, false, 1, &[(SECOND, 703_001, frame(1, 1))]), 1_000),
                (pcap(order, true, 1, &[(SECOND, 703_001_000, frame(1, 1))]), 1),
                (
                    pcapng(order, 6, &[(u64::from(SECOND) * 1_000_000 + 703_001, frame(1, 1))]),
                    1_000,
                ),
                (
                    pcapng(
                        order,
                        9,
                        &[(u64::from(SECOND) * 1_000_000_000 + 703_001_000, frame(1, 1))],
                    ),
                    1,
                ),
            ] {
                let (capture, notes) = read_bytes(&bytes);
                assert_eq!(seen(&capture), [(1, "2026-11-29T16:12:45.703001Z".to_owned(), width)]);
                assert_eq!(notes, "");
            }
            // Units of 2^-10 s.
            let (capture, _) = read_bytes(&pcapng(
                order,
                0x80 | 10,
                &[(u64::from(SECOND) << 10 | 512, frame(1, 1))],
            ));
            assert_eq!(seen(&capture), [(1, "2026-11-29T16:12:45.500Z".to_owned(), 976_562)]);
        }
    }

    #[test]
    fn copies_of_a_packet_are_one_and_retransmissions_two() {
        let order = Order { big: false };
        let records = [
            (SECOND, 0, frame(1, 1)),
            (SECOND, 5, frame(1, 1)),
            (SECOND, 6, frame(1, 2)),
            (SECOND, 210_000, frame(1, 1)),
        ];
        let (capture, _) = read_bytes(&pcap(order, false, 1, &records));
        assert_eq!(capture.packets.iter().map(|p| p.seq).collect::<Vec<_>>(), [1, 2, 1]);
        assert_eq!(
            capture.packets.iter().map(|p| p.place.line).collect::<Vec<_>>(),
            [1, 3, 4]
        );
    }

    #[test]
    fn a_cut_capture_keeps_what_is_whole() {
        let order = Order { big: false };
        let records = [(SECOND, 0, frame(1, 1)), (SECOND, 20_000, frame(2, 1))];
        for bytes in [
            pcap(order, false, 1, &records),
            pcapng(
                order,
                9,
                &[
                    (u64::from(SECOND) * 1_000_000_000, frame(1, 1)),
                    (u64::from(SECOND) * 1_000_000_000 + 5, frame(2, 1)),
                ],
            ),
        ] {
            let (capture, notes) = read_bytes(&bytes[..bytes.len() - 9]);
            assert_eq!(capture.packets.len(), 1);
            assert!(capture.losses.cut && notes.contains("in the middle"), "{notes}");
        }
        let (capture, _) = read_bytes(&pcap(order, false, 1, &records)[..10]);
        assert!(capture.losses.cut && capture.packets.is_empty());
    }

    #[test]
    fn what_is_no_capture_or_of_an_unknown_kind_is_said() {
        let order = Order { big: false };
        assert!(read_bytes(b"tcpdump: permission denied\n").1.contains("not a capture"));
        let (capture, notes) = read_bytes(&pcap(order, false, 127, &[(SECOND, 0, frame(1, 1))]));
        assert!(capture.packets.is_empty() && notes.contains("link type 127"), "{notes}");
        let mut huge = pcap(order, false, 1, &[(SECOND, 0, frame(1, 1))]);
        huge[32..36].copy_from_slice(&order.u32(0xffff_fff0));
        let (capture, notes) = read_bytes(&huge);
        assert!(capture.packets.is_empty() && notes.contains("damaged"), "{notes}");
    }

    #[test]
    fn recorded_captures_of_both_cooked_kinds() {
        let (capture, notes) = read_bytes(include_bytes!("../../../tests/fixtures/captures/sll2-lb.pcap"));
        assert_eq!(
            (capture.packets.len(), capture.has_syn, notes.as_str()),
            (17, false, "")
        );
        let out = capture.packets.iter().filter(|p| p.outgoing == Some(true)).count();
        let to_us = capture.packets.iter().filter(|p| p.outgoing == Some(false)).count();
        assert_eq!(out + to_us, 17);
        // The worker saw the load balancer's resets as received.
        let (worker, _) = read_bytes(include_bytes!("../../../tests/fixtures/captures/sll2-worker1.pcap"));
        let same = worker
            .packets
            .iter()
            .find(|p| p.from.port() == 35_266)
            .expect("the reset of a check");
        assert_eq!(same.outgoing, Some(false));
        assert!(
            capture
                .packets
                .iter()
                .any(|p| p.from == same.from && p.seq == same.seq && p.outgoing == Some(true))
        );
        let (capture, notes) = read_bytes(include_bytes!("../../../tests/fixtures/captures/sll1-lb.pcap"));
        assert_eq!((capture.packets.len(), notes.as_str()), (20, ""));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read_bytes(&bytes);
        }

        #[test]
        fn no_damage_panics(at in 0usize..400, by in any::<u8>(), big in any::<bool>(), ng in any::<bool>()) {
            let order = Order { big };
            let mut bytes = if ng {
                pcapng(order, 6, &[(1, frame(1, 1)), (2, frame(2, 1))])
            } else {
                pcap(order, false, 1, &[(SECOND, 0, frame(1, 1)), (SECOND, 20_000, frame(2, 1))])
            };
            let at = at % bytes.len();
            bytes[at] = by;
            let _ = read_bytes(&bytes);
        }
    }
}
