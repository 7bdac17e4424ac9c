//! Rules by field: which parts of an event a name means.
//!
//! A field is what is directly in an element or attribute. Its name is that of the element or attribute, and what its
//! attribute `Name` says; that of `Data` only the latter. `Data` elements without a `Name` are also `param1`, `param2` and so
//! on, and the second field of a name is also `name_1`, as in the column `event_data`.

use std::collections::{BTreeMap, HashMap, HashSet};

use evtx_format::binxml::fields::{FieldNamer, Param};
use evtx_format::value::{Scalar, ValueType};

use crate::copy::{BINXML, MAX_RECORD, STRING};
use crate::editor::Edits;
use crate::error::WriteError;
use crate::source::Result;
use crate::target::{Content, Edit, Named};
use crate::typed::{self, replaced};
use crate::value::{from_utf16, utf16};

/// Fields and what replaces their values; `None` for NULL.
#[derive(Debug)]
pub(super) struct Fields {
    /// By the name in lower case.
    rules: HashMap<String, usize>,
    names: Vec<(String, Option<String>)>,
    /// Whether a name ends with a number, so that fields have to be counted.
    has_numbers: bool,
    /// The first name that can mean a field by its number.
    numbered: Option<String>,
}

/// What is known of the fields of a definition: which values they are made of.
#[derive(Debug, Default)]
pub(super) struct Plan {
    values: Vec<(u16, Part)>,
    /// The values that cannot be NULL.
    needed: Vec<u16>,
    /// The values that the definition shows.
    used: HashSet<u16>,
    /// How many elements the event has whose fields are counted together: those [with fields](FieldNamer::has_fields), and
    /// `UserData`.
    counted: [usize; 2],
    /// Whether a text is in a `Data` element without a name that follows one with a value. An array there moves its number.
    has_late_text: bool,
}

/// What a value is of a field.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// The value of a field with this rule.
    All(usize),
    /// Another part of a field whose first part was replaced.
    Rest,
    /// The value of the n-th `Data` element without a name, counted from 1 in its parent.
    Param(usize),
    /// The value of an element whose name is the value with an index. If that is empty, a `Data` element has the number.
    NamedBy(u16, Option<usize>),
}

/// An element that is open.
#[derive(Debug, Default)]
struct Open {
    name: String,
    /// Whether the attribute `Name` is nothing but a name, and whether an element without one has a number.
    is_called: bool,
    is_numbered: bool,
    /// The text of its attribute `Name`, or the index of its value.
    label: String,
    label_value: Option<u16>,
    rule: Option<usize>,
    /// Whether it has attributes other than `Name` and `xmlns`, and whether it has content.
    has_attributes: bool,
    has_content: bool,
    /// Whether the first part of the field was replaced.
    is_replaced: bool,
    /// How often each field name occurred in it.
    counts: HashMap<String, usize>,
    /// Numbers the `Data` elements without a name in it.
    namer: FieldNamer,
    /// Its own number among them.
    param: Option<usize>,
}

/// An attribute whose value comes next.
#[derive(Debug)]
struct Attribute {
    /// Whether it is the name of the values of an element, and whether it is nothing else.
    is_label: bool,
    is_called: bool,
    rule: Option<usize>,
    is_replaced: bool,
}

/// The edits of a record or a definition, and where in it the copy is.
#[derive(Debug)]
pub(super) struct FieldEdits<'f> {
    fields: &'f Fields,
    /// What is around all elements, then the open ones.
    root: Open,
    open: Vec<Open>,
    attribute: Option<Attribute>,
    plan: Plan,
}

fn refused(field: &str, value_type: u8, why: &str) -> WriteError {
    let (field, known) = (typed::short(field), typed::type_name(value_type));
    WriteError::NotRedacted(format!("the field {field} ({known}) cannot be redacted: {why}").into())
}

fn not_of_type(field: &str, value_type: u8, text: &str) -> WriteError {
    let why = format!("'{}' is not of this type, or too long", typed::short(text));
    refused(field, value_type, &why)
}

