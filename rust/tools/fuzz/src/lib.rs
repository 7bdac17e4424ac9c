//! What the targets do with bytes: read them as a file, with every column and option.

use std::cell::Cell;
use std::sync::Arc;

use evtx_arrow::{Decoder, Events, OnError, Options, Scan, Table, schema};
use evtx_events::{EventCollector, Slots};
use evtx_format::Interrupt;
use evtx_format::container::header::{FILE_HEADER, FileHeader};
use evtx_format::container::survey::Search;
use evtx_recovery::recover;
use evtx_reports::{ChunkReport, SchemaReport, FileReport, Report};

/// Reads a file with all columns, recovery and checksums, then once more as those do who ask for little.
pub fn read_every_way(file: &[u8]) {
    let all = Options::ALL;
    let columns = |table: &Table| (0..table.schema().fields().len()).collect::<Vec<_>>();
    let every = |table: Table| Scan::new(table.clone(), &columns(&table));
    read(file, every(recover(all.into())), Search::Every);
    // Without `error`, records are not checked first.
    let plain = Options::default();
    let mut unchecked = columns(&plain.into());
    unchecked.remove(schema(&plain).index_of("error").expect("a column"));
    read(file, Scan::new(plain, &unchecked), Search::Bisect);
    let skip = Options {
        on_error: OnError::Skip,
        ..all
    };
    read(file, every(recover(skip.into())).force_tree_path(), Search::Every);
    report(file);
}

/// Tells of the file's events and headers, and reads the first of its events by their fields.
fn report(file: &[u8]) {
    let mut events = SchemaReport::new(|field| field.data_type().to_string());
    tell(&mut events, file);
    tell(&mut FileReport::default(), file);
    tell(&mut ChunkReport::default(), file);
    let few = Events::of_ids(0..5000);
    let mut collector = EventCollector::new(Some(few.clone()));
    if collector.push(slots(file), Interrupt::NEVER).is_err() {
        return;
    }
    let table = Table::of_events(Options::default(), few, &collector.fields(), &[]);
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    read(file, Scan::new(table, &every), Search::Every);
}

fn tell<R: Report>(report: &mut R, file: &[u8]) {
    let header = &file[..file.len().min(FILE_HEADER)];
    report.start(
        "fuzz",
        file.len() as u64,
        FileHeader::read(header, file.len() as u64).ok(),
    );
    let mut worker = report.worker();
    let failure = match R::look(&mut worker, slots(file), Interrupt::NEVER) {
        Ok(piece) => {
            report.add(piece);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    report.end(failure.as_deref());
    if report.join(worker).is_ok() {
        while report.batch(true).expect("batches are sound").is_some() {}
    }
}

fn slots(file: &[u8]) -> Slots<'_> {
    Slots {
        bytes: file.get(FILE_HEADER..).unwrap_or_default(),
        ..Slots::default()
    }
}

fn read(file: &[u8], scan: Scan, search: Search) {
    let mut survey = scan.survey(file.len() as u64, search);
    while let Some(range) = survey.wants() {
        if survey.push(&file[range.start as usize..range.end as usize]).is_err() {
            return;
        }
    }
    let layout = survey.layout().expect("a survey that wants nothing is done");
    let mut decoder = Decoder::new(Arc::new(scan));
    let name: Arc<str> = "fuzz".into();
    for number in 0..layout.blocks() {
        let block = layout.block(number).expect("a block of the layout");
        let mut bytes = &file[block.offset as usize..][..block.len as usize];
        decoder.start(&name, None, block);
        loop {
            let Ok(consumed) = decoder.decode(bytes, Interrupt::NEVER) else {
                return;
            };
            bytes = &bytes[consumed..];
            if decoder.flush().expect("batches are sound").is_none() {
                break;
            }
        }
        assert!(decoder.is_done());
    }
}

/// A file of one chunk.
pub fn file_of(chunk: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 4096];
    file[..8].copy_from_slice(b"ElfFile\0");
    file.extend_from_slice(chunk);
    file
}

/// Ends long work as an interrupt does: what a crafted file multiplies is only looked into. It is not the rows that are
/// counted, so work without rows ends, too.
#[derive(Default)]
pub struct Looks(Cell<u32>);

impl Looks {
    /// Whether there were enough looks for an interrupt.
    pub fn is_enough(&self) -> bool {
        self.0.set(self.0.get() + 1);
        self.0.get() > 1 << 20
    }
}
