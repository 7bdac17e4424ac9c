//! Tables of messages (`RT_MESSAGETABLE`): texts by their IDs.
//!
//! ```text
//! table    u32 number of blocks, then for each block: u32 first ID, u32 last ID, u32 offset of its first message
//! message  u16 length in bytes with these 4, u16 flags, then the text; the next one starts after it
//! ```
//!
//! Flag 1 means UTF-16; without it the text is in the code page of the provider. Source: `MESSAGE_RESOURCE_DATA` of the
//! Windows SDK.

use evtx_format::Interrupt;
use evtx_format::bytes::{u16_at, u32_at};
use evtx_format::value::text::Escaping;
use evtx_format::value::{Scalar, Value};

use super::resource::Resource;
use crate::error::Result;

/// The messages of a table, at most. Windows' largest tables have about 30,000. *(choice)*
const MAX_MESSAGES: usize = 1 << 20;

/// After how many messages an interrupt is checked.
const CHECK: usize = 1 << 14;

/// A table of messages in one language.
#[derive(Debug)]
pub struct MessageTable {
    /// The LCID of the language; 0 for none.
    pub language: u16,
    bytes: Resource,
    /// The ID and the offset of each message, sorted by ID.
    messages: Vec<(u32, u32)>,
    /// Whether a part of the table could not be read.
    pub is_damaged: bool,
}

impl MessageTable {
    /// About how many bytes of memory it takes besides its resource.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.messages)
    }

    /// Finds the messages of a table. Work and memory are bounded by its size, even if its blocks overlap.
    ///
    /// # Errors
    /// If the work is interrupted.
    pub(crate) fn new(language: u16, bytes: Resource, interrupt: Interrupt<'_>) -> Result<Self> {
        let mut table = MessageTable {
            language,
            bytes,
            messages: Vec::new(),
            is_damaged: false,
        };
        table.is_damaged = table.read(interrupt).is_none();
        interrupt.check()?;
        // Of several messages with one ID, Windows finds the one in the first block.
        table.messages.sort_by_key(|(id, _)| *id);
        table.messages.dedup_by_key(|(id, _)| *id);
        table.messages.shrink_to_fit();
        Ok(table)
    }

    /// Returns `None` if a part cannot be read, or if the work is interrupted.
    fn read(&mut self, interrupt: Interrupt<'_>) -> Option<()> {
        let mut room = self.bytes.len();
        for block in 0..u32_at(&self.bytes, 0)? as usize {
            let at = block.checked_mul(12)?.checked_add(4)?;
            let (first, last) = (u32_at(&self.bytes, at)?, u32_at(&self.bytes, at + 4)?);
            let mut at = u32_at(&self.bytes, at + 8)? as usize;
            // A block may be empty, so this does not only depend on messages.
            if block % CHECK == 0 {
                interrupt.check().ok()?;
            }
            for id in first..=last {
                let length = usize::from(u16_at(&self.bytes, at)?);
                if length < 4 || self.bytes.len() - at < length || self.messages.len() == MAX_MESSAGES {
                    return None;
                }
                // Blocks that overlap would take more than all messages together.
                room = room.checked_sub(length)?;
                self.messages.push((id, at as u32));
                at += length;
                if self.messages.len().is_multiple_of(CHECK) {
                    interrupt.check().ok()?;
                }
            }
        }
        Some(())
    }

    /// The IDs of all messages, sorted.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = u32> {
        self.messages.iter().map(|(id, _)| *id)
    }

    /// The ID of the message at an index among all, sorted by ID.
    pub(crate) fn id(&self, index: usize) -> Option<u32> {
        self.messages.get(index).map(|(id, _)| *id)
    }

    /// The text of a message, without NULs at its end; `None` if the table does not have it.
    pub fn text(&self, id: u32) -> Option<String> {
        let index = self.messages.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let at = self.messages[index].1 as usize;
        let length = usize::from(u16_at(&self.bytes, at)?);
        let scalar = if u16_at(&self.bytes, at + 2)? & 1 == 1 {
            Scalar::String
        } else {
            Scalar::AnsiString
        };
        Some(text_of(scalar, self.bytes.get(at + 4..at + length)?))
    }
}

