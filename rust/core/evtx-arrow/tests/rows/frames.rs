//! Frames of records decide, not what headers say: no valid record is lost, and skipped bytes are reported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::common::recovered::{Recovering, recovers};
use crate::common::{self, AsTable, cell, column, read, samples};
use evtx_arrow::{Comparison, Expression, Literal, Options, Predicate, Scan, Table};

const LOCATED: Options = Options {
    location: true,
    ..Options::NONE
};

fn sample(name: &str) -> Vec<u8> {
    let path = samples()
        .into_iter()
        .find(|log| log.ends_with(name))
        .expect("the sample");
    std::fs::read(path).expect("the log")
}

/// The IDs of the records, the texts of the errors, and of how many rows that were recovered and are no error the event
/// is not known.
fn rows(file: &[u8], options: impl AsTable) -> (Vec<u64>, Vec<String>, usize) {
    let recovers = recovers(&options);
    let recovered = recovers.then_some("recovered");
    let names = ["record_id", "event_id", "error"].into_iter().chain(recovered);
    let projection: Vec<usize> = names.map(|name| column(&options, name)).collect();
    let (mut ids, mut errors, mut unknown) = (Vec::new(), Vec::new(), 0);
    for batch in read(file, "log", options, &projection).expect("a log") {
        for row in 0..batch.num_rows() {
            let id = cell(&batch, "record_id", row);
            ids.extend(id.map(|id| id.parse::<u64>().expect("a number")));
            match cell(&batch, "error", row) {
                Some(error) => errors.push(error),
                None if recovers && cell(&batch, "recovered", row).as_deref() == Some("true") => {
                    unknown += usize::from(cell(&batch, "event_id", row).is_none());
                }
                None => {}
            }
        }
    }
    (ids, errors, unknown)
}

