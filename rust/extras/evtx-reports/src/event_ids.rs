//! The IDs that events themselves carry, by channel and computer.
//!
//! The export of a log numbers its records anew. `EventRecordID` keeps the number from the log in which the event was
//! first written, so gaps in it are gaps in that log.

use evtx_arrow::{EventPath, PathId, RecordScan, Requirements};
use evtx_events::push_key;
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;

use crate::id_ranges::{IdRanges, MAX_RANGES, Span};

/// The paths that are read.
const PATHS: [EventPath; 3] = [EventPath::CHANNEL, EventPath::COMPUTER, EventPath::EVENT_RECORD_ID];

/// The most logs that are distinguished in a file. Only crafted files have more.
const MAX_LOGS: usize = 4096;

/// Reads the IDs of events.
pub(crate) struct EventIdReader {
    scan: RecordScan,
    key: Vec<u8>,
}

/// The IDs of the events of some chunks.
#[derive(Debug, Default)]
pub(crate) struct EventIds {
    /// The logs, by channel and computer as a key.
    logs: HashMap<Vec<u8>, (LogSpan, IdRanges)>,
    /// Whether there were too many logs or ranges to keep.
    overflows: bool,
}

/// The events that a computer wrote to a channel.
#[derive(Debug, Default)]
pub(crate) struct LogSpan {
    pub(crate) channel: Option<Box<str>>,
    pub(crate) computer: Option<Box<str>>,
    pub(crate) records: u64,
    /// The span of their IDs, once all are known.
    pub(crate) span: Option<Span>,
}

impl EventIdReader {
    pub(crate) fn new() -> Self {
        EventIdReader {
            scan: RecordScan::new(Requirements::of_paths(&PATHS), None),
            key: Vec::new(),
        }
    }

    /// Adds the events of a chunk. Leaves out damaged ones.
    pub(crate) fn read(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        ids: &mut EventIds,
        interrupt: Interrupt<'_>,
    ) -> Result<(), Interrupted> {
        let EventIdReader { scan, key } = self;
        let [channel, computer, event_record_id] = PATHS.map(|path| scan.path(path));
        scan.read(chunk, promised, interrupt, |record| {
            let at = |path: Option<PathId>| record.value_at(path?);
            key.clear();
            for path in [channel, computer] {
                push_key(key, at(path), |value, key| value.push_text(key));
            }
            let text = |path| at(path)?.text().map(String::into_boxed_str);
            let span = || LogSpan {
                channel: text(channel),
                computer: text(computer),
                ..LogSpan::default()
            };
            if let Some((span, ranges)) = ids.log(key, span) {
                span.records += 1;
                let id = at(event_record_id).and_then(|id| id.number());
                id.iter().for_each(|&id| ranges.add(id, id));
            }
            Ok(())
        })
    }
}

/// Reads whether a chunk starts with the event that says that its log was cleared.
pub(crate) struct ClearReader(RecordScan);

impl ClearReader {
    pub(crate) fn new() -> Self {
        let paths = [EventPath::PROVIDER, EventPath::EVENT_ID];
        ClearReader(RecordScan::new(Requirements::of_paths(&paths), None))
    }

    /// Whether the first record of a chunk is event 104 or 1102 of the event log itself.
    pub(crate) fn starts_cleared(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        interrupt: Interrupt<'_>,
    ) -> Result<bool, Interrupted> {
        let [provider, event_id] = [EventPath::PROVIDER, EventPath::EVENT_ID].map(|path| self.0.path(path));
        let mut first = None;
        self.0.read(chunk, promised, interrupt, |record| {
            first.get_or_insert_with(|| {
                let at = |path: Option<PathId>| record.value_at(path?);
                let id = at(event_id).and_then(|id| id.number());
                let provider = at(provider).and_then(|provider| provider.text());
                matches!(id, Some(104 | 1102))
                    && provider.is_some_and(|name| name.eq_ignore_ascii_case("Microsoft-Windows-Eventlog"))
            });
            Ok(())
        })?;
        Ok(first.unwrap_or_default())
    }
}

impl EventIds {
    /// The log with a key, which is added if it is new. `None` if there are too many.
    fn log(&mut self, key: &[u8], new: impl FnOnce() -> LogSpan) -> Option<&mut (LogSpan, IdRanges)> {
        let count = self.logs.len();
        match self.logs.entry_ref(key) {
            EntryRef::Occupied(known) => Some(known.into_mut()),
            EntryRef::Vacant(free) if count < MAX_LOGS => Some(free.insert((new(), IdRanges::default()))),
            EntryRef::Vacant(_) => {
                self.overflows = true;
                None
            }
        }
    }

    /// Adds the IDs of the chunks that follow.
    pub(crate) fn join(&mut self, next: EventIds) {
        self.overflows |= next.overflows;
        for (key, (span, ranges)) in next.logs {
            let records = span.records;
            if let Some((known, known_ranges)) = self.log(&key, || LogSpan { records: 0, ..span }) {
                known.records += records;
                known_ranges.join(ranges);
            }
        }
        if self.logs.values().map(|(_, ranges)| ranges.len()).sum::<usize>() > MAX_RANGES {
            self.overflows = true;
        }
        if self.overflows {
            self.logs = HashMap::default();
        }
    }

    /// The span of each log, sorted by channel and computer; `None` if there were too many.
    pub(crate) fn spans(self) -> Option<Vec<LogSpan>> {
        if self.overflows {
            return None;
        }
        let mut logs: Vec<_> = self.logs.into_iter().collect();
        // Texts that are too long are missing in the span, but not in the key.
        logs.sort_unstable_by(|(a_key, (a, _)), (b_key, (b, _))| {
            (&a.channel, &a.computer, a_key).cmp(&(&b.channel, &b.computer, b_key))
        });
        let spans = logs.into_iter().map(|(_, (span, mut ranges))| LogSpan {
            span: ranges.span(),
            ..span
        });
        Some(spans.collect())
    }
}
