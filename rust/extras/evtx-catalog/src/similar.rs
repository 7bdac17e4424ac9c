//! Names of providers that a wrong name may mean.

use evtx_format::distance;

use crate::classic::CLASSIC_PROVIDERS;
use crate::events::providers;

/// The most names.
const MOST: usize = 5;

/// The most letters that a misspelled name may have too many, too few, or wrong.
const WRONG_LETTERS: usize = 2;

/// Names of providers that a name may mean: those that contain its words, such as `Sysmon`, and those that it misspells.
/// Empty if the name is one of a known provider. Those of the usual logs come first.
pub fn similar_providers(name: &str) -> Vec<&'static str> {
    let all = || CLASSIC_PROVIDERS.lines().chain(providers());
    let wanted = words(name);
    let mut found: Vec<&str> = Vec::new();
    if wanted.is_empty() || all().any(|known| known.eq_ignore_ascii_case(name)) {
        return found;
    }
    for known in all() {
        let known_words = words(known);
        let has_words = known_words.windows(wanted.len()).any(|words| {
            let pairs = words.iter().zip(&wanted);
            // The last word can be cut.
            pairs.rev().enumerate().all(|(nth, (word, wanted))| {
                if nth == 0 {
                    word.starts_with(wanted.as_str())
                } else {
                    word == wanted
                }
            })
        });
        let short = known_words.strip_prefix(["microsoft".to_owned(), "windows".to_owned()].as_slice());
        let misspells = |words: &[String]| is_misspelled(&wanted.concat(), &words.concat());
        if (has_words || misspells(&known_words) || short.is_some_and(misspells)) && !found.contains(&known) {
            found.push(known);
        }
        if found.len() == MOST {
            break;
        }
    }
    found
}

/// The words of a name, in lower case: at least three letters together.
fn words(name: &str) -> Vec<String> {
    let words: Vec<_> = name
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.iter().map(String::len).sum::<usize>() < 3 {
        Vec::new()
    } else {
        words
    }
}

/// Whether a name is a known one with some wrong letters. The first one is right.
fn is_misspelled(name: &str, known: &str) -> bool {
    name.len() > 3 * WRONG_LETTERS
        && name.chars().next() == known.chars().next()
        && name.len().abs_diff(known.len()) <= WRONG_LETTERS
        && distance(name, known) <= WRONG_LETTERS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_has_similar_ones() {
        for (name, first) in [
            ("Security", "Microsoft-Windows-Security-Auditing"),
            ("security-auditing", "Microsoft-Windows-Security-Auditing"),
            ("SecurityAuditing", "Microsoft-Windows-Security-Auditing"),
            (
                "Microsoft Windows security auditing.",
                "Microsoft-Windows-Security-Auditing",
            ),
            (
                "Microsoft-Windows-Securty-Auditing",
                "Microsoft-Windows-Security-Auditing",
            ),
            ("Microsoft-Windows-Security-Aud%", "Microsoft-Windows-Security-Auditing"),
            ("Sysmon", "Microsoft-Windows-Sysmon"),
            ("*sysmon*", "Microsoft-Windows-Sysmon"),
            ("Microsoft-Windows-Sysmon/Operational", ""),
            ("service control", "Service Control Manager"),
        ] {
            let found = similar_providers(name);
            assert_eq!(found.first().copied().unwrap_or_default(), first, "{name}: {found:?}");
            assert!(found.len() <= MOST);
        }
        for name in [
            "microsoft-windows-SYSMON",
            "Service Control Manager",
            "none",
            "No such",
            "x\0EventLog",
            "",
            "%",
            "4624",
        ] {
            assert!(
                similar_providers(name).is_empty(),
                "{name}: {:?}",
                similar_providers(name)
            );
        }
    }
}