/// Makes the checksum of a chunk's header that of its bytes.
fn update_checksum(chunk: &mut [u8]) {
    let sum = crc32fast::hash(&[&chunk[..120], &chunk[128..512]].concat());
    chunk[124..128].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn no_header_hides_a_record_from_a_predicate() {
    let mut log = sample("DC01-Security.evtx");
    let chunk = &mut log[4096..];
    chunk[24..40].copy_from_slice(&[1; 16]);
    update_checksum(chunk);
    let table = Table::from(Options::NONE);
    let first = Expression::compare(0, Comparison::Equal, Literal::Number(88_201));
    let is_first = Predicate::implied(&table, &first).expect("a predicate");
    let mut count = 0;
    common::scan(&log, "log", Scan::filtered(table, &[0], &[is_first]), |batch| {
        count += batch.num_rows()
    })
    .expect("a log");
    assert_eq!(count, 1);
}

#[test]
fn rewritten_headers_hide_no_record() {
    let valid = rows(&sample("DC01-Security.evtx"), Options::NONE).0;
    // The last record, the last ID, the free space: as if there were ten records, or none.
    for (last, last_id, free_space) in [(0_u32, 88_210_u64, 512_u32), (600, 88_210, 4096), (0, 0, 512)] {
        let mut log = sample("DC01-Security.evtx");
        let chunk = &mut log[4096..];
        // Where a record starts, as a forger would have it.
        let mut at = 512;
        while at < free_space {
            at += u32::from_le_bytes(chunk[at as usize + 4..at as usize + 8].try_into().expect("four bytes"));
        }
        chunk[32..40].copy_from_slice(&last_id.to_le_bytes());
        chunk[44..48].copy_from_slice(&last.to_le_bytes());
        chunk[48..52].copy_from_slice(&at.to_le_bytes());
        update_checksum(chunk);
        assert_eq!(rows(&log, Options::NONE).0, valid, "{last_id}, {free_space}");
    }
}

/// The sizes of each record in turn are damaged, in every way that a byte can be: the others all come.
#[test]
fn a_damaged_size_loses_no_other_record() {
    let log = sample("DC01-Sysmon.evtx");
    let (valid, errors, _) = rows(&log, Options::NONE);
    assert!(errors.is_empty());
    let mut starts = vec![4096 + 512];
    for _ in &valid {
        let at = starts[starts.len() - 1];
        starts.push(at + u32::from_le_bytes(log[at + 4..at + 8].try_into().expect("four bytes")) as usize);
    }
    for (id, &at) in valid.iter().zip(&starts) {
        let size = u32::from_le_bytes(log[at + 4..at + 8].try_into().expect("four bytes"));
        for bit in 0..20 {
            for also_copy in [false, true] {
                let mut damaged = log.clone();
                let claimed = size ^ (1 << bit);
                damaged[at + 4..at + 8].copy_from_slice(&claimed.to_le_bytes());
                // A forger mends the copy where the record then ends, if that leaves the frames of others alone.
                let copy = (at + claimed as usize).saturating_sub(4);
                let is_free = |start: &usize| copy + 4 <= *start || copy >= start + 24;
                if also_copy && (at + 24..4096 + 65_532).contains(&copy) && starts.iter().all(is_free) {
                    damaged[copy..copy + 4].copy_from_slice(&claimed.to_le_bytes());
                }
                let (found, errors, _) = rows(&damaged, Options::NONE);
                let found: BTreeSet<u64> = found.into_iter().collect();
                let lost: Vec<_> = valid.iter().filter(|id| !found.contains(id)).collect();
                assert!(lost.is_empty(), "{id}, size {size} as {claimed}: lost {lost:?}");
                assert!(
                    !errors.is_empty() || also_copy,
                    "{id}, size {size} as {claimed}: not reported"
                );
            }
        }
    }
}

/// Logs that hurt once, in the folder that EVTX_HOSTILE names: how many records there are, and how many errors are
/// reported.
#[test]
fn damaged_sizes_of_real_logs_lose_no_record() {
    let Some(folder) = std::env::var_os("EVTX_HOSTILE").map(PathBuf::from) else {
        eprintln!("skipped: the test over hostile logs, as EVTX_HOSTILE names no folder of them");
        return;
    };
    let log = |name: &str| std::fs::read(Path::new(&folder).join(name)).expect("the log");
    for (name, ids, least) in [
        ("silentloss-1857.evtx", (1..=228).collect::<BTreeSet<u64>>(), 1),
        ("silentloss-2184.evtx", (1..=6).collect(), 1),
        ("silentloss-4287.evtx", (1..=7).collect(), 1),
        // Bytes that were copied over others took the others.
        (
            "loss-1533.evtx",
            (1..=476).filter(|id| !(208..=210).contains(id)).collect(),
            2,
        ),
        (
            "loss-1861.evtx",
            (1..=474).filter(|id| !(457..=460).contains(id)).collect(),
            2,
        ),
    ] {
        for (found, errors, unknown) in [rows(&log(name), LOCATED), rows(&log(name), Recovering(LOCATED))] {
            let found: BTreeSet<u64> = found.into_iter().collect();
            let lost: Vec<_> = ids.difference(&found).collect();
            assert!(lost.is_empty(), "{name}: {lost:?}");
            assert!(errors.len() >= least, "{name}: {errors:?}");
            assert_eq!(unknown, 0, "{name}");
        }
    }
}

/// A row is a record that reads, or says why not.
#[test]
fn recovered_rows_read_or_say_why_not() {
    for log in samples().into_iter().chain(common::corpus()) {
        let file = std::fs::read(&log).expect("the log");
        let recover = Recovering(Options::NONE);
        let (_, _, unknown) = rows(&file, recover);
        assert_eq!(unknown, 0, "{}", log.display());
        // And it gives all that a plain scan gives.
        let with: BTreeSet<u64> = rows(&file, recover).0.into_iter().collect();
        let without: BTreeSet<u64> = rows(&file, Options::NONE).0.into_iter().collect();
        assert!(with.is_superset(&without), "{}", log.display());
    }
}
