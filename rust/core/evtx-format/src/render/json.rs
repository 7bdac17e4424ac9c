//! Elements as JSON, in the shape of `evtx_dump -o json`.
//!
//! - A leaf has neither attributes nor children. It becomes its value: a number, `true` or `false` for an integer or
//!   boolean, `null` if it is empty, otherwise a string.
//! - Any other element becomes an object, with the members `#attributes` and `#text` if it has attributes and text, and
//!   a member for each child. Repeated names are numbered: `name_1`, `name_2`.
//! - A `Data` child of `EventData` or `UserData` that has a `Name` becomes a member with that name. If no `Data` child
//!   has one, all of them become one member `Data`.

use hashbrown::HashMap;

use super::ops::{AcceptedShapes, AttributeOp, Compiler, Op, substitutions};
use crate::binxml::fields::FieldNamer;
use crate::binxml::tree::{Element, Node, push_nodes};
use crate::limits::MAX_TEXT;
use crate::value::text::{self, Escaping};
use crate::value::{Items, Value};

/// Compiles the value of a root element, without its name.
pub(crate) fn compile_root(compiler: &mut Compiler, root: &Element<'_>) {
    element(compiler, root, true);
}

/// Compiles the value of an element.
///
/// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds the levels.
fn element(compiler: &mut Compiler, element: &Element<'_>, root: bool) {
    if compiler.is_full() {
        return;
    }
    let has_children = element.elements().next().is_some();
    let has_text = has_literal_text(element.content);
    let content_substitutions: Vec<u16> = substitutions(element.content).collect();
    let has_open_attributes = take_attributes(compiler, element);
    let mut attribute_texts = element.attributes.iter().map(|attribute| attribute.content);
    let has_attributes = has_open_attributes || attribute_texts.any(has_literal_text);
    match (&content_substitutions[..], has_children) {
        _ if has_open_attributes && has_text => compiler.irregular = true,
        ([], true) => {
            let container = is_container(element.name);
            // A record that leaves out all children makes the element a leaf.
            let may_be_leaf = element.elements().all(|child| child.dependency.is_some());
            compiler.irregular |= may_be_leaf && (has_attributes || has_text);
            open_object(compiler, element, container, has_attributes, has_text, &[]);
            if may_be_leaf {
                compiler.op(Op::CloseOrNull);
            } else {
                compiler.literal("}");
            }
        }
        (members, true) if root && !has_text && !is_container(element.name) => {
            let last = element
                .content
                .iter()
                .rposition(|node| node.elements().next().is_some());
            let first = element
                .content
                .iter()
                .position(|node| matches!(node, Node::Substitution(_)));
            // The numbers of repeated names depend on the children before the stream.
            compiler.irregular |= first < last || element.elements().any(|child| child.dependency.is_some());
            open_object(compiler, element, false, has_attributes, false, members);
            compiler.literal("}");
        }
        ([], false) if !has_open_attributes => {
            if has_attributes {
                open_object(compiler, element, false, true, has_text, &[]);
                compiler.literal("}");
            } else if has_text {
                push_text_of(compiler, element.content, false);
            } else {
                compiler.literal("null");
            }
        }
        (&[substitution], false) if element.content.len() == 1 && !has_attributes => {
            compiler.take(substitution, AcceptedShapes::STREAMS);
            let container = is_container(element.name);
            compiler.op(Op::Leaf {
                substitution,
                container,
            });
        }
        (&[] | &[_], false) if element.content.len() == content_substitutions.len() => {
            let content = content_substitutions.first().copied();
            compiler.take_single(element.content);
            let attributes = attribute_ops(compiler, element);
            compiler.op(Op::Element { attributes, content });
        }
        _ => compiler.irregular = true,
    }
}

/// Restricts the substitutions in attributes to single values. Returns whether there are any.
fn take_attributes(compiler: &mut Compiler, element: &Element<'_>) -> bool {
    let attributes = element.attributes.iter();
    attributes.fold(false, |any, attribute| compiler.take_single(attribute.content) | any)
}

