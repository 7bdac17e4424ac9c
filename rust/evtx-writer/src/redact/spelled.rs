//! Other texts that mean the same as a key: an address as a number, a GUID without its dashes, the NetBIOS name of a host.

use std::net::{Ipv4Addr, Ipv6Addr};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use uuid::Uuid;

/// Where another spelling counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// As a part of a word, too.
    Anywhere,
    /// As a word.
    Word,
    /// As a word that is a whole value, or next to `\`, `@` or `$`.
    Account,
}

/// The other spellings of all keys.
#[derive(Debug)]
pub(super) struct Spelled {
    finder: AhoCorasick,
    /// By pattern, what replaces it, and where it counts.
    new: Vec<(String, Place)>,
}

/// Endings of names of files. A key with one of them and one dot is no name of a host.
const FILE_ENDINGS: &str =
    " bat cmd com dll doc docx drv evtx exe ini jpg js lnk log msi pdf png ps1 sys tmp txt vbs xls xlsx xml zip ";
/// The fewest characters of a name that counts without its domain, and the most of a name in NetBIOS.
const MIN_NAME: usize = 3;
const MAX_NETBIOS: usize = 15;

/// Pairs a spelling of a key with the same spelling of what replaces it. Without a new value of the kind, `text` replaces it.
fn pair<T: Copy>(old: T, new: Option<T>, text: &str, spell: impl Fn(T) -> String) -> (String, String) {
    (spell(old), new.map_or_else(|| text.to_owned(), spell))
}

fn reverse(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets();
    format!("{d}.{c}.{b}.{a}.in-addr.arpa")
}

fn padded(address: Ipv4Addr) -> String {
    address.octets().map(|byte| format!("{byte:03}")).join(".")
}

fn mapped(address: Ipv4Addr) -> String {
    let [a, b, c, d] = address.octets().map(u16::from);
    format!("::ffff:{:x}:{:x}", a << 8 | b, c << 8 | d)
}

fn reverse6(address: Ipv6Addr) -> String {
    let nibbles = address
        .octets()
        .into_iter()
        .rev()
        .flat_map(|byte| [byte & 15, byte >> 4]);
    let nibbles: Vec<String> = nibbles.map(|nibble| format!("{nibble:x}")).collect();
    nibbles.join(".") + ".ip6.arpa"
}

fn groups(address: Ipv6Addr, width: usize) -> String {
    address.segments().map(|group| format!("{group:0width$x}")).join(":")
}

/// The numbers of an address, in both orders of bytes. Those of `0.x.y.z` and of all ones mean too many other things.
pub(super) fn numbers(address: Ipv4Addr) -> Option<[u32; 2]> {
    let number = address.to_bits();
    (number >> 24 != 0 && number != u32::MAX).then_some([number, number.swap_bytes()])
}

/// A user and a domain: `domain\user` or `user@domain`.
fn account(text: &str) -> Option<(&str, &str)> {
    let (user, domain) = match text.split_once('\\') {
        Some((domain, user)) => (user, domain),
        None => text.split_once('@')?,
    };
    let is_plain = |part: &str, not: &[char]| !part.is_empty() && !part.contains(not);
    (is_plain(domain, &[':', ' ', '/', '@', '\\']) && is_plain(user, &['\\', '/', '@'])).then_some((user, domain))
}

fn netbios(domain: &str) -> &str {
    domain.split('.').next().unwrap_or(domain)
}

/// The first label of a name of DNS that can be a name in NetBIOS.
fn host(text: &str) -> Option<&str> {
    let (first, last) = (text.split('.').next()?, text.rsplit('.').next()?);
    let is_label =
        |label: &str| (1..=63).contains(&label.len()) && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let dots = text.matches('.').count();
    let is_host = dots > 0
        && text.split('.').all(is_label)
        && last.len() > 1
        && last.chars().all(|c| c.is_ascii_alphabetic())
        && first.chars().any(|c| c.is_ascii_alphabetic())
        && (MIN_NAME..=MAX_NETBIOS).contains(&first.len());
    let is_file = dots == 1 && FILE_ENDINGS.contains(&format!(" {} ", last.to_ascii_lowercase()));
    (is_host && !is_file).then_some(first)
}

