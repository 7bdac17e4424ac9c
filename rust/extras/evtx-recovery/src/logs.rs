//! Reads the logs of a scan for their template definitions, once an orphan has lost one.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use evtx_arrow::Scan;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_scan::{Buffer, Call, LogFile, ReadsLogs, ScanError, ScanPath, WAIT, unless_failed};

use crate::definitions::{Definitions, SharedDefinitions};
use crate::recovery::ScanRecovery;

/// Collects the definitions in the local logs of a scan.
#[derive(Debug)]
struct CollectsDefinitions {
    shared: Arc<SharedDefinitions>,
    /// The files that predicates have left out of the scan. Their definitions count.
    left_out: Vec<ScanPath>,
    /// Locked by the thread that collects.
    collecting: Mutex<()>,
}

/// Lets the recovery of a scan, if it has one, read the scan's files, and those that predicates have left out of it.
pub fn read_logs(scan: &Scan, left_out: Vec<ScanPath>) -> Option<Box<dyn ReadsLogs>> {
    let recovery: &dyn Any = &**scan.recovery()?;
    let shared = Arc::clone(&recovery.downcast_ref::<ScanRecovery>()?.definitions);
    shared.allow();
    Some(Box::new(CollectsDefinitions {
        shared,
        left_out,
        collecting: Mutex::default(),
    }))
}

impl ReadsLogs for CollectsDefinitions {
    /// The first thread that asks collects the definitions, in the order of the files, so that they do not depend on the
    /// threads.
    fn read(&self, call: Call<'_>, logs: &[ScanPath]) -> Result<(), ScanError> {
        let _collecting = loop {
            match self.collecting.try_lock() {
                Ok(collecting) => break collecting,
                Err(TryLockError::Poisoned(poisoned)) => break PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) => std::thread::sleep(WAIT),
            }
            call.interrupt.check()?;
        };
        if self.shared.known.get().is_none() {
            let definitions = collect(call, logs.iter().chain(&self.left_out))?;
            self.shared.known.get_or_init(|| definitions);
        }
        Ok(())
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