/// The attributes of an element, some of which are substitutions.
fn attribute_ops(compiler: &mut Compiler, element: &Element<'_>) -> Box<[AttributeOp]> {
    let attributes = element.attributes.iter().filter_map(|attribute| {
        let key = |compiler: &mut Compiler| _ = text::push_json_key(&mut compiler.literals, attribute.name, 0);
        match attribute.content {
            [Node::Substitution(substitution)] => Some(AttributeOp::Substitution {
                key: compiler.aside(key),
                substitution: substitution.index,
            }),
            content if substitutions(content).next().is_some() => {
                compiler.irregular = true;
                None
            }
            content => has_literal_text(content).then(|| {
                AttributeOp::Literal(compiler.aside(|compiler| {
                    key(compiler);
                    push_text_of(compiler, content, false);
                }))
            }),
        }
    });
    attributes.collect()
}

fn has_literal_text(content: &[Node<'_>]) -> bool {
    content
        .iter()
        .any(|node| !matches!(node, Node::Substitution(_)) && node.is_text())
}

/// Whether the `Data` children of an element become members named by their `Name`.
fn is_container(name: &str) -> bool {
    matches!(name, "EventData" | "UserData")
}

/// Writes an object, without the brace at its end.
fn open_object(
    compiler: &mut Compiler,
    element: &Element<'_>,
    container: bool,
    attributes: bool,
    text: bool,
    members: &[u16],
) {
    let mut object = Object::open(compiler);
    let mut texts = element.attributes.iter().map(|attribute| attribute.content);
    if attributes && texts.clone().any(|text| substitutions(text).next().is_some()) {
        let attributes = attribute_ops(compiler, element);
        compiler.op(Op::Attributes(attributes));
        object.has_member = texts.any(has_literal_text).then_some(true);
    } else if attributes {
        object.key(compiler, "#attributes", 0);
        push_attributes(compiler, element);
    }
    if text {
        object.key(compiler, "#text", 0);
        push_text_of(compiler, element.content, true);
    }
    if container {
        push_container(compiler, &mut object, element);
    } else {
        let mut counts = Counts::default();
        for child in element.elements() {
            push_child(compiler, &mut object, child, &mut counts);
        }
    }
    for &substitution in members {
        compiler.take(substitution, AcceptedShapes::STREAMS);
        let names = element.elements().map(|child| child.name.into()).collect();
        compiler.op(Op::Members { substitution, names });
    }
    // The numbering of names would continue from one stream to the next.
    compiler.irregular |= members.len() > 1;
}

/// Writes a child as a member with the child's name.
fn push_child<'n>(compiler: &mut Compiler, object: &mut Object, child: &'n Element<'_>, counts: &mut Counts<'n>) {
    if compiler.is_full() {
        return;
    }
    let (number, any_guarded) = counts.count(child.name.as_bytes(), child.dependency.is_some());
    // Leaving out a child with a repeated name would renumber the others.
    compiler.irregular |= number > 0 && any_guarded;
    object.member(compiler, child.dependency, |object, compiler| {
        object.key(compiler, child.name, number);
        element(compiler, child, false);
    });
}

