//! "Did you mean": the known name that is nearest to what was written.

/// The nearest known name, when one is near enough to have been meant: few letters differ, or it begins with what was written.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = written.to_lowercase();
    let length = lower.chars().count();
    let near = |name: &&'a str| {
        let other = name.to_lowercase();
        let distance = distance(&lower, &other);
        let limit = (length.min(other.chars().count()) + 1) / 3;
        let begins = length >= 3 && other.starts_with(&lower);
        if distance <= limit.min(4) {
            Some((distance, !other.starts_with(&lower), name.len(), *name))
        } else if begins {
            // Behind every name that differs by a few letters.
            Some((100, false, name.len(), *name))
        } else {
            None
        }
    };
    known
        .into_iter()
        .filter(|name| !name.is_empty())
        .filter_map(|name| near(&name))
        .min()
        .map(|(_, _, _, name)| name)
}

/// `did you mean `x`?`, or the list of what is known when nothing is near.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
    let all: Vec<&str> = known.into_iter().collect();
    match all.as_slice() {
        [] => None,
        [one] => Some(format!("known is only `{one}`")),
        [..] if all.len() <= 16 => Some(format!("known are {}", all.join(", "))),
        [..] => None,
    }
}

/// Edit distance with transpositions (optimal string alignment), in characters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut best = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *y && *x == b[j - 1] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("wiat", ["wait", "wait_for"]), Some("wait"));
        assert_eq!(nearest("actve_zero", ["active_zero", "active"]), Some("active_zero"));
        assert_eq!(nearest("Steps", ["steps"]), Some("steps"));
        assert_eq!(nearest("xyzzy", ["wait", "steps"]), None);
        assert_eq!(nearest("assert", ["assertions", "steps"]), Some("assertions"));
        assert_eq!(nearest("activ", ["active_zero", "active"]), Some("active"));
        assert_eq!(did_you_mean("q", ["a", "b"]).as_deref(), Some("known are a, b"));
    }
}
