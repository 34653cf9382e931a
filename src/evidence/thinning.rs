//! Long runs of equal samples are kept as their first and last, so that a file of a gigabyte fits in the memory.

/// Lengths below this are never thinned.
const SMALL: usize = 20_000;

/// Decides when to thin a growing list, and what stays.
#[derive(Debug)]
pub(crate) struct Thinning {
    next: usize,
}

impl Default for Thinning {
    fn default() -> Self {
        Self { next: SMALL }
    }
}

impl Thinning {
    /// The list has grown so much since the last time that thinning is worth a pass.
    pub(crate) fn due(&self, length: usize) -> bool {
        length >= self.next
    }

    /// Which items stay: the first and the last of every run of equal ones.
    pub(crate) fn keep<T>(&mut self, items: &[T], same: impl Fn(&T, &T) -> bool) -> Vec<bool> {
        let keep: Vec<bool> = (0..items.len())
            .map(|i| {
                let before = i > 0 && same(&items[i - 1], &items[i]);
                let after = i + 1 < items.len() && same(&items[i], &items[i + 1]);
                !(before && after)
            })
            .collect();
        self.next = SMALL.max(2 * keep.iter().filter(|k| **k).count());
        keep
    }
}

/// Keeps the items that `keep` marks.
pub(crate) fn retain<T>(items: &mut Vec<T>, keep: &[bool]) {
    let mut marks = keep.iter();
    items.retain(|_| marks.next().is_some_and(|k| *k));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_of_a_run_stay() {
        let mut items = vec![
            (1, 'a'),
            (2, 'a'),
            (3, 'a'),
            (4, 'b'),
            (5, 'a'),
            (6, 'a'),
            (7, 'c'),
            (8, 'c'),
            (9, 'c'),
        ];
        let keep = Thinning::default().keep(&items, |x, y| x.1 == y.1);
        retain(&mut items, &keep);
        assert_eq!(items.iter().map(|x| x.0).collect::<Vec<_>>(), [1, 3, 4, 5, 6, 7, 9]);
    }
}
