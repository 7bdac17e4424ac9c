//! Which words of Windows may stay in a text, by what is around them.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use super::names::{SERVICES, is_in, is_in_name, is_of_windows, is_share, names};

/// Names of accounts and domains that every Windows has, one a line.
const ACCOUNTS: &str = include_str!("../../data/accounts.txt");
/// Words of Windows, one a line.
const WORDS: &str = include_str!("../../data/words.txt");
/// Words of Windows that also name accounts and machines, one a line.
const ROLES: &str = include_str!("../../data/roles.txt");
/// Names of providers, channels and elements that no manifest of the catalog declares, one a line.
pub(super) const NAMES: &str = include_str!("../../data/names.txt");
/// Last labels of names of hosts, with spaces between them.
const LABELS: &str = include_str!("../../data/labels.txt");
/// Folders below `Users` that every Windows has.
const PROFILES: [&str; 5] = ["public", "default", "all users", "administrator", "guest"];
/// Names of Windows that look like those of hosts.
const NO_HOSTS: &str = "asp.net microsoft.net system.net system.io chcp.com format.com mode.com more.com tree.com";

/// The lists that are shipped, in lower case.
struct Lists {
    words: HashSet<String>,
    /// Those of the words that stay only in some places.
    roles: HashSet<String>,
    accounts: HashSet<String>,
    /// Those of the accounts with spaces.
    long_accounts: Vec<String>,
    /// Last labels of names of hosts.
    labels: HashSet<&'static str>,
}

static LISTS: LazyLock<Lists> = LazyLock::new(|| Lists {
    words: lines(WORDS).chain(lines(ROLES)).collect(),
    roles: lines(ROLES).collect(),
    accounts: lines(ACCOUNTS).collect(),
    long_accounts: lines(ACCOUNTS).filter(|account| account.contains(' ')).collect(),
    labels: LABELS.lines().skip(1).flat_map(str::split_whitespace).collect(),
});

/// The lines of a list, in lower case, without comments.
pub(super) fn lines(list: &'static str) -> impl Iterator<Item = String> {
    list.lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_lowercase)
}

/// Whether a word in lower case is one of Windows.
pub(super) fn is_word(word: &str) -> bool {
    LISTS.words.contains(word)
}

/// Which words may stay at a byte of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// Those of Windows, and the user's.
    Usual,
    /// The user's alone.
    None,
    /// All: it is the name of an account that every Windows has.
    All,
}

/// Which words may stay, by the byte of a text.
pub(super) fn words_of(is_naming: bool, is_named: bool, text: &str) -> Vec<Words> {
    let lower = text.to_ascii_lowercase();
    let mut words = vec![Words::Usual; text.len()];
    let is_bare = is_named || !text.trim().contains(char::is_whitespace);
    if is_naming {
        in_names(&lower, &mut words);
    } else if is_bare && is_account(lower.trim_matches(|char: char| !char.is_alphanumeric())) {
        words.fill(Words::All);
    } else {
        in_text(is_bare, &lower, &mut words);
        in_hosts(&lower, &mut words);
        in_profiles(&lower, &mut words);
    }
    words
}

/// Which words may stay in the name of an account.
fn of_account(name: &str) -> Words {
    if is_account(name.trim()) {
        Words::All
    } else {
        Words::None
    }
}

