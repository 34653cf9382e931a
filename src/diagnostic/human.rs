use std::fmt::{self, Write};

use miette::{
    GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan,
    SpanContents,
};

use super::{Diagnostic, FileId, Severity, SourceMap, Span};

/// How much a terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Box drawing characters; otherwise ASCII.
    pub unicode: bool,
    /// Columns to wrap messages at.
    pub width: usize,
}

impl Style {
    /// No colours, ASCII only, 100 columns: for files, pipes and tests.
    pub const PLAIN: Self = Self {
        color: false,
        unicode: false,
        width: 100,
    };

    fn theme(self) -> GraphicalTheme {
        match (self.color, self.unicode) {
            (true, true) => GraphicalTheme::unicode(),
            (true, false) => GraphicalTheme::ascii(),
            (false, true) => GraphicalTheme::unicode_nocolor(),
            (false, false) => GraphicalTheme::none(),
        }
    }
}

/// The diagnostics for people: message, the lines of the file with the culprit underlined, help.
pub fn render_human(diagnostics: &[Diagnostic], sources: &SourceMap, style: Style) -> String {
    let handler = GraphicalReportHandler::new_themed(style.theme())
        .with_width(style.width)
        .with_links(false)
        .without_syntax_highlighting()
        .with_context_lines(1)
        .with_show_related_as_nested(false);
    let mut out = String::new();
    for diagnostic in diagnostics {
        let report = Report::new(diagnostic, sources);
        // Writing into a String cannot fail; miette fails only on a span outside its file, which `Report` has cut.
        if handler.render_report(&mut out, &report).is_err() {
            let _ = writeln!(out, "{}: {}", diagnostic.code, diagnostic.message);
        }
        out.push('\n');
    }
    out
}

/// One file's part of a diagnostic, in miette's terms. miette shows one file a report; what stands in other files follows as
/// related reports.
#[derive(Debug)]
struct Report<'a> {
    severity: miette::Severity,
    message: String,
    help: Option<String>,
    labels: Vec<LabeledSpan>,
    file: Option<File<'a>>,
    related: Vec<Report<'a>>,
}

impl<'a> Report<'a> {
    fn new(diagnostic: &'a Diagnostic, sources: &'a SourceMap) -> Self {
        let home = diagnostic.span().map(|span| span.file);
        let mut others: Vec<FileId> = Vec::new();
        for label in &diagnostic.labels {
            if Some(label.span.file) != home && !others.contains(&label.span.file) {
                others.push(label.span.file);
            }
        }
        let part = |id: FileId| -> Vec<LabeledSpan> {
            let marked = diagnostic
                .labels
                .iter()
                .enumerate()
                .filter(|(_, label)| label.span.file == id);
            marked
                .map(|(index, label)| {
                    let text = Some(label.text.clone()).filter(|text| !text.is_empty());
                    let span = inside(label.span, sources.text(id));
                    if index == 0 {
                        LabeledSpan::new_primary_with_span(text, span)
                    } else {
                        LabeledSpan::new_with_span(text, span)
                    }
                })
                .collect()
        };
        let related = others.iter().map(|id| Report {
            severity: miette::Severity::Advice,
            message: format!("see also {}", sources.name(*id)),
            help: None,
            labels: part(*id),
            file: Some(File { sources, id: *id }),
            related: Vec::new(),
        });
        Report {
            severity: match diagnostic.severity {
                Severity::Advice => miette::Severity::Advice,
                Severity::Warning => miette::Severity::Warning,
                Severity::Error => miette::Severity::Error,
            },
            // The code stands in the same line: miette would give it a line of its own.
            message: format!("{}: {}", diagnostic.code, diagnostic.message),
            help: diagnostic.help.clone(),
            labels: home.map(part).unwrap_or_default(),
            file: home.map(|id| File { sources, id }),
            related: related.collect(),
        }
    }
}

/// The span as miette takes it: within the text, on character boundaries.
fn inside(span: Span, text: &str) -> SourceSpan {
    let cut = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (cut(span.start), cut(span.end));
    (start, end.saturating_sub(start)).into()
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Report<'_> {}

impl miette::Diagnostic for Report<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(self.severity)
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.file.as_ref().map(|file| file as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty())
            .then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = LabeledSpan>>)
    }

    fn related<'b>(&'b self) -> Option<Box<dyn Iterator<Item = &'b dyn miette::Diagnostic> + 'b>> {
        if self.related.is_empty() {
            return None;
        }
        Some(Box::new(
            self.related.iter().map(|report| report as &dyn miette::Diagnostic),
        ))
    }
}

/// A file of the map, with its name.
#[derive(Debug)]
struct File<'a> {
    sources: &'a SourceMap,
    id: FileId,
}

impl SourceCode for File<'_> {
    fn read_span<'b>(
        &'b self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'b> + 'b>, MietteError> {
        let text = self.sources.text(self.id);
        let found = text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.sources.name(self.id).to_owned(),
            found.data(),
            *found.span(),
            found.line(),
            found.column(),
            found.line_count(),
        )))
    }
}
