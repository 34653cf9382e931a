//! Text to tree, within limits.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::DuplicateKeyPolicy;
use serde_saphyr::{Error, Location, Options, Spanned};

use super::node::{Bytes, Entry, Node, NodeKind};

/// Levels of nesting.
pub(super) const MAX_DEPTH: usize = 32;
/// Values in a file, those behind aliases counted each time.
pub(super) const MAX_VALUES: usize = 20_000;

/// YAML 1.2 and nothing beyond it: no octal numbers by a leading zero, no `yes` for true, one document, no tags.
///
/// Duplicate keys are passed on, because all of them are to be reported and not only the first.
fn options() -> Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_nodes: MAX_VALUES,
            max_aliases: 500,
            max_anchors: 200,
            max_documents: 1,
            max_events: 3 * MAX_VALUES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_VALUES,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 200,
        },
    }
}

/// Reads one document.
pub(super) fn parse(text: &str) -> Result<Node, Error> {
    serde_saphyr::from_str_with_options(text, options())
}

fn bytes(location: Location) -> Bytes {
    let (start, len) = (
        location.span().byte_offset().unwrap_or_default(),
        location.span().byte_len().unwrap_or_default(),
    );
    let cut = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    Bytes {
        start: cut(start),
        end: cut(start.saturating_add(len)),
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<NodeKind>::deserialize(d)?;
        Ok(Self {
            at: bytes(spanned.referenced),
            defined: bytes(spanned.defined),
            kind: spanned.value,
        })
    }
}

impl<'de> Deserialize<'de> for NodeKind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(AnyKind)
    }
}

struct AnyKind;

impl<'de> Visitor<'de> for AnyKind {
    type Value = NodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_none<E>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<NodeKind, D::Error> {
        NodeKind::deserialize(d)
    }

    fn visit_bool<E>(self, value: bool) -> Result<NodeKind, E> {
        Ok(NodeKind::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<NodeKind, E> {
        Ok(NodeKind::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<NodeKind, E> {
        Ok(i64::try_from(value).map_or(NodeKind::Float(value as f64), NodeKind::Integer))
    }

    fn visit_f64<E>(self, value: f64) -> Result<NodeKind, E> {
        Ok(NodeKind::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<NodeKind, A::Error> {
        let mut out = Vec::new();
        while let Some(item) = items.next_element()? {
            out.push(item);
        }
        Ok(NodeKind::List(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<NodeKind, A::Error> {
        let mut out = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            out.push(Entry {
                key: key.value,
                key_at: bytes(key.referenced),
                value: entries.next_value()?,
            });
        }
        Ok(NodeKind::Map(out))
    }
}
