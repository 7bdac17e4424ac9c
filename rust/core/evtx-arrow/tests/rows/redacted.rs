//! Records that are redacted and written to a log.

mod expected;
mod kinds;

use evtx_arrow::Options;
use evtx_extras::Extras;
use evtx_writer::{CutRecord, LogWriter, Redactor, WriteError};
use serde_json::Value;

use crate::common::{cell, corpus, every_column, read, samples};
use expected::{Fields, is_same, leaves};

pub(crate) const HEADER: usize = 4096;

fn options() -> (Options, Extras) {
    let options = Options {
        json: true,
        ..Options::default()
    };
    let extras = Extras {
        record: true,
        ..Extras::default()
    };
    (options, extras)
}

/// A record of a log: itself, and its JSON.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) record: Vec<u8>,
    pub(crate) json: Value,
}

fn bytes_of(hexadecimal: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).expect("two digits");
    (0..hexadecimal.len()).step_by(2).map(digits).collect()
}

/// The valid rows of a log; none if it is no log.
pub(crate) fn rows(file: &[u8]) -> Vec<Row> {
    let options = options();
    let mut found = Vec::new();
    for batch in read(file, "log", options, &every_column(&options)).unwrap_or_default() {
        for row in 0..batch.num_rows() {
            let (Some(record), Some(json), None) = (
                cell(&batch, "record", row),
                cell(&batch, "json", row),
                cell(&batch, "error", row),
            ) else {
                continue;
            };
            found.push(Row {
                record: bytes_of(&record),
                json: serde_json::from_str(&json).expect("JSON"),
            });
        }
    }
    found
}

pub(crate) fn log_of<'r>(records: impl IntoIterator<Item = &'r [u8]>) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    for record in records {
        log.write_cut(CutRecord::new(record).expect("a record"))
            .expect("a valid one");
    }
    log.finish()
}

/// The same numbers in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % end.max(1)
    }

    pub(crate) fn of<'t, T>(&mut self, all: &'t [T]) -> Option<&'t T> {
        all.get(self.below(all.len()))
    }
}

/// At most 60 rows of a log, evenly spread.
fn some(rows: &[Row]) -> Vec<Row> {
    rows.iter().step_by(rows.len() / 60 + 1).cloned().collect()
}

#[derive(Debug, Default)]
struct Seen {
    rows: usize,
    changed: usize,
    refused: usize,
}

/// Redacts rows, writes and reads them, and compares the JSON with that which `expected` makes.
fn check(rows: &[Row], mut redactor: Redactor, expected: &Fields, keys: &[&str], seen: &mut Seen) {
    let (mut redacted, mut originals) = (Vec::new(), Vec::new());
    for row in rows {
        seen.rows += 1;
        match redactor.redact(&row.record) {
            Ok(record) => {
                redacted.push(record.to_vec());
                originals.push(row);
            }
            Err(WriteError::NotEdited(why)) => {
                assert!(Fields::may_refuse(&why), "{keys:?}: {why}\n{}", row.json);
                seen.refused += 1;
            }
            Err(other) => panic!("{keys:?}: {other}"),
        }
    }
    let file = log_of(redacted.iter().map(Vec::as_slice));
    let found = self::rows(&file);
    assert_eq!(found.len(), originals.len());
    for (found, original) in found.iter().zip(originals) {
        seen.changed += usize::from(found.json != original.json);
        if let Err(difference) = is_same(&found.json, &original.json, expected) {
            panic!("{keys:?}: {difference}\n{}\n{}", original.json, found.json);
        }
        assert_eq!(redactor.redact(&found.record), Ok(&found.record[..]), "redacted again");
    }
}

#[test]
fn fields_are_replaced_by_name() {
    let (mut random, mut seen) = (Random(2), Seen::default());
    for log in samples().into_iter().chain(corpus()) {
        let rows = some(&rows(&std::fs::read(&log).expect("the log")));
        for round in 0..3 {
            let mut pairs = Vec::new();
            for number in 0..3 {
                let Some(row) = random.of(&rows) else { continue };
                let leaves = leaves(&row.json);
                let Some((name, leaf)) = random.of(&leaves) else {
                    continue;
                };
                let name = if random.below(2) == 0 {
                    name.to_uppercase()
                } else {
                    name.clone()
                };
                // Those are also names of data without a name, which the JSON does not show.
                if name.to_lowercase().starts_with("param") {
                    continue;
                }
                let text = leaf.as_str().map_or_else(|| leaf.to_string(), str::to_owned);
                pairs.push((name, (round > 0).then(|| expected::like(&text, number))));
            }
            let pairs: Vec<_> = pairs
                .iter()
                .map(|(name, new)| (name.as_str(), new.as_deref()))
                .collect();
            let Ok(redactor) = Redactor::new(&pairs) else { continue };
            let expected = Fields::new(&pairs);
            let keys: Vec<&str> = pairs.iter().map(|(text, _)| *text).collect();
            check(&rows, redactor, &expected, &keys, &mut seen);
        }
    }
    eprintln!("{seen:?}");
    // In a third of the rounds, values become NULL, which many cannot be.
    assert!(seen.changed > 500 && seen.refused < seen.rows / 3, "{seen:?}");
}
