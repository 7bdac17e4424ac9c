//! Reads whole logs without DuckDB, for timing and profiling.

use std::sync::Arc;

use evtx_arrow::{DecodeError, Decoder, Options, Scan, schema};
use evtx_format::Interrupt;
use evtx_format::container::layout::Layout;
use evtx_format::container::survey::{FileSurvey, Search, Survey};

/// The layout of a log in memory.
///
/// # Panics
/// If it is not a log.
pub fn layout(file: &[u8]) -> Layout {
    let mut survey = Survey::new(file.len() as u64, Search::Every);
    while let Some(range) = survey.wants() {
        let wanted = &file[range.start as usize..range.end as usize];
        survey.push(wanted).expect("a log");
    }
    survey.layout().cloned().expect("the survey is done")
}

/// The columns' indexes in the table with these options.
///
/// # Panics
/// If there is no such column.
pub fn columns(options: &Options, names: &[&str]) -> Vec<usize> {
    let schema = schema(options);
    let index = |name: &&str| schema.index_of(name).expect("a column");
    names.iter().map(index).collect()
}

/// Reads all rows of a log into batches that are dropped, and returns how many there were. Each block is first copied
/// into a buffer, so that the caches are as warm as after reading it from a file.
///
/// # Errors
/// Those of the decoder.
pub fn read(file: &[u8], layout: &Layout, scan: &Arc<Scan>) -> Result<usize, DecodeError> {
    let mut decoder = Decoder::new(Arc::clone(scan));
    let name: Arc<str> = "log".into();
    let mut rows = 0;
    let mut buffer = Vec::new();
    for block in (0..layout.blocks()).filter_map(|number| layout.block(number)) {
        buffer.clear();
        buffer.extend_from_slice(&file[block.offset as usize..][..block.len as usize]);
        let mut bytes = &buffer[..];
        decoder.start(&name, None, block);
        loop {
            let consumed = decoder.decode(bytes, Interrupt::NEVER)?;
            bytes = &bytes[consumed..];
            let Some(batch) = decoder.flush()? else { break };
            rows += batch.num_rows();
        }
    }
    Ok(rows)
}
