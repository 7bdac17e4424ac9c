//! The sink that builds a tree of elements.
//!
//! It fills templates as Windows does (MS-EVEN6, sections 2.2.12 and 3.1.4.7.5):
//! - An optional substitution whose value is empty leaves nothing. An attribute without content is left out.
//! - An element that depends on a NULL value is left out, unless it is the root of the template.
//! - The elements of a BinXML value take the place of the substitution.
//! - An array of two or more items repeats the element that holds it, once per item.

use std::ops::Range;

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;

use super::instance::{Definition, Instance, ValueTable};
use super::names::Name;
use super::sink::{Fault, Outcome, Sink};
use super::tree::{Attribute, Element, Node, Substitution};
use super::walk::{Extent, OUTSIDE, Reader};
use crate::bytes::Cursor;
use crate::error::{self, Error, ErrorKind};
use crate::limits::MAX_NESTING;
use crate::value::{Scalar, Value, ValueType};

/// What happens to substitutions.
#[derive(Clone, Copy)]
pub(super) enum Substitutions<'a> {
    /// They stay in the tree of a definition, to be compiled.
    Open,
    /// The values of a record fill them.
    Filled(ValueTable<'a>),
    /// They are an error, because a record's own stream has no value table.
    Forbidden,
    /// They replace the texts that are not part of an [implicit template](super::ImplicitTemplate). Holds the index of
    /// the next.
    ForTexts(u16),
}

/// The attribute whose text is part of an implicit template.
pub(super) const GIVEN_NAME: &str = "Name";

const STRING: ValueType = ValueType {
    scalar: Scalar::String,
    array: false,
};

/// The bytes of a string; `None` for other nodes.
#[inline(always)]
pub(super) fn string(node: Node<'_>) -> Option<&[u8]> {
    match node {
        Node::Value(value) if value.value_type == STRING => Some(value.bytes),
        _ => None,
    }
}

/// A tree that the walk is building.
pub(super) struct TreeBuilder<'r, 'a, 'c> {
    reader: &'r Reader<'a, 'c>,
    substitutions: Substitutions<'a>,
    /// How many streams are around this one.
    depth: usize,
    /// How many elements are open around the stream.
    around: usize,
    /// The first `len` elements are open. The others were closed and are reused in place, because moving an element right
    /// after it was written is a store-forwarding stall.
    stack: BumpVec<'a, OpenElement<'a>>,
    /// How many elements of the stream are open.
    len: usize,
    roots: BumpVec<'a, Node<'a>>,
}

struct OpenElement<'a> {
    name: &'a str,
    dependency: Option<u16>,
    attributes: BumpVec<'a, Attribute<'a>>,
    /// The attribute whose value is being read.
    attribute: Option<(&'a str, BumpVec<'a, Node<'a>>)>,
    content: BumpVec<'a, Node<'a>>,
    /// Whether its content or an attribute holds an array that repeats it.
    repeats: bool,
    /// Whether the element, or one around it, is left out for a NULL value. Its values are ignored.
    left_out: bool,
}

impl<'r, 'a, 'c: 'a> TreeBuilder<'r, 'a, 'c> {
    /// A builder of an empty tree. `depth` streams and `around` open elements are around it.
    pub(super) fn new(
        reader: &'r Reader<'a, 'c>,
        substitutions: Substitutions<'a>,
        depth: usize,
        around: usize,
    ) -> Self {
        TreeBuilder {
            reader,
            substitutions,
            depth,
            around,
            stack: BumpVec::new_in(reader.arena),
            len: 0,
            roots: BumpVec::new_in(reader.arena),
        }
    }

    /// The elements at the top of the tree.
    pub(super) fn into_roots(self) -> &'a [Node<'a>] {
        self.roots.into_bump_slice()
    }

    /// The innermost element that is open.
    #[inline]
    fn last(&self) -> Option<&OpenElement<'a>> {
        self.stack[..self.len].last()
    }

    #[inline]
    fn last_mut(&mut self) -> Option<&mut OpenElement<'a>> {
        self.stack[..self.len].last_mut()
    }

    /// How many elements are open around the current node.
    fn open(&self) -> usize {
        self.around + self.len
    }

    /// Adds a node of an element with an implicit template: a substitution in place of a text.
    #[cold]
    fn open_text(&mut self, mut node: Node<'a>, next: u16) -> Outcome {
        let Some(element) = self.stack[..self.len].last_mut() else {
            return Ok(());
        };
        let is_given = (element.attribute.as_ref()).is_some_and(|(name, _)| *name == GIVEN_NAME);
        if !is_given && string(node).is_some_and(|units| !units.is_empty()) {
            node = Node::Substitution(Substitution {
                index: next,
                declared: STRING,
                optional: false,
            });
            self.substitutions = Substitutions::ForTexts(next + 1);
        }
        match &mut element.attribute {
            Some((_, value)) => value.push(node),
            None => element.content.push(node),
        }
        Ok(())
    }

    /// Adds an element of a nested stream or instance at the current node.
    fn embed(&mut self, root: Node<'a>) -> Outcome {
        self.reader.count_node()?;
        match self.last_mut() {
            Some(parent) => parent.content.push(root),
            None => self.roots.push(root),
        }
        Ok(())
    }
}

