//! The texts that mean a key: itself, an address as a number, a GUID without its dashes, the NetBIOS name of a host.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Input, MatchKind};
use uuid::Uuid;

use super::typed::sid;
use crate::common::is_common;

/// What must not be next to a spelling, so that it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edges {
    /// Anything can be: it can be a part of a word.
    Any,
    /// A digit after the SID of an account makes it that of another one.
    Sid,
    /// A digit before or after an IPv4 address.
    Address,
    /// A hexadecimal digit or a colon before or after an IPv6 address.
    Address6,
    /// A letter or a digit.
    Word,
    /// A letter, a digit, `-` or `_`, which names of accounts and computers can have.
    Name,
}

/// A text that means a key.
#[derive(Debug)]
pub(super) struct Spelling {
    /// The index of the key.
    pub(super) key: usize,
    /// What replaces it.
    pub(super) new: String,
    is_key: bool,
    edges: Edges,
    /// How many bytes it has, folded.
    len: usize,
    /// The longest other spelling that this one begins with.
    shorter: Option<usize>,
}

/// Finds the spellings of all keys.
#[derive(Debug)]
pub(super) struct Spelled {
    finder: AhoCorasick,
    /// By pattern.
    of: Vec<Spelling>,
}

/// Endings of names of files. A key with one of them and one dot is no name of a host.
const FILE_ENDINGS: &str =
    " bat cmd dll doc docx drv evtx exe ini jpg js lnk log msi pdf png ps1 sys tmp txt vbs xls xlsx xml zip ";
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

/// The numbers of an address that do not mean too many other things, and whether their bytes are in the other order: not
/// those of 24 bits, such as `0.0.16.0`, nor all ones.
pub(super) fn numbers(address: Ipv4Addr) -> impl Iterator<Item = (u32, bool)> {
    let number = address.to_bits();
    let both = [(number, false), (number.swap_bytes(), true)];
    both.into_iter()
        .filter(|(number, _)| number >> 24 != 0 && *number != u32::MAX)
}

/// Whether four bytes are looked for that are an address. Those of `0.x.y.z` and of all ones mean too many other things.
pub(super) fn is_rare(address: Ipv4Addr) -> bool {
    numbers(address).any(|(_, is_swapped)| !is_swapped)
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

/// The first label of a name of DNS.
fn host(text: &str) -> Option<&str> {
    let (first, last) = (text.split('.').next()?, text.rsplit('.').next()?);
    let is_label =
        |label: &str| (1..=63).contains(&label.len()) && label.chars().all(|c| c.is_alphanumeric() || "-_".contains(c));
    let dots = text.matches('.').count();
    let is_host = dots > 0
        && text.split('.').all(is_label)
        && last.len() > 1
        && last.chars().all(|c| c.is_ascii_alphabetic())
        && first.chars().any(char::is_alphabetic)
        && first.chars().count() >= MIN_NAME;
    let is_file = dots == 1 && FILE_ENDINGS.contains(&format!(" {} ", last.to_ascii_lowercase()));
    (is_host && !is_file).then_some(first)
}

/// What must not be next to a key.
fn edges(key: &str) -> Edges {
    match key.parse() {
        Ok(IpAddr::V4(_)) => Edges::Address,
        Ok(IpAddr::V6(_)) => Edges::Address6,
        Err(_) if sid(key).is_some() => Edges::Sid,
        Err(_) => Edges::Any,
    }
}

/// The other spellings of a key, what replaces each, and what must not be next to it.
fn spellings(key: &str, new: &str) -> Vec<(String, String, Edges)> {
    let mut found = Vec::new();
    let mut add = |(old, new): (String, String), edges| found.push((old, new, edges));
    if let Ok(old) = key.parse::<Ipv4Addr>() {
        let with = |spell: fn(Ipv4Addr) -> String| pair(old, new.parse().ok(), new, spell);
        for spell in [reverse, padded, mapped] {
            add(with(spell), Edges::Word);
        }
        for (_, is_swapped) in numbers(old) {
            let number = |address: Ipv4Addr| {
                let number = address.to_bits();
                if is_swapped { number.swap_bytes() } else { number }.to_string()
            };
            add(pair(old, new.parse().ok(), new, number), Edges::Word);
        }
    }
    if let Ok(old) = key.parse::<Ipv6Addr>() {
        let mut with = |spell: &dyn Fn(Ipv6Addr) -> String| add(pair(old, new.parse().ok(), new, spell), Edges::Word);
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
            Edges::Any,
        );
        add(pair(old, new_guid, new, |guid| guid.simple().to_string()), Edges::Any);
    }
    if let Some(old) = account(key) {
        let new_account = account(new);
        let mut with = |spell: &dyn Fn((&str, &str)) -> String| {
            add(
                (spell(old), new_account.map_or_else(|| new.to_owned(), spell)),
                Edges::Word,
            );
        };
        with(&|(user, domain)| format!("{user}@{domain}"));
        with(&|(user, domain)| format!("{user}@{}", netbios(domain)));
        with(&|(user, domain)| format!("{domain}\\{user}"));
        with(&|(user, domain)| format!("{}\\{user}", netbios(domain)));
        with(&|(user, domain)| format!("{domain}/{user}"));
        with(&|(user, domain)| format!("{domain}\\\\{user}"));
        if old.0.chars().count() >= MIN_NAME && !is_common(old.0) {
            let new = new_account.map_or(new, |(user, _)| user);
            add((old.0.to_owned(), new.to_owned()), Edges::Name);
        }
    } else if let Some(old) = host(key).filter(|old| !is_common(old)) {
        let new = host(new).unwrap_or(new);
        add((old.to_owned(), new.to_owned()), Edges::Name);
        if let Some((end, _)) = old.char_indices().nth(MAX_NETBIOS) {
            add((old[..end].to_owned(), new.to_owned()), Edges::Name);
        }
    }
    found
}

