//! The insertions of an event: the values that fill its message.

use std::sync::Arc;

use bumpalo::Bump;
use bumpalo::collections::{String as BumpString, Vec as BumpVec};
use evtx_format::binxml::instance::ValueTable;
use evtx_format::value::{Scalar, Value, ValueType};

use super::read_record::ReadRecord;
use super::sections::{RecordView, SectionContent};
use super::templates::{ChunkTemplates, TemplateId};
use crate::plan::{Entry, Keys, Resolved};

/// What an insertion is made of.
#[derive(Debug, Clone, Copy)]
pub enum Insertion<'a> {
    /// A value of the event, and the type that the template of its event declares, if that is known.
    Value(Value<'a>, Option<ValueType>),
    /// The text that a value has in XML, without escapes.
    Text(&'a str),
}

/// The type of the first value of an event without a manifest.
const STRINGS: ValueType = ValueType {
    scalar: Scalar::String,
    array: true,
};

impl<'a> ReadRecord<'a> {
    /// The values that fill the message of the event, in order.
    pub fn insertions(self, arena: &'a Bump) -> BumpVec<'a, Insertion<'a>> {
        insertions(self.view, self.templates, arena)
    }

    /// What the event says about its insertions in `EventData`; `None` if it says nothing.
    pub fn declaration(self) -> Option<Declaration<'a>> {
        declaration(self.view, self.templates)
    }

    /// The names of the first insertions, empty where they are not known.
    pub fn names(self, declaration: &Declaration<'_>) -> Vec<Arc<str>> {
        declaration.names_of(self.keys)
    }
}

/// The insertions of an event, in order. `%1` in its message stands for the first.
///
/// If the content of `EventData` or `UserData` is a template instance, they are its values, in the order of its
/// substitutions: that is the order of the fields in the provider's manifest, wherever the XML has them. An event
/// without a manifest has an array of strings, each of which is an insertion, and bytes, which are not. In other events,
/// the leaves are the insertions, in the order of the XML and with the texts that they have there.
fn insertions<'a>(
    record: RecordView<'a, 'a>,
    templates: &'a ChunkTemplates,
    arena: &'a Bump,
) -> BumpVec<'a, Insertion<'a>> {
    let mut found = BumpVec::new_in(arena);
    if record.is_unread() {
        return found;
    }
    if let Some((template, values)) = instance_in(record) {
        if let Some(strings) = values.get(0).filter(|first| first.value_type == STRINGS) {
            found.extend(strings.items().map(|value| Insertion::Value(value, None)));
            return found;
        }
        found.extend(all(values).map(|value| Insertion::Value(value, None)));
        for (substitution, leaf) in leaves(template, values, templates) {
            if let Some(Insertion::Value(_, declared)) = found.get_mut(usize::from(substitution)) {
                *declared = Some(leaf.declared);
            }
        }
        return found;
    }
    let entries = record.event_data(templates).or_else(|| record.user_entries(templates));
    if let Some((entries, section)) = entries {
        for entry in &entries.entries {
            let value = entry.source.find(section.values);
            match value.filter(|_| entry.name_len == 0).and_then(Resolved::items) {
                Some(items) => found.extend(items.map(|item| insertion(Some(item), arena))),
                None => found.push(insertion(value, arena)),
            }
        }
    }
    found
}

/// What an event says about its insertions.
pub struct Declaration<'a> {
    /// The number of the template that says it; `None` if the event spells it out.
    pub number: Option<u64>,
    entries: &'a [Entry],
    /// Whether the insertions are the substitutions of a template. Otherwise they are the entries.
    of_substitutions: bool,
}

impl Declaration<'_> {
    /// The names of the first insertions, empty where they are not known.
    fn names_of(&self, keys: &Keys) -> Vec<Arc<str>> {
        let name = |entry: &Entry| Arc::from(keys.name(&entry.key).get(..entry.name_len).unwrap_or_default());
        if !self.of_substitutions {
            // An array without a name has several insertions.
            let named = self.entries.iter().take_while(|entry| entry.name_len > 0);
            return named.map(name).collect();
        }
        let mut names = Vec::new();
        for (substitution, entry) in values_of(self.entries) {
            let at = usize::from(substitution);
            names.resize(names.len().max(at + 1), Arc::default());
            names[at] = name(entry);
        }
        names
    }
}

/// What an event says about its insertions in `EventData`; `None` if it says nothing.
fn declaration<'a>(record: RecordView<'a, 'a>, templates: &'a ChunkTemplates) -> Option<Declaration<'a>> {
    if record.is_unread() {
        return None;
    }
    if let Some((template, values)) = instance_in(record) {
        let compiled = templates.get(template).ok()?;
        return Some(Declaration {
            number: Some(compiled.number),
            entries: &compiled.plan.event_data(values)?.entries,
            of_substitutions: true,
        });
    }
    let (entries, section) = record.event_data(templates)?;
    let compiled = section.template().and_then(|template| templates.get(template).ok());
    Some(Declaration {
        number: compiled.map(|compiled| compiled.number),
        entries: &entries.entries,
        of_substitutions: false,
    })
}

/// The template and the values of the instance that is the content of `EventData` or `UserData`. An event that is read
/// as one tree has none.
fn instance_in<'a>(record: RecordView<'a, 'a>) -> Option<(TemplateId, ValueTable<'a>)> {
    record
        .sections
        .iter()
        .skip(1)
        .find_map(|section| match section.content {
            SectionContent::Instance(instance) | SectionContent::Damaged(instance) => {
                Some((section.template()?, instance.values))
            }
            SectionContent::Tree(_, filled) => filled,
            SectionContent::ImplicitInstance(_) | SectionContent::Merged => None,
        })
}

/// The leaves of a template whose value is a substitution, with its index.
fn leaves<'a>(
    template: TemplateId,
    values: ValueTable<'a>,
    templates: &'a ChunkTemplates,
) -> impl Iterator<Item = (u16, &'a Entry)> {
    let plan = templates.get(template).ok().map(|compiled| &compiled.plan);
    let entries = plan.and_then(|plan| plan.event_data(values).or_else(|| plan.user_entries(values)));
    values_of(entries.map_or(&[][..], |entries| &entries.entries))
}

/// The entries whose value is a substitution, with its index.
fn values_of(entries: &[Entry]) -> impl Iterator<Item = (u16, &Entry)> {
    entries
        .iter()
        .filter_map(|entry| Some((entry.source.bare_substitution()?, entry)))
}

fn all(values: ValueTable<'_>) -> impl Iterator<Item = Value<'_>> {
    (0..=u16::MAX).map_while(move |substitution| values.get(substitution))
}

fn insertion<'a>(found: Option<Resolved<'a, 'a>>, arena: &'a Bump) -> Insertion<'a> {
    match found {
        None => Insertion::Value(Value::null(), None),
        Some(Resolved::Value(value)) => Insertion::Value(value, None),
        Some(Resolved::Constant(constant)) => Insertion::Text(&constant.text),
        Some(items @ Resolved::Concat(..)) => {
            let text = items.text().unwrap_or_default();
            Insertion::Text(BumpString::from_str_in(&text, arena).into_bump_str())
        }
    }
}
