//! The function that redacts the fields of records, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use evtx_scan::ScanError;
use evtx_writer::{CutRecord, Redactor};

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction};

const NAME: &str = "evtx_redact";

/// The function, of a record and a map.
pub(crate) fn function() -> ScalarFunction {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    let map = DataType::Map(Field::new("entries", pair, false).into(), false);
    ScalarFunction {
        name: NAME,
        description: "A record with other values of the fields that a map names. NULL in the map makes a value NULL. For \
                      COPY ... TO (FORMAT evtx).",
        example: "SELECT evtx_redact(record, MAP {'TargetUserName': 'user-1'}) FROM read_evtx('Security.evtx', record := \
                  true)",
        parameters: vec![
            Field::new("record", DataType::Binary, true),
            Field::new("replacements", map, true),
        ],
        result: Field::new("redacted", DataType::Binary, true),
        make: Box::new(|| Box::new(RecordRedactor::default())),
    }
}

/// The pairs of a map.
type Owned = Vec<(String, Option<String>)>;

/// What one thread redacts records with: the pairs of the last map, and the redactor that was made of them.
#[derive(Debug, Default)]
struct RecordRedactor(Option<(Owned, Redactor)>);

impl RecordRedactor {
    /// The redactor for some pairs.
    fn by(&mut self, pairs: &[(&str, Option<&str>)]) -> Result<&mut Redactor, EvtxError> {
        let is_last = |(known, _): &(Owned, Redactor)| {
            let known = known.iter().map(|(key, new)| (key.as_str(), new.as_deref()));
            pairs.iter().copied().eq(known)
        };
        let last = match self.0.take().filter(is_last) {
            Some(last) => last,
            None => {
                let redactor = Redactor::new(pairs).map_err(|why| format!("{NAME}: {why}"))?;
                let owned = pairs
                    .iter()
                    .map(|(key, new)| ((*key).to_owned(), new.map(str::to_owned)));
                (owned.collect(), redactor)
            }
        };
        Ok(&mut self.0.insert(last).1)
    }
}

impl Scalar for RecordRedactor {
    /// NULL for a NULL record or map.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[records, maps, entries, keys, values] = vectors else {
            return Err("a redaction has two arguments".into());
        };
        let replacements = Pairs::new([maps, entries, keys, values]);
        let mut redacted = BinaryBuilder::new();
        let mut last = None;
        for row in 0..records.rows {
            caller.interrupt.check().map_err(ScanError::from)?;
            // SAFETY: by the contract of this function.
            let (record, map) = unsafe { (records.bytes(row), maps.value::<[u64; 2]>(row)) };
            let (Some(record), Some(map)) = (record, map) else {
                redacted.append_null();
                continue;
            };
            let redactor = match &mut self.0 {
                Some((_, redactor)) if last == Some(map) => redactor,
                _ => {
                    // SAFETY: as above.
                    let pairs: Vec<_> = unsafe { replacements.row(row) }.collect::<Result<_, _>>()?;
                    last = Some(map);
                    self.by(&pairs)?
                }
            };
            let number = || CutRecord::new(record).map_or_else(|_| String::new(), |record| format!(" {}", record.id));
            let new = redactor.redact(record);
            redacted.append_value(new.map_err(|why| format!("{NAME}: record{}: {why}", number()))?);
        }
        Ok(Arc::new(redacted.finish()))
    }
}
