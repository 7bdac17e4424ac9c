//! The keys of columns for fields.

use hashbrown::HashMap;

/// The columns for the entries of an element, whose keys differ, but perhaps only in their case, which engines do not see.
#[derive(Debug, Default)]
pub struct ColumnKeys {
    /// How many entries had a key in lower case after the first.
    counts: HashMap<String, usize>,
}

impl ColumnKeys {
    /// Takes an entry by its key. Returns the key of its column, and whether that has a number. Keys are in lower case: only the
    /// letter before a number is not, so a key with a number is never that of another entry.
    pub fn take(&mut self, entry: &str) -> (String, bool) {
        let normalized = entry.to_lowercase();
        if let Some(count) = self.counts.get_mut(&normalized) {
            *count += 1;
            return (format!("{normalized}N{count}"), true);
        }
        self.counts.insert(normalized.clone(), 0);
        (normalized, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_have_columns_of_their_own() {
        let mut columns = ColumnKeys::default();
        let taken = ["a", "A", "a_1", "Ä", "ä"].map(|name| columns.take(name));
        let expected = [("a", false), ("aN1", true), ("a_1", false), ("ä", false), ("äN1", true)];
        assert_eq!(taken, expected.map(|(key, is_numbered)| (key.to_owned(), is_numbered)));
    }
}
