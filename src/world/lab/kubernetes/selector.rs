//! Label and field selectors of list and watch requests.

use serde_json::Value;

use super::object::{list, text};
use super::status::Status;

/// Which objects a request is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Selector {
    labels: Vec<LabelRule>,
    fields: Vec<FieldRule>,
}

#[derive(Debug, Clone, PartialEq)]
enum LabelRule {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

#[derive(Debug, Clone, PartialEq)]
struct FieldRule {
    path: String,
    equal: bool,
    value: String,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector` of a query.
    ///
    /// # Errors
    /// 400 for what is no selector.
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, Status> {
        let labels = split_outside_parentheses(labels)
            .into_iter()
            .map(|part| {
                label_rule(part).ok_or_else(|| Status::bad_request(format!("unable to parse requirement: {part}")))
            })
            .collect::<Result<_, _>>()?;
        let fields = fields
            .split(',')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (path, equal, value) = if let Some((p, v)) = part.split_once("!=") {
                    (p, false, v)
                } else if let Some((p, v)) = part.split_once("==").or_else(|| part.split_once('=')) {
                    (p, true, v)
                } else {
                    return Err(Status::bad_request(format!("invalid field selector: \"{part}\"")));
                };
                Ok(FieldRule {
                    path: format!("/{}", path.trim().replace('.', "/")),
                    equal,
                    value: value.trim().to_owned(),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// The selector of a `LabelSelector` object: `matchLabels` and `matchExpressions`.
    pub(crate) fn of(selector: &Value) -> Self {
        let equal = selector["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, v)| LabelRule::In(k.clone(), vec![v.as_str().unwrap_or_default().to_owned()]));
        let expressions = list(selector, "/matchExpressions").iter().filter_map(|e| {
            let key = e["key"].as_str()?.to_owned();
            let values = list(e, "/values")
                .iter()
                .filter_map(|v| Some(v.as_str()?.to_owned()))
                .collect();
            match e["operator"].as_str()? {
                "In" => Some(LabelRule::In(key, values)),
                "NotIn" => Some(LabelRule::NotIn(key, values)),
                "Exists" => Some(LabelRule::Exists(key)),
                "DoesNotExist" => Some(LabelRule::Absent(key)),
                _ => None,
            }
        });
        Self {
            labels: equal.chain(expressions).collect(),
            fields: Vec::new(),
        }
    }

    /// Whether an object is meant.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"][key].as_str();
        let labels = self.labels.iter().all(|rule| match rule {
            LabelRule::In(key, values) => label(key).is_some_and(|v| values.iter().any(|w| w == v)),
            LabelRule::NotIn(key, values) => label(key).is_none_or(|v| values.iter().all(|w| w != v)),
            LabelRule::Exists(key) => label(key).is_some(),
            LabelRule::Absent(key) => label(key).is_none(),
        });
        labels
            && self
                .fields
                .iter()
                .all(|rule| (text(object, &rule.path) == rule.value) == rule.equal)
    }
}

/// A label selector as the text that a `Scale` shows.
pub(crate) fn selector_text(selector: &Value) -> String {
    let pairs = selector["matchLabels"].as_object().into_iter().flatten();
    pairs
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join(",")
}

fn split_outside_parentheses(selector: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in selector.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&selector[start..]);
    parts.into_iter().map(str::trim).filter(|p| !p.is_empty()).collect()
}

fn label_rule(part: &str) -> Option<LabelRule> {
    let set = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|v| v.trim().to_owned()).collect())
    };
    if let Some((key, values)) = part.split_once(" notin ").or_else(|| part.split_once(" notin(")) {
        let values = if values.starts_with('(') {
            set(values)
        } else {
            set(&format!("({values}"))
        };
        return Some(LabelRule::NotIn(key.trim().to_owned(), values?));
    }
    if let Some((key, values)) = part.split_once(" in ").or_else(|| part.split_once(" in(")) {
        let values = if values.starts_with('(') {
            set(values)
        } else {
            set(&format!("({values}"))
        };
        return Some(LabelRule::In(key.trim().to_owned(), values?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(LabelRule::NotIn(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return Some(LabelRule::In(key.trim().to_owned(), vec![value.trim().to_owned()]));
    }
    let (rule, key): (fn(String) -> LabelRule, &str) = match part.strip_prefix('!') {
        Some(key) => (LabelRule::Absent, key),
        None => (LabelRule::Exists, part),
    };
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    plain.then(|| rule(key.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn label_selectors_in_every_spelling() {
        let pod = json!({"metadata": {"name": "p", "labels": {"app": "a", "tier": "web"}}, "spec": {"nodeName": "n1"}});
        for (labels, fields, wanted) in [
            ("", "", true),
            ("app=a", "", true),
            ("app==a,tier=web", "", true),
            ("app=b", "", false),
            ("app!=b", "", true),
            ("other!=b", "", true),
            ("app in (a, b)", "", true),
            ("app notin (a,b),tier", "", false),
            ("!other", "", true),
            ("other", "", false),
            ("", "metadata.name=p", true),
            ("", "spec.nodeName=n2", false),
            ("", "spec.nodeName!=n2,metadata.name=p", true),
        ] {
            let selector = Selector::parse(labels, fields).expect("valid");
            assert_eq!(selector.matches(&pod), wanted, "{labels} {fields}");
        }
    }

    #[test]
    fn what_is_no_selector_is_a_bad_request() {
        assert_eq!(Selector::parse("a b", "").expect_err("no selector").code, 400);
        assert_eq!(Selector::parse("", "name").expect_err("no selector").code, 400);
    }

    #[test]
    fn the_selector_of_a_deployment() {
        let selector = Selector::of(&json!({
            "matchLabels": {"app": "a"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}],
        }));
        assert!(selector.matches(&json!({"metadata": {"labels": {"app": "a"}}})));
        assert!(!selector.matches(&json!({"metadata": {"labels": {"app": "a", "x": "1"}}})));
    }
}
