//! Numbers after repeated names, so that no two names are the same.

use std::hash::Hash;

use hashbrown::{HashMap, HashSet};

/// The names that are taken. The first `name` stays as it is, the second becomes `name_1`, the third `name_2`, and so
/// on. Numbered names that are taken already are skipped.
#[derive(Debug)]
pub struct Numbering<K, F> {
    /// Normalizes names, so that those that count as the same become equal: for example, to lower case.
    normalize: F,
    taken: HashSet<K>,
    /// The last number that was tried for a normalized name. All numbers before it are taken.
    last: HashMap<K, usize>,
}

impl<K: Eq + Hash + Clone, F: Fn(&str) -> K> Numbering<K, F> {
    /// A numbering without names. Two names are the same if `normalize` makes them equal.
    pub fn new(normalize: F) -> Self {
        Numbering {
            normalize,
            taken: HashSet::new(),
            last: HashMap::new(),
        }
    }

    /// Makes room for so many names.
    pub fn reserve(&mut self, count: usize) {
        self.taken.reserve(count);
    }

    /// Whether a name is taken.
    pub fn has(&self, name: &str) -> bool {
        self.taken.contains(&(self.normalize)(name))
    }

    /// Takes a name, or else its next free numbered name. Returns the taken name, and whether it has a number.
    pub fn take(&mut self, name: String) -> (String, bool) {
        let (name, _, is_numbered) = self.take_normalized(name);
        (name, is_numbered)
    }

    /// As [`take`](Self::take), but also returns the normalized name that was taken.
    pub fn take_normalized(&mut self, name: String) -> (String, K, bool) {
        let normalized = (self.normalize)(&name);
        if self.taken.insert(normalized.clone()) {
            return (name, normalized, false);
        }
        let last = self.last.entry(normalized).or_default();
        loop {
            *last += 1;
            // `format!` would cost some hundred instructions more.
            let mut numbered = String::with_capacity(name.len() + 8);
            numbered.push_str(&name);
            numbered.push('_');
            numbered.push_str(itoa::Buffer::new().format(*last));
            let normalized = (self.normalize)(&numbered);
            if self.taken.insert(normalized.clone()) {
                return (numbered, normalized, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(normalize: fn(&str) -> String, names: &[&str]) -> Vec<String> {
        let mut numbering = Numbering::new(normalize);
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
