//! One message with all that is known of it.

use std::sync::Arc;

use evtx_format::named_enum;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The 16 bytes of a GUID in the order of its text, which is big endian (RFC 4122).
pub type Guid = [u8; 16];

/// The text of a GUID in braces, with lower-case digits.
pub fn guid_text(guid: &Guid) -> String {
    Uuid::from_bytes(*guid).braced().to_string()
}

/// The GUID of 16 bytes as files store it: the first three numbers are little endian.
pub fn guid_of_le_bytes(bytes: [u8; 16]) -> Guid {
    Uuid::from_bytes_le(bytes).into_bytes()
}

/// The GUID that a text has, with or without braces, in digits of either case; `None` if the text is not a GUID.
pub fn guid_of_text(text: &str) -> Option<Guid> {
    let text = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(text);
    // Other forms of a UUID have other lengths.
    let uuid = Uuid::try_parse(text)
        .ok()
        .filter(|_| text.len() == Hyphenated::LENGTH)?;
    Some(uuid.into_bytes())
}

named_enum! {
    /// What a message is for. The names are those in the column `kind`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    #[repr(u8)]
    pub enum MessageKind {
        /// The message of an event.
        #[default]
        Event = "event",
        /// A text that stands for `%%nnnn` in the messages and values of a provider.
        Parameter = "parameter",
        /// A text of a table that no known provider uses. Its lower 16 bits may be an event ID.
        Text = "text",
    }
}

/// A field that a provider declares for an event: the insertion at its index is its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Field {
    /// The name.
    pub name: Arc<str>,
    /// The type of the value, a type byte of BinXML (MS-EVEN6, section 2.2.12). 0 if it is not known.
    pub in_type: u8,
    /// How the value is shown, one of [`out_type`](crate::insertion::out_type). 0 if the type of the value says it.
    pub out_type: u8,
    /// The name of its map, if names stand for its values.
    pub map: Option<Arc<str>>,
}

/// Names for the values of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ValueMap {
    /// The name by which fields refer to it.
    pub name: Arc<str>,
    /// Whether a value is a set of bits, each with a name of its own.
    pub is_bit_map: bool,
    /// The values or bits and their texts, in the order of the provider.
    pub entries: Vec<(u32, Arc<str>)>,
}

/// A message with all that is known of it: a row of `evtx_message_catalog`.
///
/// The order of rows is the order of the fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MessageRow {
    /// What the message is for.
    pub kind: MessageKind,
    /// The name of the provider.
    pub provider: Option<Arc<str>>,
    /// The GUID of the provider.
    pub guid: Option<Guid>,
    /// The event ID: of a classic event the lower 16 bits of the message ID.
    pub event_id: Option<u16>,
    /// The version of the event; `None` if the source of the message has no versions.
    pub version: Option<u8>,
    /// The qualifiers of a classic event: the upper 16 bits of the message ID.
    pub qualifiers: Option<u16>,
    /// The ID of the message in its table; of a parameter the number after `%%`.
    pub message_id: Option<u32>,
    /// The language, as in `en-US`.
    pub language: Option<Arc<str>>,
    /// The text as Windows stores it, with its insertions; `None` if the event has no message.
    pub text: Option<Arc<str>>,
    /// The channel.
    pub channel: Option<Arc<str>>,
    /// The name of the level.
    pub level: Option<Arc<str>>,
    /// The name of the task.
    pub task: Option<Arc<str>>,
    /// The name of the opcode.
    pub opcode: Option<Arc<str>>,
    /// The names of the keywords, from the highest bit to the lowest.
    pub keywords: Arc<[Arc<str>]>,
    /// The fields of the event.
    pub fields: Arc<[Field]>,
    /// The maps that the fields refer to.
    pub maps: Arc<[Arc<ValueMap>]>,
    /// The path of the file that has the text.
    pub file: Arc<str>,
}

impl MessageRow {
    /// How many bytes its texts take.
    pub fn bytes(&self) -> usize {
        let texts = [
            &self.provider,
            &self.language,
            &self.text,
            &self.channel,
            &self.level,
            &self.task,
            &self.opcode,
        ];
        let texts = texts.into_iter().flatten().chain(&*self.keywords);
        let fields = self.fields.iter();
        let fields = fields.map(|field| field.name.len() + field.map.as_ref().map_or(0, |map| map.len()) + 8);
        let maps = self.maps.iter().flat_map(|map| map.entries.iter());
        texts.map(|text| text.len()).sum::<usize>()
            + fields.sum::<usize>()
            + maps.map(|(_, text)| text.len() + 8).sum::<usize>()
            + self.file.len()
    }

    /// A row of a kind in which nothing else is known.
    pub fn new(kind: MessageKind) -> Self {
        MessageRow {
            kind,
            ..Self::default()
        }
    }
}

/// Whose messages a table has.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) kind: MessageKind,
    pub(crate) provider: Option<Arc<str>>,
    pub(crate) guid: Option<Guid>,
}

impl Owner {
    /// What no known provider uses.
    pub(crate) const UNKNOWN: Owner = Owner {
        kind: MessageKind::Text,
        provider: None,
        guid: None,
    };

    /// The row of a message with an ID, from what else is known of it. The ID of a classic event is the lower half.
    pub(crate) fn row(&self, id: u32, row: MessageRow) -> MessageRow {
        let event = Some(id).filter(|_| self.kind != MessageKind::Parameter);
        MessageRow {
            kind: self.kind,
            provider: self.provider.clone(),
            guid: self.guid,
            event_id: event.map(|id| id as u16),
            qualifiers: event.map(|id| (id >> 16) as u16),
            message_id: Some(id),
            ..row
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guids_keep_their_text() {
        let text = "{54849625-5478-4994-a5ba-3e3b0328c30d}";
        let guid = guid_of_text(text).expect("a GUID");
        assert_eq!(guid_text(&guid), text);
        assert_eq!(guid_of_text(&text[1..37].to_uppercase()), Some(guid));
        let stored = [
            0x25, 0x96, 0x84, 0x54, 0x78, 0x54, 0x94, 0x49, 0xa5, 0xba, 0x3e, 0x3b, 0x03, 0x28, 0xc3, 0x0d,
        ];
        assert_eq!(guid_of_le_bytes(stored), guid);
        for wrong in [
            "",
            "{}",
            "{54849625-5478-4994-a5ba-3e3b0328c30}",
            "54849625-5478-4994-a5ba-3e3b0328c30g",
            &text[1..],
        ] {
            assert_eq!(guid_of_text(wrong), None, "{wrong}");
        }
    }
}
