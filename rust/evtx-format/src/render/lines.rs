//! Elements as a list of values, each with its name: as lines `name: value`, or as fields, which end with bytes that
//! UTF-8 does not have.
//!
//! - An element gives its attributes, as `Element.attribute`, and then its content in order: each piece of text between
//!   two child elements is a value with the name of the element, and each child element gives values of its own. Empty
//!   values are left out.
//! - `Data` and `ComplexData` have the name that their attribute `Name` says. `Data` without such a name is `param1`,
//!   `param2`, … among its siblings, as in `event_data`.
//! - An array that repeats its element gives a value for each of its items; without a name, each is the next `param`.
//! - Declarations of namespaces are left out.

use super::ops::{AcceptedShapes, Compiler, Language, Op, substitutions};
use crate::binxml::tree::{Attribute, Element, Node, push_nodes};
use crate::limits::MAX_TEXT;
use crate::value::Value;
use crate::value::text::Form;

/// The byte behind the name of a field. UTF-8 does not have it.
pub const END_OF_NAME: u8 = 0xff;

/// The byte behind the value of a field. UTF-8 does not have it.
pub const END_OF_VALUE: u8 = 0xfe;

/// What is written behind a name, and behind a value.
fn ends(language: Language) -> (&'static [u8], &'static [u8]) {
    match language {
        Language::Fields => (&[END_OF_NAME], &[END_OF_VALUE]),
        _ => (b": ", b"\n"),
    }
}

/// Compiles a root element, in [`Language::Lines`] or [`Language::Fields`]. No array repeats a root, and no dependency
/// leaves it out.
pub(crate) fn compile_root(compiler: &mut Compiler, language: Language, root: &Element<'_>) {
    let name = Unnamed::default().name(compiler, root);
    element(compiler, language, root, name, true);
}

/// The name of the values of an element.
#[derive(Clone, Copy)]
enum Name<'e> {
    /// The name of the element.
    Own(&'e str),
    /// The text of its attribute `Name`.
    Given(&'e [Node<'e>]),
    /// `param` and a number: which of the `Data` siblings without a name it is, from 1.
    Param(usize),
}

impl Name<'_> {
    /// Appends the name. If it is longer than [`MAX_TEXT`] bytes, it is cut somewhere behind this length.
    fn push(self, out: &mut Vec<u8>) {
        match self {
            Name::Own(name) => out.extend_from_slice(name.as_bytes()),
            Name::Given(content) => {
                let limit = out.len() + MAX_TEXT;
                push_nodes(out, content, Form::Plain, limit);
            }
            Name::Param(number) => out.extend_from_slice(format!("param{number}").as_bytes()),
        }
    }
}

/// The `Data` siblings without a name that came before an element.
#[derive(Default)]
struct Unnamed {
    count: usize,
    /// Whether a dependency can leave one of them out, which changes the names of the later ones.
    any_guarded: bool,
}

impl Unnamed {
    /// The name of the values of the next sibling.
    fn name<'e>(&mut self, compiler: &mut Compiler, element: &Element<'e>) -> Name<'e> {
        if is_called(element) {
            let content = element.attribute("Name").unwrap_or_default();
            // The name becomes a part of literals, so it must not depend on the record.
            compiler.irregular |= substitutions(content).next().is_some();
            if has_text(content) {
                return Name::Given(content);
            }
        }
        if element.name != "Data" {
            return Name::Own(element.name);
        }
        compiler.irregular |= self.any_guarded;
        self.any_guarded |= element.dependency.is_some();
        self.count += 1;
        Name::Param(self.count)
    }
}

/// Whether the attribute `Name` of an element is the name of its values.
fn is_called(element: &Element<'_>) -> bool {
    matches!(element.name, "Data" | "ComplexData")
}