/// The other spellings of a key, what replaces each, and where they count.
fn spellings(key: &str, new: &str) -> Vec<(String, String, Place)> {
    let mut found = Vec::new();
    let mut add = |(old, new): (String, String), place| found.push((old, new, place));
    if let Ok(old) = key.parse::<Ipv4Addr>() {
        let with = |spell: fn(Ipv4Addr) -> String| pair(old, new.parse().ok(), new, spell);
        for spell in [reverse, padded, mapped] {
            add(with(spell), Place::Word);
        }
        for order in [0, 1].into_iter().filter(|_| numbers(old).is_some()) {
            let number = |address: Ipv4Addr| [address.to_bits(), address.to_bits().swap_bytes()][order].to_string();
            add(pair(old, new.parse().ok(), new, number), Place::Word);
        }
    }
    if let Ok(old) = key.parse::<Ipv6Addr>() {
        let mut with = |spell: &dyn Fn(Ipv6Addr) -> String| add(pair(old, new.parse().ok(), new, spell), Place::Word);
        with(&|address| address.to_string());
        with(&|address| groups(address, 1));
        with(&|address| groups(address, 4));
        with(&reverse6);
        if old.to_ipv4_mapped().is_some() {
            with(&|address| {
                address
                    .to_ipv4_mapped()
                    .map_or_else(|| address.to_string(), |v4| format!("::ffff:{v4}"))
            });
        }
    }
    if let Ok(old) = Uuid::parse_str(key) {
        let new_guid = Uuid::parse_str(new).ok();
        add(
            pair(old, new_guid, new, |guid| guid.hyphenated().to_string()),
            Place::Anywhere,
        );
        add(
            pair(old, new_guid, new, |guid| guid.simple().to_string()),
            Place::Anywhere,
        );
    }
    if let Some(old) = account(key) {
        let new_account = account(new);
        let mut with = |spell: &dyn Fn((&str, &str)) -> String| {
            add(
                (spell(old), new_account.map_or_else(|| new.to_owned(), spell)),
                Place::Word,
            );
        };
        with(&|(user, domain)| format!("{user}@{domain}"));
        with(&|(user, domain)| format!("{user}@{}", netbios(domain)));
        with(&|(user, domain)| format!("{domain}\\{user}"));
        with(&|(user, domain)| format!("{}\\{user}", netbios(domain)));
        with(&|(user, domain)| format!("{domain}/{user}"));
        if old.0.chars().count() >= MIN_NAME {
            let new = new_account.map_or(new, |(user, _)| user);
            add((old.0.to_owned(), new.to_owned()), Place::Account);
        }
    } else if let Some(old) = host(key) {
        let new = host(new).unwrap_or(new);
        add((old.to_owned(), new.to_owned()), Place::Account);
    }
    found
}

impl Spelled {
    /// The other spellings of keys, but not those that are keys themselves. `fold` folds a text.
    ///
    /// # Errors
    /// If they need too much memory.
    pub(super) fn new(
        pairs: &[(&str, Option<&str>)],
        fold: impl Fn(&str) -> String,
        is_key: impl Fn(&str) -> bool,
    ) -> Result<Option<Self>, String> {
        let (mut patterns, mut new) = (Vec::new(), Vec::new());
        for (key, replacement) in pairs {
            for (old, replacement, place) in spellings(key, replacement.unwrap_or_default()) {
                let old = fold(&old);
                if !is_key(&old) {
                    patterns.push(old);
                    new.push((replacement, place));
                }
            }
        }
        if patterns.is_empty() {
            return Ok(None);
        }
        let finder = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns);
        let finder = finder.map_err(|error| error.to_string())?;
        Ok(Some(Spelled { finder, new }))
    }

    /// Where other spellings are in a folded text, and what replaces each.
    pub(super) fn find<'t>(&'t self, folded: &'t [u8]) -> impl Iterator<Item = (std::ops::Range<usize>, &'t str)> + 't {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let found = self.finder.find(aho_corasick::Input::new(folded).range(at..))?;
                let (new, place) = &self.new[found.pattern()];
                if place.holds(&folded[..found.start()], &folded[found.end()..]) {
                    at = found.end();
                    return Some((found.range(), new.as_str()));
                }
                at = found.start() + 1;
            }
        })
    }
}

impl Place {
    /// Whether a spelling counts after and before some text.
    fn holds(self, before: &[u8], after: &[u8]) -> bool {
        // In binary values, other letters are often noise.
        let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let is_word = !is_letter(before.last()) && !is_letter(after.first());
        let is_blank = |byte: &&u8| byte.is_ascii_whitespace();
        let begins = before
            .iter()
            .rev()
            .find(|byte| !is_blank(byte))
            .is_none_or(|byte| *byte == 0);
        let ends = after.iter().find(|byte| !is_blank(byte)).is_none_or(|byte| *byte == 0);
        match self {
            Place::Anywhere => true,
            Place::Word => is_word,
            Place::Account => {
                let is_beside = before.last() == Some(&b'\\') || matches!(after.first(), Some(b'\\' | b'@' | b'$'));
                is_word && (is_beside || begins && ends)
            }
        }
    }
}
