//! The forms of a key: how texts and bytes may spell it.
//!
//! This knows nothing of how a redaction finds what it replaces, so that neither repeats a mistake of the other.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uuid::Uuid;

use crate::common::is_common;

/// The fewest characters of UTF-16, and bytes of other text, that count at any offset. Fewer occur by chance.
pub(super) const MIN_WIDE: usize = 3;
pub(super) const MIN_NARROW: usize = 5;

/// What must be around a text that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    /// Anything: it can be a part of a word.
    Anything,
    /// No digit after it, which would make it the SID of another account.
    NoDigitAfter,
    /// No digit.
    NoDigit,
    /// Nothing that makes it another IPv6 address.
    NoGroup,
    /// No letter or digit.
    Word,
    /// Nothing that a name of an account or a computer can have.
    Name,
}

/// How a text may spell a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelling {
    pub(super) text: String,
    pub(super) name: &'static str,
    pub(super) around: Around,
}

/// How bytes may spell a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packed {
    /// The identifier authority and the sub-authorities of a SID, which other sub-authorities can follow.
    Sid(Vec<u8>),
    /// Sixteen bytes: a GUID or an IPv6 address.
    Sixteen([u8; 16], &'static str),
    /// An IPv4 address in the order of the network.
    Address([u8; 4]),
}

/// Endings of files, which make a name with one dot that of a file.
const FILES: &[&str] = &[
    "bat", "cmd", "dll", "doc", "docx", "drv", "evtx", "exe", "ini", "jpg", "js", "lnk", "log", "msi", "pdf", "png",
    "ps1", "sys", "tmp", "txt", "vbs", "xls", "xlsx", "xml", "zip",
];

fn address(key: &str) -> Option<Ipv4Addr> {
    key.parse().ok()
}

/// The GUID of a text, which can be in braces or parentheses.
fn guid(key: &str) -> Option<Uuid> {
    let inner = key.strip_prefix('(').and_then(|key| key.strip_suffix(')'));
    Uuid::parse_str(inner.unwrap_or(key)).ok()
}

/// The first label of a name of DNS: the name of a computer or a domain.
fn short_name(key: &str) -> Option<&str> {
    let labels: Vec<&str> = key.split('.').collect();
    let is_label = |label: &&str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        !label.is_empty() && label.len() <= 63 && label.chars().all(is_part)
    };
    let (first, last) = (*labels.first()?, labels.last()?.to_ascii_lowercase());
    let is_file = labels.len() == 2 && FILES.contains(&last.as_str());
    let is_name = labels.len() >= 2
        && labels.iter().all(is_label)
        && last.len() >= 2
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && first.chars().count() >= 3
        && first.chars().any(char::is_alphabetic);
    (is_name && !is_file).then_some(first)
}

/// The texts that spell a key, beside itself.
fn others(key: &str) -> Vec<Spelling> {
    let mut found = Vec::new();
    let mut add = |text: String, name, around| found.push(Spelling { text, name, around });
    if let Some(address) = address(key) {
        let [a, b, c, d] = address.octets();
        add(format!("{a:03}.{b:03}.{c:03}.{d:03}"), "an address", Around::Word);
        add(format!("{d}.{c}.{b}.{a}.in-addr.arpa"), "a reverse name", Around::Word);
        let [high, low] = [[a, b], [c, d]].map(u16::from_be_bytes);
        add(format!("::ffff:{high:x}:{low:x}"), "an IPv6 address", Around::Word);
        for number in numbers(address) {
            add(number.to_string(), "a number", Around::Word);
        }
    }
    if let Ok(address) = key.parse::<Ipv6Addr>() {
        let groups = address.segments();
        let list = |each: &dyn Fn(u16) -> String| groups.map(each).join(":");
        add(address.to_string(), "an address", Around::Word);
        add(list(&|group| format!("{group:x}")), "an address", Around::Word);
        add(list(&|group| format!("{group:04x}")), "an address", Around::Word);
        let digits = format!("{:032x}", address.to_bits());
        let reversed: Vec<String> = digits.chars().rev().map(String::from).collect();
        add(
            format!("{}.ip6.arpa", reversed.join(".")),
            "a reverse name",
            Around::Word,
        );
        if let Some(mapped) = address.to_ipv4_mapped() {
            add(format!("::ffff:{mapped}"), "an address", Around::Word);
        }
    }
    if let Some(guid) = guid(key) {
        add(guid.hyphenated().to_string(), "a GUID", Around::Anything);
        add(guid.simple().to_string(), "a GUID", Around::Anything);
    }
    let account = |user: &str| user.chars().count() >= 3 && !is_common(user);
    match (key.split_once('\\'), key.split_once('@')) {
        (Some((domain, user)), None)
            if !domain.is_empty()
                && !user.is_empty()
                && !domain.contains([':', ' ', '/'])
                && !user.contains(['\\', '/']) =>
        {
            add(format!("{user}@{domain}"), "a user principal name", Around::Word);
            add(format!("{domain}/{user}"), "a name of an account", Around::Word);
            add(format!("{domain}\\\\{user}"), "a name of an account", Around::Word);
            if account(user) {
                add(user.to_owned(), "a name of an account", Around::Name);
            }
        }
        (None, Some((user, domain)))
            if !domain.is_empty()
                && !user.is_empty()
                && !domain.contains(['@', ' ', '/'])
                && !user.contains([' ', '/']) =>
        {
            let short = domain.split('.').next().unwrap_or(domain);
            for domain in [domain, short] {
                add(format!("{domain}\\{user}"), "a name of an account", Around::Word);
                add(format!("{user}@{domain}"), "a user principal name", Around::Word);
            }
            if account(user) {
                add(user.to_owned(), "a name of an account", Around::Name);
            }
        }
        _ => {
            if let Some(short) = short_name(key).filter(|short| !is_common(short)) {
                add(short.to_owned(), "the name of a host", Around::Name);
                let netbios: String = short.chars().take(15).collect();
                if netbios.len() < short.len() {
                    add(netbios, "a NetBIOS name", Around::Name);
                }
            }
        }
    }
    found
}

