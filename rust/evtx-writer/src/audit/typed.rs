//! Forms that only count in a value of the right type, because other bytes spell them by chance: numbers, addresses of four
//! bytes, and texts of one or two characters.

use std::collections::HashMap;
use std::ops::Range;

use bumpalo::Bump;
use evtx_format::binxml::instance::Definition;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::text::Form;
use evtx_format::value::{Scalar, Value};

use super::forms::{MIN_NARROW, MIN_WIDE, numbers, packed_address};

/// How many streams can be nested. Deeper ones are searched as bytes only.
const MAX_DEPTH: usize = 16;

/// A form that a value has: the index of the key, and the name of the form.
pub(super) type Hit = (usize, &'static str);

/// Finds a word in the text of a value. In the chunk, letters of another value can be next to it.
pub(super) type FindWord<'f> = &'f dyn Fn(&str) -> Option<Hit>;

#[derive(Debug, Default)]
pub(super) struct Typed {
    /// By what a value shows, in lower case.
    whole: HashMap<String, Hit>,
    numbers: HashMap<i128, Hit>,
    /// By the order of the network.
    addresses: HashMap<[u8; 4], usize>,
    /// Texts that are too short to look for among any bytes.
    short: Vec<(String, usize)>,
    /// Whether a binary value can show a key.
    has_hex: bool,
}

/// A walk over the values of a chunk.
pub(super) struct Walk<'w, 'a, 'c> {
    typed: &'w Typed,
    find_word: FindWord<'w>,
    chunk: &'a [u8],
    reader: Reader<'a, 'c>,
    definitions: Vec<u32>,
}

/// The records of a chunk.
pub(super) fn records(chunk: &[u8]) -> impl Iterator<Item = Record> {
    let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
    let found = std::iter::from_fn(move || walk.next(chunk));
    found.flatten().map(|found| found.record)
}

fn shown(value: Value<'_>) -> String {
    let mut text = Vec::new();
    value.push_text(&mut text, Form::Plain);
    String::from_utf8_lossy(&text).to_lowercase()
}

impl Typed {
    pub(super) fn add(&mut self, key: usize, text: &str) {
        let lower = text.to_lowercase();
        if let Some(number) = text.parse::<i128>().ok().filter(|number| number.to_string() == text) {
            self.numbers.insert(number, (key, "a number"));
        }
        if let Some(address) = packed_address(text) {
            self.addresses.insert(address.octets(), key);
            for number in numbers(address) {
                self.numbers.insert(number.into(), (key, "an address"));
            }
        }
        if lower.chars().count() < MIN_WIDE || lower.len() < MIN_NARROW {
            self.short.push((lower.clone(), key));
        }
        self.has_hex |= lower.len().is_multiple_of(2) && lower.bytes().all(|byte| byte.is_ascii_hexdigit());
        self.whole.insert(lower, (key, "a value"));
    }

    /// The key that four bytes are the address of, in either order.
    pub(super) fn address(&self, bytes: &[u8]) -> Option<usize> {
        let mut bytes: [u8; 4] = bytes.try_into().ok()?;
        let known = self.addresses.get(&bytes);
        bytes.reverse();
        known.or_else(|| self.addresses.get(&bytes)).copied()
    }

    /// The form of a key that a value has.
    fn value(&self, value: Value<'_>, find_word: FindWord<'_>) -> Option<Hit> {
        if value.value_type.array {
            return value.items().find_map(|item| self.value(item, find_word));
        }
        match value.value_type.scalar {
            Scalar::Null | Scalar::BinXml | Scalar::EvtHandle | Scalar::EvtXml => None,
            Scalar::String | Scalar::AnsiString => {
                let text = shown(value);
                let short = self.short.iter().find(|(short, _)| text.contains(short.as_str()));
                let short = short.map(|(_, key)| (*key, "a text"));
                let whole = || self.whole.get(text.trim()).copied();
                short.or_else(whole).or_else(|| find_word(&text))
            }
            Scalar::Binary => {
                if value.bytes.len() == 4 {
                    return self.address(value.bytes).map(|key| (key, "an address"));
                }
                let sockaddr = value.bytes.windows(8).find_map(|window| match window {
                    [2, 0, _, _, address @ ..] => self.addresses.get(address).copied(),
                    _ => None,
                });
                if let Some(key) = sockaddr.filter(|_| !self.addresses.is_empty()) {
                    return Some((key, "a socket address"));
                }
                let text = self.has_hex.then(|| shown(value))?;
                self.whole.get(&text).copied()
            }
            scalar => match value.to_i128() {
                Some(number) => {
                    let known = self.numbers.get(&number);
                    // A signed number can be an address, too.
                    let unsigned = || self.numbers.get(&i128::from(i32::try_from(number).ok()? as u32));
                    let wide = scalar.fixed_size().is_none_or(|size| size >= 4);
                    known
                        .or_else(unsigned)
                        .filter(|(_, name)| wide || *name != "an address")
                        .copied()
                }
                None => self.whole.get(&shown(value)).copied(),
            },
        }
    }

    /// The first form of a key in a value of the records of a chunk, and the ID of the record.
    pub(super) fn search(&self, chunk: &[u8], arena: &Bump, find_word: FindWord<'_>) -> Option<(Hit, u64)> {
        let kept = Bump::new();
        let names = Names::new(chunk, &kept);
        let mut walk = Walk {
            typed: self,
            find_word,
            chunk,
            reader: Reader::new(chunk, &names, arena),
            definitions: Vec::new(),
        };
        records(chunk).find_map(|record| {
            let binxml = record.binxml();
            walk.reader.begin(binxml.len());
            Some((walk.stream(binxml, 0)?, record.id))
        })
    }
}

impl Walk<'_, '_, '_> {
    fn stream(&mut self, stream: Range<usize>, depth: usize) -> Option<Hit> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut fragments = self.reader.fragments(stream);
        while let Some(fragment) = self.reader.next_fragment(&mut fragments) {
            let hit = match fragment.ok()? {
                Fragment::Element(element) => self.element(element),
                Fragment::Instance(instance) => {
                    let definition = instance.definition;
                    let literals = if self.definitions.contains(&definition) {
                        None
                    } else {
                        self.definitions.push(definition);
                        self.definition(definition)
                    };
                    let slots =
                        (0..usize::from(instance.values.count())).filter_map(|index| instance.values.descriptor(index));
                    literals.or_else(|| {
                        slots.into_iter().find_map(|slot| match slot.stream() {
                            Some(stream) => self.stream(stream, depth + 1),
                            None => self.typed.value(instance.values.value(slot), self.find_word),
                        })
                    })
                }
            };
            if hit.is_some() {
                return hit;
            }
        }
        None
    }

    fn definition(&self, offset: u32) -> Option<Hit> {
        let definition = Definition::read(self.chunk, offset).ok()?;
        let template = self.reader.template(&definition).ok()?;
        self.element(template.root)
    }

    /// Texts and values that a template or a record spells out.
    fn element(&self, element: &Element<'_>) -> Option<Hit> {
        let attributes = element.attributes.iter().flat_map(|attribute| attribute.content);
        attributes.chain(element.content).find_map(|node| match node {
            Node::Value(value) => self.typed.value(*value, self.find_word),
            Node::CData(text) => self.typed.value(Value::new(Scalar::String, text), self.find_word),
            node => node.elements().find_map(|child| self.element(child)),
        })
    }
}
