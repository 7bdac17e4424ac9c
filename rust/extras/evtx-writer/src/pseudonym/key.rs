//! The keyed function that makes pseudonyms.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Builder;

use super::text::{DIGITS, Part};
use crate::binxml;
use crate::typed::{self, shown};

/// Numbers that name nobody: those of the idle process and the system process, of logon sessions that every Windows has,
/// and those that stand for no number.
pub(super) const NUMBERS: &[u64] = &[0, 4, 0x3e3, 0x3e4, 0x3e5, 0x3e6, 0x3e7, u32::MAX as u64, u64::MAX];
/// A pseudonym has as many bits as the number, rounded up to one of these, so that it fits every type that the number fits.
const BITS: [u32; 8] = [7, 8, 15, 16, 31, 32, 63, 64];
const ROUNDS: u8 = 6;
/// Relative IDs below this are those of accounts and groups that every domain has.
const FIRST_RID: u32 = 1000;
/// The fewest bytes of a key. Whoever has a log can try shorter ones.
const MIN_KEY: usize = 16;
/// How many pseudonyms are remembered.
const MAX_KNOWN: usize = 1 << 16;

#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
fn random_bytes() -> Result<[u8; 32], String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|why| why.to_string())?;
    Ok(bytes)
}

#[cfg(all(target_family = "wasm", target_os = "unknown"))]
fn random_bytes() -> Result<[u8; 32], String> {
    Err("pass a key".to_owned())
}

/// Makes pseudonyms. Equal keys make equal pseudonyms of equal values.
#[derive(Debug)]
pub(super) struct Key {
    mac: Hmac<Sha256>,
    known: RefCell<HashMap<String, String>>,
}

impl Key {
    /// A key from a text; without one, a random key that lives as long as the process.
    ///
    /// # Errors
    /// A text that is too short; or the system has no random numbers.
    pub(super) fn new(text: Option<&str>) -> Result<Self, String> {
        static RANDOM: OnceLock<[u8; 32]> = OnceLock::new();
        let random = || match RANDOM.get() {
            Some(random) => Ok(random),
            None => {
                let made = random_bytes().map_err(|why| format!("there is no random key: {why}"))?;
                Ok::<_, String>(RANDOM.get_or_init(|| made))
            }
        };
        if let Some(short) = text.filter(|text| text.len() < MIN_KEY) {
            return Err(format!(
                "the key has {} bytes, but needs {MIN_KEY} or more",
                short.len()
            ));
        }
        let bytes = text.map_or_else(|| random().map(<[u8; 32]>::as_slice), |text| Ok(text.as_bytes()))?;
        let mac = Hmac::new_from_slice(bytes).map_err(|why| why.to_string())?;
        let known = RefCell::default();
        Ok(Key { mac, known })
    }

    /// 32 bytes that depend on the key, on what they are for, and on some bytes.
    fn bytes(&self, what: u8, bytes: &[u8]) -> [u8; 32] {
        let mac = self.mac.clone().chain_update([what]).chain_update(bytes);
        mac.finalize().into_bytes().into()
    }

    fn numbers(&self, what: u8, bytes: &[u8]) -> [u32; 8] {
        let all = self.bytes(what, bytes);
        std::array::from_fn(|at| u32::from_le_bytes([all[4 * at], all[4 * at + 1], all[4 * at + 2], all[4 * at + 3]]))
    }

    /// The pseudonym of a word.
    pub(super) fn word(&self, word: &str) -> String {
        let bytes = self.bytes(b'w', word.to_lowercase().as_bytes());
        let mut digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        digits.truncate(DIGITS);
        format!("t-{digits}")
    }

