//! What the tests over whole logs share: finding the logs, and reading one as a caller would.
#![allow(dead_code)] // each test file uses some of it

pub(crate) mod matches;
pub(crate) mod recovered;
pub(crate) mod xml;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use evtx_arrow::{DecodeError, Decoder, Options, Scan, Table};
use evtx_events::Slots;
use evtx_extras::Extras;
use evtx_extras::{MessageFile, SavedBeside};
use evtx_format::Interrupt;
use evtx_format::container::header::{FileHeader, NotEvtx};
use evtx_format::container::survey::Search;
use evtx_messages::mta::SavedMessages;
use evtx_reports::Report;
use proptest::test_runner::Config;

/// The logs under a folder, in the order of their paths.
pub(crate) fn logs(folder: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "evtx") {
                logs.push(entry);
            }
        }
    }
    logs.sort();
    logs
}

/// The folder of the project's own logs, from this crate or from the oracle.
pub(crate) fn sample_folder() -> PathBuf {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = folders.map(|folder| folder.join("samples"));
    folders.find(|folder| folder.is_dir()).expect("the samples")
}

/// The project's own logs.
pub(crate) fn samples() -> Vec<PathBuf> {
    logs(&sample_folder())
}

/// The real logs in the folders that `EVTX_CORPUS` and `EVTX_VARIED` name. Says that they are skipped if neither is set.
pub(crate) fn corpus() -> Vec<PathBuf> {
    let folders = ["EVTX_CORPUS", "EVTX_VARIED"].map(std::env::var_os);
    if folders.iter().all(Option::is_none) {
        eprintln!("skipped: the tests over real logs, as EVTX_CORPUS names no folder of them");
    }
    let folders = folders.into_iter().flatten();
    folders.flat_map(|folder| logs(Path::new(&folder))).collect()
}

/// The small logs in the folder that `EVTX_HOSTILE` names: damaged and crafted ones.
pub(crate) fn hostile() -> Vec<PathBuf> {
    let found = std::env::var_os("EVTX_HOSTILE").map(|folder| logs(Path::new(&folder)));
    let is_small = |log: &PathBuf| log.metadata().is_ok_and(|log| log.len() < 200_000);
    found.into_iter().flatten().filter(is_small).collect()
}

/// A log cannot be read at all, or its scan ended early.
#[derive(Debug)]
pub(crate) enum ReadError {
    NotEvtx(NotEvtx),
    Decode(DecodeError),
}

/// Reads a log with a projection of the columns.
pub(crate) fn read(
    file: &[u8],
    name: &str,
    options: impl AsTable,
    projection: &[usize],
) -> Result<Vec<RecordBatch>, ReadError> {
    let mut batches = Vec::new();
    read_with(file, name, options, projection, |batch| batches.push(batch))?;
    Ok(batches)
}

/// Reads a log with a projection of the columns, and hands each batch on.
pub(crate) fn read_with(
    file: &[u8],
    name: &str,
    options: impl AsTable,
    projection: &[usize],
    take: impl FnMut(RecordBatch),
) -> Result<(), ReadError> {
    scan(file, name, Scan::new(options.table(), projection), take)
}

/// Reads a log with a scan, and hands each batch on.
pub(crate) fn scan(file: &[u8], name: &str, new: Scan, take: impl FnMut(RecordBatch)) -> Result<(), ReadError> {
    scan_with_messages(file, name, new, None, take)
}

/// Reads a log with a scan and the messages in a file beside it.
pub(crate) fn scan_with_messages(
    file: &[u8],
    name: &str,
    scan: Scan,
    messages: Option<Arc<SavedBeside>>,
    mut take: impl FnMut(RecordBatch),
) -> Result<(), ReadError> {
    let mut survey = scan.survey(file.len() as u64, Search::Every);
    while let Some(range) = survey.wants() {
        survey
            .push(&file[range.start as usize..range.end as usize])
            .map_err(ReadError::NotEvtx)?;
    }
    let layout = survey.layout().expect("the survey is done");
    let mut decoder = Decoder::new(Arc::new(scan));
    let name: Arc<str> = name.into();
    for number in 0..layout.blocks() {
        let block = layout.block(number).expect("a block");
        let mut bytes = &file[block.offset as usize..][..block.len as usize];
        decoder.start(&name, messages.clone().map(|saved| saved as _), block);
        loop {
            let consumed = decoder.decode(bytes, Interrupt::NEVER).map_err(ReadError::Decode)?;
            bytes = &bytes[consumed..];
            let Some(batch) = decoder.flush().map_err(ReadError::Decode)? else {
                break;
            };
            take(batch);
        }
        assert!(decoder.is_done());
    }
    Ok(())
}

/// What makes a table.
pub(crate) trait AsTable {
    fn table(&self) -> Table;
}

impl AsTable for Options {
    fn table(&self) -> Table {
        Table::from(*self)
    }
}

impl AsTable for (Options, Extras) {
    fn table(&self) -> Table {
        self.1.of(Table::from(self.0), None)
    }
}

/// Every column.
pub(crate) fn every_column(options: &impl AsTable) -> Vec<usize> {
    (0..options.table().schema().fields().len()).collect()
}