/// Which words may stay in a text of names.
fn in_names(lower: &str, words: &mut [Words]) {
    for (at, name) in pieces(lower, |char| matches!(char, '\\' | '/' | '@') || char.is_control()) {
        let end = at + name.len();
        let is_first = lower[..at].chars().next_back().is_none_or(char::is_control);
        let is_class = is_first && lower[end..].starts_with('/') && is_in(SERVICES, name);
        let is_share = lower[..at].ends_with(r"\\*\") && is_share(name);
        words[at..end].fill(if is_class || is_share {
            Words::All
        } else {
            of_account(name)
        });
    }
}

/// Takes words that may be names by themselves, or by the signs around them.
fn in_text(is_bare: bool, lower: &str, words: &mut [Words]) {
    for (at, word) in pieces(lower, |char| char.is_ascii() && !char.is_alphanumeric() && char != '_') {
        let range = at..at + word.len();
        let goes = match is_bare {
            true => is_word(word) && !is_in_name(lower, &range),
            false => LISTS.roles.contains(word) && !is_of_windows(lower, &range),
        };
        if goes && !is_in_account(lower, &range) {
            words[range].fill(Words::None);
        }
    }
    for name in names(lower) {
        if !is_in_account(lower, &name) {
            words[name.clone()].fill(of_account(&lower[name]));
        }
    }
}

/// Takes the words of names of hosts.
fn in_hosts(lower: &str, words: &mut [Words]) {
    let is_no_host = |char: char| char.is_ascii() && !char.is_alphanumeric() && !matches!(char, '.' | '-' | '_' | '@');
    for (at, host) in pieces(lower, is_no_host) {
        let name = host.trim_matches(|char| matches!(char, '.' | '-' | '@'));
        let is_host = name
            .rsplit_once('.')
            .is_some_and(|(_, last)| LISTS.labels.contains(last))
            || name.contains(".ipv6-literal.");
        if is_host && !NO_HOSTS.split_whitespace().any(|known| known == name) {
            words[at..at + host.len()].fill(Words::None);
        }
    }
    // Rules exclude these.
    for (at, end) in lower.match_indices(".com") {
        if !lower[at + end.len()..].starts_with(|char: char| char.is_alphanumeric() || "-_.".contains(char)) {
            words[at..at + end.len()].fill(Words::Usual);
        }
    }
    for (at, scheme) in lower.match_indices("x-windowsupdate") {
        words[at..at + scheme.len()].fill(Words::All);
    }
}

/// Takes the words of names of profiles, which can have spaces. At the end of a path, arguments can follow such a name.
fn in_profiles(lower: &str, words: &mut [Words]) {
    let is_end = |char: char| char.is_control() || "\\/\"'<>|,;:*".contains(char);
    for (at, users) in lower.match_indices("users") {
        let after = &lower[at + users.len()..];
        let start = after.trim_start_matches(['\\', '/']);
        let is_folder = lower[..at].ends_with(['\\', '/']) || at == 0;
        if is_folder && start.len() < after.len() {
            let mut name = start.split(is_end).next().unwrap_or_default();
            if !start[name.len()..].starts_with('\\') {
                name = name.split(" -").next().unwrap_or_default();
            }
            if !PROFILES.contains(&name.trim_end()) {
                let at = lower.len() - start.len();
                words[at..at + name.len()].fill(Words::None);
            }
        }
    }
}

/// The pieces of a text between some characters, each with its offset.
fn pieces(text: &str, is_between: fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(is_between).map(move |piece| {
        let start = at;
        at += piece.len();
        (start, piece.strip_suffix(is_between).unwrap_or(piece))
    })
}

/// Whether a name in a text in lower case is one end of that of an account with spaces, as in `nt authority\system`.
fn is_in_account(text: &str, name: &Range<usize>) -> bool {
    let is_end = |text: &str| !text.starts_with(char::is_alphanumeric);
    let is_start = |text: &str| !text.ends_with(char::is_alphanumeric);
    LISTS.long_accounts.iter().any(|account| {
        text[name.start..].strip_prefix(&**account).is_some_and(is_end)
            || text[..name.end].strip_suffix(&**account).is_some_and(is_start)
    })
}

/// Whether every Windows has an account or a domain with a name, whose ASCII letters are in lower case.
fn is_account(name: &str) -> bool {
    let number = name.strip_prefix("dwm-").or_else(|| name.strip_prefix("umfd-"));
    LISTS.accounts.contains(&name.to_lowercase())
        || number.is_some_and(|number| number.len() < 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_without_repetition() {
        for list in [WORDS, ROLES, NAMES, ACCOUNTS] {
            let lines: Vec<String> = lines(list).collect();
            assert!(
                lines.is_sorted_by(|a, b| a < b),
                "{:?}",
                lines.windows(2).find(|pair| pair[0] >= pair[1])
            );
        }
        let words: Vec<&str> = WORDS.lines().collect();
        let persons = "anna david john dell katz kit maria sam simon simontatham smith thomas urbanbishop";
        assert!(persons.split(' ').all(|person| !words.contains(&person)));
        // Single letters would spell names.
        let letters: Vec<&str> = WORDS.lines().filter(|word| word.len() == 1).collect();
        assert_eq!(letters, ["c"]);
    }
}