    /// A permutation, by what it is for, of the numbers of as many bits that keeps [`NUMBERS`], and no other number: a Feistel
    /// network, one more, and the network backwards. This is a single cycle, walked until the result is such a number.
    fn number(&self, what: u8, number: u64) -> u64 {
        if NUMBERS.contains(&number) {
            return number;
        }
        let class = BITS
            .iter()
            .position(|&bits| bits >= u64::BITS - number.leading_zeros())
            .unwrap_or_default();
        let first = if class == 0 { 0 } else { 1 << BITS[class - 1] };
        let last = u64::MAX >> (64 - BITS[class]);
        let half = (u64::BITS - (last - first).leading_zeros()).div_ceil(2);
        let mask: u64 = (1 << half) - 1;
        let mixed = |round: u8, half: u64| {
            let [mixed, ..] = self.numbers(what, &[&[class as u8, round][..], &half.to_le_bytes()].concat());
            u64::from(mixed) & mask
        };
        let (mut high, mut low) = ((number - first) >> half, (number - first) & mask);
        loop {
            for round in 0..ROUNDS {
                (high, low) = (low, high ^ mixed(round, low));
            }
            let next = (high << half | low).wrapping_add(1);
            (high, low) = (next >> half & mask, next & mask);
            for round in (0..ROUNDS).rev() {
                (high, low) = (low ^ mixed(round, high), high);
            }
            let new = (high << half | low).saturating_add(first);
            if new <= last && !NUMBERS.contains(&new) {
                return new;
            }
        }
    }

    /// The pseudonym of a SID, as text. Its domain and its relative ID are replaced apart.
    fn sid(&self, text: &str) -> String {
        let bytes = typed::sid(text).unwrap_or_default();
        let (head, subs) = bytes.split_at_checked(8).unwrap_or_default();
        let authority = u64::from(head.last().copied().unwrap_or_default());
        let mut subs: Vec<u32> = subs.as_chunks().0.iter().map(|sub| u32::from_le_bytes(*sub)).collect();
        if subs.len() > 3 && subs[0] == 21 {
            let domain = self.numbers(b'd', &bytes[12..24]);
            subs[1..4].copy_from_slice(&domain[..3]);
            for rid in subs[4..].iter_mut().filter(|rid| **rid >= FIRST_RID) {
                let next = |rid: u32| self.number(b'r', u64::from(rid)) as u32;
                *rid = next(*rid);
                while *rid < FIRST_RID {
                    *rid = next(*rid);
                }
            }
        } else {
            let kept = usize::from(subs.len() > 1);
            for (at, sub) in subs.iter_mut().enumerate().skip(kept) {
                *sub = self.numbers(b's', &[&[at as u8], &bytes[..]].concat())[0];
            }
        }
        let (value_type, bytes) = binxml::Value::Sid(authority, subs).stored();
        typed::value(value_type, &bytes).map(shown).unwrap_or_default()
    }

    fn ipv4(&self, address: Ipv4Addr) -> Ipv4Addr {
        let [number, ..] = self.numbers(b'4', &address.octets());
        Ipv4Addr::from_bits(0xf000_0000 | number >> 4)
    }

    fn ipv6(&self, address: Ipv6Addr) -> Ipv6Addr {
        if let Some(address) = address.to_ipv4_mapped() {
            return self.ipv4(address).to_ipv6_mapped();
        }
        let [a, b, c, ..] = self.numbers(b'6', &address.octets());
        let rest = u128::from(a) << 64 | u128::from(b) << 32 | u128::from(c);
        Ipv6Addr::from_bits(0x2001_0db8 << 96 | rest)
    }

    fn guid(&self, text: &str) -> String {
        let bytes = self.bytes(b'g', text.to_lowercase().as_bytes());
        let bytes = bytes.first_chunk().copied().unwrap_or_default();
        Builder::from_custom_bytes(bytes).into_uuid().to_string()
    }

    /// As many bytes as others.
    pub(super) fn binary(&self, bytes: &[u8]) -> Vec<u8> {
        let seed = self.bytes(b'b', bytes);
        let blocks = (0_u32..).flat_map(|block| self.bytes(b'B', &[&seed[..], &block.to_le_bytes()].concat()));
        blocks.take(bytes.len()).collect()
    }