fn has_elements(field: &str) -> WriteError {
    let field = typed::short(field);
    let why = format!("the field {field} cannot be redacted: it contains elements. Name those that have values");
    WriteError::NotRedacted(why.into())
}

impl Fields {
    pub(super) fn new(pairs: &[(&str, Option<&str>)]) -> Self {
        let names: Vec<_> = pairs
            .iter()
            .map(|(name, new)| ((*name).to_owned(), new.map(str::to_owned)))
            .collect();
        let rules = names.iter().enumerate();
        let ends_with_number = |(name, _): &(String, Option<String>)| name.ends_with(|c: char| c.is_ascii_digit());
        let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let is_numbered = |name: &str| {
            let number = name.rsplit_once('_').is_some_and(|(_, number)| is_number(number));
            number || Param::number(&name.to_lowercase()).is_some()
        };
        Fields {
            rules: rules.map(|(rule, (name, _))| (name.to_lowercase(), rule)).collect(),
            has_numbers: names.iter().any(ends_with_number),
            numbered: names
                .iter()
                .map(|(name, _)| name)
                .find(|name| is_numbered(name))
                .cloned(),
            names,
        }
    }

    fn rule(&self, name: &str) -> Option<usize> {
        self.rules.get(&name.to_lowercase()).copied()
    }

    /// Fails if a name has a number, and an event has elements whose fields are counted together: each is copied alone.
    fn check_numbers(&self, event: &Plan) -> Result<()> {
        match &self.numbered {
            Some(name) if event.counted.iter().any(|&count| count > 1) => {
                let name = typed::short(name);
                let why = format!(
                    "the field {name} cannot be redacted: the event has several EventData or UserData, whose fields are numbered together. Name it without a number, or as Data"
                );
                Err(WriteError::NotRedacted(why.into()))
            }
            _ => Ok(()),
        }
    }

    /// The name of the field that a value is, if it has a rule.
    fn name_of(&self, plan: &Plan, index: u16) -> &str {
        let rule = plan.values.iter().find_map(|(value, part)| match part {
            Part::All(rule) if *value == index => Some(*rule),
            _ => None,
        });
        rule.map_or("a value", |rule| &self.names[rule].0)
    }

    /// What replaces the value of a field with a rule.
    fn edit(&self, rule: usize, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        let (name, new) = &self.names[rule];
        if value_type == BINXML && !bytes.is_empty() {
            return Err(has_elements(name));
        }
        match new {
            None if bytes.is_empty() => Ok(None),
            None => Ok(Some(Edit {
                value_type: 0,
                bytes: Vec::new(),
            })),
            Some(text) => {
                replaced(value_type, bytes, |_| Some(text)).map_err(|text| not_of_type(name, value_type, text))
            }
        }
    }

    /// What replaces the values of the `Data` elements without a name, from the `number`-th on, which an array are.
    fn edit_params(&self, number: usize, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        let rule = |item: usize| self.rules.get(&Param(number + item).to_string()).copied();
        let is_array = ValueType::from_byte(value_type).is_some_and(|known| known.array);
        let count = typed::value(value_type, bytes).map_or(0, |value| value.items().count());
        if !is_array || count < 2 {
            return rule(0).map_or(Ok(None), |rule| self.edit(rule, value_type, bytes));
        }
        let Some(first) = (0..count).find_map(rule) else {
            return Ok(None);
        };
        // An item of an array cannot be NULL, but a text can be empty.
        let new = |item| rule(item).map(|rule| self.names[rule].1.as_deref().unwrap_or_default());
        replaced(value_type, bytes, new).map_err(|text| not_of_type(&self.names[first].0, value_type, text))
    }

