//! An open log: its file, its layout, and the messages beside it.

use evtx_format::container::layout::{Block, Layout};
use evtx_format::container::survey::{Search, Survey};

use crate::file::LogFile;
use crate::messages::HeldMessages;
use crate::paths::ScanPath;
use crate::storage::{Call, StorageError};

/// An open log.
pub(crate) struct OpenLog {
    pub(crate) file: LogFile,
    layout: Layout,
    /// That it has fewer chunks than its file header lists.
    pub(crate) cut_short: Option<String>,
    /// What is wrong with the checksum of its file header.
    pub(crate) bad_checksum: Option<String>,
    /// The messages beside it, if the scan reads them and there are any.
    pub(crate) messages: Option<HeldMessages>,
}

/// The result of opening a file: a log, or why the file is not a log.
pub(crate) enum Opened {
    Log(OpenLog),
    Not(String),
}

impl OpenLog {
    /// Opens a file and surveys it.
    pub(crate) fn open(call: Call<'_>, path: &ScanPath, recover: bool) -> Result<Opened, StorageError> {
        let file = LogFile::open(call, path)?;
        let search = if file.is_remote() {
            Search::Bisect
        } else {
            Search::Every
        };
        let slots = path.part.as_ref().and_then(|part| part.slots.clone());
        let mut survey = match slots {
            Some(slots) => Survey::of_slots(file.size(), search, slots),
            None => Survey::new(file.size(), search, recover),
        };
        let mut bytes = Vec::new();
        while let Some(range) = survey.wants() {
            call.interrupt.check()?;
            match file.read(&mut bytes, range.start, range.end - range.start) {
                Ok(()) => {}
                Err(StorageError::Failed(_) | StorageError::Archive(_)) if survey.header().is_some() => {
                    // The scan reads as far as it can, and reports where that ends.
                    survey.give_up();
                    break;
                }
                Err(error) => return Err(error),
            }
            if let Err(error) = survey.push(&bytes) {
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
        Ok(Opened::Log(OpenLog {
            layout: layout.unwrap_or_else(|| Layout::new(0, 0)),
            cut_short: cut_short.map(|error| error.to_string()),
            bad_checksum: bad_checksum.map(|error| error.to_string()),
            file,
            messages: None,
        }))
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.layout.blocks()
    }

    pub(crate) fn block(&self, index: u64) -> Option<Block> {
        self.layout.block(index)
    }
}
