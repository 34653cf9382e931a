//! Bytes to text.

/// A file's text and what was wrong with its bytes.
pub(super) struct Decoded {
    /// The text without a byte order mark; what is no UTF-8 is replaced.
    pub(super) text: String,
    /// Place of the first replacement in the text.
    pub(super) invalid: Option<usize>,
    /// Its place in the file, from 0.
    pub(super) invalid_byte: usize,
}

/// Bytes of U+FFFD.
pub(super) const REPLACEMENT: usize = 3;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    let body = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match std::str::from_utf8(body) {
        Ok(text) => Decoded {
            text: text.to_owned(),
            invalid: None,
            invalid_byte: 0,
        },
        Err(error) => Decoded {
            text: String::from_utf8_lossy(body).into_owned(),
            invalid: Some(error.valid_up_to()),
            invalid_byte: error.valid_up_to() + bytes.len() - body.len(),
        },
    }
}
