//! Elements as a list of named values: lines `name: value`, or fields, which end with bytes that UTF-8 does not have.
//!
//! - An element yields its attributes, as `Element.attribute`, then its content in order. Each run of text between
//!   child elements is a value named after the element. Empty values are left out.
//! - `Data` and `ComplexData` are named by their attribute `Name`, other `Data` siblings `param1`, `param2`, … in
//!   order. Those in several `EventData` of an event count as siblings.
//! - An array that repeats its element yields one value per item. Without a name, each item is the next `param`.
//! - Namespace declarations are left out.
//! - A payload that is text yields the text.

use super::ops::{AcceptedShapes, Compiler, Language, Op, substitutions};
use crate::binxml::fields::{FieldNamer, Param};
use crate::binxml::tree::{Element, Node, push_nodes};
use crate::limits::MAX_TEXT;
use crate::value::Value;
use crate::value::text::Escaping;

/// The byte after the name of a field. It never occurs in UTF-8.
pub const END_OF_NAME: u8 = 0xff;

/// The byte after the value of a field. It never occurs in UTF-8.
pub const END_OF_VALUE: u8 = 0xfe;

/// The bytes after a name, and after a value.
fn ends(language: Language) -> (&'static [u8], &'static [u8]) {
    match language {
        Language::Fields => (&[END_OF_NAME], &[END_OF_VALUE]),
        _ => (b": ", b"\n"),
    }
}

/// Compiles a root element, which is never repeated or left out, to [`Language::Text`] or [`Language::Fields`].
pub(crate) fn compile_root(compiler: &mut Compiler, root: &Element<'_>) {
    let name = Unnamed::default().name(compiler, root);
    element(compiler, root, name, true, &mut Unnamed::default());
}

/// The name of the values of an element.
#[derive(Clone, Copy)]
enum Name<'e> {
    /// That of the element.
    Own(&'e str),
    /// What its attribute `Name` says.
    Given(&'e [Node<'e>]),
    /// `param` and a number: its position among the unnamed `Data` siblings, from 1.
    Param(usize),
}

impl Name<'_> {
    /// Appends the name. Cuts a name of more than [`MAX_TEXT`] bytes somewhere after that length.
    fn push(self, out: &mut Vec<u8>) {
        match self {
            Name::Own(name) => out.extend_from_slice(name.as_bytes()),
            Name::Given(content) => {
                let limit = out.len() + MAX_TEXT;
                push_nodes(out, content, Escaping::Plain, limit);
            }
            Name::Param(number) => out.extend_from_slice(Param(number).to_string().as_bytes()),
        }
    }
}

/// The unnamed `Data` siblings before an element.
#[derive(Default)]
struct Unnamed {
    namer: FieldNamer,
    /// Whether a dependency can leave one of them out, which renames the later ones.
    any_guarded: bool,
}

impl Unnamed {
    /// The name of the values of the next sibling.
    fn name<'e>(&mut self, compiler: &mut Compiler, element: &Element<'e>) -> Name<'e> {
        let given = element
            .attribute("Name")
            .filter(|_| element.is_called())
            .unwrap_or_default();
        // The name becomes a literal, so it must not depend on the record.
        compiler.irregular |= substitutions(given).next().is_some();
        if has_text(given) {
            return Name::Given(given);
        }
        if !FieldNamer::is_numbered(element.name) {
            return Name::Own(element.name);
        }
        compiler.irregular |= self.any_guarded;
        self.any_guarded |= element.dependency.is_some();
        Name::Param(self.namer.next_param())
    }
}

