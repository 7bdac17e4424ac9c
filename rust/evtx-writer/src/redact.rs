//! Redaction: a copy of a record that stands alone, with other values.
//!
//! [`Rules::fields`] replaces the values of fields by the names of the fields, and [`Rules::values`] replaces texts wherever
//! they occur. Every other part stays as it is, so a reader finds the same events. A definition that changes gets a GUID
//! of its own, because readers may take two with the same GUID for one.

mod keys;
mod typed;
mod folded;
mod spelled;
mod packed;
mod encoded;
mod sids;
mod fields;
mod values;
mod editor;

use std::collections::HashMap;
use std::sync::Arc;

use crate::copy::copy_stream;
use crate::error::WriteError;
use crate::record::{CutRecord, begin, finish, refusal, seal};
use crate::source::Source;
use crate::target::Own;
use editor::{Definitions, Editor, Kind};
use fields::Fields;
use folded::Folded;
pub use keys::Keys;
use values::Values;

/// What is replaced, and by what.
#[derive(Debug)]
pub struct Rules {
    kind: Kind,
    /// The ID of the texts that a log must not contain; `None` if there are none.
    keys: Option<u64>,
}

/// Redacts records by the same rules.
#[derive(Debug)]
pub struct Redactor {
    rules: Arc<Rules>,
    definitions: Definitions,
    record: Own,
    scratch: Folded,
}

/// The most characters of a name or a text and of all of them, and the most of them.
const MAX_KEY: usize = 1024;
const MAX_TOGETHER: usize = 1_000_000;
const MAX_KEYS: usize = 100_000;

/// Checks names or texts, without regard to case.
fn check(what: &str, pairs: &[(&str, Option<&str>)]) -> Result<(), String> {
    if pairs.len() > MAX_KEYS {
        return Err(format!("there are more than {MAX_KEYS} {what}s to redact"));
    }
    let mut known = HashMap::new();
    if pairs.iter().map(|(key, _)| key.len()).sum::<usize>() > MAX_TOGETHER {
        return Err(format!(
            "the {what}s to redact have more than {MAX_TOGETHER} bytes together"
        ));
    }
    for &(key, new) in pairs {
        if key.chars().nth(MAX_KEY).is_some() {
            return Err(format!("a {what} to redact has more than {MAX_KEY} characters"));
        }
        if key.is_empty() {
            return Err(format!("a {what} to redact is empty"));
        }
        if key.contains('\0') || new.is_some_and(|new| new.contains('\0')) {
            return Err(format!("the {what} '{key}', or what replaces it, contains a NUL"));
        }
        let other = known.insert(key.to_lowercase(), (key, new));
        if let Some((other, _)) = other.filter(|(_, text)| *text != new) {
            return Err(format!(
                "'{other}' and '{key}' are the same {what}, because case does not matter, but are replaced by different texts"
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
        check("field", pairs)?;
        let kind = Kind::Fields(Fields::new(pairs));
        Ok(Rules { kind, keys: None })
    }

    /// Replaces texts wherever they occur, in any case: in texts and names, in SIDs, in binary values, and in bytes that
    /// no reader shows; numbers, GUIDs and times if they are equal to a text. `None` removes a text, and makes other
    /// values NULL.
    ///
    /// # Errors
    /// As for [`fields`](Self::fields), and a replacement that contains one of the texts.
    pub fn values(pairs: &[(&str, Option<&str>)]) -> Result<Self, String> {
        check("value", pairs)?;
        let values = Values::new(pairs)?;
        let mut texts: Vec<_> = pairs.iter().map(|(text, _)| (*text).to_owned()).collect();
        texts.sort();
        let keys = (!texts.is_empty()).then(|| Keys(texts).keep());
        let kind = Kind::Values(values.into());
        Ok(Rules { kind, keys })
    }
}

impl Redactor {
    /// A redactor by some rules.
    pub fn new(rules: Arc<Rules>) -> Self {
        Redactor {
            rules,
            definitions: Definitions::default(),
            record: Own::default(),
            scratch: Folded::default(),
        }
    }

    /// A record that stands alone, redacted.
    ///
    /// # Errors
    /// [`WriteError::NotRedacted`] if something cannot be redacted, or remains; the other errors if the bytes are not a
    /// record, or the values become too long.
    pub fn redact(&mut self, record: &[u8]) -> Result<&[u8], WriteError> {
        let cut = CutRecord::new(record)?;
        let rules = &self.rules.kind;
        begin(&mut self.record, cut.id, cut.written);
        let mut editor = Editor::new(&mut self.record, rules, &mut self.scratch, Some(&mut self.definitions));
        copy_stream(&mut editor, Source::record(record), cut.binxml())?;
        if let Kind::Fields(fields) = rules {
            fields.check_numbers(&editor.walk.plan)?;
        }
        let found = editor.found;
        // Definitions were checked when they were redacted.
        if let Kind::Values(values) = rules {
            values.check(&mut self.definitions.scratch, &self.record.out)?;
        }
        finish(&mut self.record, |at, out| {
            let definition = found.iter().find(|(known, _)| *known == at);
            out.extend(definition.map(|(_, definition)| &*definition.bytes).unwrap_or_default());
            Ok(())
        })?;
        Ok(&self.record.out)
    }

    /// A record that stands alone, redacted and sealed: a [`LogWriter`](crate::LogWriter) knows what it must not contain.
    /// If it cannot be redacted, the result is a refusal, which says why, and which function has refused it.
    ///
    /// # Errors
    /// [`WriteError::Damaged`] if the bytes are not a record.
    pub fn redact_and_seal(&mut self, record: &[u8], function: &str) -> Result<Vec<u8>, WriteError> {
        let cut = match CutRecord::new(record) {
            Err(WriteError::NotRedacted(_)) => return Ok(record.to_vec()),
            cut => cut?,
        };
        // Nobody knows the keys of another process any more. It has searched for them.
        let known = cut.seal().filter(|id| Keys::of(*id).is_some());
        let mut ids: Vec<u64> = known.chain(self.rules.keys).collect();
        ids.sort_unstable();
        ids.dedup();
        let redacted = self.redact(record).map(<[u8]>::to_vec).and_then(|mut redacted| {
            if !ids.is_empty() {
                seal(&mut redacted, &ids)?;
            }
            Ok(redacted)
        });
        match redacted {
            Err(why @ (WriteError::NotRedacted(_) | WriteError::RecordSize | WriteError::ValueSize(_))) => {
                let why = format!("{function}: record {}: {why}", cut.id);
                Ok(refusal(cut.id, cut.written, &why))
            }
            redacted => redacted,
        }
    }
}
