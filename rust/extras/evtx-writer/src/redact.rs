//! Redaction: a copy of a record that stands alone, with other values in the fields that a [`Redactor`] was given.
//!
//! Every other part stays as it is, so a reader finds the same events. A definition that changes gets a GUID of its own,
//! because readers may take two with the same GUID for one.

mod fields;

use std::collections::HashMap;

use crate::editor::{Definitions, edit};
use crate::error::WriteError;
use crate::record::CutRecord;
use crate::target::Own;
use fields::{FieldEdits, Fields, Plan};

/// Redacts records by the same rules.
#[derive(Debug)]
pub struct Redactor {
    fields: Fields,
    definitions: Definitions<Plan>,
    record: Own,
}

/// Checks the names of fields, without regard to case.
fn check(pairs: &[(&str, Option<&str>)]) -> Result<(), String> {
    let mut known = HashMap::new();
    for &(key, new) in pairs {
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

impl Redactor {
    /// Replaces the values of fields by the names of the fields, in any case. A field without a value stays without. `None`
    /// makes a value NULL.
    ///
    /// # Errors
    /// An empty name, or one with a NUL; two that are the same but are replaced by different texts.
    pub fn new(pairs: &[(&str, Option<&str>)]) -> Result<Self, String> {
        check(pairs)?;
        Ok(Redactor {
            fields: Fields::new(pairs),
            definitions: Definitions::default(),
            record: Own::default(),
        })
    }

    /// A record that stands alone, redacted.
    ///
    /// # Errors
    /// [`WriteError::NotRedacted`] if something cannot be redacted; the other errors if the bytes are not a
    /// record, or the values become too long.
    pub fn redact(&mut self, record: &[u8]) -> Result<&[u8], WriteError> {
        let cut = CutRecord::new(record)?;
        if cut.marks.is_some() {
            let why = "it has pseudonyms: call evtx_redact first, then evtx_pseudonymize";
            return Err(WriteError::NotRedacted(why.into()));
        }
        let edits = FieldEdits::new(&self.fields);
        edit(&mut self.record, cut, edits, &mut self.definitions)?.check_numbers()?;
        Ok(&self.record.out)
    }
}
