//! Truth: every default column of every record against what its XPath gives on the XML that the `evtx` crate renders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::{corpus, samples};
use crate::oracle::{Comparison, Place};

/// The differences that are known, with the reason for each: `file | record or * | column | reason`.
fn known_differences() -> BTreeSet<Place> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/known_differences.txt");
    let text = std::fs::read_to_string(path).expect("the list of known differences");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let mut fields = line.split('|').map(|field| field.trim().to_owned());
            let mut field = || {
                fields
                    .next()
                    .unwrap_or_else(|| panic!("file | record | column | reason: {line}"))
            };
            let known = (field(), field(), field());
            assert!(!field().is_empty(), "a reason: {line}");
            known
        })
        .collect()
}

fn compare(logs: &[PathBuf]) {
    let mut comparison = Comparison::default();
    for log in logs {
        let name = log.file_name().expect("a name").to_string_lossy();
        comparison.log(&name, &std::fs::read(log).expect("the log"));
    }
    println!(
        "compared {} records of {} logs with the oracle: {} values, {} differences",
        comparison.records,
        logs.len(),
        comparison.values,
        comparison.differences.len()
    );
    let names: BTreeSet<String> = logs
        .iter()
        .map(|log| log.file_name().expect("a name").to_string_lossy().into_owned())
        .collect();
    let known: BTreeSet<_> = known_differences()
        .into_iter()
        .filter(|(file, ..)| names.contains(file))
        .collect();
    let found: BTreeSet<_> = comparison.differences.iter().map(|(place, _)| place.clone()).collect();
    for (place, what) in comparison
        .differences
        .iter()
        .filter(|(place, _)| !known.contains(place))
        .take(20)
    {
        println!("difference: {} | {} | {}: {what}", place.0, place.1, place.2);
    }
    for stale in known.difference(&found) {
        println!("stale: {stale:?} is listed but does not differ");
    }
    assert_eq!(
        known, found,
        "differences to the oracle, and those that tests/known_differences.txt lists"
    );
}

#[test]
fn every_column_of_the_samples_is_what_the_oracle_says() {
    compare(&samples());
}

#[test]
fn every_column_of_the_corpus_is_what_the_oracle_says() {
    compare(&corpus());
}