/// Writes the members of `EventData` or `UserData`.
fn push_container(compiler: &mut Compiler, object: &mut Object, element: &Element<'_>) {
    let children: Vec<&Element<'_>> = element.elements().collect();
    let is_data = |child: &Element<'_>| FieldNamer::is_numbered(child.name);
    let (mut names, mut length) = (Vec::with_capacity(children.len()), 0);
    for child in &children {
        let name = if is_data(child) {
            data_name(compiler, child)
        } else {
            None
        };
        length += name.as_ref().map_or(0, Vec::len);
        if length > MAX_TEXT {
            return compiler.fill();
        }
        names.push(name);
    }
    let named = names.iter().any(Option::is_some);
    let positional: Vec<&Element<'_>> = children
        .iter()
        .copied()
        .filter(|child| !named && is_data(child))
        .collect();
    if children
        .iter()
        .any(|child| is_data(child) && child.dependency.is_some())
    {
        // Leaving out a `Data` child can change the members of the others.
        compiler.irregular |= named || positional.len() > 1;
    }
    let mut counts = Counts::default();
    let mut data_counts = Counts::default();
    let mut positional_done = false;
    let mut at = 0;
    while at < children.len() {
        if compiler.is_full() {
            return;
        }
        let child = children[at];
        let first = at;
        at += 1;
        if !is_data(child) {
            push_child(compiler, object, child, &mut counts);
        } else if let Some(name) = &names[first] {
            // Consecutive `Data` children with one name are a JSON array: an array value repeated the element.
            while at < children.len() && is_data(children[at]) && names[at].as_ref() == Some(name) {
                at += 1;
            }
            object.escaped_key(compiler, name, data_counts.count(name, false).0);
            data(compiler, &children[first..at]);
        } else if !named && !positional_done {
            positional_done = true;
            object.member(compiler, child.dependency, |object, compiler| {
                object.key(compiler, "Data", 0);
                compiler.literal("{\"#text\":");
                data(compiler, &positional);
                compiler.literal("}");
            });
        }
    }
}

/// A JSON object that is being written.
struct Object {
    /// Whether it has a member; `None` if that depends on the record.
    has_member: Option<bool>,
}

impl Object {
    fn open(compiler: &mut Compiler) -> Self {
        compiler.literal("{");
        Object {
            has_member: Some(false),
        }
    }

    /// Writes a member. Records in which the value of `dependency` is NULL leave it out.
    fn member(
        &mut self,
        compiler: &mut Compiler,
        dependency: Option<u16>,
        write: impl FnOnce(&mut Self, &mut Compiler),
    ) {
        let before = self.has_member;
        compiler.guarded(dependency, |compiler| write(self, compiler));
        if dependency.is_some() && before != Some(true) {
            self.has_member = None;
        }
    }

    /// Writes the key of the next member, numbered if `number` is not 0.
    fn key(&mut self, compiler: &mut Compiler, name: &str, number: usize) {
        self.comma(compiler);
        text::push_json_key(&mut compiler.literals, name, number);
    }

    fn escaped_key(&mut self, compiler: &mut Compiler, name: &[u8], number: usize) {
        self.comma(compiler);
        text::push_escaped_json_key(&mut compiler.literals, name, number);
    }

    fn comma(&mut self, compiler: &mut Compiler) {
        match self.has_member {
            Some(true) => compiler.literal(","),
            Some(false) => {}
            None => compiler.op(Op::Comma),
        }
        self.has_member = Some(true);
    }
}

/// For each name, how often it occurred, and whether one of its members can be left out.
#[derive(Default)]
struct Counts<'n> {
    few: Vec<(&'n [u8], (usize, bool))>,
    many: HashMap<&'n [u8], (usize, bool)>,
}

impl<'n> Counts<'n> {
    /// So many names are searched one by one.
    const FEW: usize = 16;

    /// Counts a name. Returns how often it occurred before, and whether one of its members can be left out.
    fn count(&mut self, name: &'n [u8], guarded: bool) -> (usize, bool) {
        let mut at = self.few.iter().position(|(known, _)| *known == name);
        if at.is_none() && self.few.len() < Self::FEW {
            at = Some(self.few.len());
            self.few.push((name, (0, false)));
        }
        let (count, any_guarded) = match at {
            Some(at) => &mut self.few[at].1,
            None => self.many.entry(name).or_default(),
        };
        *count += 1;
        *any_guarded |= guarded;
        (*count - 1, *any_guarded)
    }
}

/// The escaped `Name` of a `Data` element; `None` if it is missing or empty.
fn data_name(compiler: &mut Compiler, element: &Element<'_>) -> Option<Vec<u8>> {
    let name = element.attribute("Name")?;
    // The name is the key of the member, so it must not depend on the record.
    compiler.irregular |= substitutions(name).next().is_some();
    if !name.iter().any(Node::is_text) {
        return None;
    }
    let mut text = Vec::new();
    push_nodes(&mut text, name, Escaping::Json, MAX_TEXT);
    Some(text)
}

