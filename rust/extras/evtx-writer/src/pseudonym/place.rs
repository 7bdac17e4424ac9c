//! Where a value is in an event.

use std::rc::Rc;

use evtx_format::binxml::tree::{Element, Node};
use evtx_format::value::{Scalar, Value};

use super::names::is_in;
use crate::editor::text_of;

/// Elements and attributes of `System` that hold numbers, GUIDs and times.
pub(super) const SYSTEM: &str = "EventID Qualifiers Version Level Task Opcode Keywords SystemTime RawTime EventRecordID ActivityID \
                      RelatedActivityID ProcessID ThreadID ProcessorID SessionID KernelTime UserTime ProcessorTime Guid";
/// Those of them that have 64 bits.
const LONG: [&str; 3] = ["Keywords", "EventRecordID", "RawTime"];

/// Fields that name accounts, domains and machines, in lower case. `*` stands for any text.
const NAMING: &str = "*user *username *accountname *account *domain* computer* *computer *computername *workstation* \
                      *hostname *machinename *servername sharename *clientname *membername *principalname* displayname *owner \
                      usercontext";

/// A name that no provider and no field has.
pub(super) const UNKNOWN: &str = "\0";

/// The event that a value belongs to. If it names several providers or IDs, nobody knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) provider: String,
    pub(super) id: Option<u64>,
}

/// An element that is open: its name, and its attribute `Name`.
#[derive(Debug)]
struct Open {
    name: String,
    label: String,
}

/// A part of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    /// The name of an element or attribute.
    Name(&'a str),
    Value(Value<'a>),
    Character(u16),
    Entity(&'a str),
}

/// Where a walk is in an event.
#[derive(Debug)]
pub(super) struct Position<'a> {
    pub(super) event: Rc<Event>,
    open: Vec<Open>,
    attribute: Option<&'a str>,
}

/// Passes each part of an event with its position, until one is an error.
pub(super) fn walk<'a, E>(
    root: &Element<'a>,
    mut visit: impl FnMut(&Position<'a>, Seen<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut event = Event::default();
    let is_system = |element: &&Element<'_>| root.name == "Event" && element.name == "System";
    let systems = root.elements().filter(is_system);
    for element in systems.flat_map(|system| system.elements()) {
        match element.name {
            "Provider" => {
                let name = text_of(element.attribute("Name").unwrap_or_default()).to_lowercase();
                let is_same = event.provider.is_empty() || event.provider == name;
                event.provider = if is_same { name } else { UNKNOWN.to_owned() };
            }
            "EventID" => {
                let id = text_of(element.content).parse().ok();
                event.id = id.filter(|id| event.id.is_none_or(|known| known == *id));
            }
            _ => {}
        }
    }
    let mut position = Position {
        event: Rc::new(event),
        open: Vec::new(),
        attribute: None,
    };
    position.element(root, &mut visit)
}

impl<'a> Position<'a> {
    /// The place of a value here.
    pub(super) fn place(&self) -> Place {
        Place::of(&self.open, self.attribute)
    }

    /// The names that lead here.
    pub(super) fn path(&self) -> String {
        let open = self.open.iter();
        let names = open.map(|open| if open.label.is_empty() { &open.name } else { &open.label });
        let path: Vec<&str> = names.map(String::as_str).chain(self.attribute).collect();
        path.join("/")
    }

    fn element<E>(
        &mut self,
        element: &Element<'a>,
        visit: &mut impl FnMut(&Self, Seen<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let label = text_of(element.attribute("Name").unwrap_or_default());
        let name = element.name.to_owned();
        self.open.push(Open { name, label });
        visit(self, Seen::Name(element.name))?;
        for attribute in element.attributes {
            visit(self, Seen::Name(attribute.name))?;
            self.attribute = Some(attribute.name);
            self.nodes(attribute.content, visit)?;
            self.attribute = None;
        }
        self.nodes(element.content, visit)?;
        _ = self.open.pop();
        Ok(())
    }

    fn nodes<E>(
        &mut self,
        nodes: &[Node<'a>],
        visit: &mut impl FnMut(&Self, Seen<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        for node in nodes {
            match *node {
                Node::Value(value) => visit(self, Seen::Value(value))?,
                Node::CData(text) => visit(self, Seen::Value(Value::new(Scalar::String, text)))?,
                Node::CharRef(unit) => visit(self, Seen::Character(unit))?,
                Node::EntityRef(name) => visit(self, Seen::Entity(name))?,
                Node::Element(_) | Node::Repeated(_) | Node::Substitution(_) => {
                    node.elements().try_for_each(|element| self.element(element, visit))?;
                }
            }
        }
        Ok(())
    }
}

/// The place of a value in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A number of 32 bits, GUID or time of `System`.
    System,
    /// A number of 64 bits there.
    Long,
    /// The GUID of the provider.
    ProviderGuid,
    /// The name of the provider, or its older name.
    Provider,
    Channel,
    /// An attribute that is the name of a value, or declares a namespace.
    Name,
    /// A field of an event, by its name.
    Field(String),
    /// In `RenderingInfo`: texts that Windows made of the others.
    Rendering,
    /// In several places, or in none.
    Unknown,
}

impl Place {
    /// Whether it names accounts, domains or machines in every event.
    pub(super) fn is_naming(&self) -> bool {
        let Place::Field(name) = self else { return false };
        NAMING.split_whitespace().any(|pattern| {
            let (start, end) = (pattern.strip_prefix('*'), pattern.strip_suffix('*'));
            let inner = pattern.trim_matches('*');
            match (start, end) {
                (Some(_), Some(_)) => name.contains(inner),
                (Some(_), None) => name.ends_with(inner),
                (None, Some(_)) => name.starts_with(inner),
                (None, None) => name == inner,
            }
        })
    }

    pub(super) fn is_named(&self) -> bool {
        matches!(self, Place::Field(name) if name.ends_with("name"))
    }

    /// The place of content of the innermost element, or of one of its attributes.
    fn of(open: &[Open], attribute: Option<&str>) -> Self {
        let Some(last) = open.last() else { return Place::Unknown };
        let is = |at: usize, name| open.get(at).is_some_and(|open| open.name == name);
        if open.iter().any(|open| open.name == "RenderingInfo") {
            return Place::Rendering;
        }
        let in_system = is(0, "Event") && is(1, "System") && open.len() == 3;
        match attribute {
            Some("Name" | "EventSourceName") if in_system && last.name == "Provider" => Place::Provider,
            Some(name) if name == "Name" || name == "xmlns" || name.starts_with("xmlns:") => Place::Name,
            None if in_system && last.name == "Channel" => Place::Channel,
            None if !last.label.is_empty() => Place::Field(last.label.to_lowercase()),
            _ => match attribute.unwrap_or(&last.name) {
                "Guid" if in_system => Place::ProviderGuid,
                name if in_system && LONG.contains(&name) => Place::Long,
                name if in_system && is_in(SYSTEM, name) => Place::System,
                name => Place::Field(name.to_lowercase()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_system_have_their_width() {
        let open = |name: &str| Open {
            name: name.to_owned(),
            label: String::new(),
        };
        for (element, attribute, expected) in [
            ("Execution", Some("ProcessID"), Place::System),
            ("EventRecordID", None, Place::Long),
            ("Keywords", None, Place::Long),
            ("Provider", Some("Guid"), Place::ProviderGuid),
            ("Correlation", Some("ActivityID"), Place::System),
        ] {
            let path = ["Event", "System", element].map(open);
            assert_eq!(Place::of(&path, attribute), expected, "{element}");
        }
    }
}
