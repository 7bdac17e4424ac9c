//! Distinct lists of texts, each with a number.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Distinct lists of texts or nothing. A list is a number of bytes: for each text, 0 if there is none; else its length plus
/// 1, and the text.
#[derive(Default)]
pub(super) struct Texts {
    bytes: Vec<u8>,
    /// Where each list ends.
    ends: Vec<usize>,
    /// The hash of each list, so that the table grows without a long pause.
    hashes: Vec<u64>,
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Adds a text, or nothing, to a list.
pub(super) fn encode(list: &mut Vec<u8>, text: Option<&str>) {
    let length = text.map_or(0, |text| text.len() as u32 + 1);
    list.extend_from_slice(&length.to_le_bytes());
    list.extend_from_slice(text.unwrap_or_default().as_bytes());
}

impl Texts {
    /// The number of a list.
    pub(super) fn number(&mut self, list: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(list);
        let (bytes, ends) = (&self.bytes, &self.ends);
        if let Some(known) = self.known.find(hash, |number| list_of(bytes, ends, *number) == list) {
            return *known;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(list);
        self.ends.push(self.bytes.len());
        self.hashes.push(hash);
        let hashes = &self.hashes;
        self.known
            .insert_unique(hash, number, |number| hashes[*number as usize]);
        number
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The list of a number.
    pub(super) fn list(&self, number: u32) -> &[u8] {
        list_of(&self.bytes, &self.ends, number)
    }

    /// Whether a list has no text that is missing.
    pub(super) fn is_complete(&self, number: u32) -> bool {
        let mut left = self.list(number);
        while let Some((length, rest)) = left.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            if length == 0 {
                return false;
            }
            left = rest.get(length - 1..).unwrap_or_default();
        }
        true
    }

    /// The texts of a list.
    pub(super) fn texts(&self, number: u32) -> Vec<Option<String>> {
        let mut left = self.list(number);
        let mut texts = Vec::new();
        while let Some((length, rest)) = left.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            let (text, rest) = rest.split_at(length.saturating_sub(1).min(rest.len()));
            texts.push((length > 0).then(|| String::from_utf8_lossy(text).into_owned()));
            left = rest;
        }
        texts
    }

    /// The bytes of memory that it takes.
    pub(super) fn size(&self) -> usize {
        self.bytes.capacity() + (self.ends.capacity() + self.hashes.capacity()) * 8 + self.known.capacity() * 5
    }
}

fn list_of<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_lists_apart() {
        let lists: [&[Option<&str>]; 7] = [
            &[],
            &[None],
            &[Some("")],
            &[Some("a"), Some("b")],
            &[Some("ab"), None],
            &[None, Some("ab")],
            &[Some("a\0"), Some("")],
        ];
        let mut texts = Texts::default();
        for _ in 0..2 {
            for (index, list) in lists.iter().enumerate() {
                let mut bytes = Vec::new();
                list.iter().for_each(|text| encode(&mut bytes, *text));
                assert_eq!(texts.number(&bytes), index as u32);
                let shown = texts.texts(index as u32);
                assert_eq!(shown.iter().map(Option::as_deref).collect::<Vec<_>>(), *list);
            }
        }
        assert_eq!(texts.len(), lists.len());
    }
}
