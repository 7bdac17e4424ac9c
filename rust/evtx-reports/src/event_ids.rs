//! The IDs that events carry themselves, by channel and computer.
//!
//! A log that was exported numbers its records anew. `EventRecordID` keeps the number that an event had in the log
//! where it was written, so that gaps in it are gaps in that log.

use evtx_arrow::PlaceReader;
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::runs::{MAX_RUNS, Runs, Span};

/// The columns that a reader reads, by index.
const COLUMNS: [&str; 3] = ["channel", "computer", "event_record_id"];
const EVENT_RECORD_ID: usize = 2;

/// Most logs that are told apart in a file. More come from crafted files.
const MAX_LOGS: usize = 4096;

/// Reads the IDs of events.
pub(super) struct EventIdReader {
    reader: PlaceReader,
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
        EventIdReader {
            reader: PlaceReader::new(&COLUMNS),
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
        let key = &mut self.key;
        self.reader.read(chunk, promised, interrupt, |values| {
            key.clear();
            (0..EVENT_RECORD_ID).for_each(|column| values.push_key(column, key));
            if let Some(log) = ids.log(key, || (values.text(0), values.text(1))) {
                log.records += 1;
                let id = values.number(EVENT_RECORD_ID);
                id.into_iter().for_each(|id| log.runs.add(id, id));
            }
        })
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
