use crate::report::scene::Tone;
use crate::report::wording::readable;

/// What the terminal can do. Found out by the caller: this room looks at no environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// ANSI colours: a terminal, and no `NO_COLOR`.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

impl Look {
    /// Without colours.
    pub const fn plain(width: usize) -> Self {
        Self { colour: false, width }
    }
}

/// The few colours of the report; a meaning never rests on one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::report) enum Colour {
    Green,
    Red,
    Yellow,
    Cyan,
    Bold,
    Faint,
    Plain,
}

impl From<Tone> for Colour {
    fn from(tone: Tone) -> Self {
        match tone {
            Tone::Good => Self::Green,
            Tone::Bad => Self::Red,
            Tone::Unsure => Self::Yellow,
            Tone::Accent => Self::Cyan,
            Tone::Plain => Self::Plain,
        }
    }
}

impl Colour {
    /// Parameters of the SGR sequence.
    const fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Cyan => "36",
            Self::Bold => "1",
            Self::Faint => "2",
            Self::Plain => "0",
        }
    }
}

/// The text as it grows: wraps at the width, colours when it may, and lets no control character of the evidence through.
pub(in crate::report) struct Sheet {
    look: Look,
    text: String,
}

/// Narrower than this nothing can be read; wider lines are hard to follow with the eye.
const WIDTHS: (usize, usize) = (40, 132);

impl Sheet {
    pub(in crate::report) fn new(look: &Look) -> Self {
        Self {
            look: Look {
                width: look.width.clamp(WIDTHS.0, WIDTHS.1),
                ..*look
            },
            text: String::new(),
        }
    }

    pub(in crate::report) const fn width(&self) -> usize {
        self.look.width
    }

    pub(in crate::report) fn into_text(self) -> String {
        self.text
    }

    pub(in crate::report) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// A line that is not wrapped: a path to be copied, a row of a picture.
    pub(in crate::report) fn line(&mut self, text: &str) {
        self.text.push_str(readable(text).trim_end());
        self.text.push('\n');
    }

    /// Such a line in a colour.
    pub(in crate::report) fn paint(&mut self, colour: Colour, text: &str) {
        let painted = self.painted(colour, &readable(text));
        self.text.push_str(&painted);
        self.text.push('\n');
    }

    /// A row of a picture: a label in a colour, padded to `column`, and the rest as it is.
    pub(in crate::report) fn row(&mut self, colour: Colour, label: &str, column: usize, rest: &str) {
        let label = readable(label);
        let padding = column.saturating_sub(label.chars().count());
        let painted = self.painted(colour, &label);
        self.text
            .push_str(format!("{painted}{:padding$}{}", "", readable(rest)).trim_end());
        self.text.push('\n');
    }

    /// An empty line and a title in small letters.
    pub(in crate::report) fn heading(&mut self, text: &str) {
        self.blank();
        self.paint(Colour::Bold, text);
    }

    /// A coloured word, and beside it text that keeps to its own column.
    pub(in crate::report) fn headed(&mut self, colour: Colour, word: &str, column: usize, text: &str) {
        let word = readable(word);
        let lines = self.wrapped(column, text);
        let room = column.saturating_sub(1);
        // A word too long for its column stands alone.
        let gap = if word.chars().count() > room {
            format!("\n{:column$}", "")
        } else {
            " ".repeat(column - word.chars().count())
        };
        let painted = self.painted(colour, &word);
        self.text
            .push_str(&format!("{painted}{gap}{}\n", lines.join(&format!("\n{:column$}", ""))));
    }

    pub(in crate::report) fn indented(&mut self, column: usize, text: &str) {
        self.paint_indented(Colour::Plain, column, text);
    }

    pub(in crate::report) fn faint(&mut self, column: usize, text: &str) {
        self.paint_indented(Colour::Faint, column, text);
    }

    pub(in crate::report) fn paint_indented(&mut self, colour: Colour, column: usize, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        for line in self.wrapped(column, text) {
            let painted = self.painted(colour, &line);
            self.text.push_str(&format!("{:column$}{painted}\n", ""));
        }
    }

    fn wrapped(&self, column: usize, text: &str) -> Vec<String> {
        let options = textwrap::Options::new(self.look.width.saturating_sub(column).max(20)).break_words(false);
        textwrap::wrap(&readable(text), options)
            .into_iter()
            .map(String::from)
            .collect()
    }

    fn painted(&self, colour: Colour, text: &str) -> String {
        match (self.look.colour, colour) {
            (false, _) | (true, Colour::Plain) => text.to_owned(),
            (true, _) => format!("\x1b[{}m{text}\x1b[0m", colour.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_to_its_column_and_width() {
        let mut sheet = Sheet::new(&Look::plain(40));
        sheet.headed(
            Colour::Green,
            "PASS",
            6,
            "one two three four five six seven eight nine ten",
        );
        sheet.headed(Colour::Red, "a_long_request_name", 8, "lost");
        assert_eq!(
            sheet.into_text(),
            "PASS  one two three four five six seven\n      eight nine ten\na_long_request_name\n        lost\n"
        );
    }

    #[test]
    fn escape_sequences_of_the_evidence_are_harmless() {
        let mut sheet = Sheet::new(&Look {
            colour: true,
            width: 80,
        });
        sheet.paint(Colour::Red, "log said \x1b[2J\r\nbye");
        assert_eq!(sheet.into_text(), "\x1b[31mlog said \\u{1b}[2J\\r\\nbye\x1b[0m\n");
    }
}
