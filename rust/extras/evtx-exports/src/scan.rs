//! The events of exports, by any number of threads.
//!
//! A thread locks a file while it reads the next piece of it, up to the end of the last record. While it makes rows of these records,
//! another thread can read on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use evtx_format::Interrupt;
use evtx_reports::{ReportBatch, ReportRows, ReportThreads};
use evtx_scan::{Call, FileKind, LastOpened, OtherFiles, ScanError, ScanPath, Storage, batch_index};

use crate::block::Block;
use crate::export::Export;
use crate::fields::Declarations;
use crate::settings::SourceSettings;

/// Exports with events, in JSON or CSV.
pub const SOURCE_FILES: FileKind = FileKind::Other(&OtherFiles {
    ends: &[".json", ".jsonl", ".ndjson", ".csv"],
    also: None,
    named: None,
    plural: "exports",
});

/// A report on the events of exports.
pub struct SourceScan(Arc<Shared>);

struct Shared {
    files: Vec<File>,
    settings: SourceSettings,
    projection: Vec<usize>,
    last: LastOpened,
}

struct File {
    path: ScanPath,
    /// The rest of the file. `None` after its end, and after a thread failed to read it.
    export: Mutex<Option<Export>>,
    /// The share that was read, as the bits of an `f64`.
    share: AtomicU64,
}

impl SourceScan {
    /// A report on the events of files, with the columns that have these indexes.
    pub fn new(paths: Vec<ScanPath>, settings: SourceSettings, projection: &[usize]) -> Self {
        let file = |path: ScanPath| File {
            export: Mutex::new(Some(Export::new(&path, &settings))),
            path,
            share: AtomicU64::default(),
        };
        SourceScan(Arc::new(Shared {
            files: paths.into_iter().map(file).collect(),
            settings,
            projection: projection.to_vec(),
            last: LastOpened::default(),
        }))
    }
}

impl ReportThreads for SourceScan {
    fn thread(&self) -> Box<dyn ReportRows> {
        Box::new(Thread {
            shared: Arc::clone(&self.0),
            file: 0,
            block: None,
            declarations: Declarations::default(),
        })
    }

    fn progress(&self) -> f64 {
        let share = |file: &File| f64::from_bits(file.share.load(Ordering::Relaxed));
        self.0.files.iter().map(share).sum::<f64>() / self.0.files.len().max(1) as f64
    }
}

struct Thread {
    shared: Arc<Shared>,
    /// The index of the last file. The rows of a thread keep the order of the files.
    file: usize,
    /// The records that are left of the last piece.
    block: Option<Block>,
    declarations: Declarations,
}

impl ReportRows for Thread {
    fn reading(&self) -> Option<&str> {
        self.shared.files.get(self.file).map(|file| file.path.storage_path())
    }

    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let call = Call::new(storage, interrupt, &shared.last);
        loop {
            if let Some(block) = &mut self.block {
                let times = &shared.settings.times;
                if let Some(rows) = block.next(times, &shared.projection, &mut self.declarations, interrupt)? {
                    let index = block.index;
                    return Ok(Some(ReportBatch { rows, index }));
                }
                self.block = None;
            }
            interrupt.check()?;
            let Some((index, mut state)) = shared.claim(self.file) else {
                return Ok(None);
            };
            self.file = index;
            let file = &shared.files[index];
            let Some(mut export) = state.take() else { continue };
            let place = batch_index(shared.files.len(), index, export.pieces)?;
            self.block = Some(export.read(&file.path, place, call)?);
            file.share.store(export.share().to_bits(), Ordering::Relaxed);
            *state = Some(export).filter(|export| !export.is_done());
        }
    }
}

