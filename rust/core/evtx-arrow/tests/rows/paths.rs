//! The compiled path and the fallback give the same rows: one reads every record through its template's plan
//! where there is one, the other reads a tree of every record.

use std::path::PathBuf;

use crate::common::{cell, cells, column, corpus, hostile, samples, scan};
use evtx_arrow::{Comparison, Expression, Literal, Options, Predicate, Scan, schema};
use evtx_format::container::header::FileHeader;
use evtx_format::search::Pattern;

fn rows(file: &[u8], name: &str, force_tree_path: bool) -> Vec<Vec<Option<String>>> {
    let options = Options {
        location: true,
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    cells(file, name, options, force_tree_path)
}

fn compare(logs: &[PathBuf]) {
    let mut count = 0;
    for log in logs {
        let file = std::fs::read(log).expect("the log");
        let name = log.display().to_string();
        let (plans, trees) = (rows(&file, &name, false), rows(&file, &name, true));
        for (plan, tree) in plans.iter().zip(&trees) {
            assert_eq!(plan, tree, "{name}");
        }
        assert_eq!(plans.len(), trees.len(), "{name}");
        count += plans.len();
    }
    println!("compared {count} rows of {} logs on both paths", logs.len());
}

/// Every column alone reads as it does among all: what a projection leaves out changes nothing. Nor do the plans that were
/// kept of other logs.
#[test]
fn each_column_alone_reads_as_among_all() {
    let options = Options {
        location: true,
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    for log in samples().iter().chain(&corpus()).chain(&hostile()) {
        let file = std::fs::read(log).expect("the log");
        let name = log.display().to_string();
        if FileHeader::read(&file[..file.len().min(4096)], file.len() as u64).is_err() {
            continue;
        }
        let all = rows(&file, &name, false);
        for (index, field) in schema(&options).fields().iter().enumerate() {
            let mut row = 0;
            scan(&file, &name, Scan::new(options, &[index]), |batch| {
                for i in 0..batch.num_rows() {
                    assert_eq!(
                        cell(&batch, field.name(), i),
                        all[row][index],
                        "{name}: {} in row {row}",
                        field.name()
                    );
                    row += 1;
                }
            })
            .expect("a log");
            assert_eq!(row, all.len(), "{name}: {}", field.name());
        }
    }
}

/// Predicates on `text` keep the rows whose text has the part, on both paths, whatever columns there are.
#[test]
fn a_predicate_on_text_keeps_what_has_the_part() {
    let options = Options {
        text: true,
        ..Options::default()
    };
    let text = column(&options, "text");
    let matches = |pattern: &str| {
        let pattern = Pattern {
            text: pattern.into(),
            escape: None,
            ignores_case: true,
        };
        Expression::Matches(Box::new(Expression::Column(text)), pattern)
    };
    let contains = |part: &str| Expression::compare(text, Comparison::Contains, Literal::Text(part.into()));
    let (mut kept, mut all) = (0, 0);
    for log in samples().iter().chain(&corpus()) {
        let file = std::fs::read(log).expect("the log");
        let name = log.display().to_string();
        let texts: Vec<String> = cells(&file, &name, options, false)
            .into_iter()
            .filter_map(|row| row[text].clone())
            .collect();
        all += texts.len();
        for part in [
            "c:\\users",
            "Provider.Name: microsoft-windows-s",
            "s-1-5-18",
            "\nEventRecordID: 1",
            "no such",
        ] {
            let has = |text: &&String| text.to_ascii_lowercase().contains(&part.to_ascii_lowercase());
            let (insensitive, sensitive) = (texts.iter().filter(has).count(), |text: &&String| text.contains(part));
            let exact = texts.iter().filter(sensitive).count();
            for (condition, expected) in [(matches(&format!("%{part}%")), insensitive), (contains(part), exact)] {
                let predicate = Predicate::implied(&options.into(), &condition).expect("decided here");
                for (columns, force_tree_path) in [(&[text][..], false), (&[0], false), (&[0], true)] {
                    let mut scanned = Scan::filtered(options, columns, std::slice::from_ref(&predicate));
                    if force_tree_path {
                        scanned = scanned.force_tree_path();
                    }
                    let mut rows = 0;
                    scan(&file, &name, scanned, |batch| rows += batch.num_rows()).expect("a log");
                    assert_eq!(rows, expected, "{name}: {part:?} {columns:?} {force_tree_path}");
                    kept += rows;
                }
            }
        }
    }
    println!("kept {kept} rows of {all}");
    assert!(kept > 0);
}

#[test]
fn batches_hold_no_more_than_2048_rows() {
    // The same chunk again and again: more records than a batch holds.
    let log = std::fs::read(
        samples()
            .iter()
            .find(|log| log.ends_with("DC01-Security.evtx"))
            .expect("the sample"),
    )
    .expect("the log");
    let mut file = log[..4096].to_vec();
    (0..200).for_each(|_| file.extend_from_slice(&log[4096..]));
    let mut rows = Vec::new();
    scan(&file, "many", Scan::new(Options::default(), &[0, 2]), |batch| {
        rows.push(batch.num_rows())
    })
    .expect("a log");
    assert_eq!(rows.iter().sum::<usize>(), 200 * 55);
    // A block has 16 chunks, and a batch no more than 2,048 rows of one.
    assert!(rows.iter().all(|&rows| rows == 16 * 55 || rows == 8 * 55), "{rows:?}");
}

#[test]
fn both_paths_agree_on_the_samples() {
    compare(&samples());
}

#[test]
fn both_paths_agree_on_the_corpus() {
    compare(&corpus());
}
