//! Elements as XML, as Windows shows them, without white space between elements.

use super::ops::{AcceptedShapes, Compiler, Op, substitutions};
use crate::binxml::tree::{Attribute, Element, Node, push_reference};
use crate::value::text::{self, Escaping};

/// Compiles a root element, which no array repeats and no dependency leaves out.
pub(crate) fn compile_root(compiler: &mut Compiler, root: &Element<'_>) {
    element(compiler, root, true);
}

/// Compiles an element.
///
/// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) bounds the levels.
fn element(compiler: &mut Compiler, element: &Element<'_>, root: bool) {
    if compiler.is_full() {
        return;
    }
    let attribute_substitutions = element
        .attributes
        .iter()
        .any(|attribute| substitutions(attribute.content).next().is_some());
    if let ([Node::Substitution(substitution)], false, false) = (element.content, root, attribute_substitutions) {
        let open = compiler.aside(|compiler| start_tag(compiler, element));
        let close = compiler.aside(|compiler| end_tag(compiler, element));
        compiler.take(substitution.index, AcceptedShapes::ANY);
        compiler.op(Op::Repeat {
            substitution: substitution.index,
            open,
            close,
        });
        return;
    }
    start_tag(compiler, element);
    for node in element.content {
        if compiler.is_full() {
            return;
        }
        match node {
            Node::Substitution(substitution) => {
                // An array repeats any element but a root.
                let takes = if root {
                    AcceptedShapes::ANY
                } else {
                    AcceptedShapes::STREAMS
                };
                compiler.take(substitution.index, takes);
                compiler.op(Op::Content {
                    substitution: substitution.index,
                });
            }
            Node::Element(_) | Node::Repeated(_) => {
                for child in node.elements() {
                    compiler.guarded(child.dependency, |compiler| self::element(compiler, child, false));
                }
            }
            _ => literal(compiler, node, false),
        }
    }
    end_tag(compiler, element);
}

/// Writes the start tag, or all of an element that closes as empty.
fn start_tag(compiler: &mut Compiler, element: &Element<'_>) {
    compiler.literal("<");
    compiler.literal(element.name);
    for attribute in element.attributes {
        self::attribute(compiler, attribute);
    }
    compiler.literal(if element.self_closing { "/>" } else { ">" });
}

fn end_tag(compiler: &mut Compiler, element: &Element<'_>) {
    if !element.self_closing {
        compiler.literal("</");
        compiler.literal(element.name);
        compiler.literal(">");
    }
}

fn attribute(compiler: &mut Compiler, attribute: &Attribute<'_>) {
    if compiler.is_full() {
        return;
    }
    let open = |compiler: &mut Compiler| {
        compiler.literal(" ");
        compiler.literal(attribute.name);
        compiler.literal("=\"");
    };
    compiler.take_single(attribute.content);
    let is_there = |node: &Node<'_>| match node {
        Node::Substitution(_) => false,
        Node::CData(_) => true,
        _ => node.is_text(),
    };
    if attribute.content.iter().any(is_there) {
        open(compiler);
        for node in attribute.content {
            if compiler.is_full() {
                return;
            }
            match node {
                Node::Substitution(substitution) => compiler.op(Op::Text {
                    substitution: substitution.index,
                    escaping: Escaping::XmlAttribute,
                }),
                _ => literal(compiler, node, true),
            }
        }
        compiler.literal("\"");
        return;
    }
    // The attribute is left out if its substitution is empty.
    let mut substitutions = substitutions(attribute.content);
    match (substitutions.next(), substitutions.next()) {
        (None, _) => {}
        (Some(substitution), None) => {
            let open = compiler.aside(open);
            compiler.op(Op::Attribute { substitution, open });
        }
        _ => compiler.irregular = true,
    }
}

/// Writes a node that is not a substitution. References stay references.
fn literal(compiler: &mut Compiler, node: &Node<'_>, in_attribute: bool) {
    let escaping = if in_attribute {
        Escaping::XmlAttribute
    } else {
        Escaping::XmlText
    };
    let out = &mut compiler.literals;
    match *node {
        Node::EntityRef(name) => push_reference(out, name),
        Node::CharRef(number) => push_reference(out, &format!("#{number}")),
        Node::CData(text) if !in_attribute => push_cdata(out, text),
        _ => node.push_text(out, escaping),
    }
}

/// Appends a CDATA section, which is split at each `]]>` in its text.
fn push_cdata(out: &mut Vec<u8>, text: &[u8]) {
    let mut raw = Vec::new();
    text::push_utf16(&mut raw, text, Escaping::Plain);
    out.extend_from_slice(b"<![CDATA[");
    let mut rest = &raw[..];
    while let Some(at) = memchr::memmem::find(rest, b"]]>") {
        out.extend_from_slice(&rest[..at + 2]);
        out.extend_from_slice(b"]]><![CDATA[");
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(b"]]>");
}