    /// The pseudonym of a part of a text.
    pub(super) fn part(&self, part: Part<'_>) -> String {
        let name = match part {
            Part::Between(text) => return text.to_owned(),
            Part::Sid(text) | Part::Guid(text) | Part::Run(text) | Part::Word(text) => text.to_lowercase(),
            Part::Ipv4(address) => address.to_string(),
            Part::Ipv6(address) => address.to_string(),
            Part::Number(number) => number.to_string(),
            Part::Hex(number) => format!("{number:#x}"),
        };
        if let Some(known) = self.known.borrow().get(&name) {
            return known.clone();
        }
        let new = match part {
            Part::Between(text) | Part::Run(text) | Part::Word(text) => self.word(text),
            Part::Sid(text) => self.sid(text),
            Part::Guid(text) => self.guid(text),
            Part::Ipv4(address) => self.ipv4(address).to_string(),
            Part::Ipv6(address) => self.ipv6(address).to_string(),
            Part::Number(number) => self.number(b'n', number).to_string(),
            Part::Hex(number) => format!("{:#x}", self.number(b'n', number)),
        };
        let mut known = self.known.borrow_mut();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        _ = known.insert(name, new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::pseudonym::text::parts;

    fn new(text: &str) -> String {
        let key = Key::new(Some("a key of 16 bytes")).expect("a key");
        parts(text).map(|(part, _)| key.part(part)).collect()
    }

    #[test]
    fn a_key_is_not_short() {
        for short in ["", "fifteen bytes.."] {
            let why = Key::new(Some(short)).expect_err("a short key");
            assert_eq!(why, format!("the key has {} bytes, but needs 16 or more", short.len()));
        }
        assert!(Key::new(Some("sixteen bytes...")).is_ok() && Key::new(None).is_ok());
    }

    #[test]
    fn numbers_are_permuted_within_their_width() {
        let key = Key::new(Some("a key of 16 bytes")).expect("a key");
        for range in [0..128, 128..256, 256..1 << 15, 1 << 15..1 << 16] {
            let images: HashSet<u64> = range.clone().map(|number| key.number(b'n', number)).collect();
            assert_eq!(images.len() as u64, range.end - range.start);
            assert!(images.iter().all(|image| range.contains(image)));
        }
        // None is its own pseudonym.
        for seed in 0..20 {
            let key = Key::new(Some(&format!("key {seed} of 16 bytes"))).expect("a key");
            let mut numbers = (0..256).filter(|number| !NUMBERS.contains(number));
            assert_eq!(numbers.find(|&number| key.number(b'n', number) == number), None);
        }
        for number in [
            1 << 16,
            (1 << 31) - 1,
            1 << 31,
            (1 << 32) - 2,
            1 << 32,
            1 << 62,
            1 << 63,
            u64::MAX - 1,
        ] {
            let width = |number: u64| BITS.iter().position(|&bits| bits >= 64 - number.leading_zeros());
            assert_eq!(width(key.number(b'n', number)), width(number));
            assert_ne!(key.number(b'n', number), number);
        }
    }

    #[test]
    fn pseudonyms_keep_type_and_identity() {
        assert_eq!(new("anna"), new("ANNA"));
        assert_eq!(new(r"DOM\anna"), new("dom") + "\\" + &new("Anna"));
        let domain = new("S-1-5-21-1-2-3");
        assert_eq!(new("S-1-5-21-1-2-3-500"), domain.clone() + "-500");
        assert!(new("S-1-5-21-1-2-3-1105").starts_with(&domain) && !new("S-1-5-21-1-2-3-1105").ends_with("-1105"));
        assert_ne!(new("S-1-5-21-1-2-3-1105").rsplit('-').next(), Some(&*new("1105")));
        assert!(domain.starts_with("S-1-5-21-") && !domain.ends_with("-1-2-3"));
        assert!(new("203.0.113.9").parse::<Ipv4Addr>().expect("an address").octets()[0] >= 240);
        assert_eq!(new("::ffff:203.0.113.9"), format!("::ffff:{}", new("203.0.113.9")));
        assert!(new("fe80::1").starts_with("2001:db8:"));
        assert_eq!(
            new("1234").parse::<u64>().ok(),
            u64::from_str_radix(&new("0x4d2")[2..], 16).ok()
        );
        assert_ne!(
            Key::new(Some("another key of 16")).expect("a key").word("anna"),
            new("anna")
        );
    }
}