impl<'a, 'c: 'a> Sink<'a> for TreeBuilder<'_, 'a, 'c> {
    fn name_ref(&mut self, at: usize) {
        if matches!(self.substitutions, Substitutions::Open) {
            self.reader.name_refs.borrow_mut().push(at as u32);
        }
    }

    fn start(&mut self, name: &'a Name<'a>, dependency: Option<u16>) -> Outcome {
        // A root is never left out.
        let left_out = match (self.last(), self.substitutions, dependency) {
            (None, ..) => false,
            (Some(parent), ..) if parent.left_out => true,
            (Some(_), Substitutions::Filled(values), Some(substitution)) => {
                values.get(substitution).is_some_and(Value::is_null)
            }
            _ => false,
        };
        if self.len == self.stack.len() {
            self.stack.push(OpenElement::new(self.reader.arena));
        }
        let element = &mut self.stack[self.len];
        element.name = name.text;
        element.dependency = dependency;
        element.repeats = false;
        element.left_out = left_out;
        self.len += 1;
        Ok(())
    }

    fn attribute(&mut self, name: &'a Name<'a>) {
        let arena = self.reader.arena;
        if let Some(element) = self.last_mut() {
            element.end_attribute();
            element.attribute = Some((name.text, BumpVec::new_in(arena)));
        }
    }

    // Inlined, so that a node is written in its final place: moving it right after is a store-forwarding stall.
    #[inline(always)]
    fn attribute_content(&mut self, node: Node<'a>) -> Outcome {
        if let Substitutions::ForTexts(next) = self.substitutions {
            return self.open_text(node, next);
        }
        if let Some(element) = self.last_mut()
            && let Some((_, value)) = &mut element.attribute
        {
            element.repeats |= repeats(&node);
            value.push(node);
        }
        Ok(())
    }

    fn end_start(&mut self) {
        if let Some(element) = self.last_mut() {
            element.end_attribute();
        }
    }

    #[inline(always)]
    fn content(&mut self, node: Node<'a>) -> Outcome {
        if let Substitutions::ForTexts(next) = self.substitutions {
            return self.open_text(node, next);
        }
        if let Some(parent) = self.last_mut() {
            parent.repeats |= repeats(&node);
            parent.content.push(node);
        }
        Ok(())
    }

    fn end(&mut self, self_closing: bool) -> Outcome {
        let arena = self.reader.arena;
        let Some(open) = self.stack[..self.len].last_mut() else {
            return Ok(());
        };
        let (name, dependency) = (
            open.name,
            open.dependency
                .filter(|_| matches!(self.substitutions, Substitutions::Open)),
        );
        let attributes: &[_] = std::mem::replace(&mut open.attributes, BumpVec::new_in(arena)).into_bump_slice();
        let content: &[_] = std::mem::replace(&mut open.content, BumpVec::new_in(arena)).into_bump_slice();
        let (left_out, repeats) = (open.left_out, open.repeats);
        self.len -= 1;
        if left_out {
            return Ok(());
        }
        let element = || Element {
            name,
            attributes,
            content,
            dependency,
            self_closing,
        };
        let Some(parent) = self.stack[..self.len].last_mut() else {
            // A root is not repeated.
            self.roots.push(Node::Element(arena.alloc_with(element)));
            return Ok(());
        };
        if repeats {
            let mut copies = BumpVec::new_in(arena);
            self.reader.repeat(element(), &mut copies)?;
            parent.content.push(Node::Repeated(copies.into_bump_slice()));
        } else {
            parent.content.push(Node::Element(arena.alloc_with(element)));
        }
        Ok(())
    }

    fn stream(&mut self, stream: Range<usize>) -> Result<bool, Fault> {
        let roots = self.reader.nested(stream, self.depth + 1, self.open()).map_err(Ok)?;
        for &root in roots {
            self.embed(root).map_err(Err)?;
        }
        Ok(!roots.is_empty())
    }

    fn instance(&mut self, instance: &Instance<'a>) -> Result<(), Fault> {
        let root = self.reader.fill(instance, self.depth, self.open()).map_err(Ok)?;
        self.embed(Node::Element(root)).map_err(Err)
    }

    fn substitution(&mut self, substitution: Substitution, in_attribute: bool) -> Result<(), Fault> {
        let node = match self.substitutions {
            Substitutions::Forbidden | Substitutions::ForTexts(_) => {
                return Err(Err(ErrorKind::SubstitutionOutsideTemplate));
            }
            _ if self.len == 0 => return Err(Err(ErrorKind::Structure(OUTSIDE))),
            Substitutions::Open => Node::Substitution(substitution),
            Substitutions::Filled(values) => {
                let descriptor = values.descriptor(usize::from(substitution.index));
                let left_out = self.last().is_some_and(|element| element.left_out);
                let Some(descriptor) = descriptor.filter(|_| !left_out) else {
                    return Ok(());
                };
                if let Some(stream) = descriptor.stream() {
                    if in_attribute {
                        return Err(Err(ErrorKind::ElementInAttribute));
                    }
                    return self.stream(stream).map(drop);
                }
                let value = values.value(descriptor);
                if substitution.optional && value.is_empty() {
                    return Ok(());
                }
                Node::Value(value)
            }
        };
        self.reader.count_node().map_err(Err)?;
        let taken = if in_attribute {
            self.attribute_content(node)
        } else {
            self.content(node)
        };
        taken.map_err(Err)
    }
}