impl Spelled {
    /// The spellings of keys, each with what replaces it. `fold` folds a text.
    ///
    /// # Errors
    /// If they need too much memory.
    pub(super) fn new(pairs: &[(&str, Option<&str>)], fold: impl Fn(&str) -> String) -> Result<Self, String> {
        let keys: Vec<String> = pairs.iter().map(|(text, _)| fold(text)).collect();
        let known: HashSet<&str> = keys.iter().map(String::as_str).collect();
        let (mut patterns, mut of) = (Vec::new(), Vec::new());
        for (key, (text, new)) in pairs.iter().enumerate() {
            let new = new.unwrap_or_default();
            let mut add = |old: String, new, edges, is_key| {
                of.push(Spelling {
                    key,
                    new,
                    is_key,
                    edges,
                    len: old.len(),
                    shorter: None,
                });
                patterns.push(old);
            };
            add(keys[key].clone(), new.to_owned(), edges(text), true);
            for (old, new, edges) in spellings(text, new) {
                let old = fold(&old);
                if !known.contains(&*old) {
                    add(old, new, edges, false);
                }
            }
        }
        // In order, a spelling follows those that it begins with.
        let mut order: Vec<usize> = (0..patterns.len()).collect();
        order.sort_by_key(|index| &patterns[*index]);
        let mut begun: Vec<usize> = Vec::new();
        for index in order {
            while begun
                .pop_if(|begun| !patterns[index].starts_with(&patterns[*begun]))
                .is_some()
            {}
            of[index].shorter = begun.last().copied();
            begun.push(index);
        }
        let finder = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|error| error.to_string())?;
        Ok(Spelled { finder, of })
    }

    /// Where a folded text has spellings: of those at the same place, the longest.
    pub(super) fn find<'t>(&'t self, folded: &'t [u8]) -> impl Iterator<Item = (Range<usize>, &'t Spelling)> + 't {
        self.find_which(folded, |_| true)
    }

    /// Where a folded text has keys as they are.
    pub(super) fn find_keys<'t>(&'t self, folded: &'t [u8]) -> impl Iterator<Item = (Range<usize>, &'t Spelling)> + 't {
        self.find_which(folded, |spelling| spelling.is_key)
    }

    fn find_which<'t>(
        &'t self,
        folded: &'t [u8],
        counts: impl Fn(&Spelling) -> bool + 't,
    ) -> impl Iterator<Item = (Range<usize>, &'t Spelling)> + 't {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let found = self.finder.find(Input::new(folded).range(at..))?;
                let start = found.start();
                let mut next = Some(found.pattern().as_usize());
                while let Some(index) = next {
                    let spelling = &self.of[index];
                    let end = start + spelling.len;
                    if counts(spelling) && spelling.edges.hold(folded[..start].last(), folded.get(end)) {
                        at = end;
                        return Some((start..end, spelling));
                    }
                    next = spelling.shorter;
                }
                at = start + 1;
            }
        })
    }
}

impl Edges {
    /// Whether a spelling counts between two bytes of a text.
    fn hold(self, before: Option<&u8>, after: Option<&u8>) -> bool {
        // Letters beyond ASCII are often noise, in binary values.
        let none = |is: fn(&u8) -> bool| !before.is_some_and(is) && !after.is_some_and(is);
        match self {
            Edges::Any => true,
            Edges::Sid => !after.is_some_and(u8::is_ascii_digit),
            Edges::Address => none(u8::is_ascii_digit),
            Edges::Address6 => none(|byte| byte.is_ascii_hexdigit() || *byte == b':'),
            Edges::Word => none(u8::is_ascii_alphanumeric),
            Edges::Name => none(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')),
        }
    }
}
