//! Matches rows against rules. As for records, the rules are folded once for each class of events.

use std::collections::HashSet;
use std::sync::Arc;

use evtx_arrow::DecodeError;
use evtx_catalog::events_of;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{ClassCache, Match, Matching, Presence, Values};

use super::event::{Columns, EventRow, EventValue, RowFields};
use super::findings::{Findings, Hit, HitRule};
use crate::classes::{ClassOfFields, ClassWithSlots};
use crate::findings::Finding;
use crate::rules::Rules;

/// Matches rows of a table, one after the other.
#[derive(Debug)]
pub struct RowMatcher {
    rules: Arc<Rules>,
    columns: Columns,
    matching: Matching,
    /// By the columns that a row has, those by which most rules select their events, and the names of its fields.
    classes: ClassCache<ClassWithSlots<Slot>>,
    key: Vec<u8>,
    matches: Vec<Match>,
}

#[derive(Debug, Clone, Copy)]
enum Slot {
    /// The value of a column with an index, and whether its number is hexadecimal.
    Column(usize, bool),
    /// The field with an index.
    Field(usize),
}

struct RowValues<'v, 'a> {
    class: &'v ClassWithSlots<Slot>,
    row: &'v EventRow<'a>,
    fields: &'v RowFields<'a>,
}

impl Values for RowValues<'_, '_> {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
        match self.class.slots.get(slot) {
            Some(&Slot::Column(column, is_hexadecimal)) => match &self.row.values[column] {
                Some(value) => value.push_text(is_hexadecimal, out),
                None => return Presence::Absent,
            },
            Some(&Slot::Field(field)) => match self.fields.all.get(field) {
                Some((_, Some(text))) => out.push_str(text),
                Some((_, None)) => return Presence::Null,
                None => return Presence::Absent,
            },
            None => return Presence::Absent,
        }
        Presence::Text
    }
}

impl RowMatcher {
    /// Matches rows against rules.
    pub fn new(rules: Arc<Rules>) -> Self {
        RowMatcher {
            columns: Columns::new(),
            matching: Matching::new(Arc::clone(&rules.set)),
            rules,
            classes: ClassCache::default(),
            key: Vec::new(),
            matches: Vec::new(),
        }
    }

    /// Adds the rules that a row matches, in their order, as the list of the row. A row with an error that matches none
    /// has a finding without a rule, unless no rule is for its log. Its event ID and fields may be what is damaged.
    ///
    /// # Errors
    /// [`DecodeError::Interrupted`], or those of Arrow.
    pub fn find(
        &mut self,
        row: &EventRow<'_>,
        findings: &mut Findings,
        interrupt: Interrupt<'_>,
    ) -> Result<(), DecodeError> {
        self.matches(row, interrupt)?;
        self.matches.retain(|found| self.rules.reports(found.rule));
        let is_damaged = row.values[self.columns.error].is_some();
        let channel = row.text(self.columns.channel);
        let hides_match = is_damaged && channel.is_none_or(|channel| self.rules.set.is_for_channel(channel));
        if self.matches.is_empty() && hides_match {
            findings.push(None)?;
        }
        for found in self.matches.drain(..) {
            findings.push(Some(&Finding::of_match(found)))?;
        }
        findings.end_row();
        Ok(())
    }

