//! The check of a log with pseudonyms after it was written.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FILE_HEADER;
use evtx_scan::{MAX_THREADS, ScanError, Storage, on_threads};
use evtx_writer::{Check, Left};

/// Checks a log that was written. Errors call it by its name.
///
/// # Errors
/// The first value that must not be there; a file that cannot be read; [`ScanError::Interrupted`].
pub(crate) fn check_written(
    storage: &dyn Storage,
    path: &str,
    name: &str,
    check: &Check,
    interrupt: Interrupt<'_>,
) -> Result<(), ScanError> {
    let file = storage.open(path)?;
    let chunks = file.size().saturating_sub(FILE_HEADER as u64) / CHUNK_SIZE as u64;
    let threads = available_parallelism().map_or(1, NonZero::get);
    let mut found: Vec<Option<(u64, Left)>> = Vec::new();
    found.resize_with(threads.min(MAX_THREADS).min(chunks as usize), || None);
    let next = AtomicU64::new(0);
    let work = |found: &mut Option<(u64, Left)>, interrupt: Interrupt<'_>| {
        let mut chunk = vec![0; CHUNK_SIZE];
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= chunks || found.is_some() {
                return Ok(());
            }
            interrupt.check()?;
            file.read_at(&mut chunk, FILE_HEADER as u64 + index * CHUNK_SIZE as u64)?;
            *found = check.find(&chunk).map(|left| (index, left));
        }
    };
    on_threads(&mut found, interrupt, work, || Ok(()))?;
    let Some((index, left)) = found.into_iter().flatten().min_by_key(|(index, _)| *index) else {
        return Ok(());
    };
    let Left { record, field, text } = left;
    let text: String = text.chars().take(100).collect();
    Err(ScanError::Input(format!(
        "\"{name}\": chunk {index}, record {record}: the log still contains '{text}' in {field}, so it was not kept. Pass \
         each record through evtx_pseudonymize, last of all functions"
    )))
}
