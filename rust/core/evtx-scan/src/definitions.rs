//! The template definitions of a scan's logs, which are collected once an orphan has lost one.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use evtx_arrow::Definitions;
use evtx_format::container::chunk::CHUNK_SIZE;

use crate::file::{Buffer, LogFile};
use crate::scan_path::ScanPath;
use crate::storage::{Call, ScanError, WAIT, unless_failed};

/// The definitions, once they are collected.
#[derive(Default)]
pub(crate) struct SharedDefinitions(Mutex<Option<Arc<Definitions>>>);

impl SharedDefinitions {
    /// The definitions in the local files at some paths. The first thread that asks collects them, in the order of the
    /// files, so that they do not depend on the threads.
    pub(crate) fn definitions<'p>(
        &self,
        call: Call<'_>,
        paths: impl Iterator<Item = &'p ScanPath>,
    ) -> Result<Arc<Definitions>, ScanError> {
        let mut collected = loop {
            match self.0.try_lock() {
                Ok(collected) => break collected,
                Err(TryLockError::Poisoned(poisoned)) => break PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) => std::thread::sleep(WAIT),
            }
            call.interrupt.check()?;
        };
        let definitions = match collected.take() {
            Some(known) => known,
            None => Arc::new(collect(call, paths)?),
        };
        Ok(Arc::clone(collected.insert(definitions)))
    }
}

fn collect<'p>(call: Call<'_>, paths: impl Iterator<Item = &'p ScanPath>) -> Result<Definitions, ScanError> {
    let (mut definitions, mut bytes) = (Definitions::default(), Buffer::default());
    for path in paths {
        call.interrupt.check()?;
        // The scan reports files that cannot be read.
        let file = unless_failed(LogFile::open(call, path))?;
        let Some(file) = file.filter(|file| !file.is_remote) else {
            continue;
        };
        let filename = path.path.as_str().into();
        for offset in (0..file.size()).step_by(file.block_size() as usize) {
            let len = (file.block_size() + CHUNK_SIZE as u64).min(file.size() - offset);
            if unless_failed(file.read(&mut bytes, offset, len))?.is_some() {
                definitions.collect(&filename, &bytes, file.block_size() as usize, call.interrupt)?;
            }
            call.interrupt.check()?;
        }
    }
    Ok(definitions)
}
