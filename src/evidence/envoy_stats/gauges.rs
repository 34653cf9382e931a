//! The gauges of one reply: names are shared by all samples of a series, so that a sample costs its numbers only.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Values by full name, in the order of the names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct GaugeValues {
    names: Arc<[Arc<str>]>,
    values: Box<[u64]>,
}

impl GaugeValues {
    /// The value of a name; `None` for one that was absent.
    pub fn get(&self, name: &str) -> Option<&u64> {
        let at = self.names.binary_search_by(|n| (**n).cmp(name)).ok()?;
        self.values.get(at)
    }

    /// Names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &u64)> {
        self.names.iter().zip(&self.values)
    }

    /// The names.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.names.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// From what was collected; the names are shared with `like` when they are the same.
    pub(super) fn new(collected: BTreeMap<Arc<str>, u64>, like: Option<&Self>) -> Self {
        match like {
            Some(like) if like.names.iter().eq(collected.keys()) => Self {
                names: Arc::clone(&like.names),
                values: collected.into_values().collect(),
            },
            _ => collected.into_iter().collect(),
        }
    }
}

impl FromIterator<(Arc<str>, u64)> for GaugeValues {
    /// The last value of a name counts.
    fn from_iter<I: IntoIterator<Item = (Arc<str>, u64)>>(pairs: I) -> Self {
        let sorted: BTreeMap<Arc<str>, u64> = pairs.into_iter().collect();
        Self {
            names: sorted.keys().cloned().collect(),
            values: sorted.into_values().collect(),
        }
    }
}

impl std::fmt::Debug for GaugeValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_name() {
        let v: GaugeValues = [("b", 2), ("a", 1), ("b", 3)]
            .map(|(n, v)| (Arc::from(n), v))
            .into_iter()
            .collect();
        assert_eq!(
            (v.get("a"), v.get("b"), v.get("c"), v.len()),
            (Some(&1), Some(&3), None, 2)
        );
        assert_eq!(format!("{v:?}"), r#"{"a": 1, "b": 3}"#);
        let same = GaugeValues::new([(Arc::from("a"), 9), (Arc::from("b"), 8)].into(), Some(&v));
        assert!(Arc::ptr_eq(&same.names, &v.names));
        let other = GaugeValues::new([(Arc::from("a"), 9)].into(), Some(&v));
        assert_eq!(other.get("b"), None);
    }
}
