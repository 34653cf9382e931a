//! Captures in pcap and pcapng, told apart by their first bytes and never by their names.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};

use super::packet::{Link, Tcp, decode};
use super::{Capture, Losses, Packet};
use crate::evidence::reading::Reading;
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
pub(crate) fn read<R: BufRead>(mut source: R, file: FileId, host: &str, reading: &mut Reading) -> io::Result<Capture> {
    let mut builder = Builder {
        capture: Capture {
            file,
            host: host.to_owned(),
            packets: Vec::new(),
            losses: Losses::default(),
            has_syn: false,
        },
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

    fn blocks<'r, R: PcapReaderIterator>(
        &mut self,
        reader: &'r mut R,
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
        self.capture.packets.push(Packet {
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
        });
        Ok(())
    }

    fn finish(&mut self, end: End, reading: &mut Reading) {
        let file = self.capture.file;
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
