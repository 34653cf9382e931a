use serde::{Deserialize, Serialize};

/// Which file of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FileId(pub u32);

/// A range of bytes in a file: from `start`, not including `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// First byte behind it.
    pub end: u32,
}

impl Span {
    /// A range of bytes; offsets beyond 4 GiB saturate (files are refused long before).
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        let cut = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            file,
            start: cut(start),
            end: cut(end),
        }
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        (self.end.saturating_sub(self.start)) as usize
    }

    /// True when it marks a point between two bytes.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// From the start of this to the end of the other, in the file of this.
    pub fn to(self, other: Self) -> Self {
        Self {
            end: other.end.max(self.end),
            ..self
        }
    }
}

/// A place as people count: lines and columns from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// The name as the user would write it: a path relative to where gtrun runs.
    pub name: String,
    /// Its text, without a byte order mark; bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// The files that a load has read, in the order of reading; the first is the one that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a file and says which it is.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let id = FileId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
        });
        id
    }

    /// The file, when this map made the id.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(id.0 as usize)
    }

    /// The file's text; empty for an unknown id.
    pub fn text(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| &file.text)
    }

    /// The file's name; empty for an unknown id.
    pub fn name(&self, id: FileId) -> &str {
        self.get(id).map_or("", |file| &file.name)
    }

    /// All files in the order of reading.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        (0u32..).map(FileId).zip(&self.files)
    }

    /// The bytes of a span; empty when it lies outside the file or cuts a character.
    pub fn slice(&self, span: Span) -> &str {
        self.text(span.file)
            .get(span.start as usize..span.end as usize)
            .unwrap_or("")
    }

    /// Line and column of a byte; beyond the end of the file it is the end.
    pub fn position(&self, file: FileId, byte: u32) -> Position {
        let text = self.text(file);
        let mut at = (byte as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |n| n + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        let cut = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position {
            line: cut(line),
            column: cut(column),
        }
    }

    /// Line and column where a span begins.
    pub fn start(&self, span: Span) -> Position {
        self.position(span.file, span.start)
    }

    /// Line and column just behind a span.
    pub fn end(&self, span: Span) -> Position {
        self.position(span.file, span.end)
    }

    /// `file:line:column`, as editors and terminals understand it.
    pub fn place(&self, span: Span) -> String {
        let Position { line, column } = self.start(span);
        format!("{}:{line}:{column}", self.name(span.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let mut map = SourceMap::default();
        let file = map.add("a.yaml", "x: 1\nü🔑: 2\r\n");
        assert_eq!(map.position(file, 0), Position { line: 1, column: 1 });
        assert_eq!(map.position(file, 5), Position { line: 2, column: 1 });
        assert_eq!(map.position(file, 11), Position { line: 2, column: 3 });
        assert_eq!(
            map.position(file, 8),
            Position { line: 2, column: 2 },
            "inside a character: its start"
        );
        assert_eq!(map.position(file, 999), Position { line: 3, column: 1 });
        assert_eq!(map.place(Span::new(file, 5, 7)), "a.yaml:2:1");
        assert_eq!(map.slice(Span::new(file, 5, 7)), "ü");
    }
}
