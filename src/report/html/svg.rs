use std::fmt;

use crate::report::wording::readable;

/// The few SVG elements that the picture is made of. Lengths are in user units; classes carry the colours.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Element {
    Line {
        from: (f64, f64),
        to: (f64, f64),
        class: &'static str,
    },
    Rect {
        x: f64,
        y: f64,
        width: f64,
        height: f64,
        class: String,
        title: String,
    },
    Path {
        points: Vec<(f64, f64)>,
        closed: bool,
        class: &'static str,
    },
    Circle {
        at: (f64, f64),
        radius: f64,
        class: String,
        title: String,
    },
    Text {
        at: (f64, f64),
        anchor: Anchor,
        class: &'static str,
        text: String,
        title: String,
    },
}

/// Which end of a text stands at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A whole picture.
pub(super) struct Picture {
    pub(super) size: (f64, f64),
    /// Read to who cannot see it.
    pub(super) description: String,
    pub(super) elements: Vec<Element>,
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (width, height) = self.size;
        let label = Escaped(&self.description);
        writeln!(
            f,
            r#"<svg viewBox="0 0 {width:.0} {height:.0}" role="img" aria-label="{label}">"#
        )?;
        for element in &self.elements {
            writeln!(f, "{element}")?;
        }
        f.write_str("</svg>")
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { from, to, class } => {
                write!(
                    f,
                    r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" class="{class}"/>"#,
                    from.0, from.1, to.0, to.1
                )
            }
            Self::Rect {
                x,
                y,
                width,
                height,
                class,
                title,
            } => {
                write!(
                    f,
                    r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" class="{class}""#
                )?;
                closed(f, "rect", title)
            }
            Self::Path { points, closed, class } => {
                write!(f, r#"<path class="{class}" d=""#)?;
                for (i, (x, y)) in points.iter().enumerate() {
                    write!(f, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' })?;
                }
                f.write_str(if *closed { "Z\"/>" } else { "\"/>" })
            }
            Self::Circle {
                at,
                radius,
                class,
                title,
            } => {
                write!(
                    f,
                    r#"<circle cx="{:.1}" cy="{:.1}" r="{radius:.1}" class="{class}""#,
                    at.0, at.1
                )?;
                closed(f, "circle", title)
            }
            Self::Text {
                at,
                anchor,
                class,
                text,
                title,
            } => {
                write!(
                    f,
                    r#"<text x="{:.1}" y="{:.1}" text-anchor="{}" class="{class}">"#,
                    at.0,
                    at.1,
                    anchor.word()
                )?;
                if !title.is_empty() {
                    write!(f, "<title>{}</title>", Escaped(title))?;
                }
                write!(f, "{}</text>", Escaped(text))
            }
        }
    }
}

/// The end of a tag, with a tooltip where there is something to say.
fn closed(f: &mut fmt::Formatter<'_>, name: &str, title: &str) -> fmt::Result {
    if title.is_empty() {
        f.write_str("/>")
    } else {
        write!(f, "><title>{}</title></{name}>", Escaped(title))
    }
}

/// Text of the evidence inside markup.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in readable(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_evidence_is_no_markup() {
        let element = Element::Text {
            at: (1.0, 2.25),
            anchor: Anchor::Start,
            class: "name",
            text: "<script>&".to_owned(),
            title: "a\"b\u{1b}".to_owned(),
        };
        assert_eq!(
            element.to_string(),
            r#"<text x="1.0" y="2.2" text-anchor="start" class="name"><title>a&quot;b\u{1b}</title>&lt;script&gt;&amp;</text>"#
        );
    }
}
