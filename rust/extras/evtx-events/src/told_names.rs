//! The names that records have with SIDs, on their way to those of accounts. Many records repeat a few names, so those of many records are
//! together: each record adds only a time.

use std::borrow::Cow;
use std::ops::Deref;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::accounts::{Evidence, NameUse};
use crate::order::least;
use crate::record_names::record_names;
use crate::stamp::Columns;

/// A text in JSON, borrowed if it has no escapes.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

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
    /// Adds the names in a record with these fields. `log` is a number for its log.
    pub fn add(&mut self, log: Option<u64>, record_id: Option<u64>, of: &Columns<'_>, fields: &[(&str, &str)]) {
        let (provider, id) = (of.provider.unwrap_or_default(), of.event_id.unwrap_or_default());
        // 1074 is in the System log, all others in the Security log, whose order tells when an account was renamed.
        let log = log.filter(|_| id != 1074);
        for name in record_names(provider, id, of.time_created, of.user_sid, fields) {
            let renamed = name.seen.filter(|_| name.evidence == Some(Evidence::Renamed));
            let evidence = name.evidence.map(Evidence::name);
            let key: Key<&str> = (of.computer, name.sid, name.domain, name.name, evidence, log, renamed);
            if let Ok(key) = serde_json::to_string(&key) {
                let (place, times) = self.0.entry(key).or_default();
                *place = least(*place, record_id.filter(|_| log.is_some()));
                times.extend(name.seen);
            }
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
const NAME: &str = "name ";

/// A name of a SID that records have: its key, the least record ID, and the times.
#[derive(Debug, Clone, Deserialize)]
pub struct ToldName<'t>(#[serde(borrow)] Key<Text<'t>>, Option<u64>, Vec<i64>);

impl<'t> ToldName<'t> {
    /// The name in a line of [`RecordNames`]; `None` if it is another line.
    ///
    /// # Errors
    /// If the name cannot be read.
    pub fn read(line: &'t str) -> Option<Result<Self, serde_json::Error>> {
        line.strip_prefix(NAME).map(serde_json::from_str)
    }

    /// The use of the name.
    pub fn name_use(&self) -> NameUse<'_> {
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
