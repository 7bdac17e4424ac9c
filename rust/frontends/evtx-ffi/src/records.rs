//! The functions that replace parts of records, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use evtx_writer::{CutRecord, Pseudonymizer, Redactor, WriteError};

use crate::boundary::EvtxError;
use crate::rows::{Map, Row, typed};
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, map, text};

/// The pairs of a map.
type Replacements = Vec<(String, Option<String>)>;

/// The user's entries, and the key.
type Allowed = (Vec<String>, Option<String>);

/// The function of a record and a map, `evtx_redact`.
pub(crate) fn redact() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_redact",
        description: "A record with other values of the fields that a map names. NULL in the map makes a value NULL. For \
                      COPY ... TO (FORMAT evtx).",
        example: "SELECT evtx_redact(record, MAP {'TargetUserName': 'user-1'}) FROM read_evtx('Security.evtx', record := \
                  true)",
        parameters: vec![Field::new("record", DataType::Binary, true), map("replacements")],
        result: Field::new("redacted", DataType::Binary, true),
        make: Box::new(|| {
            Box::new(RecordEditor {
                name: "evtx_redact",
                settings: replacements,
                make: |pairs| {
                    let pairs: Vec<_> = pairs.iter().map(|(key, new)| (&**key, new.as_deref())).collect();
                    Redactor::new(&pairs)
                },
                edit: |redactor, record| redactor.redact(record).map(<[u8]>::to_vec),
                last: None,
            })
        }),
    }
}

/// The function of a record, a list and a text, which the macro `evtx_pseudonymize` calls.
pub(crate) fn pseudonymize() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_pseudonymize_record",
        description: "A record in which all values are replaced that are not allowed. For evtx_pseudonymize.",
        example: "SELECT evtx_pseudonymize_record(record, ['contoso'], NULL) FROM read_evtx('Security.evtx', record := \
                  true)",
        parameters: vec![
            Field::new("record", DataType::Binary, true),
            typed::<Vec<&str>>("allow"),
            text("key"),
        ],
        result: Field::new("pseudonymized", DataType::Binary, true),
        make: Box::new(|| {
            Box::new(RecordEditor {
                name: "evtx_pseudonymize",
                // SAFETY: the next vectors are those of a list of texts and a text.
                settings: |mut from| unsafe { from.next::<Allowed>() },
                make: |(allow, key)| {
                    let allow: Vec<_> = allow.iter().map(String::as_str).collect();
                    Pseudonymizer::new(&allow, key.as_deref())
                },
                edit: Pseudonymizer::pseudonymize,
                last: None,
            })
        }),
    }
}

/// The pairs in a row; `None` for NULL.
///
/// # Safety
/// The next vectors are those of a map.
unsafe fn replacements(mut from: Row<'_>) -> Result<Option<Replacements>, EvtxError> {
    // SAFETY: by the contract of this function.
    let map = unsafe { from.next::<Option<Map<'_>>>()? }.flatten();
    let owned = |(key, new): (&str, Option<&str>)| (key.to_owned(), new.map(str::to_owned));
    Ok(map.map(|map| map.0.into_iter().map(owned).collect()))
}

/// What one thread edits records with: the last settings, and what was made of them.
struct RecordEditor<S, E> {
    /// The name of the function, for errors.
    name: &'static str,
    /// The settings in a row, after the record. `None` makes it NULL.
    settings: unsafe fn(Row<'_>) -> Result<Option<S>, EvtxError>,
    make: fn(&S) -> Result<E, String>,
    edit: fn(&mut E, &[u8]) -> Result<Vec<u8>, WriteError>,
    last: Option<(S, E)>,
}

impl<S: PartialEq + Send, E: Send> Scalar for RecordEditor<S, E> {
    /// NULL for a NULL record.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let (name, mut edited) = (self.name, BinaryBuilder::new());
        for mut row in Row::all(vectors, caller.interrupt) {
            caller.interrupt.check()?;
            // SAFETY: by the contract of this function.
            let (record, settings) = unsafe { (row.next::<&[u8]>()?, (self.settings)(row)?) };
            let (Some(record), Some(settings)) = (record, settings) else {
                edited.append_null();
                continue;
            };
            let (_, editor) = match self.last.take().filter(|(known, _)| *known == settings) {
                Some(last) => self.last.insert(last),
                None => {
                    let editor = (self.make)(&settings).map_err(|why| format!("{name}: {why}"))?;
                    self.last.insert((settings, editor))
                }
            };
            let number = || CutRecord::new(record).map_or_else(|_| String::new(), |record| format!(" {}", record.id));
            let new = (self.edit)(editor, record);
            edited.append_value(new.map_err(|why| format!("{name}: record{}: {why}", number()))?);
        }
        Ok(Arc::new(edited.finish()))
    }
}
