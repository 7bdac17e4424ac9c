//! The names that records have with SIDs, on their way to the list of facts. Many records repeat a few names, so those of many records are
//! together: each record adds only a time.

use std::borrow::Cow;
use std::ops::Deref;

use evtx_events::{Evidence, NameUse, RecordName, least};
use hashbrown::HashMap;
use serde::Deserialize;

/// A text in JSON, borrowed if it has no escapes.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// The computer, the SID, the domain, the name, what records say of the account, a number for the log if its order counts, and the time if
/// it is a new name.
type Key<T> = (Option<T>, T, Option<T>, T, Option<T>, Option<u64>, Option<i64>);

/// The names in some records: the least record ID and the times of each, by its key in JSON.
#[derive(Debug, Default)]
pub struct RecordNames(HashMap<String, (Option<u64>, Vec<i64>)>);

impl RecordNames {
    /// Adds a name in a record.
    pub(crate) fn add(&mut self, computer: Option<&str>, log: Option<u64>, record_id: Option<u64>, of: RecordName<'_>) {
        let renamed = of.seen.filter(|_| of.evidence == Some(Evidence::Renamed));
        let evidence = of.evidence.map(Evidence::name);
        let key: Key<&str> = (computer, of.sid, of.domain, of.name, evidence, log, renamed);
        if let Ok(key) = serde_json::to_string(&key) {
            let (place, times) = self.0.entry(key).or_default();
            *place = least(*place, record_id.filter(|_| log.is_some()));
            times.extend(of.seen);
        }
    }

    /// A line for each name.
    pub fn into_lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(key, (place, times))| {
            let place = place.map_or_else(|| "null".to_owned(), |place| place.to_string());
            format!("{NAME}[{key},{place},{times:?}]")
        })
    }
}

/// How the line of a name starts.
pub(crate) const NAME: &str = "name ";

/// A name of a SID that records have: its key, the least record ID, and the times.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ToldName<'t>(#[serde(borrow)] Key<Text<'t>>, Option<u64>, Vec<i64>);

impl ToldName<'_> {
    /// The use of the name.
    pub(crate) fn name_use(&self) -> NameUse<'_> {
        let ToldName((computer, sid, domain, name, evidence, log, _), place, times) = self;
        NameUse {
            computer: computer.as_deref(),
            sid,
            domain: domain.as_deref(),
            name,
            evidence: evidence.as_deref().and_then(Evidence::named),
            logs: [*log; 2],
            place: *place,
            times: times.clone(),
        }
    }
}