/// Writes the value of one `Data` element, or the array of several.
fn data(compiler: &mut Compiler, data: &[&Element<'_>]) {
    let alone = data.len() == 1;
    if !alone {
        compiler.literal("[");
    }
    for (i, element) in data.iter().enumerate() {
        if compiler.is_full() {
            return;
        }
        if i > 0 {
            compiler.literal(",");
        }
        take_attributes(compiler, element);
        let has_text = has_literal_text(element.content);
        let has_children = element.elements().next().is_some();
        match (element.content, substitutions(element.content).next()) {
            ([Node::Substitution(substitution)], _) => {
                compiler.take(substitution.index, AcceptedShapes::ITEMS);
                compiler.op(Op::Data {
                    substitution: substitution.index,
                    alone,
                });
            }
            (_, Some(_)) => compiler.irregular = true,
            // Without `#attributes`: the `Name` is already the key.
            _ if has_children => {
                compiler.irregular |= element.elements().all(|child| child.dependency.is_some());
                open_object(compiler, element, false, false, has_text, &[]);
                compiler.literal("}");
            }
            (content, None) if has_text => push_text_of(compiler, content, false),
            _ => compiler.literal("\"\""),
        }
    }
    if !alone {
        compiler.literal("]");
    }
}

fn push_attributes(compiler: &mut Compiler, element: &Element<'_>) {
    compiler.literal("{");
    let attributes = element
        .attributes
        .iter()
        .filter(|attribute| attribute.content.iter().any(Node::is_text));
    for (i, attribute) in attributes.enumerate() {
        if compiler.is_full() {
            return;
        }
        if i > 0 {
            compiler.literal(",");
        }
        text::push_json_key(&mut compiler.literals, attribute.name, 0);
        push_text_of(compiler, attribute.content, false);
    }
    compiler.literal("}");
}

fn push_text_of(compiler: &mut Compiler, content: &[Node<'_>], mixed: bool) {
    let limit = compiler.limit;
    push_content(&mut compiler.literals, content, mixed, limit);
}

/// Appends content as text: a single integer or boolean without quotes, anything else as a string. With `mixed`, for
/// content with elements, only nodes of text count. Stops once `out` is longer than `limit` bytes.
pub fn push_content(out: &mut Vec<u8>, content: &[Node<'_>], mixed: bool, limit: usize) {
    let mut nodes = content.iter().filter(|node| !mixed || node.is_text());
    if let (Some(Node::Value(value)), None) = (nodes.next(), nodes.next())
        && value.is_json_literal()
    {
        value.push_text(out, Escaping::Json);
        return;
    }
    out.push(b'"');
    push_nodes(out, content, Escaping::Json, limit);
    out.push(b'"');
}

/// Appends the value of a leaf, or `empty` if the value is empty.
#[inline]
pub(crate) fn push_leaf(out: &mut Vec<u8>, value: Value<'_>, empty: &[u8]) {
    if value.is_empty() {
        out.extend_from_slice(empty);
    } else {
        push_value(out, value);
    }
}

/// Appends a value: an integer or boolean without quotes, anything else as a string.
#[inline]
fn push_value(out: &mut Vec<u8>, value: Value<'_>) {
    if value.is_json_literal() {
        return value.push_text(out, Escaping::Json);
    }
    out.push(b'"');
    value.push_text(out, Escaping::Json);
    out.push(b'"');
}

/// Appends the JSON array of the items of an array value.
pub fn push_array(out: &mut Vec<u8>, items: Items<'_>) {
    out.push(b'[');
    push_items(out, items);
    out.push(b']');
}

/// Appends the items of an array value, separated by commas.
pub(crate) fn push_items(out: &mut Vec<u8>, items: Items<'_>) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_value(out, item);
    }
}
