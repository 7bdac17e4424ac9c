//! Questions about an element of a tree and its content.

use evtx_format::binxml::tree::{Element, Node, push_nodes};
use evtx_format::value::text::Escaping;

/// A tree that no plan can express, because its structure depends on more than one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Irregular;

/// The substitution on which an element depends, if any: if its value is NULL, the element is left out.
pub(super) type Guard = Option<u16>;

/// The guard of an element inside an element with the guard `guard`. A plan cannot express two different guards.
pub(super) fn deeper(guard: Guard, element: &Element<'_>) -> Result<Guard, Irregular> {
    match (guard, element.dependency) {
        (guard, None) => Ok(guard),
        (None, dependency) => Ok(dependency),
        (Some(outer), Some(own)) if outer == own => Ok(guard),
        _ => Err(Irregular),
    }
}

/// Whether one of its children is in every record. An element whose children are all left out is a leaf.
pub(super) fn has_certain_child(element: &Element<'_>) -> bool {
    element.elements().any(|child| child.dependency.is_none())
}

/// The text of content. Ends after the first node that makes it longer than `limit` bytes.
pub(super) fn plain(content: &[Node<'_>], limit: usize) -> String {
    let mut text = Vec::new();
    push_nodes(&mut text, content, Escaping::Plain, limit);
    String::from_utf8(text).unwrap_or_default()
}

pub(super) fn is_substitution(node: &Node<'_>) -> bool {
    matches!(node, Node::Substitution(_))
}

pub(super) fn has_substitutions(element: &Element<'_>) -> bool {
    element.content.iter().any(is_substitution)
        || element
            .attributes
            .iter()
            .any(|attribute| attribute.content.iter().any(is_substitution))
        || element
            .elements()
            .any(|child| child.dependency.is_some() || has_substitutions(child))
}
