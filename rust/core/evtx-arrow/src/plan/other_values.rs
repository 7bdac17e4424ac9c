//! The values of an event that are neither at a path of `System` nor entries of `EventData` or `UserData`: attributes,
//! and other children of `Event`, such as `RenderingInfo`.

use evtx_format::MAX_NAMES;
use evtx_format::binxml::tree::{Element, Node};

use super::content::{Guard, Irregular, deeper, is_substitution, plain};
use crate::schema::EventPath;

/// A child of `Event`.
#[derive(Clone, Copy)]
pub(super) struct ChildOfEvent<'e> {
    pub(super) element: &'e Element<'e>,
    /// Whether its leaves are entries.
    pub(super) has_entries: bool,
    pub(super) paths: &'e [EventPath],
}

pub(super) struct OtherValue<'v> {
    child: ChildOfEvent<'v>,
    element: &'v Element<'v>,
    attribute: Option<&'v str>,
    pub(super) content: &'v [Node<'v>],
    pub(super) guard: Guard,
}

impl OtherValue<'_> {
    /// The name: that of its element, or `Element.attribute`. If the child of `Event` has no entries, whose names these
    /// values share, its name and a dot come first.
    pub(super) fn name(&self) -> String {
        let mut name = String::new();
        if !self.child.has_entries && !std::ptr::eq(self.child.element, self.element) {
            name.push_str(self.child.element.name);
            name.push('.');
        }
        let given = self.element.attribute("Name").filter(|_| self.element.is_called());
        match given.map(|content| plain(content, MAX_NAMES)) {
            Some(given) if !given.is_empty() => name.push_str(&given),
            _ => name.push_str(self.element.name),
        }
        if let Some(attribute) = self.attribute {
            name.push('.');
            name.push_str(attribute);
        }
        name
    }
}

impl<'e> ChildOfEvent<'e> {
    /// Gives `each` the other values in an element of the child, in order. Fails if the name of a value depends on the
    /// record, or its presence on two substitutions.
    ///
    /// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](evtx_format::MAX_OPEN_ELEMENTS) bounds the levels.
    pub(super) fn values_in(
        self,
        element: &'e Element<'e>,
        guard: Guard,
        each: &mut dyn FnMut(OtherValue<'_>),
    ) -> Result<(), Irregular> {
        self.values_of(element, guard, false, each)
    }

    /// As [`values_in`](Self::values_in). `has_entries` is whether the attributes of the element are entries.
    fn values_of(
        self,
        element: &'e Element<'e>,
        guard: Guard,
        has_entries: bool,
        each: &mut dyn FnMut(OtherValue<'_>),
    ) -> Result<(), Irregular> {
        let value = |attribute, content| OtherValue {
            child: self,
            element,
            attribute,
            content,
            guard,
        };
        for attribute in element.attributes {
            if attribute.name == "Name" && element.is_called() {
                if attribute.content.iter().any(is_substitution) {
                    return Err(Irregular);
                }
                continue;
            }
            if !attribute.is_namespace() && !has_entries && !self.is_at_path(element, Some(attribute.name)) {
                each(value(Some(attribute.name), attribute.content));
            }
        }
        let is_user_data = self.has_entries && element.name == "UserData" && std::ptr::eq(element, self.element);
        let has_text = !self.has_entries && !self.is_at_path(element, None);
        let is_element = |node: &Node<'_>| node.elements().next().is_some();
        for siblings in element.content.chunk_by(|a, b| !is_element(a) && !is_element(b)) {
            for inner in siblings.iter().flat_map(Node::elements) {
                self.values_of(inner, deeper(guard, inner)?, is_user_data, each)?;
            }
            if has_text && !siblings.iter().any(is_element) {
                each(value(None, siblings));
            }
        }
        Ok(())
    }

    /// Whether the text of an element, or its attribute with a name, is at a path of `System`. Of several elements with
    /// one name, the first is.
    fn is_at_path(self, element: &Element<'_>, attribute: Option<&str>) -> bool {
        let is_it = |path: &EventPath| path.attribute == attribute && path.elements == ["System", element.name];
        let mut siblings = self.element.elements();
        self.element.name == "System"
            && self.paths.iter().any(is_it)
            && siblings
                .find(|sibling| sibling.name == element.name)
                .is_some_and(|first| std::ptr::eq(first, element))
    }
}
