//! Every column of every log, as a checksum: what makes the reader faster must not change a byte.
//!
//! `golden.txt` has a line for each log, with its rows, and below it one for each column. After a change that
//! is meant to alter what is read, `EVTX_GOLDEN=write` with `EVTX_CORPUS` and `EVTX_VARIED` set writes the file anew; its diff
//! then says what changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::common::recovered::Recovering;
use crate::common::{AsTable, ReadError, cell, corpus, every_column, sample_folder, samples, scan};
use evtx_arrow::{Options, Scan};
use evtx_extras::Extras;

const EVERYTHING: Recovering<(Options, Extras)> = Recovering((
    Options::ALL,
    Extras {
        record: false,
        ..Extras::ALL
    },
));

fn golden_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt")
}

/// The checksums of a log's columns, a line each. A cell counts with whether it is NULL, its length and its text.
fn checksums(log: &Path, name: &str) -> String {
    let file = std::fs::read(log).expect("a log");
    let mut rows = 0;
    let mut columns: Vec<(String, crc32fast::Hasher)> = Vec::new();
    let new = Scan::new(EVERYTHING.table(), &every_column(&EVERYTHING));
    let read = scan(&file, name, new, |batch| {
        let schema = batch.schema();
        columns.resize_with(schema.fields().len(), Default::default);
        for (field, (column, hasher)) in schema.fields().iter().zip(&mut columns) {
            column.clone_from(field.name());
            for row in 0..batch.num_rows() {
                let text = cell(&batch, column, row);
                hasher.update(&text.as_ref().map_or(u64::MAX, |text| text.len() as u64).to_le_bytes());
                hasher.update(text.unwrap_or_default().as_bytes());
            }
        }
        rows += batch.num_rows();
    });
    let mut lines = match read {
        Ok(()) => format!("{name}: {rows} rows\n"),
        Err(ReadError::NotEvtx(error)) => format!("{name}: {error}\n"),
        Err(ReadError::Decode(error)) => panic!("{name}: {error}"),
    };
    for (column, hasher) in columns {
        writeln!(lines, "  {column} {:08x}", hasher.finalize()).expect("a string takes it");
    }
    lines
}

/// The text of each log's lines, by the log's name.
fn by_log(golden: &str) -> BTreeMap<&str, String> {
    let mut logs: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = "";
    for line in golden.lines().filter(|line| !line.is_empty()) {
        if !line.starts_with(' ') {
            current = line.split_once(": ").map_or(line, |(name, _)| name);
        }
        *logs.entry(current).or_default() += &format!("{line}\n");
    }
    logs
}

/// The logs with the names that they have in the file: from the folder down.
fn named(logs: Vec<PathBuf>, folder: &str, root: &Path) -> Vec<(PathBuf, String)> {
    let name = |log: &PathBuf| {
        format!(
            "{folder}/{}",
            log.strip_prefix(root).expect("a log in the folder").display()
        )
    };
    logs.into_iter().map(|log| (log.clone(), name(&log))).collect()
}

#[test]
fn every_column_of_every_log_is_what_it_was() {
    let mut logs = named(samples(), "samples", &sample_folder());
    let corpus = corpus();
    for (variable, name) in [("EVTX_CORPUS", "corpus"), ("EVTX_VARIED", "varied")] {
        if let Some(folder) = std::env::var_os(variable).map(PathBuf::from) {
            let own = corpus.iter().filter(|log| log.starts_with(&folder)).cloned().collect();
            logs.extend(named(own, name, &folder));
        }
    }
    let read: Vec<_> = logs.iter().map(|(log, name)| (name, checksums(log, name))).collect();
    if std::env::var_os("EVTX_GOLDEN").is_some_and(|what| what == "write") {
        // The checksums of folders that are not here stay.
        let before = std::fs::read_to_string(golden_file()).unwrap_or_default();
        let folder = |name: &str| name.split('/').next().map(str::to_owned);
        let is_here = |name: &str| read.iter().any(|(log, _)| folder(log) == folder(name));
        let kept = by_log(&before).into_iter().filter(|(name, _)| !is_here(name));
        let text: Vec<_> = read
            .iter()
            .map(|(_, lines)| lines.clone())
            .chain(kept.map(|(_, lines)| lines))
            .collect();
        return std::fs::write(golden_file(), text.join("\n")).expect("golden.txt");
    }
    let golden = std::fs::read_to_string(golden_file()).expect("golden.txt");
    let golden = by_log(&golden);
    let mut values = 0;
    for (name, lines) in &read {
        let expected = golden
            .get(name.as_str())
            .unwrap_or_else(|| panic!("no checksums of {name}"));
        for (now, before) in lines.lines().zip(expected.lines()) {
            assert_eq!(now, before, "{name}");
            values += 1;
        }
        assert_eq!(lines.lines().count(), expected.lines().count(), "{name}");
    }
    println!("{} logs, {values} checksums agree with golden.txt", read.len());
}
