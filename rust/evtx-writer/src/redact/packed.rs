//! Addresses and GUIDs in binary values, which keep their size.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use aho_corasick::{AhoCorasick, Input};
use uuid::Uuid;

use super::spelled::is_rare;

/// What some bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A GUID as Windows stores it, with three little-endian numbers.
    Guid,
    /// A GUID in the order of its text.
    GuidOfText,
    /// An IPv6 address.
    Address6,
    /// An IPv4 address in IPv6.
    Mapped,
    /// An IPv4 address in the order of the network.
    Address,
    /// An IPv4 address in the other order.
    Swapped,
}

/// Finds the keys that are addresses or GUIDs.
#[derive(Debug)]
pub(super) struct Packed {
    finder: AhoCorasick,
    /// By pattern, the index of the key.
    of: Vec<(usize, Kind)>,
    addresses: HashMap<[u8; 4], usize>,
}

impl Kind {
    /// What a value is called in errors.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Guid | Kind::GuidOfText => "a GUID",
            Kind::Address6 => "an IPv6 address",
            Kind::Mapped | Kind::Address | Kind::Swapped => "an IPv4 address",
        }
    }

    /// The bytes of a text; `None` if it is of another kind. Without a text, they are zeros.
    pub(super) fn read(self, text: Option<&str>) -> Option<Vec<u8>> {
        let Some(text) = text else {
            let size = if matches!(self, Kind::Address | Kind::Swapped) {
                4
            } else {
                16
            };
            return Some(vec![0; size]);
        };
        Some(match self {
            Kind::Guid => Uuid::parse_str(text).ok()?.to_bytes_le().into(),
            Kind::GuidOfText => Uuid::parse_str(text).ok()?.into_bytes().into(),
            Kind::Address6 => text.parse::<Ipv6Addr>().ok()?.octets().into(),
            Kind::Mapped => text.parse::<Ipv4Addr>().ok()?.to_ipv6_mapped().octets().into(),
            Kind::Address => text.parse::<Ipv4Addr>().ok()?.octets().into(),
            Kind::Swapped => text.parse::<Ipv4Addr>().ok()?.to_bits().to_le_bytes().into(),
        })
    }
}

impl Packed {
    /// # Errors
    /// If the keys need too much memory.
    pub(super) fn new<'k>(keys: impl Iterator<Item = &'k str>) -> Result<Option<Self>, String> {
        let (mut patterns, mut of, mut addresses) = (Vec::new(), Vec::new(), HashMap::new());
        for (index, key) in keys.enumerate() {
            let mut add = |kind: Kind| {
                patterns.extend(kind.read(Some(key)));
                of.push((index, kind));
            };
            // Other values have as many zeros, too.
            if Uuid::parse_str(key).is_ok_and(|guid| !guid.is_nil()) {
                add(Kind::Guid);
                add(Kind::GuidOfText);
            }
            match key.parse() {
                Ok(IpAddr::V4(address)) if is_rare(address) => {
                    add(Kind::Mapped);
                    add(Kind::Address);
                    addresses.insert(address.octets(), index);
                }
                Ok(IpAddr::V6(address)) if address.to_bits() > 1 => add(Kind::Address6),
                _ => {}
            }
        }
        if patterns.is_empty() {
            return Ok(None);
        }
        let finder = AhoCorasick::new(&patterns).map_err(|error| error.to_string())?;
        Ok(Some(Packed { finder, of, addresses }))
    }

    /// The key that four bytes are the address of.
    pub(super) fn address(&self, bytes: &[u8]) -> Option<(usize, Kind)> {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        let of = |bytes: [u8; 4], kind| self.addresses.get(&bytes).map(|index| (*index, kind));
        let [a, b, c, d] = bytes;
        of(bytes, Kind::Address).or_else(|| of([d, c, b, a], Kind::Swapped))
    }

    /// The first address in the few bytes of a number, and its offset.
    pub(super) fn address_in(&self, bytes: &[u8]) -> Option<(usize, (usize, Kind))> {
        let mut windows = bytes.windows(4).enumerate();
        windows.find_map(|(at, window)| Some((at, self.address(window)?)))
    }

    /// The next key from an offset on. Four bytes have to be in a socket address: its family and port come before them.
    pub(super) fn find(&self, bytes: &[u8], from: usize) -> Option<(Range<usize>, usize, Kind)> {
        let mut start = from;
        loop {
            let found = self.finder.find(Input::new(bytes).range(start..))?;
            let (index, kind) = self.of[found.pattern()];
            if kind != Kind::Address || matches!(bytes[..found.start()], [.., 2, 0, _, _]) {
                return Some((found.range(), index, kind));
            }
            start = found.start() + 1;
        }
    }
}
