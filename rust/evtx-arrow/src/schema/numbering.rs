//! Indices for names that come back.

use hashbrown::{HashMap, HashSet};

/// Names that are taken. The second of a name becomes `name_1`, the third `name_2`, and so on, as far as these are
/// free.
#[derive(Debug)]
pub(crate) struct Numbering {
    /// What of a name makes it another one.
    fold: fn(&str) -> String,
    taken: HashSet<String>,
    /// By a folded name, the last number that it was given. Those before it are taken.
    last: HashMap<String, usize>,
}

impl Numbering {
    /// No name is taken. Names are the same that `fold` makes the same.
    pub(crate) fn new(fold: fn(&str) -> String) -> Self {
        Numbering {
            fold,
            taken: HashSet::new(),
            last: HashMap::new(),
        }
    }

    /// Takes a name, or the next that is free, and returns which, and whether it was given a number.
    pub(crate) fn take(&mut self, name: String) -> (String, bool) {
        let folded = (self.fold)(&name);
        if !self.taken.contains(&folded) {
            self.taken.insert(folded);
            return (name, false);
        }
        let last = self.last.entry(folded).or_default();
        loop {
            *last += 1;
            let numbered = format!("{name}_{last}");
            if self.taken.insert((self.fold)(&numbered)) {
                return (numbered, true);
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
