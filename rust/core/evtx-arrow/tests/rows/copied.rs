//! Records that are cut out of a log and written to another one.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use evtx_arrow::Options;
use evtx_extras::Extras;
use evtx_format::container::record::Record;
use evtx_writer::{CutRecord, Cutter, LogWriter};

use crate::common::{cell, corpus, every_column, hostile, read, samples};

const HEADER: usize = 4096;
const CHUNK: usize = 1 << 16;

const OPTIONS: (Options, Extras) = (
    Options {
        xml: true,
        json: true,
        fields: true,
        location: true,
        ..Options::NONE
    },
    Extras {
        record: true,
        insertions: false,
        message_source: false,
    },
);

/// A valid row: the file offset of its record, the record without its ID, and every other column but those that tell
/// where it is.
struct Row {
    offset: u64,
    record: Option<Vec<u8>>,
    cells: Vec<Option<String>>,
}

/// The valid rows of a log; `None` if it is no log.
fn rows(file: &[u8]) -> Option<Vec<Row>> {
    let mut found = Vec::new();
    for batch in read(file, "log", OPTIONS, &every_column(&OPTIONS)).ok()? {
        let records = batch.column_by_name("record").expect("a column").as_binary::<i32>();
        for row in (0..batch.num_rows()).filter(|&row| batch.column_by_name("error").expect("a column").is_null(row)) {
            let schema = batch.schema();
            let fields = schema.fields().iter().map(|field| field.name());
            let kept =
                fields.filter(|name| !["record_id", "record", "chunk_index", "record_offset"].contains(&name.as_str()));
            let offset = cell(&batch, "record_offset", row).expect("an offset");
            found.push(Row {
                offset: offset.parse().expect("a number"),
                record: records.is_valid(row).then(|| records.value(row).to_vec()),
                cells: kept.map(|name| cell(&batch, name, row)).collect(),
            });
        }
    }
    Some(found)
}

/// Each column of a copy is that of the original, and so is each record but for its ID. The copy has valid checksums,
/// and no chunk of it is full.
#[test]
fn copies_have_the_same_rows() {
    let (mut all, mut refused) = (0, 0);
    for log in samples().into_iter().chain(corpus()).chain(hostile()) {
        let file = std::fs::read(&log).expect("the log");
        let mut copy = LogWriter::new(1);
        let mut expected = Vec::new();
        for row in rows(&file).into_iter().flatten() {
            let written = row
                .record
                .as_deref()
                .map(|record| CutRecord::new(record).and_then(|cut| copy.write_cut(cut)));
            match written {
                Some(Ok(_)) => expected.push(row),
                other => {
                    eprintln!("{}: {}: {other:?}", log.display(), row.offset);
                    refused += 1;
                }
            }
        }
        all += expected.len();
        let copy = copy.finish();
        let verify = (
            Options {
                verify: true,
                ..OPTIONS.0
            },
            OPTIONS.1,
        );
        let found = read(&copy, "log", verify, &every_column(&verify)).expect("a log");
        let damage = found
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).filter_map(|row| cell(batch, "error", row)));
        assert_eq!(damage.collect::<Vec<_>>(), [""; 0], "{}", log.display());
        let found = rows(&copy).expect("a log");
        assert_eq!(found.len(), expected.len(), "{}", log.display());
        for (found, expected) in found.into_iter().zip(expected) {
            let place = format!("{}: {}", log.display(), expected.offset);
            let differ: Vec<_> = found
                .cells
                .iter()
                .zip(&expected.cells)
                .filter(|(one, other)| one != other)
                .collect();
            assert!(differ.is_empty(), "{place}: {differ:?}");
            let without_id = |row: Row| row.record.map(|record| [&record[..8], &record[16..]].concat());
            assert!(without_id(found) == without_id(expected), "{place}: another record");
        }
        let free = copy[HEADER..]
            .chunks(CHUNK)
            .map(|chunk| u32::from_le_bytes([chunk[48], chunk[49], chunk[50], chunk[51]]));
        assert!(free.max().unwrap_or_default() <= 65_528);
    }
    assert!(all > 100 && refused == 0, "{refused} of {all}");
}

/// Damaged chunks and crafted records give errors, or records that can be written and read.
#[test]
fn damaged_records_cost_an_error() {
    let file = std::fs::read(
        samples()
            .into_iter()
            .find(|log| log.ends_with("DC01-Security.evtx"))
            .expect("the sample"),
    );
    let mut file = file.expect("the log");
    let offsets: Vec<usize> = rows(&file)
        .expect("a log")
        .iter()
        .map(|row| row.offset as usize)
        .collect();
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let (mut cutter, mut written, mut refused) = (Cutter::default(), 0, 0);
    for round in 0..6000 {
        let offset = offsets[random(offsets.len())];
        let (at, byte) = (offset + 24 + random(400), random(256) as u8);
        let before = file[at];
        if round % 2 == 0 {
            file[at] = byte;
        }
        let (_, slots) = file.split_at(HEADER);
        let slot = (offset - HEADER) / CHUNK;
        let chunk = &slots[slot * CHUNK..(slot + 1) * CHUNK];
        let record = Record::read(chunk, (offset - HEADER) % CHUNK).expect("a record");
        cutter.begin_chunk();
        let record = cutter
            .cut(chunk, record.id, record.written, record.binxml())
            .map(<[u8]>::to_vec);
        file[at] = before;
        let Ok(mut record) = record else {
            refused += 1;
            continue;
        };
        for _ in 0..random(4) {
            let at = random(record.len());
            record[at] = random(256) as u8;
        }
        let mut copy = LogWriter::new(1);
        match CutRecord::new(&record).and_then(|record| copy.write_cut(record)) {
            Ok(_) => written += 1,
            Err(_) => refused += 1,
        }
        let copy = copy.finish();
        assert!(copy.len() <= HEADER + CHUNK);
        read(&copy, "log", OPTIONS, &every_column(&OPTIONS)).expect("a log");
    }
    assert!(written > 1000 && refused > 1000, "{written} {refused}");
}