/// Compiles an element, whose values have a name.
///
/// Recurses once per level of the tree. [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds the levels.
fn element(compiler: &mut Compiler, language: Language, element: &Element<'_>, name: Name<'_>, root: bool) {
    let mut has_attributes = false;
    for attribute in element.attributes {
        substitutions(attribute.content).for_each(|substitution| compiler.take(substitution, AcceptedShapes::SINGLE));
        if is_value(element, attribute) {
            has_attributes = true;
            value(compiler, language, name, Some(attribute.name), attribute.content);
        }
    }
    let mut children = Unnamed::default();
    let is_element = |node: &Node<'_>| matches!(node, Node::Element(_) | Node::Repeated(_));
    for run in element.content.chunk_by(|a, b| !is_element(a) && !is_element(b)) {
        if compiler.is_full() {
            return;
        }
        match run {
            [Node::Element(child)] => {
                let name = children.name(compiler, child);
                compiler.guarded(child.dependency, |compiler| {
                    self::element(compiler, language, child, name, false);
                });
            }
            [Node::Repeated(copies)] => repeated(compiler, language, copies, &mut children),
            [Node::Substitution(substitution)] => {
                let is_all = element.content.len() == 1;
                // An array repeats the whole element, and here only this value is written for each item. No array
                // repeats a root. The items of an array without a name have numbers, which the tree tells.
                let is_numbered = matches!(name, Name::Param(_));
                let takes = match is_all && !has_attributes && !root && !is_numbered {
                    true => AcceptedShapes::ANY,
                    false => AcceptedShapes::STREAMS,
                };
                compiler.take(substitution.index, takes);
                value(compiler, language, name, None, run);
            }
            run if has_text(run) => {
                // The elements of a stream would split the text in two.
                substitutions(run).for_each(|substitution| compiler.take(substitution, AcceptedShapes::SINGLE));
                value(compiler, language, name, None, run);
            }
            // How many values these make depends on which of them have text. So only streams are written here, and a
            // record with text in one of them is rendered from its tree.
            run => substitutions(run).for_each(|substitution| {
                compiler.take(substitution, AcceptedShapes::STREAMS);
                compiler.op(Op::Elements { substitution, language });
            }),
        }
    }
}

/// Compiles the copies of an element that an array repeats. The copies of one array have one name, if it has a name.
fn repeated(compiler: &mut Compiler, language: Language, copies: &[Element<'_>], siblings: &mut Unnamed) {
    let mut last: Option<(&Element<'_>, Name<'_>)> = None;
    for copy in copies {
        if compiler.is_full() {
            return;
        }
        // The copies that one array has made share their attributes.
        let name = match last {
            Some((before, name @ (Name::Own(_) | Name::Given(_))))
                if std::ptr::eq(before.attributes, copy.attributes) =>
            {
                name
            }
            _ => siblings.name(compiler, copy),
        };
        last = Some((copy, name));
        element(compiler, language, copy, name, false);
    }
}

/// Compiles the text of an attribute, or a piece of the text of an element, as a value.
fn value(compiler: &mut Compiler, language: Language, name: Name<'_>, attribute: Option<&str>, content: &[Node<'_>]) {
    let (behind_name, behind_value) = ends(language);
    let open = |compiler: &mut Compiler| {
        name.push(&mut compiler.literals);
        if let Some(attribute) = attribute {
            compiler.literal(".");
            compiler.literal(attribute);
        }
        compiler.literals.extend_from_slice(behind_name);
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
                    form: Form::Plain,
                }),
                node => node.push_text(&mut compiler.literals, Form::Plain),
            }
        }
        compiler.literals.extend_from_slice(behind_value);
        return;
    }
    let mut substitutions = substitutions(content);
    match (substitutions.next(), substitutions.next()) {
        (None, _) => {}
        (Some(substitution), None) => {
            let open = compiler.aside(open);
            let close = compiler.aside(|compiler| compiler.literals.extend_from_slice(behind_value));
            compiler.op(Op::Line {
                substitution,
                open,
                close,
                language,
            });
        }
        // The value is empty if each of several substitutions is. No operation can tell that.
        _ => compiler.irregular = true,
    }
}

/// Whether an attribute is a value: it neither declares a namespace nor names the values of its element.
fn is_value(element: &Element<'_>, attribute: &Attribute<'_>) -> bool {
    let is_name = attribute.name == "Name" && is_called(element);
    !is_name && attribute.name != "xmlns" && !attribute.name.starts_with("xmlns:")
}

/// Whether content has text in every record.
fn has_text(content: &[Node<'_>]) -> bool {
    let is_text = |node: &Node<'_>| match node {
        Node::Substitution(_) => false,
        // An array of one item counts as this item, which can be empty.
        Node::Value(value) => !value.single().is_empty(),
        node => node.is_text(),
    };
    content.iter().any(is_text)
}

/// Appends a value, with `open` before it and `close` behind it. Appends nothing if the value is empty.
#[inline]
pub(crate) fn push_line(out: &mut Vec<u8>, open: &[u8], value: Value<'_>, close: &[u8]) {
    if !value.single().is_empty() {
        out.extend_from_slice(open);
        value.push_text(out, Form::Plain);
        out.extend_from_slice(close);
    }
}
