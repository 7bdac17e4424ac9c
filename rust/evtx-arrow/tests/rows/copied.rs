//! Records that are cut out of a log and written to another one.

use evtx_arrow::{OnError, Options};
use evtx_format::container::record::Record;
use evtx_writer::{CutRecord, Cutter, LogWriter, WriteError};

use crate::common::{cell, corpus, every_column, hostile, read, samples};

const HEADER: usize = 4096;
const CHUNK: usize = 1 << 16;

const OPTIONS: Options = Options {
    on_error: OnError::Report,
    verify: false,
    xml: true,
    json: true,
    text: false,
    fields: true,
    insertions: false,
    message_source: false,
    location: true,
    recover: false,
};

/// A sound row: the file offset of its record, and every column but those that tell where it is.
type Row = (u64, Vec<Option<String>>);

/// The sound rows of a log; `None` if it is no log.
fn rows(file: &[u8]) -> Option<Vec<Row>> {
    let mut found = Vec::new();
    for batch in read(file, "log", OPTIONS, &every_column(&OPTIONS)).ok()? {
        for row in 0..batch.num_rows() {
            if cell(&batch, "error", row).is_some() {
                continue;
            }
            let offset = cell(&batch, "record_offset", row).and_then(|offset| offset.parse().ok());
            let schema = batch.schema();
            let fields = schema.fields().iter().map(|field| field.name());
            let kept = fields.filter(|name| !["record_id", "chunk_index", "record_offset"].contains(&name.as_str()));
            found.push((
                offset.expect("an offset"),
                kept.map(|name| cell(&batch, name, row)).collect(),
            ));
        }
    }
    Some(found)
}

/// The chunk of a record at a file offset, and the record.
fn find(file: &[u8], offset: u64) -> Result<(&[u8], Record), WriteError> {
    let slot = (offset as usize - HEADER) / CHUNK;
    let start = HEADER + slot * CHUNK;
    let chunk = &file[start..file.len().min(start + CHUNK)];
    let record = Record::read(chunk, offset as usize - start).map_err(|_| WriteError::RecordSize)?;
    Ok((chunk, record))
}

fn cut<'c>(cutter: &'c mut Cutter, file: &[u8], offset: u64) -> Result<&'c [u8], WriteError> {
    let (chunk, record) = find(file, offset)?;
    cutter.begin_chunk();
    cutter.cut(chunk, record.id, record.written, record.binxml())
}

/// Each column of a copy is that of the original. The copy has sound checksums, and no chunk of it is full.
#[test]
fn copies_have_the_same_rows() {
    let (mut all, mut refused) = (0, 0);
    for log in samples().into_iter().chain(corpus()).chain(hostile()) {
        let file = std::fs::read(&log).expect("the log");
        let (mut copy, mut cutter) = (LogWriter::new(1), Cutter::default());
        let mut expected = Vec::new();
        let Some(rows_of_log) = rows(&file) else { continue };
        for (offset, row) in rows_of_log {
            let written = cut(&mut cutter, &file, offset)
                .and_then(CutRecord::new)
                .and_then(|record| copy.write_cut(record));
            match written {
                Ok(_) => expected.push(row),
                Err(error) => {
                    eprintln!("{}: {offset}: {error}", log.display());
                    refused += 1;
                }
            }
        }
        all += expected.len();
        let copy = copy.finish();
        let options = Options {
            verify: true,
            ..OPTIONS
        };
        let found = read(&copy, "log", options, &every_column(&options)).expect("a log");
        let damage = found
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).filter_map(|row| cell(batch, "error", row)));
        assert_eq!(damage.collect::<Vec<_>>(), [""; 0], "{}", log.display());
        let found = rows(&copy).expect("a log");
        assert_eq!(found.len(), expected.len(), "{}", log.display());
        for ((offset, found), expected) in found.into_iter().zip(expected) {
            let differ: Vec<_> = found
                .iter()
                .zip(&expected)
                .filter(|(one, other)| one != other)
                .collect();
            assert!(differ.is_empty(), "{}: {offset}: {differ:?}", log.display());
        }
        let free = copy[HEADER..]
            .chunks(CHUNK)
            .map(|chunk| u32::from_le_bytes([chunk[48], chunk[49], chunk[50], chunk[51]]));
        assert!(free.max().unwrap_or_default() <= 65_528);
    }
    assert!(all > 100 && refused * 1000 <= all, "{refused} of {all}");
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
    let offsets: Vec<u64> = rows(&file).expect("a log").iter().map(|(offset, _)| *offset).collect();
    let mut seed = 1_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let (mut cutter, mut written, mut refused) = (Cutter::default(), 0, 0);
    for round in 0..6000 {
        let offset = offsets[random(offsets.len())];
        let (place, byte) = (offset as usize + 24 + random(400), random(256) as u8);
        let before = file[place];
        if round % 2 == 0 {
            file[place] = byte;
        }
        let record = cut(&mut cutter, &file, offset).map(<[u8]>::to_vec);
        file[place] = before;
        let Ok(mut record) = record else {
            refused += 1;
            continue;
        };
        for _ in 0..random(4) {
            let place = random(record.len());
            record[place] = random(256) as u8;
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
