//! The name that a SID has at a time.

use std::collections::BTreeMap;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::accounts::AccountName;
use crate::order::{last, least};

/// A SID with more names than this has none.
const MOST: usize = 32;

/// Names in order, each since a time.
type Names<'n> = Vec<((bool, Option<i64>), &'n str)>;

/// A name with its place in a log, since a time.
type Placed<'n> = ((bool, Option<u64>), (bool, Option<i64>), &'n str);

/// The names of a SID on a computer.
#[derive(Debug, Default)]
struct Own<'n> {
    names: Names<'n>,
    /// The one log that has them. In it, the order of records counts, because clocks are set.
    log: Option<u64>,
    /// The same names, each with its place in the log.
    places: Vec<Placed<'n>>,
}

/// The names of SIDs: on all computers, and on each.
#[derive(Debug, Default)]
pub struct AccountNames<'n> {
    anywhere: HashMap<&'n str, Names<'n>>,
    own: HashMap<(&'n str, &'n str), Own<'n>>,
    latest: HashMap<&'n str, ((bool, Option<i64>), &'n str)>,
}

/// The last of some names that holds, or else the first.
fn holding<'n, T>(names: &[T], is_later: impl Fn(&T) -> bool, name: impl Fn(&T) -> &'n str) -> Option<&'n str> {
    let until = names.partition_point(|known| !is_later(known));
    names.get(until.saturating_sub(1)).map(name)
}

impl<'n> AccountNames<'n> {
    /// The names that count: second names change nothing.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn new(all: &'n [AccountName<'_>], interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let mut names = AccountNames::default();
        // Of the same name on several computers, the first counts, in one way to write it.
        let mut spelled: BTreeMap<_, (Option<i64>, &str)> = BTreeMap::new();
        for (step, of) in all.iter().filter(|of| of.source != "second name").enumerate() {
            interrupt.check_step(step)?;
            let key = (of.sid, lower_case(&of.name), of.first_seen.filter(|_| of.is_renamed));
            let (since, name) = spelled.entry(key).or_insert((of.first_seen, &of.name));
            (*since, *name) = (least(*since, of.first_seen), (*name).min(&of.name));
            let latest = (last(of.last_seen), of.name.as_str());
            let known = names.latest.entry(of.sid).or_insert(latest);
            *known = latest.max(*known);
            let Some(computer) = of.computer else { continue };
            let own = names.own.entry((of.sid, computer)).or_default();
            own.names.push((last(of.first_seen), &of.name));
            if of.log.is_some() {
                let is_only = own.places.is_empty() || own.log == of.log;
                own.log = of.log.filter(|_| is_only);
                own.places.push((last(of.place), last(of.first_seen), &of.name));
            }
        }
        for ((sid, _, _), (since, name)) in spelled {
            names.anywhere.entry(sid).or_default().push((last(since), name));
        }
        names.anywhere.retain(|_, names| names.len() <= MOST);
        names.anywhere.values_mut().for_each(|names| names.sort_unstable());
        names.own.retain(|_, own| own.names.len() <= MOST);
        for own in names.own.values_mut() {
            own.names.sort_unstable();
            own.places.sort_unstable();
        }
        Ok(names)
    }

    /// The name of a SID in a record: at its place, if one log of the computer has all names, or else at its time, first on the computer.
    pub fn name(
        &self,
        sid: &str,
        computer: Option<&str>,
        place: (Option<u64>, Option<u64>),
        time: Option<i64>,
    ) -> Option<&'n str> {
        let anywhere = self.anywhere.get(sid)?;
        let own = computer.and_then(|computer| self.own.get(&(sid, computer)));
        let at = |names: &Names<'n>| {
            let is_later =
                |&((unknown, since), _): &((bool, Option<i64>), &str)| unknown || time.is_none() || since > time;
            holding(names, is_later, |&(_, name)| name)
        };
        match own.filter(|_| anywhere.len() > 1) {
            Some(own) => match place {
                (log @ Some(_), record_id @ Some(_)) if own.log == log => holding(
                    &own.places,
                    |&((_, known), ..)| known.is_none_or(|known| Some(known) > record_id),
                    |&(.., name)| name,
                ),
                _ => at(&own.names),
            },
            None => at(anywhere),
        }
    }

    /// The name that the last event has.
    pub fn latest(&self, sid: &str) -> Option<&'n str> {
        self.latest.get(sid).map(|&(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(computer: &'static str, name: &str, first_seen: i64, place: Option<u64>) -> AccountName<'static> {
        AccountName {
            computer: Some(computer),
            sid: "S-1",
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
        let names = AccountNames::new(&all, Interrupt::NEVER).expect("no interrupt");
        let at = |computer, log, record_id, time| names.name("S-1", Some(computer), (log, record_id), time);
        assert_eq!(at("pc", Some(7), Some(2), Some(30)), Some("a"));
        assert_eq!(at("pc", Some(8), Some(2), Some(30)), Some("a"));
        assert_eq!(at("pc", Some(8), Some(2), Some(6)), Some("b"));
        assert_eq!(at("pc", Some(7), Some(9), None), Some("b"));
        assert_eq!(at("dc", Some(7), Some(9), Some(1)), Some("c"));
        // Elsewhere, all names count, and before the first one, the first.
        assert_eq!(at("x", None, None, Some(1)), Some("b"));
        assert_eq!(at("x", None, None, Some(12)), Some("a"));
        assert_eq!((names.latest("S-1"), names.latest("S-2")), (Some("c"), None));
    }
}
