//! The names of accounts: which SID has which name since when, and how that is known.

use std::collections::BTreeMap;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted, named_enum};
use hashbrown::HashMap;

use crate::order::least;

named_enum! {
    /// How events show that a SID has a name. Of several, the last counts most.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[allow(missing_docs)] // the names say it
    pub enum Evidence {
        Changed = "changed",
        Created = "created",
        Renamed = "renamed",
    }
}

/// The events of a computer that have one name with a SID, as they write it.
#[derive(Debug, Clone)]
pub struct NameUse<'a> {
    /// The computer.
    pub computer: Option<&'a str>,
    /// The SID.
    pub sid: &'a str,
    /// The domain.
    pub domain: Option<&'a str>,
    /// The name.
    pub name: &'a str,
    /// What the events say of the account. Events that rename it to this name are a use each.
    pub evidence: Option<Evidence>,
    /// The least and the greatest number of a log whose order counts.
    pub logs: [Option<u64>; 2],
    /// The least ID of their records in such a log.
    pub place: Option<u64>,
    /// Their times, in nanoseconds, in any order. Copies of a record repeat its time.
    pub times: Vec<i64>,
}

/// A name of a SID on a computer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName {
    /// The computer.
    pub computer: Option<String>,
    /// The SID.
    pub sid: String,
    /// The name with its domain.
    pub name: String,
    /// Since when it is that of the SID.
    pub first_seen: Option<i64>,
    /// When the last event has it.
    pub last_seen: Option<i64>,
    /// Whether it is one of the two names of an event that renamed the account.
    pub is_renamed: bool,
    /// How it is known that the SID has the name: by [`Evidence`], `most events`, `more events`; or `second name`.
    pub source: &'static str,
    /// The log in which it holds since `place`; 0 if there is none, `None` if no log whose order counts has the name.
    pub log: Option<u64>,
    /// The ID of a record.
    pub place: Option<u64>,
}

/// The events of a computer that have one name with a SID, however they write it.
#[derive(Default)]
struct Name<'a> {
    computer: Option<&'a str>,
    key: String,
    /// Each way to write it, with its times.
    spelled: BTreeMap<String, Vec<i64>>,
    is_renamed: bool,
    is_local: bool,
    evidence: Option<Evidence>,
    /// The first time of evidence.
    since: Option<i64>,
    logs: [Option<u64>; 2],
    place: Option<u64>,
    /// The place of evidence.
    told_place: Option<u64>,
    times: Vec<i64>,
}

impl<'a> Name<'a> {
    fn new(of: &NameUse<'a>, key: String) -> Self {
        Name {
            computer: of.computer,
            key,
            is_renamed: of.evidence == Some(Evidence::Renamed) && !of.times.is_empty(),
            ..Name::default()
        }
    }

    fn add(&mut self, of: &NameUse<'a>) {
        let host = of.computer.and_then(|computer| computer.split('.').next());
        self.is_local |= of
            .domain
            .zip(host)
            .is_some_and(|(domain, host)| lower_case(domain) == lower_case(host));
        self.evidence = self.evidence.max(of.evidence);
        self.logs = [least(self.logs[0], of.logs[0]), self.logs[1].max(of.logs[1])];
        self.place = least(self.place, of.place);
        if of.evidence.is_some() {
            self.since = least(self.since, of.times.iter().copied().min());
            self.told_place = least(self.told_place, of.place);
        }
        let full_name = match of.domain {
            None | Some("" | "-") => of.name.to_owned(),
            Some(domain) => format!("{domain}\\{}", of.name),
        };
        self.spelled.entry(full_name).or_default().extend(&of.times);
        self.times.extend(&of.times);
    }

    /// The log whose order counts, if no other one has the name.
    fn only_log(&self) -> Option<u64> {
        self.logs[0].filter(|_| self.logs[0] == self.logs[1])
    }

    /// Counts each time once.
    fn settle(&mut self) {
        for times in self.spelled.values_mut().chain([&mut self.times]) {
            times.sort_unstable();
            times.dedup();
        }
    }

    /// The name as most events write it. Kerberos writes the domain in full, and people write names in any case.
    fn full_name(&self) -> String {
        let order = |(name, times): &(&String, &Vec<i64>)| {
            let form = match name.split_once('\\') {
                None => 2,
                Some((domain, _)) => u8::from(domain.contains('.')),
            };
            (form, usize::MAX - times.len())
        };
        self.spelled
            .iter()
            .min_by_key(order)
            .map(|(name, _)| name.clone())
            .unwrap_or_default()
    }
}

