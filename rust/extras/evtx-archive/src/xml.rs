//! Exports of events as XML, as files that are logs: each event becomes a record that spells it out.
//!
//! So a scan reads an export as it reads a log. What cannot become a record is a row that names the event's offset.

mod markup;
mod scopes;
mod event;
mod text;
mod convert;

use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_scan::{Call, FileKind, Holds, NestedFile, OpenFile, OtherFiles, ScanPath, Storage, StorageError};

use crate::formats::NESTING;
use crate::limits::Archives;
use crate::memory::unusable;
use convert::{convert, read_event};
use event::Parser;
use evtx_writer::LogWriter;
use markup::Unended;
use scopes::Scopes;

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

/// The events in texts of XML, one in each, as a log whose record IDs are the numbers of the texts, from 1. Then why the event of each
/// text cannot be read, or not as a whole.
pub fn log_of_texts<'t>(texts: impl Iterator<Item = &'t str>) -> (Vec<u8>, Vec<Option<String>>) {
    let (mut log, mut parser) = (LogWriter::new(1), Parser::default());
    let reasons = texts.zip(1..).map(|(text, id)| {
        let rest = match read(text, &mut parser) {
            Ok(len) => &text[len..],
            Err(why) => return Some(why),
        };
        let written = parser
            .event
            .take()
            .map(|event| log.write_spelled(id, parser.head.written, event));
        let misfits = parser.misfits.join(", ");
        match written {
            Some(Err(why)) => Some(why.to_string()),
            _ if !rest.trim().is_empty() => Some("text follows its event".to_owned()),
            _ => (!misfits.is_empty()).then(|| format!("cannot read {misfits}")),
        }
    });
    let reasons = reasons.collect();
    (log.finish(), reasons)
}

/// Reads the event in a text. Returns where it ends.
fn read(text: &str, parser: &mut Parser) -> Result<usize, String> {
    let start = text.find("<Event").unwrap_or_default();
    let (mut scopes, unended) = (Scopes::default(), Unended::default());
    let read = read_event(&mut &text[start..], parser, &mut scopes, unended, Interrupt::NEVER);
    Ok(start + read.map_err(|error| error.to_string())??)
}
