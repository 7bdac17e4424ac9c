//! Redaction: a copy of a record that stands alone, with other values in the fields that a [`Redactor`] was given.
//!
//! A field is what is directly in an element or attribute. Its name is that of the element or attribute, and what its
//! attribute `Name` says; that of `Data` only the latter. `Data` elements without a `Name` are also `param1`, `param2` and so
//! on, and the second field of a name is also `name_1`, as in the column `event_data`.

use std::collections::{BTreeMap, HashMap};

use evtx_format::binxml::fields::{FieldNamer, Param};
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::value::{Scalar, Value, ValueType};

use crate::editor::{address, edit, text_of, unseen};
use crate::error::WriteError;
use crate::record::CutRecord;
use crate::source::Result;
use crate::target::{Content, Edit, Edits, Own};
use crate::typed::{self, replaced};

/// Redacts records by the same rules.
#[derive(Debug)]
pub struct Redactor {
    rules: Rules,
    record: Own,
}

/// Fields and what replaces their values, by the names in lower case.
type Rules = HashMap<String, Rule>;

/// A field by its name, and what replaces its value; `None` for NULL.
#[derive(Debug, PartialEq)]
struct Rule {
    name: String,
    new: Option<String>,
}

/// The replacement for the value of a field, or for a part of it.
#[derive(Debug, Clone, Copy)]
enum New<'r> {
    Same,
    By(&'r Rule),
    /// It goes: the first part of the field has become its new value.
    Nothing,
}

/// The edits of a record.
struct FieldEdits<'r> {
    rules: &'r Rules,
    /// The values that a reader sees, by their addresses.
    seen: BTreeMap<usize, New<'r>>,
    has_rules: bool,
    has_null: bool,
}

/// The fields of an element so far.
#[derive(Debug, Default)]
struct Siblings {
    counts: HashMap<String, usize>,
    namer: FieldNamer,
}

fn refused(field: &str, why: &str) -> WriteError {
    let field = typed::short(field);
    WriteError::NotEdited(format!("the field {field} cannot be redacted: {why}").into())
}

impl Redactor {
    /// Replaces the values of fields by the names of the fields, in any case. A field without a value stays without. `None`
    /// makes a value NULL.
    ///
    /// # Errors
    /// An empty name, or one with a NUL; two that are the same but are replaced by different texts.
    pub fn new(pairs: &[(&str, Option<&str>)]) -> std::result::Result<Self, String> {
        let mut rules = Rules::new();
        for &(key, new) in pairs {
            if key.is_empty() {
                return Err("a field to redact is empty".to_owned());
            }
            if key.contains('\0') || new.is_some_and(|new| new.contains('\0')) {
                return Err(format!("the field '{key}', or what replaces it, contains a NUL"));
            }
            let (name, new) = (key.to_owned(), new.map(str::to_owned));
            let known = rules
                .entry(key.to_lowercase())
                .or_insert(Rule { name, new: new.clone() });
            if known.new != new {
                return Err(format!(
                    "'{}' and '{key}' are the same field, because case does not matter, but are replaced by different texts",
                    known.name
                ));
            }
        }
        let record = Own::default();
        Ok(Redactor { rules, record })
    }

    /// A record that stands alone, redacted.
    ///
    /// # Errors
    /// [`WriteError::NotEdited`] if something cannot be redacted; the other errors if the bytes are not a
    /// record, or the values become too long.
    pub fn redact(&mut self, record: &[u8]) -> Result<&[u8]> {
        let cut = CutRecord::new(record)?;
        if cut.marks.is_some() {
            let why = "it has pseudonyms: call evtx_redact first, then evtx_pseudonymize";
            return Err(WriteError::NotEdited(why.into()));
        }
        let mut edits = FieldEdits {
            rules: &self.rules,
            seen: BTreeMap::new(),
            has_rules: false,
            has_null: false,
        };
        edit(&mut self.record, cut, &mut edits)?;
        Ok(&self.record.out)
    }
}

