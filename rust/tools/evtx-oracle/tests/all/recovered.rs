//! Recovery: what the oracle's `recover_records` finds, this finds, and never a record twice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::common::recovered::{LIVE, RECOVER, Row, rows};
use crate::common::{corpus, samples};
use evtx::{EvtxParser, ParserSettings};

fn compare(logs: &[PathBuf]) {
    let (mut live, mut recovered, mut unread) = (0, 0, 0);
    for log in logs {
        let file = std::fs::read(log).expect("the log");
        let settings = ParserSettings::new().num_threads(1).indent(false).recover_records(true);
        let mut oracle = EvtxParser::from_buffer(file.clone())
            .expect("a log")
            .with_configuration(settings);
        let mut expected: BTreeMap<(u64, String), usize> = BTreeMap::new();
        // Bytes without an event are not a record here.
        let is_event = |xml: &str| !xml.ends_with("\n<Event></Event>");
        let recovered_by_oracle = oracle.records().flatten().filter(|record| record.recovered);
        for record in recovered_by_oracle.filter(|record| is_event(&record.data)) {
            *expected.entry((record.event_record_id, record.data)).or_default() += 1;
        }
        let found = rows(&file, RECOVER);
        let mut carved: BTreeSet<(u64, String)> = BTreeSet::new();
        for row in found
            .iter()
            .filter(|row| row.recovered == Some(true) && row.error.is_none())
        {
            carved.insert((row.id.expect("an ID"), row.xml.clone().expect("an event")));
        }
        // The crate reads records by a definition that was overwritten since. Here they say so.
        const OVERWRITTEN: [&str; 4] = [
            "is an instance of template",
            "does not match its hash",
            "a template definition needs",
            "come after the end of the nested stream",
        ];
        let orphaned: BTreeSet<u64> = found
            .iter()
            .filter(|row| {
                let error = row.error.as_ref().filter(|_| row.recovered == Some(true));
                error.is_some_and(|error| OVERWRITTEN.iter().any(|why| error.contains(why)))
            })
            .map(|row| row.id.expect("an ID"))
            .collect();
        // A copy of a live record is not found again.
        let live_rows = found
            .iter()
            .filter(|row| row.recovered == Some(false) && row.error.is_none());
        let known: BTreeSet<(u64, String)> = live_rows
            .map(|row| (row.id.expect("an ID"), row.xml.clone().expect("an event")))
            .collect();
        for record in expected.keys() {
            assert!(
                carved.contains(record) || known.contains(record) || orphaned.contains(&record.0),
                "{}: {record:?} is not found",
                log.display()
            );
        }
        let offsets: BTreeSet<_> = found
            .iter()
            .filter(|row| row.error.is_none())
            .map(|row| row.offset)
            .collect();
        assert_eq!(
            offsets.len(),
            found.iter().filter(|row| row.error.is_none()).count(),
            "{}: twice",
            log.display()
        );
        // The live records are those that come without recovery.
        let without = rows(&file, LIVE);
        let sound = |rows: &[Row], also: &dyn Fn(&Row) -> bool| -> Vec<(Option<u64>, Option<u64>)> {
            rows.iter()
                .filter(|row| row.error.is_none() && also(row))
                .map(|row| (row.id, row.offset))
                .collect()
        };
        let with = sound(&found, &|row| {
            row.recovered == Some(false) || without.iter().any(|other| other.offset == row.offset)
        });
        assert_eq!(sound(&without, &|_| true), with, "{}", log.display());
        live += with.len();
        recovered += carved.len();
        unread += orphaned.len();
    }
    println!(
        "{live} live and {recovered} recovered records of {} logs, and {unread} without their definition: all that the oracle \
         finds",
        logs.len()
    );
}

#[test]
fn what_the_oracle_recovers_of_the_samples_is_recovered() {
    compare(&samples());
}

#[test]
fn what_the_oracle_recovers_of_the_corpus_is_recovered() {
    compare(&corpus());
}
