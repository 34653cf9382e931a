//! A file's text as a tree in which every key and value knows its bytes.
//!
//! The only user of the YAML crate: limits, its errors and their translation are here and nowhere else.

mod decode;
mod deserialize;
mod duplicates;
mod node;
mod scalar;
mod yaml;
mod yaml_error;

pub(crate) use deserialize::{AT, Deserializer, FIELDS, WRITTEN};
pub(crate) use node::{Bytes, Entry, Node, NodeKind, Segment};
pub(crate) use scalar::place_in_scalar;

use crate::diagnostic::{Code, Diagnostic, FileId, SourceMap, Span};
use crate::language::Variable;

/// Longest file that is read, in bytes. Nobody writes more by hand.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// A file as a tree.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    /// The file.
    pub(crate) file: FileId,
    /// Its value.
    pub(crate) root: Node,
}

impl Tree {
    /// The span of bytes in this file.
    pub(crate) fn span(&self, at: Bytes) -> Span {
        span(self.file, at)
    }
}

/// The span of bytes in a file.
pub(crate) fn span(file: FileId, at: Bytes) -> Span {
    Span {
        file,
        start: at.start,
        end: at.end,
    }
}

/// Reads a file's bytes. The tree is there whenever the text is YAML; keys that stand twice are reported and dropped.
pub(crate) fn read(name: &str, bytes: &[u8], sources: &mut SourceMap) -> (FileId, Option<Tree>, Vec<Diagnostic>) {
    if bytes.len() > MAX_BYTES {
        let file = sources.add(name, String::new());
        let message = format!("the file is longer than {} KiB", MAX_BYTES / 1024);
        let diagnostic = Diagnostic::error(Code::Limit, message).at(Span::new(file, 0, 0), "");
        return (
            file,
            None,
            vec![diagnostic.help("is this a scenario? split it, or generate variants with `matrix`")],
        );
    }
    let decoded = decode::decode(bytes);
    let file = sources.add(name, decoded.text);
    if let Some(at) = decoded.invalid {
        let message = format!("byte {} of the file is not UTF-8", decoded.invalid_byte);
        let diagnostic =
            Diagnostic::error(Code::NotUtf8, message).at(Span::new(file, at, at + decode::REPLACEMENT), "here");
        return (file, None, vec![diagnostic.help("save the file as UTF-8")]);
    }
    let text = sources.text(file);
    match yaml::parse(text) {
        Ok(root) if root.kind == NodeKind::Null => {
            let diagnostic = Diagnostic::error(Code::EmptyFile, "the file is empty").at(Span::new(file, 0, 0), "");
            (
                file,
                None,
                vec![diagnostic.help("`gtrun new NAME` writes a scenario to start from")],
            )
        }
        Ok(mut root) => {
            node::extend(&mut root);
            let diagnostics = duplicates::take(&mut root, file);
            (file, Some(Tree { file, root }), diagnostics)
        }
        Err(error) => (file, None, vec![yaml_error::translate(&error, text, file)]),
    }
}

/// A text as one YAML scalar, as `--set` and `env.NAME` give it; `None` for lists, mappings, nothing, and what is no YAML.
pub(crate) fn scalar(text: &str) -> Option<Variable> {
    let node = yaml::parse(text).ok()?;
    match node.kind {
        NodeKind::Bool(value) => Some(Variable::from_bool(value)),
        NodeKind::Integer(value) => Some(Variable::from_number(text.trim(), value as f64)),
        NodeKind::Float(value) => Some(Variable::from_number(text.trim(), value)),
        NodeKind::Text(text) => Some(Variable::from_text(&text)),
        NodeKind::Null | NodeKind::List(_) | NodeKind::Map(_) => None,
    }
}
