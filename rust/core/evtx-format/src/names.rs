//! Values with names, and what a misspelled name may mean.

/// How many characters of a name are compared with the known ones.
const MAX_COMPARED: usize = 64;

/// The value with a name, in any case of ASCII letters. `what` is what takes the names, such as an argument.
///
/// # Errors
/// A text that lists the names and says which one may be meant, if no value has this name.
pub fn named<T: Copy>(what: &str, all: &[(T, &str)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
    found.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(_, known)| format!("'{known}'")).collect();
        let meant = did_you_mean(name, all.iter().map(|(_, known)| *known));
        format!("{what} must be one of {}, not '{name}'{meant}", names.join(", "))
    })
}

/// Defines an enum whose variants have names: `ALL` lists both, `name` gives the name, and `named` the variant.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* $vis:vis enum $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$about])*
        $vis enum $type { $($(#[$of])* $variant,)+ }

        #[allow(dead_code)] // not each enum needs all
        impl $type {
            /// All, in order, with their names.
            $vis const ALL: &'static [($type, &'static str)] = &[$(($type::$variant, $name)),+];

            /// Its name.
            $vis fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }

            /// The one with this name.
            $vis fn named(name: &str) -> Option<Self> {
                match name { $($name => Some($type::$variant),)+ _ => None }
            }
        }
    };
}

/// The end of an error about an unknown name: `. Did you mean 'skip'?`, or nothing if no known name is like it. One that contains
/// the name comes first, and otherwise the one with the fewest wrong letters.
pub fn did_you_mean<K: AsRef<str>>(name: &str, known: impl Iterator<Item = K>) -> String {
    let name: String = name.to_lowercase().chars().take(MAX_COMPARED).collect();
    let ranked = known.filter_map(|known| {
        let lower = known.as_ref().to_lowercase();
        let (wrong, contains) = (distance(&name, &lower), name.len() > 1 && lower.contains(&name));
        (contains || wrong <= lower.len() / 2).then_some(((!contains, wrong), known))
    });
    let nearest = ranked.min_by_key(|&(rank, _)| rank);
    nearest.map_or_else(String::new, |(_, known)| {
        format!(". Did you mean '{}'?", known.as_ref())
    })
}

/// How many letters must be added, left out or replaced to make one text of another (Levenshtein).
pub fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for letter in one.chars() {
        let mut before = row[0];
        row[0] += 1;
        for (at, known) in other.chars().enumerate() {
            let replaced = before + usize::from(letter != known);
            before = row[at + 1];
            row[at + 1] = replaced.min(before + 1).min(row[at] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_has_one_that_is_like_it() {
        const ALL: [(u8, &str); 3] = [(1, "report"), (2, "skip"), (3, "Fail")];
        for (name, expected) in [
            ("FAIL", Ok(3)),
            ("fial", Err(", not 'fial'. Did you mean 'Fail'?")),
            ("rep", Err(", not 'rep'. Did you mean 'report'?")),
            ("s", Err(", not 's'")),
            ("", Err(", not ''")),
            ("something else", Err(", not 'something else'")),
        ] {
            let found = named("on_error", &ALL, name);
            let expected = expected.map_err(|end| format!("on_error must be one of 'report', 'skip', 'Fail'{end}"));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_distance_is_the_number_of_wrong_letters() {
        for (one, other, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
            ("\u{e4}b", "b", 1),
        ] {
            assert_eq!(distance(one, other), expected);
            assert_eq!(distance(other, one), expected);
        }
    }
}
