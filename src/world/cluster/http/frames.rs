//! Finds GOAWAY among the HTTP/2 frames that arrive, because the HTTP library does not tell when one came in.

/// `last stream id` and error code of a GOAWAY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Goaway {
    /// Requests with a higher stream id were not processed.
    pub(super) last_stream: u32,
    /// 0: graceful.
    pub(super) code: u32,
}

/// Reads a byte stream in any pieces: 9 bytes of frame header, then the payload (RFC 9113, section 4.1).
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// The part of a frame header or GOAWAY payload that has arrived.
    held: Vec<u8>,
    /// Payload bytes that are only passed over.
    skip: usize,
    /// The frame whose payload is being collected is a GOAWAY of that length.
    goaway: Option<usize>,
}

const HEADER: usize = 9;
const GOAWAY: u8 = 7;
/// Last stream id and error code; what follows is debug data.
const GOAWAY_FIELDS: usize = 8;

impl Frames {
    /// Takes the next bytes; the GOAWAYs that are complete with them.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Vec<Goaway> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            if self.skip > 0 {
                let n = self.skip.min(bytes.len());
                self.skip -= n;
                bytes = &bytes[n..];
                continue;
            }
            let want = if self.goaway.is_some() { GOAWAY_FIELDS } else { HEADER };
            let n = (want - self.held.len()).min(bytes.len());
            self.held.extend_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if self.held.len() < want {
                break;
            }
            let held = std::mem::take(&mut self.held);
            match self.goaway.take() {
                Some(length) => {
                    found.push(Goaway {
                        last_stream: number(&held[..4]) & 0x7fff_ffff,
                        code: number(&held[4..8]),
                    });
                    self.skip = length - GOAWAY_FIELDS;
                }
                None => {
                    let length = usize::from(held[0]) << 16 | usize::from(held[1]) << 8 | usize::from(held[2]);
                    if held[3] == GOAWAY && length >= GOAWAY_FIELDS {
                        self.goaway = Some(length);
                    } else {
                        self.skip = length;
                    }
                }
            }
        }
        found
    }
}

/// Big-endian number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend_from_slice(&[kind, 0, 0, 0, 0, 1]);
        bytes.extend_from_slice(payload);
        bytes
    }

    proptest! {
        #[test]
        fn a_goaway_is_found_however_the_stream_is_cut(
            before in proptest::collection::vec((0u8..10, proptest::collection::vec(any::<u8>(), 0..40)), 0..6),
            debug in proptest::collection::vec(any::<u8>(), 0..20),
            last_stream in 0u32..0x8000_0000, code in any::<u32>(),
            cuts in proptest::collection::vec(1usize..17, 1..60),
        ) {
            let mut stream = Vec::new();
            for (kind, payload) in before.iter().filter(|(kind, _)| *kind != GOAWAY) {
                stream.extend(frame(*kind, payload));
            }
            let mut payload = [last_stream.to_be_bytes(), code.to_be_bytes()].concat();
            payload.extend(&debug);
            stream.extend(frame(GOAWAY, &payload));
            stream.extend(frame(6, &[0; 8]));
            let (mut frames, mut found, mut rest) = (Frames::default(), Vec::new(), stream.as_slice());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                found.extend(frames.read(now));
                rest = later;
            }
            prop_assert_eq!(found, vec![Goaway { last_stream, code }]);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frames::default().read(&bytes);
        }
    }
}
