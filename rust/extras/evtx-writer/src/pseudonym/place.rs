//! Where a value is in an event.

use super::names::is_in;

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

/// The event that a value belongs to, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Event {
    pub(super) provider: String,
    pub(super) id: Option<u64>,
}

/// An element that is open: its name, and its attribute `Name`.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    pub(super) name: String,
    pub(super) label: String,
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
    EventId,
    Provider,
    /// The older name of a provider.
    Source,
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

impl Event {
    /// Notes a value that says which event it is. If there are several, nobody knows.
    pub(super) fn note(&mut self, place: &Place, text: &str) {
        match place {
            Place::Provider if self.provider.is_empty() => self.provider = text.to_lowercase(),
            Place::Provider if !self.provider.eq_ignore_ascii_case(text) => self.provider = UNKNOWN.to_owned(),
            Place::EventId => self.id = text.parse().ok().filter(|id| self.id.is_none_or(|known| known == *id)),
            _ => {}
        }
    }
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
    pub(super) fn of(open: &[Open], attribute: Option<&str>) -> Self {
        let Some(last) = open.last() else { return Place::Unknown };
        let is = |at: usize, name| open.get(at).is_some_and(|open| open.name == name);
        if open.iter().any(|open| open.name == "RenderingInfo") {
            return Place::Rendering;
        }
        let in_system = is(0, "Event") && is(1, "System") && open.len() == 3;
        match attribute {
            Some("Name") if in_system && last.name == "Provider" => Place::Provider,
            Some("EventSourceName") if in_system && last.name == "Provider" => Place::Source,
            Some(name) if name == "Name" || name == "xmlns" || name.starts_with("xmlns:") => Place::Name,
            None if in_system && last.name == "EventID" => Place::EventId,
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
