//! What an event is made of: templates, instances, elements and values.

use std::sync::Arc;

/// The least bytes of a run of text that becomes a value. A value takes eight bytes more than its text.
const LONG_RUN: usize = 64;

/// A template definition: an element with substitutions.
#[derive(Debug, PartialEq)]
pub struct Template {
    pub(crate) guid: [u8; 16],
    pub(crate) root: Element,
}

impl Template {
    /// A template with a GUID, whose bytes are in the order of its text. All templates of a log need different GUIDs.
    pub fn new(guid: [u8; 16], root: Element) -> Arc<Self> {
        Arc::new(Template { guid, root })
    }
}

/// A typed value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Value {
    Null,
    String(String),
    /// Text in an 8-bit code page.
    AnsiString(Vec<u8>),
    Int8(i8),
    UInt8(u8),
    Int16(i16),
    UInt16(u16),
    Int32(i32),
    UInt32(u32),
    Int64(i64),
    UInt64(u64),
    Real32(f32),
    Real64(f64),
    Bool(bool),
    Binary(Vec<u8>),
    /// The bytes of the GUID in the order of its text.
    Guid([u8; 16]),
    /// 100 ns ticks since 1601-01-01 UTC.
    FileTime(u64),
    /// Year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime([u16; 8]),
    /// The identifier authority and the sub-authorities: the numbers after `S-1-`.
    Sid(u64, Vec<u32>),
    HexInt32(u32),
    HexInt64(u64),
    BinXml(Stream),
    StringArray(Vec<String>),
    UInt32Array(Vec<u32>),
    /// Any type byte and any bytes, which need not fit each other.
    Raw(u8, Vec<u8>),
}

/// An event: an instance of a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub(crate) template: Arc<Template>,
    pub(crate) values: Vec<Value>,
}

impl Event {
    /// The instance of a template with these values, by the index of their substitution.
    pub fn new(template: &Arc<Template>, values: Vec<Value>) -> Self {
        let template = Arc::clone(template);
        Event { template, values }
    }
}

/// A BinXML stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    pub(crate) fragments: Vec<Fragment>,
}

/// A fragment of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Fragment {
    /// A template instance.
    Instance(Event),
    /// An element that is spelled out, without a template.
    Element(Element),
}

impl Stream {
    /// A stream of these fragments. The stream of a record has one.
    pub fn new(fragments: Vec<Fragment>) -> Self {
        Stream { fragments }
    }
}

impl From<Event> for Stream {
    fn from(event: Event) -> Self {
        Stream::new(vec![Fragment::Instance(event)])
    }
}

/// An element.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, Vec<Content>)>,
    pub(crate) content: Vec<Content>,
    pub(crate) dependency: Option<u16>,
}

/// Content of an element or attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An element.
    Element(Element),
    /// Text.
    Text(String),
    /// A value of any type: its type byte and the bytes after it, which are the size, for some types, and the value.
    Value(u8, Vec<u8>),
    /// A CDATA section.
    CData(String),
    /// An entity reference, by name.
    EntityRef(String),
    /// A character reference.
    CharRef(u16),
    /// A substitution.
    Substitution(Substitution),
}

/// A substitution of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Substitution {
    pub(crate) index: u16,
    pub(crate) value_type: u8,
    pub(crate) optional: bool,
}

impl Substitution {
    /// An optional substitution: the index of its value, and the type byte that the template declares.
    pub fn new(index: u16, value_type: u8) -> Self {
        Substitution {
            index,
            value_type,
            optional: true,
        }
    }

    /// The same as a normal substitution, which an empty value does not leave out.
    pub fn required(self) -> Self {
        Substitution {
            optional: false,
            ..self
        }
    }
}

impl Element {
    /// An element without content.
    pub fn new(name: impl Into<String>) -> Self {
        Element {
            name: name.into(),
            ..Element::default()
        }
    }

    /// Adds an attribute with literal text.
    pub fn attribute(self, name: &str, text: impl Into<String>) -> Self {
        self.attribute_of(name, vec![Content::Text(text.into())])
    }

    /// Adds an attribute whose value is a substitution.
    pub fn attribute_substitution(self, name: &str, substitution: Substitution) -> Self {
        self.attribute_of(name, vec![Content::Substitution(substitution)])
    }

    /// Adds an attribute with any content. Elements are not allowed in it.
    pub fn attribute_of(mut self, name: &str, content: Vec<Content>) -> Self {
        self.attributes.push((name.to_owned(), content));
        self
    }

    /// Adds a child element.
    pub fn child(self, child: Element) -> Self {
        self.content(Content::Element(child))
    }

    /// Adds text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.content(Content::Text(text.into()))
    }

    /// Adds a substitution.
    pub fn substitution(self, substitution: Substitution) -> Self {
        self.content(Content::Substitution(substitution))
    }

    /// Gives an element without content an end tag, as `<x></x>`.
    pub fn with_end_tag(self) -> Self {
        if self.content.is_empty() { self.text("") } else { self }
    }

    /// Adds any content.
    pub fn content(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// Makes the element depend on the value with an index. Events in which the value is NULL leave it out.
    pub fn depends_on(mut self, index: u16) -> Self {
        self.dependency = Some(index);
        self
    }

    /// Makes long runs of letters in its texts values, if Latin-1 and the code page of Western Europe have the same byte for
    /// each. They take half of the bytes.
    pub(crate) fn narrow(&mut self, values: &mut Vec<Value>) {
        let is_narrow = |letter: char| u8::try_from(letter).is_ok_and(|byte| !(0x80..0xA0).contains(&byte));
        for content in std::mem::take(&mut self.content) {
            let text = match content {
                Content::Text(text) if text.len() >= LONG_RUN => text,
                Content::Element(mut child) => {
                    child.narrow(values);
                    self.content.push(Content::Element(child));
                    continue;
                }
                other => {
                    self.content.push(other);
                    continue;
                }
            };
            let mut rest = &text[..];
            while let Some(first) = rest.chars().next() {
                let end = rest.find(|letter| is_narrow(letter) != is_narrow(first));
                let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
                self.content.push(if is_narrow(first) && run.len() >= LONG_RUN {
                    let value = Value::AnsiString(run.chars().map(|letter| letter as u8).collect());
                    let substitution = Substitution::new(values.len() as u16, value.value_type()).required();
                    values.push(value);
                    Content::Substitution(substitution)
                } else {
                    Content::Text(run.to_owned())
                });
                rest = after;
            }
        }
    }
}