    /// What correlations keep of a row, if a base rule matches it.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn hit(&mut self, row: &EventRow<'_>, interrupt: Interrupt<'_>) -> Result<Option<Hit<'static>>, Interrupted> {
        let (fields, class) = self.matches(row, interrupt)?;
        let values = RowValues {
            class: &class,
            row,
            fields: &fields,
        };
        let time = match row.values[self.columns.time] {
            Some(EventValue::Time(nanos)) => Some(nanos),
            _ => None,
        };
        let correlations = &self.rules.correlations;
        let of_rule = |found: &Match| {
            let text = |field| {
                let (name, mut text) = (self.rules.renamed(found, field), String::new());
                let is_there = class.class.push_named(&values, name, &mut text);
                is_there.then_some(text.into())
            };
            HitRule {
                rule: Some(found.rule),
                fields: correlations.fields(found.rule).map(text).collect(),
            }
        };
        let matches = self.matches.iter().filter(|found| correlations.is_base(found.rule));
        let rules: Vec<_> = matches.map(of_rule).collect();
        Ok((!rules.is_empty()).then(|| Hit {
            time,
            filename: row.text(self.columns.filename).map(|file| file.to_owned().into()),
            record_id: row.number(self.columns.record_id),
            rules,
        }))
    }

    /// Finds the rules that a row matches, in `self.matches`.
    fn matches<'a>(
        &mut self,
        row: &EventRow<'a>,
        interrupt: Interrupt<'_>,
    ) -> Result<(RowFields<'a>, Arc<ClassWithSlots<Slot>>), Interrupted> {
        self.matches.clear();
        let mut fields = RowFields::default();
        fields.take(row.event_data, row.text(self.columns.user_data));
        self.write_key(row, &fields);
        let class = match self.classes.get(&self.key) {
            Some(known) => known,
            None => self.keep(row, &fields, interrupt)?,
        };
        let values = RowValues {
            class: &class,
            row,
            fields: &fields,
        };
        // Damage of which no value was read matches no rule, as in a log. The time can be that of the record's header.
        let is_there = |column: usize| row.values[column].is_some();
        let mut system = self.columns.system.iter().map(|(column, ..)| *column);
        let is_read = system.any(|column| column != self.columns.time && is_there(column)) || !fields.all.is_empty();
        if is_read || !is_there(self.columns.error) {
            self.matching
                .matches(&class.class, &values, interrupt, &mut self.matches)?;
        }
        Ok((fields, class))
    }

    fn key_columns(&self) -> [usize; 3] {
        [self.columns.event_id, self.columns.channel, self.columns.provider]
    }

    fn write_key(&mut self, row: &EventRow<'_>, fields: &RowFields<'_>) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let system = self.columns.system.iter();
        key.extend(system.map(|(column, ..)| u8::from(row.values[*column].is_some())));
        key.extend(fields.keys.to_le_bytes());
        let mut add = |text: &str| {
            key.extend(text.len().to_le_bytes());
            key.extend(text.as_bytes());
        };
        for column in self.key_columns() {
            match row.values[column] {
                Some(EventValue::Text(text)) => add(text),
                Some(EventValue::Number(number)) => add(itoa::Buffer::new().format(number)),
                _ => add(""),
            }
        }
        fields.all.iter().for_each(|(name, _)| add(name));
        self.key = key;
    }

    #[cold]
    fn keep(
        &mut self,
        row: &EventRow<'_>,
        fields: &RowFields<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<Arc<ClassWithSlots<Slot>>, Interrupted> {
        let mut all = ClassOfFields::default();
        let key_columns = self.key_columns();
        for (column, name, is_hexadecimal) in &self.columns.system {
            if let Some(value) = &row.values[*column] {
                let mut text = String::new();
                value.push_text(*is_hexadecimal, &mut text);
                let known = key_columns.contains(column).then_some(text);
                all.add_of_system(name, known, Slot::Column(*column, *is_hexadecimal));
            }
        }
        self.add_fields(row, fields, &mut all);
        let class = Arc::new(all.class(&self.rules, interrupt)?);
        self.classes.insert(&self.key, &class, class.bytes());
        Ok(class)
    }

    /// Adds the fields by their names in the event. The key `param1` can stand for a value without a name. A name that the
    /// provider declares is one. Otherwise, `param1` is none if the event has qualifiers: then it is of the class that has
    /// values without names.
    fn add_fields(&self, row: &EventRow<'_>, fields: &RowFields<'_>, all: &mut ClassOfFields<Slot>) {
        let (keys, others) = fields.all.split_at(fields.keys);
        let is_classic = row.values[self.columns.qualifiers].is_some();
        let declared = match (row.text(self.columns.provider), row.number(self.columns.event_id)) {
            (Some(provider), Some(id)) if is_classic => declared(provider, id),
            _ => HashSet::new(),
        };
        let mut unnamed = 0;
        for (index, (key, _)) in keys.iter().enumerate() {
            let is_item = index > 0 && keys[index - 1].0 == *key;
            let is_next = || key.strip_prefix("param") == Some(itoa::Buffer::new().format(unnamed + 1));
            let is_unnamed = !is_item && is_classic && is_next() && !declared.contains(&**key);
            unnamed += usize::from(is_unnamed);
            all.add((!is_unnamed).then_some(&**key), is_item, Slot::Field(index));
        }
        for (index, (name, _)) in (keys.len()..).zip(others) {
            all.add(Some(name), false, Slot::Field(index));
        }
    }
}

/// The names of the fields of an event, in all its versions.
fn declared(provider: &str, id: u64) -> HashSet<Arc<str>> {
    let providers = HashSet::from([provider.to_ascii_lowercase()]);
    let Ok(id) = u32::try_from(id) else {
        return HashSet::new();
    };
    let fields = events_of(&providers, &[id]).flat_map(|event| event.fields.to_vec());
    fields.map(|(name, _)| name).collect()
}
