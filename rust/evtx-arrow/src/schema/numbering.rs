//! Numbers behind names that come again, so that no two names are the same.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet};

/// The names that are taken. The first `name` stays as it is, the second becomes `name_1`, the third `name_2`, and so
/// on. A numbered name that is taken already is passed over.
#[derive(Debug)]
pub(crate) struct Numbering<K, F> {
    /// Makes names the same that count as the same, for example of different case.
    fold: F,
    /// The names, folded.
    taken: HashSet<K>,
    /// The last number that was tried for a folded name. All numbers before it are taken, so that none is tried twice.
    last: HashMap<K, usize>,
}

impl<K: Eq + Hash + Clone, F: Fn(&str) -> K> Numbering<K, F> {
    /// A numbering in which no name is taken. Two names are the same if `fold` makes them the same.
    pub(crate) fn new(fold: F) -> Self {
        Numbering {
            fold,
            taken: HashSet::new(),
            last: HashMap::new(),
        }
    }

    /// Makes room for some more names.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.taken.reserve(count);
    }

    /// Whether a name is taken, which is given as it is folded.
    pub(crate) fn is_taken(&self, folded: &K) -> bool {
        self.taken.contains(folded)
    }

    /// Takes a name, or else the next of its numbered names that is free. Returns what was taken, and whether it has a
    /// number.
    pub(crate) fn take(&mut self, name: String) -> (String, bool) {
        let (name, _, is_numbered) = self.take_folded(name);
        (name, is_numbered)
    }

    /// As [`take`](Self::take), and also returns what was taken as it is folded.
    pub(crate) fn take_folded(&mut self, name: String) -> (String, K, bool) {
        let folded = (self.fold)(&name);
        if self.taken.insert(folded.clone()) {
            return (name, folded, false);
        }
        let last = self.last.entry(folded).or_default();
        loop {
            *last += 1;
            // `format!` takes some hundred instructions more.
            let mut numbered = String::with_capacity(name.len() + 8);
            numbered.push_str(&name);
            numbered.push('_');
            numbered.push_str(itoa::Buffer::new().format(*last));
            let folded = (self.fold)(&numbered);
            if self.taken.insert(folded.clone()) {
                return (numbered, folded, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(fold: fn(&str) -> String, names: &[&str]) -> Vec<String> {
        let mut numbering = Numbering::new(fold);
        names.iter().map(|name| numbering.take((*name).to_owned()).0).collect()
    }

    #[test]
    fn names_that_come_back_are_numbered() {
        let names = ["a", "a", "b", "a", "a_1", "a_1", "a", "A"];
        assert_eq!(
            taken(str::to_owned, &names),
            ["a", "a_1", "b", "a_2", "a_1_1", "a_1_2", "a_3", "A"]
        );
        assert_eq!(
            taken(str::to_lowercase, &names),
            ["a", "a_1", "b", "a_2", "a_1_1", "a_1_2", "a_3", "A_4"]
        );
    }

    #[test]
    fn many_equal_names_take_no_time() {
        let names = vec!["name"; 100_000];
        assert_eq!(
            taken(str::to_owned, &names).last().map(String::as_str),
            Some("name_99999")
        );
    }
}