/// Whether a node repeats the element that holds it.
#[inline]
fn repeats(node: &Node<'_>) -> bool {
    matches!(node, Node::Value(value) if value.repeats())
}

impl<'a> OpenElement<'a> {
    /// An unused entry of the stack.
    #[cold]
    fn new(arena: &'a Bump) -> Self {
        OpenElement {
            name: "",
            dependency: None,
            attributes: BumpVec::new_in(arena),
            attribute: None,
            content: BumpVec::new_in(arena),
            repeats: false,
            left_out: false,
        }
    }

    fn end_attribute(&mut self) {
        if let Some((name, value)) = self.attribute.take()
            && !value.is_empty()
        {
            let content = value.into_bump_slice();
            self.attributes.push(Attribute { name, content });
        }
    }
}

impl<'a, 'c: 'a> Reader<'a, 'c> {
    pub(super) fn fill(&self, instance: &Instance<'a>, depth: usize, open: usize) -> error::Result<&'a Element<'a>> {
        instance.values.check()?;
        let definition = Definition::read(self.chunk, instance.definition)?;
        self.definition_root(&definition, Substitutions::Filled(instance.values), depth, open)
    }

    pub(super) fn definition_root(
        &self,
        definition: &Definition,
        substitutions: Substitutions<'a>,
        depth: usize,
        open: usize,
    ) -> error::Result<&'a Element<'a>> {
        let start = definition.body as usize;
        let mut cursor = Cursor::new(self.chunk, start, start + definition.size as usize);
        let mut tree = TreeBuilder::new(self, substitutions, depth, open);
        self.walk(&mut cursor, &mut tree, Extent::Definition, open)?;
        match tree.into_roots() {
            &[Node::Element(root)] => Ok(root),
            roots => Err(Error::new(start, ErrorKind::DefinitionRoots(roots.len()))),
        }
    }

    pub(super) fn nested(&self, stream: Range<usize>, depth: usize, open: usize) -> error::Result<&'a [Node<'a>]> {
        if depth > MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        let mut cursor = Cursor::new(self.chunk, stream.start, stream.end);
        let mut tree = TreeBuilder::new(self, Substitutions::Forbidden, depth, open);
        self.walk(&mut cursor, &mut tree, Extent::Stream, open)?;
        Ok(tree.into_roots())
    }

    /// Appends the copies of an element that its arrays make: one for each item of the first array. The next array repeats
    /// each copy. Arrays in the content come before arrays in attributes.
    fn repeat(&self, element: Element<'a>, copies: &mut BumpVec<'a, Element<'a>>) -> Outcome {
        let array = |nodes: &'a [Node<'a>]| {
            nodes.iter().enumerate().find_map(|(i, node)| match node {
                Node::Value(value) if value.repeats() => Some((i, *value)),
                _ => None,
            })
        };
        if let Some((at, value)) = array(element.content) {
            for item in value.items() {
                let content = self.replace(element.content, at, item)?;
                self.repeat(Element { content, ..element }, copies)?;
            }
            return Ok(());
        }
        let mut attributes = element.attributes.iter().enumerate();
        let Some((which, (at, value))) = attributes.find_map(|(i, a)| array(a.content).map(|found| (i, found))) else {
            self.count_node()?;
            copies.push(element);
            return Ok(());
        };
        for item in value.items() {
            let mut attributes = BumpVec::from_iter_in(element.attributes.iter().copied(), self.arena);
            attributes[which].content = self.replace(attributes[which].content, at, item)?;
            attributes.retain(|attribute| !attribute.content.is_empty());
            let attributes = attributes.into_bump_slice();
            self.repeat(Element { attributes, ..element }, copies)?;
        }
        Ok(())
    }

    /// Content with one node replaced by an item of an array, or without the node if the item is empty.
    fn replace(&self, content: &'a [Node<'a>], at: usize, item: Value<'a>) -> Result<&'a [Node<'a>], ErrorKind> {
        let nodes = content.iter().enumerate().filter_map(|(i, node)| {
            let node = if i == at { Node::Value(item) } else { *node };
            (i != at || !item.is_empty()).then_some(node)
        });
        content.iter().try_for_each(|_| self.count_node())?;
        Ok(BumpVec::from_iter_in(nodes, self.arena).into_bump_slice())
    }
}
