//! Any bytes, as the BinXML of a record that is redacted, or gets pseudonyms, written to a log and read: cut out of a chunk, or
//! a record that stands alone.
#![no_main]

use evtx_writer::{Check, CutRecord, Cutter, LogWriter, Pseudonymizer, Redactor};

/// Bytes before the BinXML of a record.
const HEADER: usize = 24;
const FIRST_RECORD: usize = 512;
const FILE_HEADER: usize = 4096;

const FIELDS: &[(&str, Option<&str>)] = &[
    ("TargetUserName", Some("u")),
    ("computer", None),
    ("param2", Some("x")),
    ("Name", Some("7")),
];

fn redact(record: &[u8]) {
    let mut redactor = Redactor::new(FIELDS).expect("fields");
    let Ok(redacted) = redactor.redact(record).map(<[u8]>::to_vec) else {
        return;
    };
    let again = redactor.redact(&redacted).expect("it was redacted");
    assert!(again == redacted, "another record");
    let mut log = LogWriter::new(1);
    let written = CutRecord::new(&redacted).and_then(|record| log.write_cut(record));
    // Reading takes a thousand times as long, and other targets read.
    if written.is_ok() && redacted.len().is_multiple_of(16) {
        evtx_fuzz::read_every_way(&log.finish());
    }
}

/// The check of the log finds nothing.
fn pseudonymize(record: &[u8]) {
    let mut pseudonymizer = Pseudonymizer::new(&[], Some("a key of 16 bytes")).expect("a key");
    let Ok(new) = pseudonymizer.pseudonymize(record) else {
        return;
    };
    let (mut log, record) = (LogWriter::new(1), CutRecord::new(&new).expect("a record"));
    if log.write_cut(record).is_ok() {
        let marks = record.marks.expect("it has pseudonyms");
        let check = Check::new([marks.entries], marks.pseudonyms().collect()).expect("no entries");
        assert_eq!(check.find(&log.finish()[FILE_HEADER..]), None);
    }
}

libfuzzer_sys::fuzz_target!(|binxml: &[u8]| {
    let mut chunk = vec![0; FIRST_RECORD + HEADER];
    chunk.extend_from_slice(binxml);
    let range = FIRST_RECORD + HEADER..chunk.len();
    if let Ok(record) = Cutter::default().cut(&chunk, 1, 0, range) {
        redact(record);
        pseudonymize(record);
    }
    let mut record = b"**\0\0".to_vec();
    record.extend_from_slice(&((binxml.len() + HEADER) as u32).to_le_bytes());
    record.resize(HEADER, 0);
    record.extend_from_slice(binxml);
    redact(&record);
    pseudonymize(&record);
});
