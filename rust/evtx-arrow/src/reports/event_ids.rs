//! The IDs that events carry themselves, by channel and computer.
//!
//! A log that was exported numbers its records anew. `EventRecordID` keeps the number that an event had in the log
//! where it was written, so that gaps in it are gaps in that log.

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::runs::{MAX_RUNS, Runs, Span};
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, RecordGroup};
use crate::scan::Scan;
use crate::schema::{Options, Table};

/// The places of a reader's scan, by index.
const COLUMNS: [&str; 3] = ["channel", "computer", "event_record_id"];
const EVENT_RECORD_ID: usize = 2;

/// Most logs that are told apart in a file. More come from crafted files.
const MAX_LOGS: usize = 4096;

/// Adds a text to a key, or that there is none. No byte of UTF-8 is 0xfe or 0xff, so the keys of different texts differ.
pub(super) fn push_text<T>(key: &mut Vec<u8>, text: Option<T>, push: impl FnOnce(T, &mut Vec<u8>)) {
    match text {
        Some(text) => push(text, key),
        None => key.push(0xfe),
    }
    key.push(0xff);
}

/// Reads the IDs of events.
pub(super) struct EventIdReader {
    scan: Scan,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
    key: Vec<u8>,
}

/// The IDs of the events of some chunks.
#[derive(Debug, Default)]
pub(super) struct EventIds {
    logs: Vec<LogIds>,
    /// By channel and computer: the place in `logs`.
    known: HashMap<Box<[u8]>, usize>,
    /// Whether there were too many logs or runs to keep.
    overflows: bool,
}

/// The IDs of the events that a computer wrote to a channel.
#[derive(Debug)]
struct LogIds {
    channel: Option<Box<str>>,
    computer: Option<Box<str>>,
    records: u64,
    runs: Runs,
}

/// What [`EventIds`] tell of a log.
#[derive(Debug)]
pub(super) struct LogSpan {
    pub(super) channel: Option<Box<str>>,
    pub(super) computer: Option<Box<str>>,
    pub(super) records: u64,
    pub(super) span: Option<Span>,
}

impl EventIdReader {
    pub(super) fn new() -> Self {
        let table = Table::from(Options::default());
        let projection = table.indices_of(&COLUMNS);
        EventIdReader {
            scan: Scan::new(table, &projection),
            templates: ChunkTemplates::default(),
            arenas: Default::default(),
            key: Vec::new(),
        }
    }

    /// Adds the events of a chunk. What is damaged is left out.
    pub(super) fn read(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        ids: &mut EventIds,
        interrupt: Interrupt<'_>,
    ) -> Result<(), Interrupted> {
        self.templates.clear();
        let [names, arena] = &mut self.arenas;
        names.reset();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, promised, false);
        while let Some(item) = walk.next(chunk) {
            interrupt.check()?;
            let Ok(found) = item else { continue };
            if self.templates.are_many() {
                self.templates.clear();
            }
            let reader = RecordReader::new(&self.scan, chunk, &names, arena, interrupt);
            let mut records = RecordGroup::new(&self.scan.target, 1, arena);
            reader.read_event(&mut self.templates, &mut records, found.record.binxml());
            if !records.current().has_system(&self.templates) {
                reader.read_children(&mut self.templates, &mut records);
            }
            let parts = records.current();
            if !parts.is_unread() {
                let fields = parts.fields(&self.templates);
                self.key.clear();
                for place in 0..EVENT_RECORD_ID {
                    push_text(&mut self.key, fields.get(place), |text, key| text.push_text(key));
                }
                let text = |place| fields.get(place)?.text().map(String::into_boxed_str);
                let id = fields.get(EVENT_RECORD_ID).and_then(|id| id.number());
                if let Some(log) = ids.log(&self.key, || (text(0), text(1))) {
                    log.records += 1;
                    id.into_iter().for_each(|id| log.runs.add(id, id));
                }
            }
            drop(records);
            arena.reset();
        }
        Ok(())
    }
}

impl EventIds {
    /// The log with a key, a new one if need be; `None` if there are too many.
    fn log(&mut self, key: &[u8], new: impl FnOnce() -> (Option<Box<str>>, Option<Box<str>>)) -> Option<&mut LogIds> {
        if let Some(&known) = self.known.get(key) {
            return self.logs.get_mut(known);
        }
        if self.logs.len() >= MAX_LOGS {
            self.overflows = true;
            return None;
        }
        let (channel, computer) = new();
        self.known.insert(key.into(), self.logs.len());
        self.logs.push(LogIds {
            channel,
            computer,
            records: 0,
            runs: Runs::default(),
        });
        self.logs.last_mut()
    }

    /// Adds those of the chunks behind.
    pub(super) fn join(&mut self, behind: EventIds) {
        let mut keys = behind.known;
        self.overflows |= behind.overflows;
        let mut by_place: Vec<_> = keys.drain().map(|(key, place)| (place, key)).collect();
        by_place.sort_unstable();
        for ((_, key), log) in by_place.into_iter().zip(behind.logs) {
            if let Some(known) = self.log(&key, || (log.channel, log.computer)) {
                known.records += log.records;
                known.runs.join(log.runs);
            }
        }
        if self.logs.iter().map(|log| log.runs.len()).sum::<usize>() > MAX_RUNS {
            self.overflows = true;
        }
        if self.overflows {
            (self.logs, self.known) = Default::default();
        }
    }

    /// What there is to tell of each log, in the order of their channels and computers; `None` if there were too many.
    pub(super) fn spans(self) -> Option<Vec<LogSpan>> {
        if self.overflows {
            return None;
        }
        let span = |mut log: LogIds| LogSpan {
            channel: log.channel,
            computer: log.computer,
            records: log.records,
            span: log.runs.span(),
        };
        let mut spans: Vec<_> = self.logs.into_iter().map(span).collect();
        spans.sort_by(|a, b| (&a.channel, &a.computer).cmp(&(&b.channel, &b.computer)));
        Some(spans)
    }
}
