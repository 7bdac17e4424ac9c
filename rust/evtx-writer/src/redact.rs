//! Redaction: a copy of a record that stands alone, with other values in the fields that [`Rules`] name.
//!
//! Every other part stays as it is, so a reader finds the same events. A definition that changes gets a GUID of its own,
//! because readers may take two with the same GUID for one.

mod fields;

use std::collections::HashMap;
use std::sync::Arc;

use crate::editor::{Definitions, edit};
use crate::error::WriteError;
use crate::record::CutRecord;
use crate::target::Own;
use fields::{FieldEdits, Fields, Plan};

/// Which fields get which values.
#[derive(Debug)]
pub struct Rules(Fields);

/// Redacts records by the same rules.
#[derive(Debug)]
pub struct Redactor {
    rules: Arc<Rules>,
    definitions: Definitions<Plan>,
    record: Own,
}

/// The most characters of a name, the most bytes of all names, and the most names.
const MAX_KEY: usize = 1024;
const MAX_TOGETHER: usize = 1_000_000;
const MAX_KEYS: usize = 100_000;

/// Checks the names of fields, without regard to case.
fn check(pairs: &[(&str, Option<&str>)]) -> Result<(), String> {
    if pairs.len() > MAX_KEYS {
        return Err(format!("there are more than {MAX_KEYS} fields to redact"));
    }
    let mut known = HashMap::new();
    if pairs.iter().map(|(key, _)| key.len()).sum::<usize>() > MAX_TOGETHER {
        return Err(format!(
            "the fields to redact have more than {MAX_TOGETHER} bytes together"
        ));
    }
    for &(key, new) in pairs {
        if key.chars().nth(MAX_KEY).is_some() {
            return Err(format!("a field to redact has more than {MAX_KEY} characters"));
        }
        if key.is_empty() {
            return Err("a field to redact is empty".to_owned());
        }
        if key.contains('\0') || new.is_some_and(|new| new.contains('\0')) {
            return Err(format!("the field '{key}', or what replaces it, contains a NUL"));
        }
        let other = known.insert(key.to_lowercase(), (key, new));
        if let Some((other, _)) = other.filter(|(_, text)| *text != new) {
            return Err(format!(
                "'{other}' and '{key}' are the same field, because case does not matter, but are replaced by different texts"
            ));
        }
    }
    Ok(())
}

impl Rules {
    /// Replaces the values of fields by the names of the fields, in any case. A field without a value stays without. `None`
    /// makes a value NULL.
    ///
    /// # Errors
    /// An empty name, or one with a NUL; two that are the same but are replaced by different texts.
    pub fn fields(pairs: &[(&str, Option<&str>)]) -> Result<Self, String> {
        check(pairs)?;
        Ok(Rules(Fields::new(pairs)))
    }
}

impl Redactor {
    /// A redactor by some rules.
    pub fn new(rules: Arc<Rules>) -> Self {
        Redactor {
            rules,
            definitions: Definitions::default(),
            record: Own::default(),
        }
    }

    /// A record that stands alone, redacted.
    ///
    /// # Errors
    /// [`WriteError::NotRedacted`] if something cannot be redacted; the other errors if the bytes are not a
    /// record, or the values become too long.
    pub fn redact(&mut self, record: &[u8]) -> Result<&[u8], WriteError> {
        let cut = CutRecord::new(record)?;
        let edits = FieldEdits::new(&self.rules.0);
        edit(&mut self.record, cut, edits, &mut self.definitions)?.check_numbers()?;
        Ok(&self.record.out)
    }
}
