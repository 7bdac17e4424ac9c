//! Logons from where many logons of other accounts failed within a day.

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::failures::Failure;
use crate::rows::{Fact, LogonRow, plain_name};
use crate::runs::{DAY, changes, is_within, runs};

/// How many failures of others make a logon worth a fact.
const MANY: usize = 10;

/// A place: a machine, and where somebody tries to log on from, in lower case.
type Place<'a> = (Option<&'a str>, String);

/// The failures from one place, or of one account there, in their order.
#[derive(Default)]
struct Failed<'f, 'a> {
    all: Vec<&'f Failure<'f, 'a>>,
    /// For each, where the next other account is.
    others: Vec<usize>,
}

impl<'f, 'a> Failed<'f, 'a> {
    /// Those within the day before a logon, by index.
    fn within(&self, logon: &LogonRow<'_>) -> std::ops::Range<usize> {
        let is_old = |failure: &&Failure<'_, '_>| !is_within(DAY, failure.row.log_time, logon.log_time);
        let start = self.all.partition_point(is_old);
        start
            ..self
                .all
                .partition_point(|failure| failure.row.log_time <= logon.log_time)
                .max(start)
    }

    /// The account of all those in a range, if it is one.
    fn account(&self, range: std::ops::Range<usize>) -> Option<&'a str> {
        let first = range.clone().find(|&at| self.all[at].account.is_some())?;
        (self.others[first] >= range.end).then_some(self.all[first].account?)
    }

    fn settle(&mut self) {
        let accounts: Vec<_> = self.all.iter().map(|failure| failure.account).collect();
        self.others = changes(&accounts);
    }
}

pub(crate) fn facts<'a>(
    failures: &[Failure<'_, 'a>],
    logons: &[LogonRow<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let mut of_places: HashMap<Place<'a>, (Failed<'_, 'a>, HashMap<Option<&str>, Failed<'_, 'a>>)> = HashMap::new();
    for (step, failure) in failures
        .iter()
        .filter(|failure| failure.counts && failure.row.log_time.is_some())
        .enumerate()
    {
        interrupt.check_step(step)?;
        let Some(source) = failure.source else { continue };
        let (all, of_accounts) = of_places.entry((failure.row.computer, lower_case(source))).or_default();
        all.all.push(failure);
        of_accounts.entry(failure.who.as_deref()).or_default().all.push(failure);
    }
    of_places.values_mut().for_each(|(all, _)| all.settle());
    let mut first_logons: HashMap<(Place<'a>, Option<String>), Option<i64>> = HashMap::new();
    let mut found = Vec::new();
    for (step, logon) in logons.iter().filter(|logon| logon.is_accepted).enumerate() {
        interrupt.check_step(step)?;
        let who = logon.account.map(plain_name);
        let mut places = logon
            .sources()
            .map(|source| (source, (logon.computer, lower_case(source))));
        let Some((source, place)) = places.find(|(_, place)| of_places.contains_key(place)) else {
            continue;
        };
        let (all, of_accounts) = &of_places[&place];
        let first = *first_logons
            .entry((place.clone(), who.clone()))
            .or_insert(logon.log_time);
        let range = all.within(logon);
        let own = of_accounts
            .get(&who.as_deref())
            .map_or(0, |own| own.within(logon).len());
        let others = range.len().saturating_sub(own);
        if others >= MANY {
            let evidence = [
                all.all[range.start].row.record,
                all.all[range.end - 1].row.record,
                logon.record,
            ];
            let (failed, is_known) = (range.len(), first < logon.log_time);
            let account = all.account(range).unwrap_or("several accounts");
            let fact = Fact {
                computer: logon.computer,
                level: match own {
                    0 if is_known => "info",
                    _ if own == 0 || is_known => "medium",
                    _ => "high",
                },
                fact: match own {
                    0 => format!("{others} failed logons, then a logon of another account").into(),
                    _ => format!("{failed} failed logons, then one of the accounts got in").into(),
                },
                account: logon.account,
                account_sid: logon.account_sid,
                source: Some(source),
                detail: Some(format!("failures of {account}").into()),
                evidence: evidence.into(),
                ..Fact::of_records(
                    "failed logons",
                    [logon.record].into_iter(),
                    [logon.doubts()].into_iter(),
                )
            };
            found.push((place, who, logon.log_time, fact));
        }
    }
    // Those of one account follow each other.
    let runs = runs(
        &found,
        |(place, who, ..)| (place, who),
        |(_, _, before, _), (_, _, time, _)| is_within(DAY, *before, *time),
        interrupt,
    )?;
    Ok(runs.into_iter().map(|run| run[0].3.clone()).collect())
}