impl<'r> FieldEdits<'r> {
    fn rule(&self, name: &str) -> Option<&'r Rule> {
        self.rules.get(&name.to_lowercase())
    }

    /// The rule of an element. The copies that an array makes of an element are one field, unless they are numbered.
    fn rule_of(&self, element: &Element<'_>, siblings: &mut Siblings, is_copy: bool) -> Option<&'r Rule> {
        let label = text_of(element.attribute("Name").unwrap_or_default());
        let is_numbered = FieldNamer::is_numbered(element.name);
        if is_numbered && label.is_empty() {
            let param = Param(siblings.namer.next_param()).to_string();
            return self.rule(element.name).or_else(|| self.rule(&param));
        }
        let own = (!is_numbered).then_some(element.name);
        let names = [Some(&*label).filter(|label| !label.is_empty()), own];
        let mut rule = None;
        for name in names.into_iter().flatten() {
            let count = siblings.counts.entry(name.to_lowercase()).or_default();
            *count += usize::from(!is_copy || *count == 0);
            let numbered = format!("{name}_{}", *count - 1);
            let numbered = self.rule(&numbered).filter(|_| *count > 1);
            rule = rule.or(numbered).or_else(|| self.rule(name));
        }
        rule
    }

    /// Looks at the attributes and the content of an element, whose value may have a rule. `siblings` are the elements in it
    /// so far.
    fn element(&mut self, element: &Element<'_>, rule: Option<&'r Rule>, siblings: &mut Siblings) -> Result<()> {
        for attribute in element.attributes {
            let is_label = attribute.name == "Name" && element.is_called();
            let rule = self.rule(attribute.name).filter(|_| !is_label);
            self.value_of(attribute.content, rule)?;
        }
        self.value_of(element.content, rule)?;
        if let Some(rule) = rule {
            let is_left_empty = element.content.is_empty() || rule.new.as_ref().is_none_or(String::is_empty);
            if element.elements().next().is_some() {
                let why = "it contains elements. Name those that have values";
                return Err(refused(&rule.name, why));
            }
            if is_left_empty && element.attributes.iter().any(|attribute| element.is_value(attribute)) {
                let why = "it would have only attributes. Name those";
                return Err(refused(&rule.name, why));
            }
        }
        // The fields of several such elements are those of one.
        let mut of_event = Siblings::default();
        for node in element.content {
            for (copy, child) in node.elements().enumerate() {
                let rule = self.rule_of(child, siblings, copy > 0);
                match FieldNamer::has_fields(child.name) {
                    true => self.element(child, rule, &mut of_event)?,
                    false => self.element(child, rule, &mut Siblings::default())?,
                }
            }
        }
        Ok(())
    }

    /// Looks at the value of a field with a rule.
    fn value_of(&mut self, nodes: &[Node<'_>], rule: Option<&'r Rule>) -> Result<()> {
        let mut new = rule.map_or(New::Same, New::By);
        for node in nodes {
            let bytes = match (node, rule) {
                (Node::Value(value), _) => value.bytes,
                (Node::CData(text), _) => text,
                // Nothing tells where a reference is.
                (Node::CharRef(_) | Node::EntityRef(_), Some(rule)) => {
                    return Err(refused(&rule.name, "it contains references"));
                }
                _ => continue,
            };
            if bytes.is_empty() {
                continue;
            }
            let known = self.seen.entry(address(bytes)).or_insert(new);
            match (*known, new) {
                (New::By(known), New::By(rule)) if known.new != rule.new => {
                    let why = format!("{} shows the same value, and is replaced by another one", rule.name);
                    return Err(refused(&known.name, &why));
                }
                (_, New::By(_)) | (New::Same, _) => *known = new,
                _ => {}
            }
            if rule.is_some() {
                self.has_rules = true;
                new = New::Nothing;
            }
        }
        Ok(())
    }

    /// The replacement for a value, or for each item of an array; `None` if no reader sees the value.
    fn parts(&self, value_type: u8, bytes: &[u8]) -> Option<Vec<New<'r>>> {
        let seen = |bytes: &[u8]| self.seen.get(&address(bytes)).copied();
        let array = typed::value(value_type, bytes).filter(|value| value.value_type.array);
        let items: Vec<_> = array.into_iter().flat_map(|value| value.items()).collect();
        if items.is_empty() {
            return Some(vec![seen(bytes)?]);
        }
        // An array of one item is seen as a whole.
        let part = |item: &Value<'_>| match item.is_empty() {
            true => Some(New::Same),
            false => seen(item.bytes).or_else(|| seen(bytes)),
        };
        items.iter().map(part).collect()
    }

    /// What replaces a value that becomes of some parts.
    fn edit(&mut self, value_type: u8, bytes: &[u8], parts: &[New<'r>]) -> Result<Option<Edit>> {
        if parts.iter().all(|part| part.text().is_some_and(|text| text.is_none())) {
            let scalar = ValueType::from_byte(value_type).map(|known| known.scalar);
            // A text can be empty.
            let text = scalar.filter(|scalar| matches!(scalar, Scalar::String | Scalar::AnsiString));
            self.has_null |= text.is_none();
            let (value_type, bytes) = (text.map_or(0, |text| text as u8), Vec::new());
            return Ok(Some(Edit { value_type, bytes }));
        }
        let Some(rule) = parts.iter().find_map(|part| part.rule()) else {
            return Ok(None);
        };
        let text = |item: usize| Some(parts.get(item)?.text()?.unwrap_or_default());
        replaced(value_type, bytes, text).map_err(|text| {
            let field = format!("{} ({})", rule.name, typed::type_name(value_type));
            let why = format!("'{}' is not of this type, or too long", typed::short(text));
            refused(&field, &why)
        })
    }
}

impl<'r> New<'r> {
    fn rule(self) -> Option<&'r Rule> {
        match self {
            New::By(rule) => Some(rule),
            New::Same | New::Nothing => None,
        }
    }

    /// The new text, or `None` for NULL; `None` if the value stays.
    fn text(self) -> Option<Option<&'r str>> {
        match self {
            New::Same => None,
            New::By(rule) => Some(rule.new.as_deref()),
            New::Nothing => Some(None),
        }
    }
}

impl Edits for FieldEdits<'_> {
    fn read(&mut self, event: &Element<'_>) -> Result<()> {
        self.element(event, None, &mut Siblings::default())
    }

    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        let Content::Value(value_type, bytes) = content else {
            return Ok(None);
        };
        let parts = self.parts(value_type, bytes).filter(|_| !bytes.is_empty());
        parts.map_or(Ok(None), |parts| self.edit(value_type, bytes, &parts))
    }

    fn value(&mut self, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        match self.parts(value_type, bytes) {
            _ if bytes.is_empty() || !self.has_rules => Ok(None),
            Some(parts) => self.edit(value_type, bytes, &parts),
            None => Ok(unseen(value_type, bytes)),
        }
    }

    fn makes_optional(&self) -> bool {
        self.has_null
    }
}
