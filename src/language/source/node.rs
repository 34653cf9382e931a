use serde_json::{Map, Value, json};

/// A value and where it stands. Places are bytes of the file's text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Where it is used; for an alias the `*name`.
    pub(crate) at: Bytes,
    /// Where it is written; differs from `at` for what stands behind an alias.
    pub(crate) defined: Bytes,
    /// The value.
    pub(crate) kind: NodeKind,
}

/// From `start`, not including `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Bytes {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Bytes,
    pub(crate) value: Node,
}

impl Node {
    /// The same value for the schema.
    pub(crate) fn json(&self) -> Value {
        match &self.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => json!(value),
            NodeKind::Integer(value) => json!(value),
            NodeKind::Float(value) => json!(value),
            NodeKind::Text(text) => json!(text),
            NodeKind::List(items) => Value::Array(items.iter().map(Self::json).collect()),
            NodeKind::Map(entries) => Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.json()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// The entries of a mapping; none for anything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.kind {
            NodeKind::Map(entries) => entries,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Integer(_)
            | NodeKind::Float(_)
            | NodeKind::Text(_)
            | NodeKind::List(_) => &[],
        }
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.kind {
            NodeKind::List(items) => items,
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Integer(_)
            | NodeKind::Float(_)
            | NodeKind::Text(_)
            | NodeKind::Map(_) => &[],
        }
    }

    /// The entry of a mapping with this key.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The text, when it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::Text(text) => Some(text),
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Integer(_)
            | NodeKind::Float(_)
            | NodeKind::List(_)
            | NodeKind::Map(_) => None,
        }
    }

    /// The node at a JSON pointer.
    pub(crate) fn at_pointer(&self, pointer: &[Segment]) -> Option<&Node> {
        pointer.iter().try_fold(self, |node, segment| match segment {
            Segment::Key(key) => node.entry(key).map(|entry| &entry.value),
            Segment::Index(index) => node.items().get(*index),
        })
    }

    /// What it is, for messages: `a list`, `the text "x"`.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            NodeKind::Null => "nothing".to_owned(),
            NodeKind::Bool(value) => format!("`{value}`"),
            NodeKind::Integer(value) => format!("the number `{value}`"),
            NodeKind::Float(value) => format!("the number `{value}`"),
            NodeKind::Text(text) if text.chars().count() > 40 => "a text".to_owned(),
            NodeKind::Text(text) => format!("the text `{text}`"),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Map(_) => "a mapping".to_owned(),
        }
    }
}

/// A step into a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Segment {
    /// The value of this key.
    Key(String),
    /// This item of a list.
    Index(usize),
}

/// Gives collections their extent: the YAML crate knows only where they begin. The end is that of the last part inside, closing
/// brackets not included; parts that an alias brought in count nothing.
pub(super) fn extend(node: &mut Node) {
    let (at, defined) = (node.at, node.defined);
    let mut grow = |part: Bytes| {
        if at == defined && part.start >= at.start {
            node.at.end = node.at.end.max(part.end);
        }
    };
    match &mut node.kind {
        NodeKind::List(items) => items.iter_mut().for_each(|item| {
            extend(item);
            grow(item.at);
        }),
        NodeKind::Map(entries) => entries.iter_mut().for_each(|entry| {
            extend(&mut entry.value);
            grow(entry.key_at);
            grow(entry.value.at);
        }),
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Text(_) => {}
    }
    if at == defined {
        node.defined = node.at;
    }
}
