//! Messages in an `.MTA` file beside a log, against those that the oracle finds for its records.

use std::sync::Arc;

use crate::common::{messages, sample_folder, samples};
use evtx::mta::MtaFile;
use evtx::{EvtxParser, ParserSettings};
use evtx_samples::MtaWriter;
use evtx_writer::{Element, Event, LogWriter, Substitution, Template, Value};

/// The oracle's messages: those that it renders, so that escapes are not undone here and tests keep to text
/// without any.
fn oracle(log: &[u8], mta: &[u8]) -> Vec<Option<String>> {
    let mta = MtaFile::from_bytes(mta).expect("an MTA file");
    let settings = ParserSettings::new()
        .num_threads(1)
        .indent(false)
        .mta(Some(Arc::new(mta)));
    let mut parser = EvtxParser::from_buffer(log.to_vec())
        .expect("a log")
        .with_configuration(settings);
    let message = |xml: &str| {
        let (_, rest) = xml.split_once("<Message>")?;
        Some(rest.split_once("</Message>")?.0.to_owned())
    };
    parser
        .records()
        .map(|record| message(&record.expect("a sound record").data))
        .collect()
}

#[test]
fn the_messages_of_a_sample_are_those_that_the_oracle_finds() {
    let folder = sample_folder();
    let mta = std::fs::read(folder.join("LocaleMetaData/DC01-System_1033.MTA")).expect("the messages");
    let log = std::fs::read(folder.join("DC01-System.evtx")).expect("the log");
    let found = messages(&log, Some(mta.clone()));
    assert_eq!(found, oracle(&log, &mta));
    assert_eq!(found.iter().flatten().count(), 9);
    // Those that the log itself brings are not replaced, and other logs' providers have none.
    for log in samples() {
        let log = std::fs::read(log).expect("the log");
        let with = messages(&log, Some(mta.clone()));
        for (with, without) in with.iter().zip(messages(&log, None)) {
            assert!(without.is_none() || *with == without);
        }
    }
}

/// A merged log: record IDs that come back, records out of place, more entries than a page holds, a publisher
/// in other letters and one without messages.
#[test]
fn messages_are_found_by_place_then_by_record_id() {
    let id = Element::new("EventRecordID").substitution(Substitution::new(0, 10).required());
    let provider = Element::new("Provider").attribute_substitution("Name", Substitution::new(1, 1));
    let event = Template::new(
        [1; 16],
        Element::new("Event").child(Element::new("System").child(provider).child(id)),
    );
    let mut log = LogWriter::new(1);
    let mut mta = MtaWriter::new(&["Alpha", "Beta"]);
    for i in 0..250_u64 {
        let record = if i % 50 == 7 { 3 } else { i + 1 };
        let provider = ["Alpha", "BETA", "Gamma"][i as usize % 3];
        log.write(
            0,
            &Event::new(&event, vec![Value::UInt64(record), Value::string(provider)]),
        )
        .expect("an event that fits");
        // Every tenth entry is another event's, so that it is looked for.
        mta.message(
            if i % 10 == 9 { 10_000 + i } else { record },
            if i % 4 == 0 {
                String::new()
            } else {
                format!("message {i}")
            },
        );
    }
    let (log, mta) = (log.finish(), mta.finish());
    let found = messages(&log, Some(mta.clone()));
    // An empty message is NULL; the oracle renders an empty element.
    let expected: Vec<_> = oracle(&log, &mta)
        .into_iter()
        .map(|message| message.filter(|text| !text.is_empty()))
        .collect();
    assert_eq!(found, expected);
    assert!(found.iter().flatten().count() > 80);
}
