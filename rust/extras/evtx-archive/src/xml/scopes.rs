//! Namespaces (Namespaces in XML 1.0, 6): which one a name is in.

use quick_xml::escape::unescape;
use quick_xml::events::BytesStart;

/// The namespace of events. Some programs leave it out.
const EVENTS: &str = "http://schemas.microsoft.com/win/2004/08/events/event";

/// The most prefixes that are declared at once. Each name is looked up among them.
const MAX_PREFIXES: usize = 64;

/// The prefixes that are declared where a text is read, with their namespaces. The last ones count.
#[derive(Debug, Default)]
pub(super) struct Scopes(Vec<(String, String)>);

/// The prefix and the rest of a name.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.split_once(':').unwrap_or(("", name))
}

impl Scopes {
    /// How many prefixes are declared.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all but so many prefixes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Adds the prefixes that a tag declares.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) fn declare(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        if !tag.attributes_raw().contains("xmlns") {
            return Ok(());
        }
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| error.to_string())?;
            let (prefix, name) = split(attribute.key.into_inner());
            let prefix = match (prefix, name) {
                ("", "xmlns") => "",
                ("xmlns", prefix) => prefix,
                _ => continue,
            };
            let namespace = unescape(&attribute.value).map_err(|error| error.to_string())?;
            self.add(prefix, &namespace)?;
        }
        Ok(())
    }

    /// Declares a prefix.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) fn add(&mut self, prefix: &str, namespace: &str) -> Result<(), String> {
        if self.0.len() == MAX_PREFIXES {
            return Err(format!("more than {MAX_PREFIXES} prefixes are declared"));
        }
        self.0.push((prefix.to_owned(), namespace.to_owned()));
        Ok(())
    }

    /// Declares a prefix for the names of events.
    ///
    /// # Errors
    /// Why that is not possible.
    pub(super) fn add_own(&mut self, prefix: &str) -> Result<(), String> {
        self.add(prefix, EVENTS)
    }

    /// The namespace of a prefix; `None` if the prefix is not declared.
    pub(super) fn namespace(&self, prefix: &str) -> Option<&str> {
        let declared = self.0.iter().rev().find(|(declared, _)| declared == prefix);
        declared.map_or(prefix.is_empty().then_some(""), |(_, namespace)| Some(namespace))
    }

    /// Whether names with a prefix are those of events; `None` if the prefix is not declared.
    pub(super) fn is_own(&self, prefix: &str) -> Option<bool> {
        let namespace = self.namespace(prefix)?;
        Some(namespace == EVENTS || namespace.is_empty() && prefix.is_empty())
    }
}
