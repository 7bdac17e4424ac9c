//! The arguments that choose events, and the columns that they give a call.

use evtx_arrow::{EventField, Events, Options, Table};
use evtx_format::Interrupt;
use evtx_scan::{ScanError, ScanPath, Storage, arguments, put};

use crate::sample::{SampleSize, read_sample};

/// The events that a call is for, and how their fields are found.
#[derive(Debug, Clone, Default)]
pub struct EventSettings {
    /// The events that the caller named.
    pub event_ids: Option<Vec<u32>>,
    /// The providers that the caller named.
    pub providers: Option<Vec<String>>,
    /// How much is read to find the fields of the events.
    pub sample_size: SampleSize,
    /// The fields of the events, if they were found before.
    pub known_fields: Option<Vec<EventField>>,
}

arguments! {
    /// The arguments.
    pub OF_CERTAIN_EVENTS of EventSettings:
    /// Only the records of this event, or of a list of them, with a column for each of their fields.
    event_id = None, List(|all, texts| put(&mut all.event_ids, texts.as_deref().map(event_ids).transpose()));
    /// Only the records of this provider, or of a list of them. The case of ASCII letters does not matter.
    provider = None, List(|all, names| put(&mut all.providers, Ok(names)));
    /// With `event_id`: how many files are read to find the fields, -1 for all. By default, all local ones.
    sample_size = None, Integer(|all, size| put(&mut all.sample_size, sample_size(size)));
}

/// The most event IDs of a call: as many as Windows has, whose IDs have 16 bits.
const MAX_EVENT_IDS: usize = 1 << 16;

fn event_ids(texts: &[String]) -> Result<Vec<u32>, String> {
    if texts.len() > MAX_EVENT_IDS {
        return Err(format!("event_id takes at most {MAX_EVENT_IDS} IDs"));
    }
    let parse = |text: &String| {
        let text = text.trim();
        // A number of a type with fractions can come as 4624.0.
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        let number = whole.parse().ok().filter(|_| is_whole);
        number.ok_or_else(|| {
            let most = u32::MAX;
            format!("event_id must be a whole number from 0 to {most}, or a list of them, not {text}")
        })
    };
    texts.iter().map(parse).collect()
}

fn sample_size(size: Option<i64>) -> Result<SampleSize, String> {
    match size {
        None => Ok(SampleSize::Local),
        Some(-1) => Ok(SampleSize::All),
        Some(size) => usize::try_from(size)
            .map(SampleSize::Files)
            .map_err(|_| format!("sample_size must be a number of files, or -1 for all, not {size}")),
    }
}

/// The columns that a call has, before extras add theirs.
#[derive(Debug)]
pub struct Planned {
    /// The columns.
    pub table: Table,
    /// The fields of the events, if the call is for certain events.
    pub fields: Vec<EventField>,
    /// A warning: that only parts of the files were read to find the fields.
    pub warning: Option<String>,
}

impl EventSettings {
    /// Plans the columns of a call with these options. Reads some of the files if the columns depend on them, with at most so
    /// many threads. No field is called like one of the `extras`.
    ///
    /// # Errors
    /// [`ScanError::Interrupted`], and [`ScanError::Decode`] if a thread has panicked.
    pub fn plan(
        &self,
        options: Options,
        extras: &[String],
        paths: &[ScanPath],
        threads: usize,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Planned, ScanError> {
        let providers = self.providers.as_ref();
        let events = Events {
            ids: self.event_ids.as_deref().map(Into::into),
            providers: providers.map(|names| names.iter().map(|name| name.as_str().into()).collect()),
        };
        let (mut fields, mut warning) = (Vec::new(), None);
        let table = if events == Events::default() {
            Table::from(options)
        } else if self.event_ids.is_none() {
            Table::of_all_fields(options, events)
        } else {
            (fields, warning) = match &self.known_fields {
                Some(fields) => (fields.clone(), None),
                None => read_sample(events.clone(), storage, paths, self.sample_size, threads, interrupt)?,
            };
            let extras: Vec<_> = extras.iter().map(String::as_str).collect();
            Table::of_events(options, events, &fields, &extras)
        };
        Ok(Planned { table, fields, warning })
    }
}
