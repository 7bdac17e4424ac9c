//! What the targets do with bytes: read them as a file, with every column and option.

use std::sync::Arc;

use evtx_arrow::{
    Catalog, ChunkReport, Decoder, EventReport, Events, FileReport, OnError, Options, Report, Scan, Table, schema,
};
use evtx_format::Interrupt;
use evtx_format::container::survey::{Search, Survey};

/// Reads a file with all columns, recovery and checksums, then once more as those do who ask for little.
pub fn read_every_way(file: &[u8]) {
    let all = Options {
        on_error: OnError::Report,
        verify: true,
        xml: true,
        json: true,
        text: true,
        fields: true,
        location: true,
        recover: true,
    };
    let columns = |options| (0..schema(options).fields().len()).collect::<Vec<_>>();
    read(file, Scan::new(all, &columns(&all)), Search::Every);
    // Without `error`, records are not checked first.
    let plain = Options::default();
    let unchecked: Vec<usize> = columns(&plain).into_iter().filter(|&column| column != 23).collect();
    read(file, Scan::new(plain, &unchecked), Search::Bisect);
    let skip = Options {
        on_error: OnError::Skip,
        ..all
    };
    read(file, Scan::new(skip, &columns(&skip)).force_tree_path(), Search::Every);
    report(file);
}

/// Tells of the file's events and headers, and reads the first of its events by their fields.
fn report(file: &[u8]) {
    let header = &file[..file.len().min(4096)];
    let chunks = &file[header.len()..];
    let mut events = EventReport::new(Catalog::new(None), |field| field.data_type().to_string());
    for report in [
        &mut events as &mut dyn Report,
        &mut FileReport::default(),
        &mut ChunkReport::default(),
    ] {
        report.start("fuzz", file.len() as u64);
        let read = report
            .push(header, Interrupt::NEVER)
            .and_then(|()| report.push(chunks, Interrupt::NEVER));
        report.end(read.err().map(|error| error.to_string()).as_deref());
        while report.batch(true).expect("batches are sound").is_some() {}
    }
    let few = Events {
        ids: Some((0..5000).collect()),
        providers: None,
    };
    let table = Table::of_events(Options::default(), few, &events.catalog.fields());
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    read(file, Scan::new(table, &every), Search::Every);
}

fn read(file: &[u8], scan: Scan, search: Search) {
    let mut survey = Survey::new(file.len() as u64, search, scan.recovers());
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
