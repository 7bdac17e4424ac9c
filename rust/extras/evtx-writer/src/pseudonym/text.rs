//! The parts of a text: names, numbers, addresses and the like, and what is between them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

use uuid::Uuid;

use crate::typed::sid;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// White space, punctuation and control characters of ASCII.
    Between(&'t str),
    Sid(&'t str),
    Guid(&'t str),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    /// Three or more numbers of few digits, as those of addresses and bytes, with what is between them.
    Run(&'t str),
    /// A number that 64 bits can hold, in digits without leading zeros.
    Number(u64),
    /// The same, as `0x` and hexadecimal digits.
    Hex(u64),
    /// Anything else: a word, a name, a pseudonym of either, or encoded bytes.
    Word(&'t str),
}

/// How many hexadecimal digits follow `t-` in the pseudonym of a word.
pub(super) const DIGITS: usize = 10;

/// The most bytes between the numbers of a run, as in `203[.]0[.]113`.
const MAX_BETWEEN: usize = 3;

/// The parts of a text, in order, each with its text.
pub(super) fn parts(text: &str) -> impl Iterator<Item = (Part<'_>, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, length) = first(rest)?;
        let text;
        (text, rest) = rest.split_at(length);
        Some((part, text))
    })
}

/// The only part of a text; `None` if there are none or several.
pub(super) fn only_part(text: &str) -> Option<Part<'_>> {
    let mut parts = parts(text);
    let (part, _) = parts.next()?;
    parts.next().is_none().then_some(part)
}

/// The number by which the pseudonym that is a part of a text is known.
pub(super) fn mark_of((part, text): (Part<'_>, &str)) -> u64 {
    let mut hasher = DefaultHasher::new();
    match part {
        Part::Number(number) | Part::Hex(number) => number.hash(&mut hasher),
        _ => text.to_lowercase().hash(&mut hasher),
    }
    hasher.finish()
}

/// Whether a byte of UTF-8 is one of a word. Characters beyond ASCII count as such: accents and spaces, too.
fn is_inside(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The first part of a text that does not start in a word, and its length in bytes.
fn first(text: &str) -> Option<(Part<'_>, usize)> {
    let word = length(text, is_inside);
    let special = || {
        Some(match text.as_bytes().first()? {
            b'S' | b's' => first_sid(text)?,
            b':' => first_ipv6(text)?,
            byte if byte.is_ascii_hexdigit() => first_guid(text)
                .or_else(|| first_ipv6(text))
                .or_else(|| first_ipv4(text))
                .or_else(|| first_run(text))?,
            _ => first_pseudonym(text)?,
        })
    };
    if let Some(found) = special() {
        return Some(found);
    }
    if word > 0 {
        let word = &text[..word];
        let is_plain = |digits: &str| digits == "0" || !digits.starts_with(['0', '+']);
        let decimal = || word.parse().ok().filter(|_| is_plain(word)).map(Part::Number);
        let hex = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let hex = || {
            u64::from_str_radix(hex.filter(|hex| is_plain(hex))?, 16)
                .ok()
                .map(Part::Hex)
        };
        return Some((decimal().or_else(hex).unwrap_or(Part::Word(word)), word.len()));
    }
    // An address can begin with colons.
    let between = length(text, |byte| !is_inside(byte));
    let address = text[..between]
        .match_indices("::")
        .map(|(at, _)| at)
        .find(|&at| first_ipv6(&text[at..]).is_some());
    match address.unwrap_or(between) {
        0 => None,
        length => Some((Part::Between(&text[..length]), length)),
    }
}

/// How many bytes a text starts with that are of a kind.
fn length(text: &str, is_one: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(|byte| !is_one(byte)).unwrap_or(text.len())
}

/// Whether a word goes on at the start of a text.
fn goes_on(text: &str) -> bool {
    text.bytes().next().is_some_and(is_inside)
}

/// A SID, also before `_Classes`, as keys of the registry have it.
fn first_sid(text: &str) -> Option<(Part<'_>, usize)> {
    let end = length(text.get(1..)?, |byte| byte.is_ascii_digit() || byte == b'-') + 1;
    let found = text[..end].trim_end_matches('-');
    let is_end = end > found.len() || text[end..].starts_with('_') || !goes_on(&text[end..]);
    (is_end && sid(found)?.len() > 8).then_some((Part::Sid(found), found.len()))
}

fn first_guid(text: &str) -> Option<(Part<'_>, usize)> {
    let found = text
        .get(..36)
        .filter(|found| found.as_bytes()[8] == b'-' && !goes_on(&text[36..]))?;
    Uuid::try_parse(found).ok().map(|_| (Part::Guid(found), 36))
}

fn first_ipv4(text: &str) -> Option<(Part<'_>, usize)> {
    let end = length(text, |byte| byte.is_ascii_digit() || byte == b'.');
    let found = text[..end].trim_end_matches('.');
    let address = found.parse().ok().filter(|_| !goes_on(&text[end..]))?;
    Some((Part::Ipv4(address), found.len()))
}

/// Numbers as those of bytes: up to three digits, or two hexadecimal ones.
fn first_run(text: &str) -> Option<(Part<'_>, usize)> {
    let number = |text: &str| {
        let length = length(text, is_inside);
        let hex = text[..length]
            .strip_prefix("0x")
            .or_else(|| text[..length].strip_prefix("0X"));
        let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_one = match hex {
            Some(hex) => matches!(hex.len(), 1 | 2) && is_hex(hex),
            None if length == 2 => is_hex(&text[..length]),
            None => matches!(length, 1 | 3) && text[..length].bytes().all(|byte| byte.is_ascii_digit()),
        };
        is_one.then_some(length)
    };
    let (mut end, mut count) = (number(text)?, 1);
    loop {
        let between = length(&text[end..], |byte| !is_inside(byte));
        match number(&text[end + between..]) {
            Some(next) if between <= MAX_BETWEEN => end += between + next,
            _ => break,
        }
        count += 1;
    }
    (count > 2).then_some((Part::Run(&text[..end]), end))
}

/// An address, also before a dot and the number of a port.
fn first_ipv6(text: &str) -> Option<(Part<'_>, usize)> {
    let end = length(text, |byte| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.'));
    let whole = text[..end].trim_end_matches('.');
    let found = if whole.ends_with("::") {
        whole
    } else {
        whole.trim_end_matches(':')
    };
    let before_port = found.rsplit_once('.').map_or(found, |(address, _)| address);
    let found = [found, before_port].into_iter().filter(|_| !goes_on(&text[end..]));
    let mut found = found.filter_map(|found| Some((Part::Ipv6(found.parse().ok()?), found.len())));
    found.next()
}

fn first_pseudonym(text: &str) -> Option<(Part<'_>, usize)> {
    let digits = text.strip_prefix("t-")?.get(..DIGITS)?;
    let end = 2 + DIGITS;
    let is_one = digits.bytes().all(|byte| byte.is_ascii_hexdigit()) && !goes_on(&text[end..]);
    is_one.then_some((Part::Word(&text[..end]), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_parts() {
        use Part::*;
        let (ip4, ip6) = (Ipv4Addr::new(203, 0, 113, 9), "fe80::1".parse().expect("an address"));
        for (text, expected) in [
            (r"C:\a_b", vec![Word("C"), Between(r":\"), Word("a_b")]),
            (
                "203.0.113.9:80.",
                vec![Ipv4(ip4), Between(":"), Number(80), Between(".")],
            ),
            (
                "[fe80::1%4]",
                vec![Between("["), Ipv6(ip6), Between("%"), Number(4), Between("]")],
            ),
            ("a ::1", vec![Word("a"), Between(" "), Ipv6(Ipv6Addr::LOCALHOST)]),
            ("1.2.3.4t", vec![Run("1.2.3"), Between("."), Word("4t")]),
            ("1.203.0.113.9", vec![Run("1.203.0.113.9")]),
            ("ip-13-7-11-9", vec![Word("ip"), Between("-"), Run("13-7-11-9")]),
            (
                "@(97, 110,0x6e)",
                vec![Between("@("), Run("97, 110,0x6e"), Between(")")],
            ),
            ("203[.]000[.]113[.]9", vec![Run("203[.]000[.]113[.]9")]),
            ("00-0c-29-ab-CD-ef", vec![Run("00-0c-29-ab-CD-ef")]),
            ("10.0.19041", {
                vec![Number(10), Between("."), Number(0), Between("."), Number(19041)]
            }),
            ("203,0", vec![Number(203), Between(","), Number(0)]),
            (
                "007 0x3E7 0x",
                vec![Word("007"), Between(" "), Hex(999), Between(" "), Word("0x")],
            ),
            ("S-1-5-21-1-2-3_Classes", vec![Sid("S-1-5-21-1-2-3"), Word("_Classes")]),
            (
                "S-1-x S_1_5",
                vec![
                    Word("S"),
                    Between("-"),
                    Number(1),
                    Between("-"),
                    Word("x"),
                    Between(" "),
                    Word("S_1_5"),
                ],
            ),
            (
                "t-0123456789.exe t-012",
                vec![
                    Word("t-0123456789"),
                    Between("."),
                    Word("exe"),
                    Between(" "),
                    Word("t"),
                    Between("-"),
                    Word("012"),
                ],
            ),
            (
                "Anna\u{a0}Berg u\u{308}",
                vec![Word("Anna\u{a0}Berg"), Between(" "), Word("u\u{308}")],
            ),
            (
                "{54849625-5478-4994-a5ba-3e3b0328c30d}",
                vec![Between("{"), Guid("54849625-5478-4994-a5ba-3e3b0328c30d"), Between("}")],
            ),
        ] {
            assert_eq!(
                parts(text).map(|(part, _)| part).collect::<Vec<_>>(),
                expected,
                "{text}"
            );
            assert_eq!(parts(text).map(|(_, text)| text).collect::<String>(), text);
        }
    }
}
