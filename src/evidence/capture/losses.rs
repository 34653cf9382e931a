//! What tcpdump or dumpcap said about a capture: `rst-<host>.err`.

use super::Losses;
use crate::evidence::container_line;
use crate::evidence::reading::Reading;
use crate::evidence::{FileId, NoteKind};

/// Reads the text; each line may have an arrival stamp and `stderr: ` in front.
pub(crate) fn read(text: &str, file: FileId, losses: &mut Losses, reading: &mut Reading) {
    losses.listening = Some(false);
    for (number, line) in (1u32..).zip(text.lines()) {
        let plain = container_line::without_colours(line.as_bytes());
        let line = String::from_utf8_lossy(&plain);
        let line = line
            .split_once("stderr: ")
            .map_or(line.as_ref(), |(_, rest)| rest)
            .trim();
        if line.contains("listening on ") || line.starts_with("Capturing on ") {
            losses.listening = Some(true);
        } else if let Some(n) = count(line, &[" packets captured", " packet captured"]) {
            losses.captured = Some(n);
        } else if let Some(n) = count(line, &[" packets dropped by kernel", " packet dropped by kernel"]) {
            losses.dropped_by_kernel = Some(n);
        } else if let Some(n) = count(line, &[" packets dropped by interface", " packet dropped by interface"]) {
            // libpcap computes it from counters that may go backwards.
            let what = if n > 4_000_000_000 {
                format!("`{n} packets dropped by interface` is nonsense of libpcap and no loss")
            } else {
                format!("{n} packets were dropped by the interface, before the capture")
            };
            reading.note(file, number, NoteKind::Remark, what);
        } else if let Some(n) = line.strip_prefix("Packets captured: ").and_then(|n| n.parse().ok()) {
            losses.captured = Some(n);
        } else if let Some(rest) = line.strip_prefix("Packets received/dropped on interface ") {
            // dumpcap: 'any': 12/0 (pcap:0/dumpcap:0/flushed:0/ps_ifdrop:0)
            let dropped = rest
                .rsplit_once("': ")
                .and_then(|(_, counts)| counts.split(' ').next())
                .and_then(|counts| counts.split('/').nth(1))
                .and_then(|n| n.parse().ok());
            losses.dropped_by_kernel = dropped.or(losses.dropped_by_kernel);
        }
    }
    if losses.dropped_by_kernel.is_some_and(|n| n > 0) {
        reading.note_file(
            file,
            NoteKind::Incomplete,
            "the kernel dropped packets: what is not in the capture may have been; use a narrower filter or -B 4096",
        );
    }
}

fn count(line: &str, endings: &[&str]) -> Option<u64> {
    let number = endings.iter().find_map(|e| line.strip_suffix(e))?;
    number.rsplit(' ').next()?.parse().ok()
}
