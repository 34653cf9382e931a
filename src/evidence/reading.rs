//! What every reader has at hand: a place for notes that cannot grow without bound, and interned names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{FileId, Note, NoteKind, Place};

/// Notes of one kind that a file may add before they are only counted.
const NOTES_A_FILE: u32 = 20;

/// Shared by the readers of one folder.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    notes: Vec<Note>,
    counts: HashMap<(FileId, NoteKind), u32>,
    names: HashSet<Arc<str>>,
    unknown_zone: HashSet<FileId>,
}

impl Reading {
    /// One shared copy of a name that occurs again and again.
    pub(crate) fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(name) = self.names.get(text) {
            return Arc::clone(name);
        }
        let name: Arc<str> = Arc::from(text);
        // Names are few by nature; a hostile file must not fill the memory with them.
        if self.names.len() < 100_000 {
            self.names.insert(Arc::clone(&name));
        }
        name
    }

    /// Like [`Self::name`] for bytes; what is not UTF-8 is replaced.
    pub(crate) fn name_of(&mut self, bytes: &[u8]) -> Arc<str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.name(text),
            Err(_) => self.name(&String::from_utf8_lossy(bytes)),
        }
    }

    /// A note about a line of a file.
    pub(crate) fn note(&mut self, file: FileId, line: u32, kind: NoteKind, text: impl Into<String>) {
        let count = self.counts.entry((file, kind)).or_default();
        *count += 1;
        if *count <= NOTES_A_FILE {
            self.notes.push(Note {
                place: Some(Place { file, line }),
                kind,
                text: text.into(),
            });
        }
    }

    /// A note about a whole file.
    pub(crate) fn note_file(&mut self, file: FileId, kind: NoteKind, text: impl Into<String>) {
        self.notes.push(Note {
            place: Some(Place { file, line: 0 }),
            kind,
            text: text.into(),
        });
    }

    /// A note about something that is no file.
    pub(crate) fn note_folder(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.push(Note {
            place: None,
            kind,
            text: text.into(),
        });
    }

    /// Says that a very long file was not kept whole: `omitted` regular lines are counted, `lost` others are not.
    pub(crate) fn thinned(&mut self, file: FileId, what: &str, omitted: u64, lost: u64) {
        if omitted > 0 {
            let text = format!("{omitted} regular {what} of this very long file are counted and not kept");
            self.note_file(file, NoteKind::Remark, text);
        }
        if lost > 0 {
            let text = format!("{lost} {what} found no room: cut the file to the time of the run");
            self.note_file(file, NoteKind::Incomplete, text);
        }
    }

    /// The stamps of this file are local time of a zone that nothing tells.
    pub(crate) fn mark_unknown_zone(&mut self, file: FileId) {
        self.unknown_zone.insert(file);
    }

    /// True after [`Self::mark_unknown_zone`].
    pub(crate) fn has_unknown_zone(&self, file: FileId) -> bool {
        self.unknown_zone.contains(&file)
    }

    /// All notes by file and line; those that were only counted become one each.
    pub(crate) fn into_notes(mut self) -> Vec<Note> {
        for ((file, kind), count) in &self.counts {
            if *count > NOTES_A_FILE {
                self.notes.push(Note {
                    place: Some(Place {
                        file: *file,
                        line: u32::MAX,
                    }),
                    kind: *kind,
                    text: format!("and {} more like these in this file", count - NOTES_A_FILE),
                });
            }
        }
        self.notes
            .sort_by(|a, b| (a.place, a.kind, &a.text).cmp(&(b.place, b.kind, &b.text)));
        for note in &mut self.notes {
            if let Some(place) = &mut note.place
                && place.line == u32::MAX
            {
                place.line = 0;
            }
        }
        self.notes
    }
}

/// Bytes as text for a message or a kept line: at most `limit` bytes, what is not UTF-8 replaced.
pub(crate) fn excerpt(bytes: &[u8], limit: usize) -> String {
    if bytes.len() <= limit {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut text = String::from_utf8_lossy(&bytes[..limit]).into_owned();
    text.push_str("...");
    text
}

/// An unsigned decimal number that is the whole text.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter()
        .try_fold(0u64, |n, b| b.is_ascii_digit().then(|| n * 10 + u64::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_beyond_a_limit() {
        let mut r = Reading::default();
        for line in 1..=1000 {
            r.note(FileId(0), line, NoteKind::Incomplete, "bad");
        }
        let notes = r.into_notes();
        assert_eq!(notes.len(), 21);
        assert_eq!(notes[20].text, "and 980 more like these in this file");
    }

    #[test]
    fn numbers() {
        assert_eq!(number(b"0042"), Some(42));
        assert_eq!(number(b"-1"), None);
        assert_eq!(number(b""), None);
        assert_eq!(number(b"99999999999999999999"), None);
    }
}
