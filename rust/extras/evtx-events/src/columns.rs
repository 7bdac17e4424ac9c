//! The columns for the fields of events.

use std::sync::Arc;

use evtx_arrow::{ColumnKeys, ColumnType, EntryKeys, EventField};
use evtx_catalog::DeclaredEvent;
use hashbrown::{HashMap, HashSet};

use crate::collected::FieldLayout;
use crate::unify::{TEXT, column_type, unite};

/// The most fields of events that become columns, and that are collected of one element. `event_data` has the others.
pub(crate) const MAX_FIELDS: usize = 4096;

/// The columns for fields, by index, and their order.
#[derive(Default)]
pub(crate) struct FieldColumns {
    columns: Vec<FieldColumn>,
    order: Vec<usize>,
    indices: HashMap<Arc<str>, usize>,
}

struct FieldColumn {
    name: Arc<str>,
    keys: EntryKeys,
    /// The narrowest type for all that templates declare, and the narrowest for all that providers declare.
    of_templates: Option<ColumnType>,
    declared: Option<ColumnType>,
}

/// The narrowest type that holds both, or the one that is known.
fn unite_known(a: Option<ColumnType>, b: Option<ColumnType>) -> Option<ColumnType> {
    match (a, b) {
        (Some(a), Some(b)) => Some(unite(a, b)),
        (a, b) => a.or(b),
    }
}

impl FieldColumns {
    /// The column with a key. A new column is inserted after `last`. `None` if there are too many.
    fn insert(&mut self, name: &str, key: String, last: Option<usize>) -> Option<usize> {
        if let Some(&known) = self.indices.get(&*key) {
            return Some(known);
        }
        if self.columns.len() >= MAX_FIELDS {
            return None;
        }
        let index = self.columns.len();
        let after = self.order.iter().position(|index| Some(*index) == last);
        self.order.insert(after.map_or(0, |after| after + 1), index);
        let key: Arc<str> = key.into();
        self.indices.insert(Arc::clone(&key), index);
        self.columns.push(FieldColumn {
            name: name.into(),
            keys: EntryKeys { key, in_both: None },
            of_templates: None,
            declared: None,
        });
        Some(index)
    }

    /// Adds the fields of a template, each after the one before it. If both elements have a key, that of `UserData` is
    /// another column.
    pub(crate) fn add(&mut self, layout: &FieldLayout) {
        let mut columns = [ColumnKeys::default(), ColumnKeys::default()];
        let keyed = layout.fields.iter().map(|field| {
            let (key, _) = columns[usize::from(field.in_user_data)].take(&field.key);
            (field, key)
        });
        let keyed: Vec<_> = keyed.collect();
        let of_event_data = keyed.iter().filter(|(field, _)| !field.in_user_data);
        let of_event_data: HashSet<_> = of_event_data.map(|(_, key)| key.clone()).collect();
        let mut last = None;
        for (field, mut key) in keyed {
            let mut in_both = None;
            if field.in_user_data && of_event_data.contains(&key) {
                // No key in lower case has this letter.
                (in_both, key) = (Some(Arc::from(&*key)), format!("{key}U"));
            }
            let Some(index) = self.insert(&field.key, key, last) else {
                continue;
            };
            last = Some(index);
            let column = &mut self.columns[index];
            column.keys.in_both = column.keys.in_both.take().or(in_both);
            // A spelled-out text can be the text of any type.
            let found = column_type(field.value_type).filter(|found| !(field.is_spelled_out && *found == TEXT));
            column.of_templates = unite_known(column.of_templates, found);
        }
    }

    /// Adds the fields that a provider declares for an event.
    pub(crate) fn declare(&mut self, event: &DeclaredEvent) {
        let mut last = None;
        let mut columns = ColumnKeys::default();
        for (name, value_type) in event.fields.iter() {
            let (key, _) = columns.take(name);
            let Some(index) = self.insert(name, key, last) else {
                continue;
            };
            last = Some(index);
            let column = &mut self.columns[index];
            column.declared = unite_known(column.declared, column_type(*value_type));
        }
    }

    pub(crate) fn in_order(&self) -> Vec<EventField> {
        let field = |index: &usize| {
            let column = &self.columns[*index];
            EventField {
                name: Arc::clone(&column.name),
                keys: column.keys.clone(),
                // Templates win: the log may come from another version of Windows than the declaration.
                column_type: column.of_templates.or(column.declared).unwrap_or(TEXT),
            }
        };
        self.order.iter().map(field).collect()
    }
}