/// The number of a column.
pub(crate) fn column(options: &impl AsTable, name: &str) -> usize {
    options.table().schema().index_of(name).expect("a column")
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text of a cell; `None` for NULL. Times are nanoseconds, GUIDs hexadecimal digits.
pub(crate) fn cell(batch: &RecordBatch, column: &str, row: usize) -> Option<String> {
    let array = batch
        .column_by_name(column)
        .unwrap_or_else(|| panic!("column {column}"));
    if array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Timestamp(..) => array.as_primitive::<TimestampNanosecondType>().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).to_string(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).to_string(),
        DataType::Binary => hexadecimal(array.as_binary::<i32>().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            let items = arrow_array::RecordBatch::try_from_iter([("item", items)]).expect("a column");
            let shown = |row| {
                let item = cell(&items, "item", row);
                match items.column(0).data_type() {
                    DataType::Utf8View => serde_json::to_string(&item).expect("JSON"),
                    _ => item.unwrap_or_default(),
                }
            };
            format!("[{}]", (0..items.num_rows()).map(shown).collect::<Vec<_>>().join(","))
        }
        DataType::Struct(_) => {
            let members = arrow_array::RecordBatch::from(array.as_struct().clone());
            let schema = members.schema();
            let members = schema.fields().iter().map(|field| cell(&members, field.name(), row));
            serde_json::to_string(&members.collect::<Vec<_>>()).expect("JSON")
        }
        DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        DataType::Utf8View => array.as_string_view().value(row).to_owned(),
        DataType::FixedSizeBinary(_) => hexadecimal(array.as_fixed_size_binary().value(row)),
        DataType::Dictionary(..) => {
            let names = array.as_dictionary::<Int32Type>();
            names
                .values()
                .as_string::<i32>()
                .value(names.key(row).expect("a key"))
                .to_owned()
        }
        DataType::Map(..) => entries(batch, row)
            .expect("a map")
            .iter()
            .map(|(key, value)| format!("{key}={value:?};"))
            .collect(),
        other => panic!("no text for {other}"),
    })
}

/// Every cell of every column of a log as text, row by row, read through the plans of templates or through a tree of
/// each record.
pub(crate) fn cells(file: &[u8], name: &str, options: impl AsTable, force_tree_path: bool) -> Vec<Vec<Option<String>>> {
    let mut new = Scan::new(options.table(), &every_column(&options));
    if force_tree_path {
        new = new.force_tree_path();
    }
    let mut rows = Vec::new();
    scan(file, name, new, |batch| {
        let schema = batch.schema();
        rows.extend((0..batch.num_rows()).map(|row| {
            let fields = schema.fields().iter();
            fields.map(|field| cell(&batch, field.name(), row)).collect::<Vec<_>>()
        }));
    })
    .expect("a log");
    rows
}

/// The entries of `event_data`; `None` for NULL.
pub(crate) fn entries(batch: &RecordBatch, row: usize) -> Option<Vec<(String, Option<String>)>> {
    let maps = batch.column_by_name("event_data")?.as_map();
    if maps.is_null(row) {
        return None;
    }
    let map = maps.value(row);
    let keys = map.column(0).as_dictionary::<Int32Type>();
    let names = keys.values().as_string::<i32>();
    let values = map.column(1).as_string_view();
    let entry = |i| {
        let value = values.is_valid(i).then(|| values.value(i).to_owned());
        (names.value(keys.key(i).expect("a key")).to_owned(), value)
    };
    Some((0..map.len()).map(entry).collect())
}

/// The chunks of a log.
pub(crate) fn slots(file: &[u8]) -> Slots<'_> {
    Slots {
        bytes: &file[4096.min(file.len())..],
        ..Slots::default()
    }
}

/// Makes a report on a file, in blocks of 1 MiB, and hands out its batches. Returns the last one.
pub(crate) fn report<R: Report>(
    report: &mut R,
    file: &[u8],
    interrupt: Interrupt<'_>,
    mut take: impl FnMut(&RecordBatch),
) -> Option<RecordBatch> {
    let (header, chunks) = file.split_at(file.len().min(4096));
    let header = FileHeader::read(header, file.len() as u64);
    report.start("x", file.len() as u64, header.as_ref().ok().copied());
    let mut worker = report.worker();
    let mut failure = header.err().map(|error| error.to_string());
    for (index, block) in chunks.chunks(1 << 20).enumerate() {
        if failure.is_none() {
            let slots = Slots {
                bytes: block,
                first: index as u64 * 16,
                ..Slots::default()
            };
            match R::look(&mut worker, slots, interrupt) {
                Ok(result) => report.add(result),
                Err(error) => failure = Some(error.to_string()),
            }
        }
    }
    report.end(failure.as_deref());
    report.join(worker).expect("space");
    let mut last = None;
    while let Some(batch) = report.batch(true).expect("a batch") {
        take(&batch);
        last = Some(batch);
    }
    last
}

/// The message of each record of a log with the messages of an `.MTA` file.
pub(crate) fn messages(log: &[u8], mta: Option<Vec<u8>>) -> Vec<Option<String>> {
    let options = (Options::default(), Extras::default());
    let messages = mta
        .and_then(|mta| SavedMessages::read(mta, Interrupt::NEVER).ok())
        .map(|messages| {
            let path = "log_1033.MTA".into();
            let (files, memory) = (vec![MessageFile { path, messages }], None);
            Arc::new(SavedBeside { files, memory })
        });
    let mut found = Vec::new();
    // The message alone: what finds it is read all the same.
    let scan = Scan::new(options.table(), &[column(&options, "message")]);
    assert!(scan.reads_beside());
    scan_with_messages(log, "log", scan, messages, |batch| {
        found.extend((0..batch.num_rows()).map(|row| cell(&batch, "message", row)));
    })
    .expect("a log");
    found
}

/// How many events are generated, the same in every run. `make test-long` sets another seed, and `PROPTEST_CASES`: one of ten is an event,
/// as an event takes ten times as long as cases of other tests.
pub(crate) fn generated(cases: u32) -> Config {
    let config = Config::default();
    Config {
        cases: cases.max(config.cases / 10),
        failure_persistence: None,
        ..config
    }
}
