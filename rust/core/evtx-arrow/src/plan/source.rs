//! Extractors: where a plan finds the value of a column, and the value found in a record.

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::ValueTable;
use evtx_format::render::json;
use evtx_format::value::Value;
use evtx_format::value::text::Escaping;

/// The most bytes of text at a path in the event. In real logs this is one value, which has at most 64 KiB.
pub(crate) const MAX_FIELD: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Extractor {
    /// The substitution on which the element depends: if its value is NULL, the element is left out.
    pub(super) guard: Option<u16>,
    /// Whether it is an attribute that is left out if its value is empty.
    pub(super) attribute: bool,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Constant(Constant),
    Substitution(u16),
    Concat(Box<[ConcatItem]>),
}

#[derive(Debug)]
pub(crate) enum ConcatItem {
    Text(Box<str>),
    Substitution(u16),
}

/// A text that is the same for every record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constant {
    pub(crate) text: Box<str>,
    /// If it is the text of a time: nanoseconds since 1970-01-01 UTC, or `None` out of their range. The text of a time
    /// past the year 9999 shows another year.
    pub(crate) time: Option<Option<i64>>,
    /// The items, if the text is a JSON array.
    pub(crate) items: Box<[Constant]>,
}

impl Constant {
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.items) + self.items.iter().map(Constant::bytes).sum::<usize>()
    }
}

