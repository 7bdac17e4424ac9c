//! The name that a SID has at a time.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use evtx_codes::{Code, code_name};
use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted, free};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use crate::accounts::AccountName;
use crate::order::{last, least};

/// A SID with more names than this has none.
const MOST: usize = 32;

/// How many SIDs are kept with the names that Windows defines.
const ASKED: usize = 1_000;

/// A time, after all others if it is unknown.
type Since = (bool, Option<i64>);

/// Names in order, each since a time.
type Names = Vec<(Since, String)>;

/// The names of a SID on a computer.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Own {
    names: Names,
    /// The one log that has them. In it, the order of records counts, because clocks are set.
    log: Option<u64>,
    /// The same names, each with its place in the log.
    places: Vec<((bool, Option<u64>), Since, String)>,
}

/// The names of a SID: on all computers, and on each if there are several.
#[derive(Debug, Default, Serialize, Deserialize)]
struct OfSid {
    anywhere: Names,
    own: BTreeMap<String, Own>,
    /// The name that the last event has. It is not in a line.
    #[serde(skip)]
    latest: (Since, String),
}

/// The account of an event, as it has it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Account<'a> {
    /// The domain.
    pub domain: Option<&'a str>,
    /// The name.
    pub name: Option<&'a str>,
    /// The SID.
    pub sid: Option<&'a str>,
    /// Whether it is one of Windows itself, which has other names on other machines.
    pub is_windows: bool,
}

impl<'a> Account<'a> {
    /// The name with its domain.
    pub fn full_name(&self) -> Option<Cow<'a, str>> {
        match (self.domain, self.name) {
            (Some(domain), Some(name)) => Some(Cow::Owned(format!("{domain}\\{name}"))),
            (domain, name) => domain.or(name).filter(|name| !name.is_empty()).map(Cow::Borrowed),
        }
    }
}

/// The names of SIDs.
#[derive(Debug, Default)]
pub struct AccountNames {
    known: HashMap<String, OfSid>,
    /// Those that Windows defines, as they were asked for.
    of_windows: RefCell<HashMap<String, Option<&'static str>>>,
}

impl Drop for AccountNames {
    fn drop(&mut self) {
        if self.known.len() > ASKED {
            free(std::mem::take(&mut self.known));
        }
    }
}

/// The name of a SID that Windows defines.
pub fn sid_name(sid: &str) -> Option<&'static str> {
    code_name("sid_name", Code::Text(sid))
}

/// The last of some names that holds, or else the first.
fn holding<'n, T>(names: &'n [T], is_later: impl Fn(&T) -> bool, name: impl Fn(&'n T) -> &'n str) -> Option<&'n str> {
    let until = names.partition_point(|known| !is_later(known));
    names.get(until.saturating_sub(1)).map(name)
}