/// Since when each name is that of most events until then, if no event says what the name is.
fn leaders<'n>(names: &'n [Name<'_>]) -> HashMap<&'n str, i64> {
    let mut seen: Vec<(i64, &str)> = names
        .iter()
        .flat_map(|name| name.times.iter().map(|&time| (time, name.key.as_str())))
        .collect();
    seen.sort_unstable();
    let (mut uses, mut leads, mut most): (HashMap<&str, usize>, HashMap<&str, i64>, _) =
        (HashMap::new(), HashMap::new(), 0);
    for (time, key) in seen {
        let count = uses.entry(key).or_default();
        *count += 1;
        if *count > most {
            most = *count;
            leads.entry(key).or_insert(time);
        }
    }
    leads
}

/// When an event first gives a name, the best evidence for it, and its first place: a record ID in a log of a computer.
type Given<'a> = (Option<i64>, Option<Evidence>, Option<(Option<&'a str>, u64, u64)>);

/// The names of a SID, on one computer or on all, if it is the same everywhere.
fn settled(sid: &str, names: &[Name<'_>]) -> Vec<AccountName> {
    let mut of_keys: HashMap<&str, Given<'_>> = HashMap::new();
    for name in names {
        let (since, evidence, told_at) = of_keys.entry(&name.key).or_default();
        let place = name.only_log().zip(name.told_place);
        *told_at = least(*told_at, place.map(|(log, place)| (name.computer, log, place)));
        *since = least(*since, name.since);
        *evidence = name.evidence.max(*evidence);
    }
    // The first that an event gives.
    let first = of_keys
        .iter()
        .filter_map(|(&key, &(since, ..))| Some((since?, key)))
        .min()
        .map(|(_, key)| key);
    let has_several = of_keys.len() > 1;
    let leads = if has_several && first.is_none() {
        leaders(names)
    } else {
        HashMap::new()
    };
    let first_lead = leads.values().min().copied();
    let account = |name: &Name<'_>| {
        let (since, evidence, told_at) = of_keys[name.key.as_str()];
        let [first_seen, last_seen] = [name.times.first().copied(), name.times.last().copied()];
        let lead = leads.get(name.key.as_str()).copied();
        let is_first = first == Some(name.key.as_str());
        // In one log, the order of the records counts.
        let is_placed = told_at.is_some_and(|(computer, log, place)| {
            computer == name.computer && name.only_log() == Some(log) && name.place > Some(place)
        });
        let follows = since.is_some_and(|since| first_seen.is_some_and(|seen| seen >= since)) || is_placed;
        AccountName {
            computer: name.computer.map(str::to_owned),
            sid: sid.to_owned(),
            name: name.full_name(),
            first_seen: if name.evidence.is_some() && first.is_some() && !is_first {
                first_seen.max(since)
            } else {
                first_seen.max(lead)
            },
            last_seen,
            is_renamed: name.is_renamed,
            source: match (name.evidence.or(evidence.filter(|_| follows || is_first)), lead) {
                (Some(evidence), _) => evidence.name(),
                (None, lead) if first.is_none() && (!has_several || lead.is_some() && lead == first_lead) => {
                    "most events"
                }
                (None, Some(_)) => "more events",
                (None, None) => "second name",
            },
            // A name that comes to be in more events has no such place, and neither has one of several logs.
            log: if first_seen.is_some_and(|seen| lead > Some(seen)) || name.logs[0] < name.logs[1] {
                Some(0)
            } else {
                name.logs[0]
            },
            place: name.told_place.or(name.place),
        }
    };
    names.iter().map(account).collect()
}

/// The names of a SID on a computer, in lower case. Those that an event gives when it renames the account have its time.
type OfSid<'a> = BTreeMap<(String, Option<i64>), Name<'a>>;

