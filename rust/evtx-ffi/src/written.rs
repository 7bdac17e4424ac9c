//! The search of a written log for what was redacted in it.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FILE_HEADER;
use evtx_scan::{MAX_THREADS, ScanError, Storage, StorageError, StorageFile, on_threads};
use evtx_writer::{Audit, Finding, Keys, Scratch};

use crate::redaction::made_aside;

/// What a thread has found: the first chunk with a key, or an error.
#[derive(Default)]
struct Found {
    scratch: Scratch,
    outcome: Option<(u64, Result<Finding, StorageError>)>,
}

/// Searches a log that was written for the keys of its records. Errors call it by its name.
///
/// # Errors
/// The first place that contains one, with the chunk and the record; a file that cannot be read;
/// [`ScanError::Interrupted`].
pub(crate) fn search_written(
    storage: &dyn Storage,
    path: &str,
    name: &str,
    keys: Vec<Arc<Keys>>,
    interrupt: Interrupt<'_>,
) -> Result<(), ScanError> {
    if keys.is_empty() {
        return Ok(());
    }
    let audit = made_aside(move || audit(&keys), interrupt)?.map_err(ScanError::Input)?;
    let file = storage.open(path)?;
    let chunks = file.size().saturating_sub(FILE_HEADER as u64) / CHUNK_SIZE as u64;
    let threads = available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS)
        .min(chunks as usize);
    let mut found: Vec<Found> = (0..threads).map(|_| Found::default()).collect();
    let next = AtomicU64::new(0);
    let work = |found: &mut Found, interrupt: Interrupt<'_>| {
        let mut chunk = vec![0; CHUNK_SIZE];
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= chunks {
                return Ok(());
            }
            interrupt.check()?;
            if let Some(outcome) = search_chunk(&audit, &*file, index, &mut chunk, &mut found.scratch) {
                found.outcome = Some((index, outcome));
                return Ok(());
            }
        }
    };
    on_threads(&mut found, interrupt, work, || Ok(()))?;
    let first = found
        .into_iter()
        .filter_map(|found| found.outcome)
        .min_by_key(|(index, _)| *index);
    let Some((index, outcome)) = first else { return Ok(()) };
    let Finding {
        key,
        form,
        record,
        offset,
    } = outcome?;
    let record = record.map_or_else(String::new, |record| format!(", record {record}"));
    let offset = offset.map_or_else(String::new, |offset| format!(" at offset {offset} of the chunk"));
    let key: String = key.chars().take(100).collect();
    Err(ScanError::Input(format!(
        "\"{name}\": chunk {index}{record}: the log still contains '{key}' as {form}{offset}, so it was not kept. Replace \
         the field with evtx_redact, or leave the record out"
    )))
}

fn search_chunk(
    audit: &Audit,
    file: &dyn StorageFile,
    index: u64,
    chunk: &mut [u8],
    scratch: &mut Scratch,
) -> Option<Result<Finding, StorageError>> {
    match file.read_at(chunk, FILE_HEADER as u64 + index * CHUNK_SIZE as u64) {
        Ok(()) => audit.search(chunk, scratch).map(Ok),
        Err(error) => Some(Err(error)),
    }
}

fn audit(keys: &[Arc<Keys>]) -> Result<Audit, String> {
    let mut texts: Vec<&str> = keys.iter().flat_map(|keys| &keys.0).map(String::as_str).collect();
    texts.sort_unstable();
    texts.dedup();
    Audit::new(texts)
}