    /// The rule of a `Data` element without a name, and what replaces its value.
    fn edit_param(
        &self,
        number: usize,
        (value_type, bytes): (u8, &[u8]),
        more: &mut isize,
    ) -> Result<(Option<usize>, Option<Edit>)> {
        let number = number.saturating_add_signed(*more);
        let count = typed::value(value_type, bytes).map_or(1, |value| value.items().count());
        *more += count.saturating_sub(1) as isize;
        let rule = self.rule(&Param(number).to_string());
        Ok((rule, self.edit_params(number, value_type, bytes)?))
    }

    /// The rule of a part of a field, if it has one, and what replaces its value. `more` counts by how many fields the
    /// arrays before it are more than their elements.
    fn edit_part(
        &self,
        part: Part,
        (value_type, bytes): (u8, &[u8]),
        values: &[(u8, &[u8])],
        more: &mut isize,
    ) -> Result<Option<(Option<usize>, Edit)>> {
        let (rule, edit) = match part {
            Part::All(rule) => (Some(rule), self.edit(rule, value_type, bytes)?),
            Part::Rest if bytes.is_empty() => return Ok(None),
            Part::Rest => {
                let (value_type, bytes) = (0, Vec::new());
                (None, Some(Edit { value_type, bytes }))
            }
            Part::Param(number) => self.edit_param(number, (value_type, bytes), more)?,
            Part::NamedBy(label, number) => {
                let label = values.get(usize::from(label));
                let label = label.and_then(|&(value_type, bytes)| typed::value(value_type, bytes));
                let label = label.map(typed::shown).unwrap_or_default();
                match (self.rule(&label), number) {
                    (None, Some(number)) if label.is_empty() => self.edit_param(number, (value_type, bytes), more)?,
                    (rule, number) => {
                        // It has a name, so it has no number.
                        *more -= isize::from(number.is_some());
                        match rule {
                            Some(rule) => (Some(rule), self.edit(rule, value_type, bytes)?),
                            None => return Ok(None),
                        }
                    }
                }
            }
        };
        Ok(edit.map(|edit| (rule, edit)))
    }

    /// What replaces the values of an instance of a definition.
    fn edit_values(&self, plan: &Plan, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        let mut edits: BTreeMap<usize, (Option<usize>, Edit)> = BTreeMap::new();
        let (mut more, mut size) = (0, 0);
        for &(index, part) in &plan.values {
            let index = usize::from(index);
            let Some(&value) = values.get(index) else { continue };
            let Some((rule, edit)) = self.edit_part(part, value, values, &mut more)? else {
                continue;
            };
            size += edit.bytes.len();
            if size > MAX_RECORD {
                return Err(WriteError::RecordSize);
            }
            match edits.get(&index) {
                Some((Some(known), other)) if *other != edit => {
                    let name = rule.map_or("a part of another field", |rule| &self.names[rule].0);
                    let why = format!("{name} shows the same value, and is replaced by another one");
                    return Err(refused(&self.names[*known].0, value.0, &why));
                }
                Some(_) if rule.is_none() => {}
                _ => _ = edits.insert(index, (rule, edit)),
            }
        }
        if more != 0 && plan.has_late_text {
            let why = "the number of a field without a name depends on the record: use the name Data";
            return Err(WriteError::NotRedacted(why.into()));
        }
        // Values that the definition does not show can be what it shows in another record. Nobody has a name for them.
        if !edits.is_empty() {
            for (index, (_, bytes)) in values.iter().enumerate().filter(|(_, (_, bytes))| !bytes.is_empty()) {
                if !plan.used.contains(&(index as u16)) {
                    let (value_type, bytes) = (0, bytes[..0].to_vec());
                    edits.insert(index, (None, Edit { value_type, bytes }));
                }
            }
        }
        Ok(edits.into_iter().map(|(index, (_, edit))| (index, edit)).collect())
    }
}

impl<'f> FieldEdits<'f> {
    pub(super) fn new(fields: &'f Fields) -> Self {
        FieldEdits {
            fields,
            root: Open::default(),
            open: Vec::new(),
            attribute: None,
            plan: Plan::default(),
        }
    }

    /// As [`Fields::check_numbers`], after the record.
    pub(super) fn check_numbers(&self) -> Result<()> {
        self.fields.check_numbers(&self.plan)
    }

