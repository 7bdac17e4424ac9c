//! Exports of events as XML, as files that are logs: each event becomes a record that spells it out.
//!
//! So a scan reads an export as it reads a log. What cannot become a record is a row that names the event's offset.

mod markup;
mod scopes;
mod event;
mod text;
mod convert;

use std::sync::Arc;

use evtx_scan::{Call, FileKind, Holds, NestedFile, OpenFile, OtherFiles, ScanPath, Storage, StorageError};

use crate::formats::NESTING;
use crate::limits::Archives;
use crate::memory::unusable;
use convert::convert;

/// Exports of events as XML.
pub const EXPORT_FILES: FileKind = FileKind::Other(&OtherFiles {
    ends: &[".xml"],
    also: None,
    named: None,
    plural: "exports",
});

/// An export of events as XML, which opens as a log.
#[derive(Debug)]
pub struct XmlExport {
    path: ScanPath,
    shared: Archives,
}

impl XmlExport {
    /// The file at a path, which is an export, as a log at the same path. It shares the limits of archives.
    pub fn path(path: ScanPath, archives: &Archives) -> ScanPath {
        let shared = archives.clone();
        path.made(|path| Arc::new(XmlExport { path, shared }))
    }
}

impl NestedFile for XmlExport {
    fn outer(&self) -> &str {
        self.path.storage_path()
    }

    fn outer_holds(&self) -> Holds<'_> {
        NESTING.holds(self.outer())
    }

    fn estimate(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        self.path.size(storage, 0)
    }

    fn beside(&self, _: &str) -> Vec<(String, Arc<dyn NestedFile>)> {
        Vec::new()
    }

    fn open(&self, call: Call<'_>) -> Result<OpenFile, StorageError> {
        let opened = self.path.open(call)?;
        if opened.file.size() == 0 {
            return opened.failure.map_or_else(|| unusable("the file is empty"), Err);
        }
        convert(opened, &self.shared, call.interrupt)
    }
}