/// The value that an extractor has found in a record.
#[derive(Clone, Copy)]
pub(crate) enum Resolved<'p, 'r> {
    Constant(&'p Constant),
    Value(Value<'r>),
    Concat(&'p [ConcatItem], ValueTable<'r>),
}

impl Extractor {
    /// The substitutions on whose values the result depends.
    pub(crate) fn substitutions(&self) -> impl Iterator<Item = u16> {
        let (substitution, items) = match &self.content {
            Content::Constant(_) => (None, &[][..]),
            Content::Substitution(substitution) => (Some(*substitution), &[][..]),
            Content::Concat(items) => (None, &items[..]),
        };
        let items = items.iter().filter_map(|item| match item {
            ConcatItem::Text(_) => None,
            ConcatItem::Substitution(substitution) => Some(*substitution),
        });
        self.guard.into_iter().chain(substitution).chain(items)
    }

    /// How many values and texts the result consists of.
    pub(super) fn values(&self) -> usize {
        match &self.content {
            Content::Constant(_) | Content::Substitution(_) => 1,
            Content::Concat(items) => items.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.content {
            Content::Constant(constant) => constant.bytes(),
            Content::Substitution(_) => 0,
            Content::Concat(items) => {
                let of_item = |item: &ConcatItem| match item {
                    ConcatItem::Text(text) => text.len(),
                    ConcatItem::Substitution(_) => 0,
                };
                size_of_val(&**items) + items.iter().map(of_item).sum::<usize>()
            }
        }
    }

    /// The substitution whose value alone is the result, for a column of numbers, times or GUIDs. In such a column, an
    /// empty value is NULL, and so is a missing element or attribute. So the difference does not matter.
    pub(crate) fn bare_substitution(&self) -> Option<u16> {
        match (self.guard, &self.content) {
            (None, Content::Substitution(substitution)) => Some(*substitution),
            (Some(guard), Content::Substitution(substitution)) if guard == *substitution => Some(*substitution),
            _ => None,
        }
    }

    /// The value in a record; `None` if the element or attribute is left out.
    #[inline(always)]
    pub(crate) fn find<'p, 'r>(&'p self, values: ValueTable<'r>) -> Option<Resolved<'p, 'r>> {
        if let Some(guard) = self.guard
            && values.get(guard).is_some_and(Value::is_null)
        {
            return None;
        }
        match &self.content {
            Content::Constant(constant) => Some(Resolved::Constant(constant)),
            Content::Substitution(substitution) => {
                let value = values.get(*substitution).unwrap_or(Value::null());
                (!self.attribute || !value.is_empty()).then_some(Resolved::Value(value))
            }
            Content::Concat(items) => {
                let there = !self.attribute
                    || items.iter().any(|item| match item {
                        ConcatItem::Text(_) => true,
                        ConcatItem::Substitution(substitution) => {
                            values.get(*substitution).is_some_and(|value| !value.is_empty())
                        }
                    });
                there.then_some(Resolved::Concat(items, values))
            }
        }
    }
}

impl<'p, 'r> Resolved<'p, 'r> {
    /// The items, if it is an array that repeats its element.
    pub(crate) fn items(self) -> Option<impl Iterator<Item = Self>> {
        let (value, constants) = match self {
            Resolved::Value(value) if value.repeats() => (Some(value), &[][..]),
            Resolved::Constant(constant) if !constant.items.is_empty() => (None, &constant.items[..]),
            _ => return None,
        };
        let values = value.into_iter().flat_map(Value::items).map(Resolved::Value);
        Some(values.chain(constants.iter().map(Resolved::Constant)))
    }
}

// Inlined, so that the value stays in registers.
impl Resolved<'_, '_> {
    /// Appends the text as UTF-8. A text longer than [`MAX_TEXT`] bytes is cut somewhere after that length.
    #[inline]
    pub(crate) fn push_text(&self, out: &mut Vec<u8>) {
        match self {
            Resolved::Constant(constant) => out.extend_from_slice(constant.text.as_bytes()),
            Resolved::Value(value) => value.push_text(out, Escaping::Plain),
            Resolved::Concat(items, values) => {
                let limit = out.len() + MAX_TEXT;
                for item in *items {
                    if out.len() > limit {
                        break;
                    }
                    match item {
                        ConcatItem::Text(text) => out.extend_from_slice(text.as_bytes()),
                        ConcatItem::Substitution(substitution) => {
                            if let Some(value) = values.get(*substitution) {
                                value.push_text(out, Escaping::Plain);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Appends the text of an entry of `event_data`: an array that repeats its element becomes a JSON array.
    #[inline]
    pub(crate) fn push_entry(&self, out: &mut Vec<u8>) {
        match self {
            Resolved::Value(value) if value.value_type.array && value.repeats() => json::push_array(out, value.items()),
            _ => self.push_text(out),
        }
    }

    /// The text, if it has at most [`MAX_FIELD`] bytes.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = Vec::new();
        self.push_text(&mut text);
        (text.len() <= MAX_FIELD).then(|| String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use evtx_format::value::Scalar;

    use super::*;

    fn constant(text: &str) -> Constant {
        Constant {
            text: text.into(),
            ..Constant::default()
        }
    }

    fn extractor(guard: Option<u16>, content: Content) -> Extractor {
        Extractor {
            guard,
            attribute: false,
            content,
        }
    }

    fn concatenation() -> Content {
        let text = |text: &str| ConcatItem::Text(text.into());
        Content::Concat(
            [
                text("abc"),
                ConcatItem::Substitution(4),
                text("de"),
                ConcatItem::Substitution(2),
            ]
            .into(),
        )
    }

    #[test]
    fn sources_tell_what_they_are_made_of() {
        let size = size_of::<[ConcatItem; 4]>();
        // The guard and the content; the substitutions, how many values and bytes, and the bare substitution.
        let with_items = Constant {
            items: [constant("xy"), constant("z")].into(),
            ..constant("abcd")
        };
        let items = size_of::<[Constant; 2]>();
        let table = [
            (None, Content::Constant(constant("abcde")), vec![], 1, 5, None),
            (Some(1), Content::Constant(with_items), vec![1], 1, 4 + 3 + items, None),
            (None, Content::Substitution(3), vec![3], 1, 0, Some(3)),
            (Some(3), Content::Substitution(3), vec![3, 3], 1, 0, Some(3)),
            (Some(1), Content::Substitution(3), vec![1, 3], 1, 0, None),
            (None, concatenation(), vec![4, 2], 4, size + 5, None),
            (Some(9), concatenation(), vec![9, 4, 2], 4, size + 5, None),
        ];
        for (guard, content, substitutions, values, bytes, bare) in table {
            let source = extractor(guard, content);
            assert_eq!(source.substitutions().collect::<Vec<_>>(), substitutions, "{source:?}");
            assert_eq!(source.values(), values, "{source:?}");
            assert_eq!(source.bytes(), bytes, "{source:?}");
            assert_eq!(source.bare_substitution(), bare, "{source:?}");
        }
    }

    #[test]
    fn a_constant_is_read_from_its_text() {
        let guid = "{54849625-5478-4994-A5BA-3E3B0328C30D}";
        let read = |text: &str| {
            let text = constant(text);
            let found = Resolved::Constant(&text);
            (found.number(), found.nanos(), found.uuid().is_some())
        };
        assert_eq!(read("0x10"), (Some(16), None, false));
        assert_eq!(read("1970-01-01T00:00:01Z"), (None, Some(1_000_000_000), false));
        assert_eq!(read(guid), (None, None, true));
        for nanos in [None, Some(2)] {
            let time = Constant {
                time: Some(nanos),
                ..constant("1970-01-01T00:00:01Z")
            };
            assert_eq!(Resolved::Constant(&time).nanos(), nanos, "not from its text");
        }
        let number = constant("0x10");
        let found = Resolved::Constant(&number);
        assert_eq!((found.integer(), found.float(), found.bool()), (Some(16), None, None));
        assert_eq!(found.text().as_deref(), Some("0x10"));
    }

    #[test]
    fn a_concatenation_ends_behind_the_limit() {
        let long: Vec<ConcatItem> = (0..10)
            .map(|_| ConcatItem::Text("x".repeat(MAX_TEXT / 4).into()))
            .collect();
        let mut out = b"before".to_vec();
        Resolved::Concat(&long, ValueTable::none()).push_text(&mut out);
        assert_eq!(out.len(), 6 + 5 * (MAX_TEXT / 4));
        let field = |len: usize| {
            Resolved::Constant(&constant(&"x".repeat(len)))
                .text()
                .map(|text| text.len())
        };
        assert_eq!([MAX_FIELD, MAX_FIELD + 1].map(field), [Some(MAX_FIELD), None]);
        let short = [ConcatItem::Text("1".into()), ConcatItem::Text("2".into())];
        let found = Resolved::Concat(&short, ValueTable::none());
        assert_eq!((found.number(), found.nanos(), found.uuid()), (Some(12), None, None));
        let mut entry = Vec::new();
        found.push_entry(&mut entry);
        assert_eq!(entry, b"12");
    }

    #[test]
    fn an_entry_of_an_array_is_its_json() {
        let text = |array: bool, bytes: &[u8]| {
            let mut value = Value::new(Scalar::UInt8, bytes);
            value.value_type.array = array;
            let mut out = Vec::new();
            Resolved::Value(value).push_entry(&mut out);
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(text(true, &[1, 2]), "[1,2]");
        assert_eq!(text(true, &[1]), "1");
        assert_eq!(text(true, &[]), "");
        assert_eq!(text(false, &[1, 2]), "1");
    }
}
