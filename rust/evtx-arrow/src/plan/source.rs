//! Where a column's text comes from: a constant, a substitution, or pieces of both; and what was found there.

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::ValueTable;
use evtx_format::render::json;
use evtx_format::value::Value;
use evtx_format::value::text::Form;

use super::convert;

/// Most bytes of text in a field of `System` or another place. A value has 64 KiB, and a field of real logs is one.
pub(crate) const MAX_FIELD: usize = 1 << 20;

/// Where a text comes from.
#[derive(Debug)]
pub(crate) struct Extractor {
    /// The substitution whose NULL leaves the element out.
    pub(super) guard: Option<u16>,
    /// An attribute is not there where its value is empty.
    pub(super) attribute: bool,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    Constant(Constant),
    Substitution(u16),
    Pieces(Box<[Piece]>),
}

/// A piece of text.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Box<str>),
    Substitution(u16),
}

/// A text that is the same for every record, and what it is read as.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) text: Box<str>,
    /// What the text is read as, if columns read it for every record.
    pub(crate) parsed: Option<Parsed>,
    /// The items, if the text is the JSON array of some.
    pub(crate) items: Box<[Constant]>,
}

impl Constant {
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.items) + self.items.iter().map(Constant::bytes).sum::<usize>()
    }
}

/// What a text is read as.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) number: Option<u64>,
    pub(crate) nanos: Option<i64>,
    pub(crate) uuid: Option<[u8; 16]>,
}

/// What was found for a record.
#[derive(Clone, Copy)]
pub(crate) enum Resolved<'p, 'r> {
    Constant(&'p Constant),
    Value(Value<'r>),
    Pieces(&'p [Piece], ValueTable<'r>),
}

impl Extractor {
    /// The substitutions whose values decide what it gives.
    pub(crate) fn substitutions(&self) -> impl Iterator<Item = u16> {
        let (substitution, pieces) = match &self.content {
            Content::Constant(_) => (None, &[][..]),
            Content::Substitution(substitution) => (Some(*substitution), &[][..]),
            Content::Pieces(pieces) => (None, &pieces[..]),
        };
        let pieces = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Substitution(substitution) => Some(*substitution),
        });
        self.guard.into_iter().chain(substitution).chain(pieces)
    }

    /// How many values and texts it is made of.
    pub(super) fn values(&self) -> usize {
        match &self.content {
            Content::Constant(_) | Content::Substitution(_) => 1,
            Content::Pieces(pieces) => pieces.len(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.content {
            Content::Constant(constant) => constant.bytes(),
            Content::Substitution(_) => 0,
            Content::Pieces(pieces) => {
                let of_piece = |piece: &Piece| match piece {
                    Piece::Text(text) => text.len(),
                    Piece::Substitution(_) => 0,
                };
                size_of_val(&**pieces) + pieces.iter().map(of_piece).sum::<usize>()
            }
        }
    }

    /// The substitution that a number, a time or a GUID is the value of. NULL stands for none and for what cannot be
    /// read as one, so it does not matter whether the element or the attribute is there.
    pub(super) fn bare_substitution(&self) -> Option<u16> {
        match (self.guard, &self.content) {
            (None, Content::Substitution(substitution)) => Some(*substitution),
            (Some(guard), Content::Substitution(substitution)) if guard == *substitution => Some(*substitution),
            _ => None,
        }
    }

    /// What a record's values give; `None` where the element or attribute is not there.
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
            Content::Pieces(pieces) => {
                let there = !self.attribute
                    || pieces.iter().any(|piece| match piece {
                        Piece::Text(_) => true,
                        Piece::Substitution(substitution) => {
                            values.get(*substitution).is_some_and(|value| !value.is_empty())
                        }
                    });
                there.then_some(Resolved::Pieces(pieces, values))
            }
        }
    }
}

// Inlined, so that what was found stays in registers on its way.
impl Resolved<'_, '_> {
    /// Appends the text. One that is longer than [`MAX_TEXT`] can end anywhere behind it.
    #[inline]
    pub(crate) fn push_text(&self, out: &mut Vec<u8>) {
        match self {
            Resolved::Constant(constant) => out.extend_from_slice(constant.text.as_bytes()),
            Resolved::Value(value) => value.push_text(out, Form::Plain),
            Resolved::Pieces(pieces, values) => {
                let limit = out.len() + MAX_TEXT;
                for piece in *pieces {
                    if out.len() > limit {
                        break;
                    }
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        Piece::Substitution(substitution) => {
                            if let Some(value) = values.get(*substitution) {
                                value.push_text(out, Form::Plain);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Appends the text of an entry of `event_data`: an array that repeats its element is the JSON array of its items.
    #[inline]
    pub(crate) fn push_entry(&self, out: &mut Vec<u8>) {
        match self {
            Resolved::Value(value) if value.value_type.array && value.repeats() => json::push_array(out, value.items()),
            _ => self.push_text(out),
        }
    }

    /// The text, if it is no longer than a number or a name can be.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = Vec::new();
        self.push_text(&mut text);
        (text.len() <= MAX_FIELD).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Resolved::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.number,
            Resolved::Constant(constant) => convert::number_from_text(&constant.text),
            Resolved::Value(value) => convert::number(value),
            Resolved::Pieces(..) => convert::number_from_text(&self.text()?),
        }
    }

    /// A number, negative ones too.
    pub(crate) fn integer(&self) -> Option<i128> {
        match self {
            Resolved::Value(value) => convert::integer(value),
            found => convert::integer_from_text(&found.text()?),
        }
    }

    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Resolved::Value(value) => convert::float(value),
            found => convert::float_from_text(&found.text()?),
        }
    }

    pub(crate) fn bool(&self) -> Option<bool> {
        match self {
            Resolved::Value(value) => convert::bool(value),
            found => convert::bool_from_text(&found.text()?),
        }
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Resolved::Value(value) => convert::bytes(value),
            found => convert::bytes_from_text(&found.text()?),
        }
    }

    #[inline(always)]
    pub(crate) fn nanos(&self) -> Option<i64> {
        match self {
            Resolved::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.nanos,
            Resolved::Constant(constant) => convert::nanos_from_text(&constant.text),
            Resolved::Value(value) => convert::nanos(value),
            Resolved::Pieces(..) => convert::nanos_from_text(&self.text()?),
        }
    }

    #[inline(always)]
    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        match self {
            Resolved::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.uuid,
            Resolved::Constant(constant) => convert::uuid_from_text(&constant.text),
            Resolved::Value(value) => convert::uuid(value),
            Resolved::Pieces(..) => convert::uuid_from_text(&self.text()?),
        }
    }
}