impl AccountNames {
    /// The names that count: second names change nothing.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn new(all: &[AccountName], interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let mut names: HashMap<String, OfSid> = HashMap::new();
        // Of the same name on several computers, the first counts, in one way to write it.
        let mut spelled: BTreeMap<_, (Option<i64>, &str)> = BTreeMap::new();
        for (step, of) in all.iter().filter(|of| of.source != "second name").enumerate() {
            interrupt.check_step(step)?;
            let key = (
                of.sid.as_str(),
                lower_case(&of.name),
                of.first_seen.filter(|_| of.is_renamed),
            );
            let (since, name) = spelled.entry(key).or_insert((of.first_seen, &of.name));
            (*since, *name) = (least(*since, of.first_seen), (*name).min(&of.name));
            let known = names.entry_ref(&*of.sid).or_default();
            known.latest = (last(of.last_seen), of.name.clone()).max(std::mem::take(&mut known.latest));
            let Some(computer) = &of.computer else { continue };
            let own = known.own.entry(computer.clone()).or_default();
            own.names.push((last(of.first_seen), of.name.clone()));
            if of.log.is_some() {
                let is_only = own.places.is_empty() || own.log == of.log;
                own.log = of.log.filter(|_| is_only);
                own.places.push((last(of.place), last(of.first_seen), of.name.clone()));
            }
        }
        for ((sid, _, _), (since, name)) in spelled {
            names
                .entry_ref(sid)
                .or_default()
                .anywhere
                .push((last(since), name.to_owned()));
        }
        for (step, known) in names.values_mut().enumerate() {
            interrupt.check_step(step)?;
            if known.anywhere.len() > MOST {
                known.anywhere.clear();
            }
            known.anywhere.sort_unstable();
            let has_several = known.anywhere.len() > 1;
            known.own.retain(|_, own| has_several && own.names.len() <= MOST);
            for own in known.own.values_mut() {
                own.names.sort_unstable();
                own.places.sort_unstable();
            }
        }
        Ok(AccountNames {
            known: names,
            of_windows: RefCell::default(),
        })
    }

    /// A line for each SID.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn to_lines(&self, interrupt: Interrupt<'_>) -> Result<String, Interrupted> {
        let mut lines = String::new();
        for (step, known) in self.known.iter().enumerate() {
            interrupt.check_step(step)?;
            if let Ok(line) = serde_json::to_string(&known) {
                lines.extend([if lines.is_empty() { "" } else { "\n" }, &line]);
            }
        }
        Ok(lines)
    }

    /// Adds the names of a SID.
    ///
    /// # Errors
    /// If [`to_lines`](Self::to_lines) does not write such a line.
    pub fn read(&mut self, line: &str) -> Result<(), String> {
        let (sid, known) = serde_json::from_str(line).map_err(|error| format!("not of evtx_account_index: {error}"))?;
        self.known.insert(sid, known);
        Ok(())
    }

    /// The account of an event of a computer, by the name at its place or its time. Most events have a name.
    pub fn user_name<'a>(
        &'a self,
        of: &Account<'a>,
        computer: Option<&str>,
        place: (Option<u64>, Option<u64>),
        time: Option<i64>,
    ) -> Option<Cow<'a, str>> {
        let full_name = of.full_name();
        let Some(sid) = of.sid.filter(|_| of.name.is_none() || of.is_windows) else {
            return full_name;
        };
        let known = self.name(sid, computer, place, time);
        let known = known.or_else(|| self.name_of_windows(sid));
        known.map(Cow::Borrowed).or(full_name).or(Some(Cow::Borrowed(sid)))
    }

    /// The name that Windows defines. One that longer SIDs have too, such as NT Service account, is that of many accounts.
    fn name_of_windows(&self, sid: &str) -> Option<&'static str> {
        let mut asked = self.of_windows.borrow_mut();
        if let Some(name) = asked.get(sid) {
            return *name;
        }
        let name = sid_name(sid).filter(|name| sid_name(&format!("{sid}-0")) != Some(name));
        if asked.len() > ASKED {
            asked.clear();
        }
        asked.insert(sid.to_owned(), name);
        name
    }

    /// The name of a SID in a record: at its place, if one log of the computer has all names, or else at its time, first on the computer.
    fn name(
        &self,
        sid: &str,
        computer: Option<&str>,
        place: (Option<u64>, Option<u64>),
        time: Option<i64>,
    ) -> Option<&str> {
        let known = self.known.get(sid)?;
        let is_later = |&((unknown, since), _): &(Since, String)| unknown || time.is_none() || since > time;
        let own = computer.and_then(|computer| known.own.get(computer));
        match (own, place) {
            (Some(own), (log @ Some(_), record_id @ Some(_))) if own.log == log => holding(
                &own.places,
                |&((_, known), ..)| known.is_none_or(|known| Some(known) > record_id),
                |(.., name)| name,
            ),
            (own, _) => holding(own.map_or(&known.anywhere, |own| &own.names), is_later, |(_, name)| {
                name
            }),
        }
    }

    /// The name that the last event has.
    pub fn latest(&self, sid: &str) -> Option<&str> {
        self.known.get(sid).map(|known| known.latest.1.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(computer: &'static str, name: &str, first_seen: i64, place: Option<u64>) -> AccountName {
        AccountName {
            computer: Some(computer.to_owned()),
            sid: "S-1".to_owned(),
            name: name.to_owned(),
            first_seen: Some(first_seen),
            last_seen: Some(first_seen + 1),
            is_renamed: false,
            source: "most events",
            log: place.map(|_| 7),
            place,
        }
    }

    #[test]
    fn the_name_of_the_place_or_else_of_the_time_counts() {
        let all = [
            name("pc", "a", 10, Some(1)),
            name("pc", "b", 5, Some(3)),
            name("dc", "c", 20, None),
        ];
        let made = AccountNames::new(&all, Interrupt::NEVER).expect("no interrupt");
        let mut names = AccountNames::default();
        for line in made.to_lines(Interrupt::NEVER).expect("no interrupt").lines() {
            names.read(line).expect("a line");
        }
        let at = |computer, log, record_id, time| names.name("S-1", Some(computer), (log, record_id), time);
        assert_eq!(at("pc", Some(7), Some(2), Some(30)), Some("a"));
        assert_eq!(at("pc", Some(8), Some(2), Some(30)), Some("a"));
        assert_eq!(at("pc", Some(8), Some(2), Some(6)), Some("b"));
        assert_eq!(at("pc", Some(7), Some(9), None), Some("b"));
        assert_eq!(at("dc", Some(7), Some(9), Some(1)), Some("c"));
        // Elsewhere, all names count, and before the first one, the first.
        assert_eq!(at("x", None, None, Some(1)), Some("b"));
        assert_eq!(at("x", None, None, Some(12)), Some("a"));
        assert_eq!((made.latest("S-1"), made.latest("S-2")), (Some("c"), None));
    }
}