impl Shared {
    /// The first file from an index on that no other thread reads, or else waits for the first that one reads. `None` if all
    /// have ended.
    fn claim(&self, first: usize) -> Option<(usize, MutexGuard<'_, Option<Export>>)> {
        let mut busy = None;
        for (index, file) in self.files.iter().enumerate().skip(first) {
            match file.export.try_lock() {
                Ok(export) if export.is_none() => {}
                Ok(export) => return Some((index, export)),
                Err(TryLockError::Poisoned(_)) => {}
                Err(TryLockError::WouldBlock) => _ = busy.get_or_insert(index),
            }
        }
        // A thread checks for interrupts while it reads, and a file has ended if that fails.
        let index = busy?;
        let export = self.files[index].export.lock();
        Some((index, export.unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use evtx_scan::{LocalStorage, expand};

    use super::*;
    use crate::records::MAX_LINE;
    use crate::rows::column;
    use crate::sources::{SOURCES, Source};

    /// The error of each row of a file with this name, in the order of their places, by so many threads that take turns. Or why it is
    /// refused.
    fn errors(name: &str, bytes: &[u8], source: Option<&str>, threads: usize) -> Result<Vec<Option<String>>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder that can be made");
        std::fs::write(&path, bytes).expect("a file that can be written");
        let path = path.to_str().expect("a path");
        let paths = expand(&LocalStorage, path, SOURCE_FILES, "a test", Interrupt::NEVER).expect("a file");
        let is_named = |known: &&Source| source.is_some_and(|name| known.names.contains(&name));
        let settings = SourceSettings {
            source: SOURCES.iter().find(is_named),
            ..SourceSettings::default()
        };
        let scan = SourceScan::new(paths, settings, &[column("error")]);
        let mut workers: Vec<_> = (0..threads).map(|_| scan.thread()).collect();
        let mut batches = Vec::new();
        while let Some(mut worker) = workers.pop() {
            if let Some(batch) = worker
                .next(&LocalStorage, Interrupt::NEVER)
                .map_err(|why| why.to_string())?
            {
                batches.push(batch);
                workers.insert(0, worker);
            }
        }
        assert_eq!(scan.progress(), 1.0);
        batches.sort_by_key(|batch| batch.index);
        let mut rows = Vec::new();
        for batch in batches {
            let errors = batch.rows.column(0).as_string_view().iter();
            rows.extend(errors.map(|error| Some(error?.replace(path, "x"))));
        }
        Ok(rows)
    }

    /// The rows of lines that are not events, in any encoding.
    fn rows(bytes: &[u8], threads: usize) -> Vec<String> {
        let rows = errors("x.json", bytes, Some("nxlog"), threads).expect("rows");
        let rows = rows.into_iter().map(|error| error.expect("an error"));
        let end = ": expected an event of NXLog";
        rows.map(|error| error.split(end).next().unwrap_or_default().to_owned())
            .collect()
    }

    #[test]
    fn lines_have_their_numbers_and_offsets_in_every_encoding() {
        let lines: Vec<String> = (0..20_000)
            .map(|nth| format!("{{\"ä€😀\": \"{}\"}}", "é".repeat(nth % 90)))
            .collect();
        let text: String = lines.iter().map(|line| format!("{line} \r\n\n")).collect();
        let wide = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        let utf8 = text.as_bytes().to_vec();
        for (mark, bytes, is_wide) in [
            (&b""[..], &utf8, false),
            (b"\xEF\xBB\xBF", &utf8, false),
            (b"\xFF\xFE", &little, true),
            (b"", &big, true),
        ] {
            let found = rows(&[mark, bytes].concat(), 3);
            assert_eq!(found.len(), lines.len());
            let (mut number, mut offset) = (1, mark.len());
            for (line, row) in lines.iter().zip(found) {
                assert_eq!(row, format!("x: cannot read line {number} at byte {offset}"));
                number += 2;
                let len = if is_wide {
                    2 * line.encode_utf16().count()
                } else {
                    line.len()
                };
                offset += len + if is_wide { 8 } else { 4 };
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_a_row_and_hides_no_other() {
        let long = |len: usize| format!("\"{}\"", "a".repeat(len - 2));
        for (lines, errors) in [
            (vec!["1".to_owned(), long(MAX_LINE + 1), "2".to_owned()], vec![1]),
            (
                vec![long(MAX_LINE), "1".to_owned(), long(MAX_LINE + (5 << 20))],
                vec![2],
            ),
            (vec![long(2 * MAX_LINE), long(MAX_LINE + 1), "1".to_owned()], vec![0, 1]),
        ] {
            for end in ["", "\n"] {
                let found = rows((lines.join("\n") + end).as_bytes(), 2);
                assert_eq!(found.len(), lines.len());
                let mut offset = 0;
                for (nth, (line, row)) in lines.iter().zip(found).enumerate() {
                    let why = if errors.contains(&nth) {
                        ": it has more than 2 MiB"
                    } else {
                        ""
                    };
                    let number = nth + 1;
                    assert_eq!(row, format!("x: cannot read line {number} at byte {offset}{why}"));
                    offset += line.len() + 1;
                }
            }
        }
    }

    const EVENT: &str =
        r#"{"EventTime":"2020-08-06T12:13:04Z","Hostname":"W","EventID":10,"SourceName":"P","Channel":"c"}"#;
    const HEADER: &str = "EventTime,Hostname,EventID,SourceName,Channel,Message";

    /// How many rows are events without an error, and the errors of the others.
    fn counted(name: &str, text: &str, source: Option<&str>) -> (usize, Vec<String>) {
        match errors(name, text.as_bytes(), source, 1) {
            Ok(rows) => {
                let errors: Vec<_> = rows.iter().flatten().cloned().collect();
                (rows.len() - errors.len(), errors)
            }
            Err(why) => (0, vec![why]),
        }
    }

    #[test]
    fn no_record_of_a_file_is_lost_without_an_error() {
        let (space, long) = ("\n".repeat(1 << 20), "x".repeat(1 << 20));
        let big = |len: usize| EVENT.replace("\"W\"", &format!("\"W\",\"Message\":\"{}\"", "m".repeat(len)));
        let other = r#"{"hits":{"hits":[]}}"#;
        for (text, expected, errors) in [
            (format!("{space}{EVENT}\n{EVENT}"), 2, &[][..]),
            (format!("{}\n{EVENT}", big(1 << 20)), 2, &[]),
            (format!("{}\n{EVENT}", big(3 << 20)), 1, &["more than 2 MiB"]),
            (format!("{long}{long}"), 0, &["not objects of JSON"]),
            (format!("[]\n{EVENT}\n{EVENT}"), 2, &[]),
            (format!("{other}\n{EVENT}"), 1, &[]),
            (format!("[{EVENT}]\n{EVENT}"), 2, &[]),
            (format!("[{EVENT}]garbage {EVENT}"), 2, &["it is not JSON"]),
            (format!("{{\"results\":[{EVENT}],\"a\":1}}\n{EVENT}\n{EVENT}"), 3, &[]),
            (
                format!("[{EVENT}}}, {EVENT}, {EVENT}]"),
                3,
                &["at byte 96: a } closes nothing"],
            ),
        ] {
            for source in [None, Some("nxlog")] {
                let (found, why) = counted("x.json", &text, source);
                let start: String = text.trim_start().chars().take(40).collect();
                assert_eq!((found, why.len()), (expected, errors.len()), "{start} {why:?}");
                for (why, expected) in why.iter().zip(errors) {
                    assert!(why.contains(expected) || source.is_some(), "{start} {why}");
                }
            }
        }
    }

    #[test]
    fn rows_of_csv_do_not_hide_others() {
        let row = |last: &str| format!("2020-08-06T12:13:04Z,W,1,P,c,{last}");
        let text = |rows: &[&str], end: &str| [&[HEADER], rows].concat().join(end);
        let quotes = [&*row("5\" disk"), &row("7\" disk"), &row("x")];
        assert_eq!(counted("x.csv", &text(&quotes, "\n"), None), (3, vec![]));
        // The name of a folder says nothing, nor does the middle of a name.
        for name in ["logs.json/x.csv", "x.json.csv"] {
            assert_eq!(counted(name, &text(&quotes, "\n"), None).0, 3);
        }
        for (text, expected, error) in [
            (
                text(&[&row("\"x\"y\""), &row("x")], "\n"),
                1,
                "text follows the quotes of value 6",
            ),
            (
                text(&[&row("a,b"), &row("x")], "\n"),
                1,
                "it has 7 values, and the header has 6",
            ),
            (text(&quotes, "\r"), 0, "its lines end with \\r only"),
            ("x".repeat(3 << 19), 0, "it is not JSON, and no CSV"),
            ("x".repeat(4 << 20), 0, "its first line: it has more than 2 MiB"),
        ] {
            let (found, why) = counted("x.csv", &text, None);
            assert_eq!((found, why.len()), (expected, 1), "{why:?}");
            assert!(why[0].contains(error), "{why:?}");
        }
    }

    #[test]
    fn values_that_cannot_be_read_are_errors() {
        let powershell = r#"{"Id":1,"ProviderName":"P","LogName":"c","MachineName":"W","TimeCreated":"2020-08-06T12:13:04Z","Properties":["System.Diagnostics.Eventing.Reader.EventProperty"]}"#;
        let winlogbeat = r#"{"@timestamp":"2020-08-06T12:13:04Z","winlog":{"channel":"c","computer_name":"","event_id":1,"provider_name":"P"}}"#;
        let sentinel = |data: &str| {
            let event = r#"{"TimeGenerated":"2020-08-06T12:13:04Z","Source":"P","EventLog":"c","Computer":"W","EventID":1,"EventData":""#;
            format!("{event}{data}\"}}")
        };
        for (text, error) in [
            (powershell.to_owned(), "pass -Depth 3 to ConvertTo-Json"),
            (sentinel("just text"), "EventData is not XML"),
            (sentinel("<Data Name='x'>1</Data>"), "EventData is not XML"),
            (sentinel("<DataItem><EventData><Data>1</Da"), "the XML cannot be read"),
            (winlogbeat.to_owned(), "there is no computer"),
            (
                EVENT.replace("\"c\"", "\"c\",\"Keywords\":\"abc\""),
                "Keywords is not a ",
            ),
        ] {
            let (found, why) = counted("x.json", &text, None);
            assert_eq!((found, why.len()), (0, 1), "{text}");
            assert!(why[0].contains(error), "{why:?}");
        }
        let empty = sentinel("<DataItem type='a'><EventData/></DataItem>");
        assert_eq!(counted("x.json", &empty, None), (1, vec![]));
    }
}