/// The text of bytes, up to their first NUL.
pub(crate) fn text_of(scalar: Scalar, bytes: &[u8]) -> String {
    let end = match scalar {
        Scalar::String => bytes
            .as_chunks::<2>()
            .0
            .iter()
            .position(|unit| *unit == [0, 0])
            .map(|units| 2 * units),
        _ => memchr::memchr(0, bytes),
    };
    let mut text = Vec::new();
    Value::new(scalar, &bytes[..end.unwrap_or(bytes.len())]).push_text(&mut text, Escaping::Plain);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A first ID and its messages: whether they are UTF-16, and their bytes.
    type Block<'b> = (u32, &'b [(bool, &'b [u8])]);

    /// A table with these blocks.
    fn table(blocks: &[Block<'_>]) -> Vec<u8> {
        let mut bytes = (blocks.len() as u32).to_le_bytes().to_vec();
        let mut messages = Vec::new();
        for (first, entries) in blocks {
            let at = 4 + 12 * blocks.len() + messages.len();
            for number in [*first, first + entries.len() as u32 - 1, at as u32] {
                bytes.extend(number.to_le_bytes());
            }
            for (utf16, text) in *entries {
                messages.extend((text.len() as u16 + 4).to_le_bytes());
                messages.extend(u16::from(*utf16).to_le_bytes());
                messages.extend_from_slice(text);
            }
        }
        bytes.extend(messages);
        bytes
    }

    fn resource(bytes: &[u8]) -> Resource {
        let end = bytes.len();
        Resource::new(&Arc::new(bytes.to_vec()), 0..end)
    }

    #[test]
    fn messages_are_found_by_id() {
        let bytes = table(&[
            (0xc000_0007, &[(true, b"a\0\xe9\0\0\0\0\0"), (false, b"\x80 ansi\0")]),
            (5, &[(false, b"five")]),
            (5, &[(false, b"other five")]),
        ]);
        let table = MessageTable::new(1033, resource(&bytes), Interrupt::NEVER).expect("a table");
        assert!(!table.is_damaged);
        assert_eq!(table.ids().collect::<Vec<_>>(), [5, 0xc000_0007, 0xc000_0008]);
        assert_eq!(table.text(0xc000_0007).as_deref(), Some("aé"));
        assert_eq!(table.text(0xc000_0008).as_deref(), Some("€ ansi"));
        assert_eq!(table.text(5).as_deref(), Some("five"));
        assert_eq!(table.text(6), None);
    }

    #[test]
    fn damage_ends_a_table() {
        let bytes = table(&[(1, &[(false, b"one"), (false, b"two")]), (9, &[(false, b"nine")])]);
        for end in 0..bytes.len() {
            let table = MessageTable::new(0, resource(&bytes[..end]), Interrupt::NEVER).expect("a table");
            assert!(table.is_damaged && table.ids().len() < 3, "{end}");
        }
        // A block of all IDs, and blocks that share their messages.
        let mut all = bytes.clone();
        all[8..12].fill(0xff);
        assert!(
            MessageTable::new(0, resource(&all), Interrupt::NEVER)
                .expect("a table")
                .is_damaged
        );
        let mut shared = bytes[..4].to_vec();
        shared[0] = 200;
        for _ in 0..200 {
            shared.extend([1, 0, 0, 0, 50, 0, 0, 0, 0x64, 9, 0, 0]);
        }
        shared.extend([4, 0, 0, 0].repeat(50));
        let table = MessageTable::new(0, resource(&shared), Interrupt::NEVER).expect("a table");
        assert!(table.is_damaged && table.ids().len() == 50);
    }
}