/// Compiles an element whose values are called `name`. `unnamed` numbers its children.
///
/// Recurses once per level of the tree. [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds the levels.
fn element(compiler: &mut Compiler, element: &Element<'_>, name: Name<'_>, root: bool, unnamed: &mut Unnamed) {
    let mut has_attributes = false;
    for attribute in element.attributes {
        compiler.take_single(attribute.content);
        if element.is_value(attribute) {
            has_attributes = true;
            value(compiler, name, Some(attribute.name), attribute.content);
        }
    }
    // Only the record says whether its payload is text.
    compiler.irregular |= element.is_payload() && substitutions(element.content).next().is_some();
    if let Some(text) = element.payload_text() {
        let (name_end, value_end) = ends(compiler.language);
        name.push(&mut compiler.literals);
        for piece in [name_end, text.as_bytes(), value_end] {
            compiler.literals.extend_from_slice(piece);
        }
        return;
    }
    let is_event = root && element.name == "Event";
    let mut of_fields = Unnamed::default();
    let is_element = |node: &Node<'_>| matches!(node, Node::Element(_) | Node::Repeated(_));
    for siblings in element.content.chunk_by(|a, b| !is_element(a) && !is_element(b)) {
        if compiler.is_full() {
            return;
        }
        match siblings {
            [Node::Element(child)] => {
                let name = unnamed.name(compiler, child);
                let has_fields = is_event && FieldNamer::has_fields(child.name);
                let mut own = Unnamed::default();
                let inner = if has_fields { &mut of_fields } else { &mut own };
                compiler.guarded(child.dependency, |compiler| {
                    self::element(compiler, child, name, false, inner);
                });
                of_fields.any_guarded |= has_fields && child.dependency.is_some();
            }
            [Node::Repeated(copies)] => repeated(compiler, copies, unnamed),
            [Node::Substitution(substitution)] => {
                let is_all = element.content.len() == 1;
                // This operation repeats only the value, not the element, and cannot number items.
                let is_numbered = matches!(name, Name::Param(_));
                let takes = if is_all && !has_attributes && !root && !is_numbered {
                    AcceptedShapes::ANY
                } else {
                    AcceptedShapes::STREAMS
                };
                compiler.take(substitution.index, takes);
                value(compiler, name, None, siblings);
            }
            siblings if has_text(siblings) => {
                // The elements of a stream would split the text.
                compiler.take_single(siblings);
                value(compiler, name, None, siblings);
            }
            // The number of values depends on which of these have text. A record with text in one needs the tree.
            siblings => substitutions(siblings).for_each(|substitution| {
                compiler.take(substitution, AcceptedShapes::STREAMS);
                compiler.op(Op::Elements { substitution });
            }),
        }
    }
}

/// Compiles the copies of an element that an array repeats. They share their name, unless they are unnamed.
fn repeated(compiler: &mut Compiler, copies: &[Element<'_>], siblings: &mut Unnamed) {
    let mut last: Option<(&Element<'_>, Name<'_>)> = None;
    for copy in copies {
        if compiler.is_full() {
            return;
        }
        // The copies of one array share their attributes.
        let name = match last {
            Some((before, name))
                if !matches!(name, Name::Param(_)) && std::ptr::eq(before.attributes, copy.attributes) =>
            {
                name
            }
            _ => siblings.name(compiler, copy),
        };
        last = Some((copy, name));
        element(compiler, copy, name, false, &mut Unnamed::default());
    }
}

/// Compiles the text of an attribute, or a run of an element's text, as a value.
fn value(compiler: &mut Compiler, name: Name<'_>, attribute: Option<&str>, content: &[Node<'_>]) {
    let (name_end, value_end) = ends(compiler.language);
    let open = |compiler: &mut Compiler| {
        name.push(&mut compiler.literals);
        if let Some(attribute) = attribute {
            compiler.literal(".");
            compiler.literal(attribute);
        }
        compiler.literals.extend_from_slice(name_end);
    };
    if has_text(content) {
        open(compiler);
        for node in content {
            if compiler.is_full() {
                return;
            }
            match node {
                Node::Substitution(substitution) => compiler.op(Op::Text {
                    substitution: substitution.index,
                    escaping: Escaping::Plain,
                }),
                node => node.push_text(&mut compiler.literals, Escaping::Plain),
            }
        }
        compiler.literals.extend_from_slice(value_end);
        return;
    }
    let mut substitutions = substitutions(content);
    match (substitutions.next(), substitutions.next()) {
        (None, _) => {}
        (Some(substitution), None) => {
            let open = compiler.aside(open);
            let close = compiler.aside(|compiler| compiler.literals.extend_from_slice(value_end));
            compiler.op(Op::Line {
                substitution,
                open,
                close,
            });
        }
        // No operation checks whether several substitutions are all empty.
        _ => compiler.irregular = true,
    }
}

/// Whether content has text in every record.
fn has_text(content: &[Node<'_>]) -> bool {
    let is_text = |node: &Node<'_>| match node {
        Node::Substitution(_) => false,
        // An array of one item counts as the item, which can be empty.
        Node::Value(value) => !value.single().is_empty(),
        node => node.is_text(),
    };
    content.iter().any(is_text)
}

/// Appends `open`, a value and `close`, unless the value is empty.
#[inline]
pub(crate) fn push_line(out: &mut Vec<u8>, open: &[u8], value: Value<'_>, close: &[u8]) {
    if !value.single().is_empty() {
        out.extend_from_slice(open);
        value.push_text(out, Escaping::Plain);
        out.extend_from_slice(close);
    }
}
