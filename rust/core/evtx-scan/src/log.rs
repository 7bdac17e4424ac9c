//! An open log: its file, its layout, and what is beside it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use evtx_arrow::{Beside, RowSource, Scan};
use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FILE_HEADER;
use evtx_format::container::layout::Layout;
use evtx_format::container::survey::{FileSurvey, Search, Survey};

use crate::file::{Buffer, LogFile, SMALL};
use crate::scan_path::ScanPath;
use crate::storage::{Call, ScanError, StorageError};

/// An open log.
pub(crate) struct OpenLog {
    pub(crate) file: LogFile,
    pub(crate) layout: Layout,
    /// Says that it has fewer chunks than its file header lists.
    pub(crate) cut_short: Option<String>,
    /// What is wrong with the checksum of its file header.
    pub(crate) bad_checksum: Option<String>,
    /// Whether it was read at once, into the buffer of the thread that has opened it.
    pub(crate) is_read: bool,
    /// What is beside it, if the scan reads that and there is any.
    pub(crate) beside: Option<Beside>,
    /// Whether rules of the scan can be for its events, once it is known.
    concerned: OnceLock<bool>,
}

/// The result of opening a file: a log, or why the file is not a log.
pub(crate) enum Opened {
    Log(Box<OpenLog>),
    Not(String),
}

impl OpenLog {
    /// Opens a file of a scan and surveys it. Reads a small one into the buffer.
    pub(crate) fn open(
        call: Call<'_>,
        path: &ScanPath,
        scan: &Scan,
        buffer: Option<&mut Buffer>,
    ) -> Result<Opened, StorageError> {
        let file = LogFile::open(call, path)?;
        let search = if file.is_remote { Search::Bisect } else { Search::Every };
        let slots = path.split.as_ref().and_then(|split| split.slots.clone());
        let mut survey: Box<dyn FileSurvey> = match slots {
            Some(slots) => Box::new(Survey::of_slots(file.size(), search, slots)),
            None => scan.survey(file.size(), search),
        };
        // If it cannot be read at once, reading it in blocks finds out how far it can be read.
        let (is_small, own) = (buffer.is_some() && file.size() <= SMALL, &mut Buffer::default());
        let buffer = buffer.unwrap_or(own);
        let is_read = is_small && file.read(buffer, 0, file.size()).is_ok();
        while let Some(range) = survey.wants() {
            call.interrupt.check()?;
            let len = range.end - range.start;
            let read = if is_read {
                buffer.show(range.start, len)
            } else {
                file.read(buffer, range.start, len)
            };
            match read {
                Ok(()) => {}
                Err(StorageError::Failed(_) | StorageError::Unusable(_)) if survey.header().is_some() => {
                    // The scan reads as far as it can, and reports where that ends.
                    survey.give_up();
                    break;
                }
                Err(error) => return Err(error),
            }
            if let Err(error) = survey.push(buffer) {
                if let Some(failure) = file.failure {
                    return Err(failure);
                }
                return Ok(Opened::Not(error.to_string()));
            }
        }
        let header = survey.header();
        let cut_short = header.and_then(|header| header.check_size(file.size()).err());
        let bad_checksum = header.and_then(|header| header.verify().err());
        let layout = survey.layout().cloned();
        Ok(Opened::Log(Box::new(OpenLog {
            layout: layout.unwrap_or_else(|| Layout::new(0, 0)),
            cut_short: cut_short.map(|error| error.to_string()),
            bad_checksum: bad_checksum.map(|error| error.to_string()),
            file,
            is_read,
            beside: None,
            concerned: OnceLock::new(),
        })))
    }

    /// Whether the row source of a scan can find something in the log, by the channels of its first, middle and last chunk.
    /// True if none of them can be read.
    pub(crate) fn concerns(&self, source: &dyn RowSource, interrupt: Interrupt<'_>) -> Result<bool, ScanError> {
        if let Some(&known) = self.concerned.get() {
            return Ok(known);
        }
        let last = self.file.size().saturating_sub(FILE_HEADER as u64 + 1) / CHUNK_SIZE as u64;
        let (mut concerns, mut bytes) = (None, Buffer::default());
        for slot in BTreeSet::from([0, last / 2, last]) {
            interrupt.check()?;
            let start = FILE_HEADER as u64 + slot * CHUNK_SIZE as u64;
            let len = self.file.size().saturating_sub(start).min(CHUNK_SIZE as u64);
            // The scan reports unreadable chunks.
            if self.file.read(&mut bytes, start, len).is_ok()
                && let Some(concerned) = source.concerns(&bytes, interrupt)?
            {
                concerns = Some(concerned || concerns == Some(true));
            }
        }
        Ok(*self.concerned.get_or_init(|| concerns.unwrap_or(true)))
    }
}