/// An address as a number, in the orders of bytes in which it is not a common number: less than 2^24, or all ones.
pub(super) fn numbers(address: Ipv4Addr) -> Vec<u32> {
    let bytes = address.octets();
    let mut found = vec![u32::from_be_bytes(bytes), u32::from_le_bytes(bytes)];
    found.retain(|number| (1 << 24..u32::MAX).contains(number));
    found
}

/// Whether the four bytes of an address are looked for: not those of `0.x.y.z`, and not all ones.
fn is_rare(address: &Ipv4Addr) -> bool {
    address.octets()[0] != 0 && !address.is_broadcast()
}

/// The address that a key is, if its four bytes are looked for.
pub(super) fn packed_address(key: &str) -> Option<Ipv4Addr> {
    address(key).filter(is_rare)
}

/// The texts that spell a key, in lower case, itself first.
pub(super) fn spellings(key: &str) -> Vec<Spelling> {
    let own = Spelling {
        text: key.to_owned(),
        name: "a text",
        around: match key.parse() {
            Ok(IpAddr::V4(_)) => Around::NoDigit,
            Ok(IpAddr::V6(_)) => Around::NoGroup,
            Err(_) if sid(key).is_some() => Around::NoDigitAfter,
            Err(_) => Around::Anything,
        },
    };
    let mut found = vec![own];
    found.extend(others(key));
    found
        .iter_mut()
        .for_each(|spelling| spelling.text = spelling.text.to_lowercase());
    found.dedup_by(|later, before| later.text == before.text);
    found
}

/// The identifier authority and the sub-authorities of a SID; `None` if the text is not one, or has no sub-authority.
fn sid(key: &str) -> Option<Vec<u8>> {
    let lower = key.to_ascii_lowercase();
    let mut numbers = lower
        .strip_prefix("s-1-")?
        .split('-')
        .map(|part| part.parse::<u64>().ok());
    let authority = numbers.next()??;
    let mut bytes = authority.to_be_bytes()[2..].to_vec();
    for number in numbers {
        bytes.extend(u32::try_from(number?).ok()?.to_le_bytes());
    }
    (bytes.len() > 6).then_some(bytes)
}

/// The bytes that spell a key.
pub(super) fn packed(key: &str) -> Vec<Packed> {
    let mut found = Vec::new();
    found.extend(sid(key).map(Packed::Sid));
    // Zeros, with or without a one after them, are not only GUIDs and addresses.
    if let Some(guid) = guid(key).filter(|guid| !guid.is_nil()) {
        found.push(Packed::Sixteen(guid.to_bytes_le(), "a GUID"));
        found.push(Packed::Sixteen(guid.into_bytes(), "a GUID"));
    }
    match key.parse() {
        Ok(IpAddr::V4(address)) if is_rare(&address) => {
            found.push(Packed::Address(address.octets()));
            found.push(Packed::Sixteen(address.to_ipv6_mapped().octets(), "an address"));
        }
        Ok(IpAddr::V6(address)) if !address.is_unspecified() && !address.is_loopback() => {
            found.push(Packed::Sixteen(address.octets(), "an address"));
        }
        _ => {}
    }
    found
}