    fn top(&mut self) -> &mut Open {
        self.open.last_mut().unwrap_or(&mut self.root)
    }

    /// Elements follow, which must not be in a field.
    fn begin_stream(&mut self) -> Result<()> {
        match self.top().rule {
            Some(rule) => Err(has_elements(&self.fields.names[rule].0)),
            None => Ok(()),
        }
    }
}

impl Edits for FieldEdits<'_> {
    type Plan = Plan;

    fn of_definition(&self) -> Self {
        FieldEdits::new(self.fields)
    }

    fn into_plan(self) -> Plan {
        self.plan
    }

    fn instance(&mut self, plan: &Plan) -> Result<()> {
        self.begin_stream()?;
        for (count, more) in self.plan.counted.iter_mut().zip(plan.counted) {
            *count += more;
        }
        Ok(())
    }

    fn name(&mut self, named: Named, entry: &[u8]) -> Result<Option<Vec<u8>>> {
        let name = from_utf16(entry.get(4..).unwrap_or_default());
        match named {
            Named::Element => {
                self.begin_stream()?;
                if self.open.is_empty() || self.open.len() == 1 && self.open[0].name == "Event" {
                    self.plan.counted[0] += usize::from(FieldNamer::has_fields(&name));
                    self.plan.counted[1] += usize::from(name == "UserData");
                }
                let (is_called, is_numbered) = (FieldNamer::is_called(&name), FieldNamer::is_numbered(&name));
                self.attribute = None;
                self.open.push(Open {
                    name,
                    is_called,
                    is_numbered,
                    ..Open::default()
                });
            }
            Named::Attribute => {
                let is_label = name == "Name";
                let is_called = is_label && self.top().is_called;
                self.top().has_attributes |= !is_called && name != "xmlns";
                let rule = self.fields.rule(&name).filter(|_| !is_called);
                self.attribute = Some(Attribute {
                    is_label,
                    is_called,
                    rule,
                    is_replaced: false,
                });
            }
            Named::Other => {}
        }
        Ok(None)
    }

    fn depend(&mut self, index: u16) {
        self.plan.used.insert(index);
    }

    fn end_start(&mut self) {
        self.attribute = None;
        let Some(mut open) = self.open.pop() else { return };
        let is_root = self.open.is_empty();
        let around = self.open.last_mut().unwrap_or(&mut self.root);
        // Readers call an element that is not `Data` by its `Name`, or as it is, or both.
        let is_named = !open.label.is_empty();
        // The root of an event is no field, and some events have a field of its name.
        let is_root = is_root && open.name == "Event";
        let own = (!is_root && (!open.is_numbered || !is_named)).then_some(&open.name);
        let is_unnamed = open.is_numbered && !is_named;
        for name in [Some(&open.label).filter(|_| is_named), own].into_iter().flatten() {
            let mut rule = self.fields.rule(name);
            if self.fields.has_numbers && !is_unnamed {
                let count = around.counts.entry(name.to_lowercase()).or_default();
                if *count > 0 {
                    rule = self.fields.rule(&format!("{name}_{count}")).or(rule);
                }
                *count += 1;
            }
            open.rule = open.rule.or(rule);
        }
        if self.fields.has_numbers && is_unnamed {
            open.param = Some(around.namer.next_param());
        }
        self.open.push(open);
    }

    fn end(&mut self) -> Result<()> {
        self.attribute = None;
        let closed = self.open.pop().filter(|open| open.has_attributes && !open.has_content);
        match closed.and_then(|open| open.rule) {
            Some(rule) => {
                let field = typed::short(&self.fields.names[rule].0);
                let why =
                    format!("the field {field} cannot be redacted: it has attributes in place of a value. Name those");
                Err(WriteError::NotRedacted(why.into()))
            }
            None => Ok(()),
        }
    }

    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        let fields = self.fields;
        if let Content::Substitution(index, false) = content {
            self.plan.needed.push(index);
        }
        let is_content = self.attribute.is_none();
        let open = self.open.last_mut().unwrap_or(&mut self.root);
        open.has_content |= is_content;
        let (rule, is_replaced) = match &mut self.attribute {
            Some(attribute) => {
                if attribute.is_label {
                    match content {
                        Content::Value(value_type, bytes) => {
                            let text = typed::value(value_type, bytes).map(typed::shown);
                            open.label.push_str(&text.unwrap_or_default());
                        }
                        Content::Substitution(index, _) => open.label_value = Some(index),
                        Content::Character(_) | Content::Entity(_) => {}
                    }
                    if attribute.is_called {
                        if let Content::Substitution(index, _) = content {
                            self.plan.used.insert(index);
                        }
                        return Ok(None);
                    }
                }
                (attribute.rule, &mut attribute.is_replaced)
            }
            None => (open.rule, &mut open.is_replaced),
        };
        if let Content::Substitution(index, _) = content {
            self.plan.used.insert(index);
            // Without it, the element could be left out with its attributes.
            if is_content && open.has_attributes {
                self.plan.needed.push(index);
            }
            let part = match (rule, *is_replaced) {
                (Some(_), true) => Some(Part::Rest),
                (Some(rule), false) => Some(Part::All(rule)),
                (None, _) if !is_content => None,
                (None, _) => match open.label_value {
                    Some(label) => Some(Part::NamedBy(label, open.param)),
                    None => open.param.map(Part::Param),
                },
            };
            *is_replaced |= rule.is_some();
            self.plan.values.extend(part.map(|part| (index, part)));
            return Ok(None);
        }
        let param = open.param.filter(|_| is_content && rule.is_none());
        let is_param = |(_, part): &(u16, Part)| matches!(part, Part::Param(_) | Part::NamedBy(_, Some(_)));
        self.plan.has_late_text |= param.is_some() && self.plan.values.iter().any(is_param);
        let rule = rule.or_else(|| fields.rule(&Param(param?).to_string()));
        if is_content && open.is_called && open.label_value.is_some() && !matches!(content, Content::Value(_, [])) {
            let why = "the field that a text belongs to depends on the record".to_owned();
            return Err(WriteError::NotRedacted(why.into()));
        }
        let Some(rule) = rule else { return Ok(None) };
        let text = |text: &str| Edit {
            value_type: STRING,
            bytes: utf16(text).collect(),
        };
        let (name, new) = &fields.names[rule];
        let edit = match content {
            Content::Value(_, []) => return Ok(None),
            _ if *is_replaced => text(""),
            Content::Value(STRING, _) | Content::Character(_) | Content::Entity(_) => {
                text(new.as_deref().unwrap_or(""))
            }
            Content::Value(value_type, bytes) => {
                let edit = fields.edit(rule, value_type, bytes)?;
                edit.ok_or_else(|| refused(name, value_type, "it is empty"))?
            }
            Content::Substitution(..) => return Ok(None),
        };
        *is_replaced = true;
        Ok(Some(edit))
    }

    fn values(&mut self, plan: &Plan, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        let mut edits = self.fields.edit_values(plan, values)?;
        for (index, edit) in edits.iter_mut().filter(|(_, edit)| edit.value_type == 0) {
            let (value_type, _) = values[*index];
            match typed::value(value_type, &[]).map(|value| value.value_type.scalar) {
                // Readers fail on a NULL where the template needs a value. A text can be empty.
                Some(scalar @ (Scalar::String | Scalar::AnsiString)) => edit.value_type = scalar as u8,
                _ if plan.needed.contains(&(*index as u16)) => {
                    let known = typed::type_name(value_type);
                    let what = typed::short(self.fields.name_of(plan, *index as u16));
                    let why = format!("{what} cannot be NULL here: replace it by another value of its type, {known}");
                    return Err(WriteError::NotRedacted(why.into()));
                }
                _ => {}
            }
        }
        Ok(edits)
    }
}