/// The names of accounts, from all uses of them.
///
/// # Errors
/// [`Interrupted`].
pub fn account_names(uses: &[NameUse<'_>], interrupt: Interrupt<'_>) -> Result<Vec<AccountName>, Interrupted> {
    let mut of_sids: BTreeMap<(Option<&str>, &str), OfSid<'_>> = BTreeMap::new();
    for (index, of) in uses.iter().enumerate() {
        interrupt.check_step(index)?;
        let renamed = of
            .times
            .first()
            .copied()
            .filter(|_| of.evidence == Some(Evidence::Renamed));
        let key = lower_case(of.name);
        let names = of_sids.entry((of.computer, of.sid)).or_default();
        names
            .entry((key.clone(), renamed))
            .or_insert_with(|| Name::new(of, key))
            .add(of);
    }
    // Machines of one image can have local accounts of one SID. Other accounts have their names on all computers.
    let mut scopes: BTreeMap<(Option<&str>, &str), Vec<Name<'_>>> = BTreeMap::new();
    for (index, ((computer, sid), names)) in of_sids.into_iter().enumerate() {
        interrupt.check_step(index)?;
        let scope = computer.filter(|_| names.values().any(|name| name.is_local));
        scopes
            .entry((scope, sid))
            .or_default()
            .extend(names.into_values().map(|mut name| {
                name.settle();
                name
            }));
    }
    let mut all = Vec::new();
    for (index, ((_, sid), names)) in scopes.iter().enumerate() {
        interrupt.check_step(index)?;
        all.extend(settled(sid, names));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used<'a>(computer: &'a str, domain: &'a str, name: &'a str, times: &[i64]) -> NameUse<'a> {
        NameUse {
            computer: Some(computer),
            sid: "S-1-5-21-1-1001",
            domain: Some(domain),
            name,
            evidence: None,
            logs: [Some(7); 2],
            place: times.iter().min().map(|&time| time as u64),
            times: times.to_vec(),
        }
    }

    fn told<'a>(name: &'a str, evidence: Evidence, time: i64) -> NameUse<'a> {
        NameUse {
            evidence: Some(evidence),
            ..used("pc", "D", name, &[time])
        }
    }

    fn names(uses: &[NameUse<'_>]) -> Vec<(String, Option<i64>, &'static str)> {
        let names = account_names(uses, Interrupt::NEVER).expect("names");
        names
            .into_iter()
            .map(|name| (name.name, name.first_seen, name.source))
            .collect()
    }

    fn all<const N: usize>(expected: [(&str, i64, &'static str); N]) -> Vec<(String, Option<i64>, &'static str)> {
        let expected = expected.map(|(name, seen, source)| (name.to_owned(), Some(seen), source));
        expected.into()
    }

    #[test]
    fn a_name_is_written_as_most_events_write_it() {
        let uses = [
            used("pc", "d.example", "anna", &[1, 2, 3]),
            used("pc", "D", "ANNA", &[4, 4, 4]),
            used("pc", "D", "Anna", &[5, 6]),
            used("pc", "-", "anna", &[7]),
        ];
        assert_eq!(names(&uses), all([("D\\Anna", 1, "most events")]));
    }

    #[test]
    fn the_name_of_most_events_leads_until_another_has_more() {
        let uses = [
            used("pc", "D", "old", &[1, 2]),
            used("pc", "D", "new", &[3, 4, 5]),
            used("pc", "D", "rare", &[6]),
        ];
        let expected = [
            ("D\\new", 5, "more events"),
            ("D\\old", 1, "most events"),
            ("D\\rare", 6, "second name"),
        ];
        assert_eq!(names(&uses), all(expected));
        let found = account_names(&uses, Interrupt::NEVER).expect("names");
        assert_eq!(
            found.iter().map(|name| (name.log, name.place)).collect::<Vec<_>>(),
            [(Some(0), Some(3)), (Some(7), Some(1)), (Some(7), Some(6))]
        );
    }

    #[test]
    fn an_event_that_gives_a_name_counts_more_than_others() {
        let renames = [told("old", Evidence::Renamed, 9), told("new", Evidence::Renamed, 10)];
        let uses = [&[used("pc", "D", "new", &[1, 2, 3])][..], &renames].concat();
        let expected = [
            ("D\\new", 1, "second name"),
            ("D\\new", 10, "renamed"),
            ("D\\old", 9, "renamed"),
        ];
        assert_eq!(names(&uses), all(expected));
        let uses = [
            told("anna", Evidence::Created, 5),
            told("anna", Evidence::Changed, 6),
            used("pc", "D", "anna", &[7]),
        ];
        assert_eq!(names(&uses), all([("D\\anna", 5, "created")]));
    }

    #[test]
    fn local_accounts_of_one_image_have_a_name_each() {
        let uses =
            |domains: [&'static str; 2]| [used("a", domains[0], "x", &[1]), used("b.corp", domains[1], "y", &[2])];
        let sources = |domains| {
            names(&uses(domains))
                .into_iter()
                .map(|(_, _, source)| source)
                .collect::<Vec<_>>()
        };
        assert_eq!(sources(["A", "B"]), ["most events", "most events"]);
        assert_eq!(sources(["D", "D"]), ["most events", "second name"]);
    }
}
