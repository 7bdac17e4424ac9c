//! The function that replaces what records may not show, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use evtx_scan::ScanError;
use evtx_writer::{CutRecord, Pseudonymizer};

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction};

const NAME: &str = "evtx_pseudonymize";

/// The function, of a record, a list and a text, which the macro `evtx_pseudonymize` calls.
pub(crate) fn function() -> ScalarFunction {
    let list = DataType::List(Field::new("item", DataType::Utf8, true).into());
    ScalarFunction {
        name: "evtx_pseudonymize_record",
        description: "A record in which all values are replaced that are not allowed. For evtx_pseudonymize.",
        example: "SELECT evtx_pseudonymize_record(record, ['contoso'], NULL) FROM read_evtx('Security.evtx', record := \
                  true)",
        parameters: vec![
            Field::new("record", DataType::Binary, true),
            Field::new("allow", list, true),
            Field::new("key", DataType::Utf8, true),
        ],
        result: Field::new("pseudonymized", DataType::Binary, true),
        make: Box::new(|| Box::new(RecordPseudonymizer::default())),
    }
}

/// What one thread replaces values with: the last entries and key, and what was made of them.
#[derive(Debug, Default)]
struct RecordPseudonymizer(Option<(Vec<String>, Option<String>, Pseudonymizer)>);

impl Scalar for RecordPseudonymizer {
    /// NULL for a NULL record.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[records, lists, entries, keys] = vectors else {
            return Err("pseudonyms need three arguments".into());
        };
        let mut replaced = BinaryBuilder::new();
        for row in 0..records.rows {
            caller.interrupt.check().map_err(ScanError::from)?;
            // SAFETY: by the contract of this function.
            let (record, key, items) = unsafe { (records.bytes(row), keys.text(row)?, lists.items(row)) };
            let Some(record) = record else {
                replaced.append_null();
                continue;
            };
            // SAFETY: as above.
            let allow = items.filter_map(|item| unsafe { entries.text(item) }.transpose());
            let allow = allow.collect::<Result<Vec<_>, _>>()?;
            let is_last =
                |(known, last, _): &(Vec<String>, Option<String>, _)| *known == allow && last.as_deref() == key;
            let last = match self.0.take().filter(is_last) {
                Some(last) => last,
                None => {
                    let made = Pseudonymizer::new(&allow, key).map_err(|why| format!("{NAME}: {why}"))?;
                    (
                        allow.into_iter().map(str::to_owned).collect(),
                        key.map(str::to_owned),
                        made,
                    )
                }
            };
            let (_, _, pseudonymizer) = self.0.insert(last);
            let new = pseudonymizer.pseudonymize(record);
            let number = || CutRecord::new(record).map_or_else(|_| String::new(), |record| format!(" {}", record.id));
            replaced.append_value(new.map_err(|why| format!("{NAME}: record{}: {why}", number()))?);
        }
        Ok(Arc::new(replaced.finish()))
    }
}
