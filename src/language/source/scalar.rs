//! Where a character of a scalar's value stands in the file.

use crate::diagnostic::{SourceMap, Span};

/// The place of `at..end` of a scalar's value, when the scalar's source is at `span`.
///
/// A plain one-line scalar is its source. In quoted, folded and multi-line scalars the value differs from the source: both are
/// walked together. `None` when the source is not the value's, as behind an alias; the whole scalar is the place then.
pub(crate) fn place_in_scalar(sources: &SourceMap, span: Span, value: &str, at: usize, end: usize) -> Option<Span> {
    let source = sources.slice(span);
    let map = offsets(source, value)?;
    let place = |offset: usize| map.get(offset).copied().map(|o| span.start as usize + o);
    let (start, stop) = (place(at)?, place(end.max(at))?);
    Some(Span::new(span.file, start, stop.max(start)))
}

/// For each byte of the value, and its end, the byte of the source.
fn offsets(source: &str, value: &str) -> Option<Vec<usize>> {
    if source == value {
        return Some((0..=value.len()).collect());
    }
    let quote = source.chars().next().filter(|c| matches!(c, '"' | '\''));
    let mut walk = Walk {
        source,
        at: usize::from(quote.is_some()),
        quote,
    };
    let mut out = Vec::with_capacity(value.len() + 1);
    for c in value.chars() {
        let at = walk.next(c)?;
        out.extend(std::iter::repeat_n(at, c.len_utf8()));
    }
    // The end of the value: just behind its last character.
    out.push(walk.at.min(source.len()));
    Some(out)
}

struct Walk<'a> {
    source: &'a str,
    at: usize,
    quote: Option<char>,
}

impl Walk<'_> {
    /// Steps over the source of one character of the value and says where it began.
    fn next(&mut self, c: char) -> Option<usize> {
        let rest = &self.source[self.at..];
        let first = rest.chars().next()?;
        let began = self.at;
        // A line break in the source is a space, a line break or nothing in the value, with the next line's indentation.
        if first.is_whitespace() && (c == ' ' || c == '\n') {
            if first == c && !rest.trim_start_matches(' ').starts_with(['\n', '\r']) && first != '\n' {
                self.at += 1;
                return Some(began);
            }
            let line_end = rest.find('\n')?;
            self.at += line_end + 1;
            let indented = &self.source[self.at..];
            self.at += indented.len() - indented.trim_start_matches(' ').len();
            return Some(began);
        }
        if first == '\\' && self.quote == Some('"') {
            let len = match rest.chars().nth(1)? {
                'x' => 4,
                'u' => 6,
                'U' => 10,
                '\n' | '\r' => {
                    // An escaped line break is nothing.
                    let line_end = rest.find('\n')?;
                    self.at += line_end + 1;
                    let indented = &self.source[self.at..];
                    self.at += indented.len() - indented.trim_start_matches([' ', '\t']).len();
                    return self.next(c);
                }
                other => 1 + other.len_utf8(),
            };
            self.at = (self.at + len).min(self.source.len());
            return self.source.is_char_boundary(self.at).then_some(began);
        }
        if first == '\'' && self.quote == Some('\'') && c == '\'' {
            self.at += 2;
            return (self.at <= self.source.len()).then_some(began);
        }
        if first != c {
            return None;
        }
        self.at += first.len_utf8();
        Some(began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, value: &str, word: &str) -> Option<String> {
        let mut sources = SourceMap::default();
        let file = sources.add("a.yaml", source);
        let at = value.find(word).expect("the word is in the value");
        let place = place_in_scalar(&sources, Span::new(file, 0, source.len()), value, at, at + word.len())?;
        Some(sources.slice(place).to_owned())
    }

    #[test]
    fn words_are_found_in_every_style() {
        for (source, value) in [
            ("status(long) == 200", "status(long) == 200"),
            ("'status(''x'') == long'", "status('x') == long"),
            ("\"status(\\x6c) == long\"", "status(l) == long"),
            ("\"tab\\tthen long\"", "tab\tthen long"),
            ("\"one \\\n   long\"", "one long"),
            ("protected(a)\n    and long", "protected(a) and long"),
            ("protected(a)\n    and long\n", "protected(a) and long\n"),
            ("\"ü 🔑\n   long\"", "ü 🔑 long"),
            ("a  \r\n  long", "a long"),
        ] {
            assert_eq!(found(source, value, "long").as_deref(), Some("long"), "{source:?}");
        }
        assert_eq!(found("*alias", "status(long)", "long"), None);
    }
}
