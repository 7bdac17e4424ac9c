//! Runs of failed logons of an account from a source, and the logon of this account that ends them.

use evtx_codes::is_own_name;
use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::failures::Failure;
use crate::rows::{Fact, LogonRow, joined, plain_name};
use crate::runs::{DAY, is_within, runs};

/// How many failures before a logon make it a guess.
const SEVERAL: usize = 5;

/// Logons by computer, account, whether the account is local, and source. A key without one of the last two is of all logons of the account.
/// `Some(None)` is an unknown source.
type Logons<'l, 'a> = HashMap<(Option<&'a str>, String, Option<bool>, Option<Option<String>>), Vec<&'l LogonRow<'a>>>;

/// The accepted logons.
struct Accepted<'l, 'a> {
    logons: Logons<'l, 'a>,
    /// The domains of each computer's accounts.
    domains: HashSet<(Option<&'a str>, String)>,
}

/// The domain of an account in lower case, without what follows its first label.
fn domain(account: &str) -> Option<String> {
    let (domain, _) = account.split_once('\\').or_else(|| {
        let (name, domain) = account.split_once('@')?;
        Some((domain, name))
    })?;
    domain
        .split('.')
        .next()
        .filter(|label| !label.is_empty())
        .map(lower_case)
}

/// Whether an account with a domain is of the machine alone. A domain has several names.
fn is_local(account: &str, computer: Option<&str>) -> Option<bool> {
    Some(is_own_name(&domain(account)?, computer.unwrap_or_default()))
}

impl<'l, 'a> Accepted<'l, 'a> {
    fn new(logons: &'l [LogonRow<'a>], interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let (mut all, mut domains) = (Logons::new(), HashSet::new());
        for (step, logon) in logons
            .iter()
            .filter(|logon| logon.is_accepted && logon.log_time.is_some())
            .enumerate()
        {
            interrupt.check_step(step)?;
            let Some(account) = logon.account else { continue };
            domains.extend(domain(account).map(|domain| (logon.computer, domain)));
            let client = logon.client.map(|client| Some(Some(lower_case(client))));
            // A service, a task or somebody at the keyboard is not who failed from elsewhere.
            let can_be_remote = logon.kind != "windows" || logon.logon_type.is_none_or(is_remote);
            let source = logon.source.map(lower_case);
            let source = (source.is_some() || can_be_remote).then_some(Some(source));
            let (name, is_local) = (plain_name(account), is_local(account, logon.computer));
            // An account without a domain can be either.
            let kinds = [None, Some(true), Some(false)];
            let kinds = kinds
                .into_iter()
                .filter(|kind| kind.is_none() || is_local.is_none() || *kind == is_local);
            for source in [None].into_iter().chain(source).chain(client) {
                for kind in kinds.clone() {
                    let key = (logon.computer, name.clone(), kind, source.clone());
                    all.entry(key).or_default().push(logon);
                }
            }
        }
        Ok(Accepted { logons: all, domains })
    }

    /// The first logon of the account of a failure, from its source or an unknown one, after it.
    fn after(&self, failure: &Failure<'_, 'a>) -> Option<&'l LogonRow<'a>> {
        let (computer, since) = (failure.row.computer, failure.row.log_time);
        // A domain that no account of the machine has can be any.
        let is_known = |domain| self.domains.contains(&(computer, domain));
        let account = failure.account.filter(|account| domain(account).is_some_and(is_known));
        let is_local = account.and_then(|account| is_local(account, computer));
        let who = failure.who.as_ref()?;
        let sources = match failure.source {
            None => vec![None],
            Some(source) => vec![Some(None), Some(Some(lower_case(source)))],
        };
        let of_source = sources.into_iter().filter_map(|source| {
            let of_account = self.logons.get(&(computer, who.clone(), is_local, source))?;
            let next = of_account.partition_point(|logon| logon.log_time <= since);
            of_account.get(next).copied()
        });
        of_source.min_by_key(|logon| logon.place())
    }

    /// Where a run becomes another fact: after a logon, if several failures follow before the next one.
    fn starts(&self, run: &[&Failure<'_, 'a>], interrupt: Interrupt<'_>) -> Result<Vec<usize>, Interrupted> {
        let (mut starts, mut at) = (vec![0], 0);
        for step in 0.. {
            interrupt.check_step(step)?;
            let Some(logon) = run.get(at).and_then(|failure| self.after(failure)) else {
                break;
            };
            let end = at + run[at..].partition_point(|failure| failure.row.log_time <= logon.log_time);
            if at > 0 && run[at..end].iter().filter(|failure| failure.counts).count() >= SEVERAL {
                starts.push(at);
            }
            at = end.max(at + 1);
        }
        Ok(starts)
    }
}

/// Whether logons of this type can be from another machine.
fn is_remote(logon_type: &str) -> bool {
    logon_type.contains("Network") || logon_type.contains("Remote")
}

pub(crate) fn facts<'a>(
    failures: &[Failure<'_, 'a>],
    logons: &[LogonRow<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let accepted = Accepted::new(logons, interrupt)?;
    let runs = runs(
        failures,
        |failure| failure.key(),
        |before, failure| is_within(DAY, before.row.log_time, failure.row.log_time),
        interrupt,
    )?;
    let mut found = Vec::new();
    for (step, run) in runs.iter().enumerate() {
        interrupt.check_step(step)?;
        let starts = accepted.starts(run, interrupt)?;
        let ends = starts.iter().skip(1).copied().chain([run.len()]);
        let parts = starts.iter().zip(ends).map(|(&start, end)| &run[start..end]);
        let counted = parts.filter(|part| part.iter().any(|failure| failure.counts));
        found.extend(counted.map(|part| of_run(part, &accepted)));
    }
    Ok(found)
}

fn of_run<'a>(run: &[&Failure<'_, 'a>], accepted: &Accepted<'_, 'a>) -> Fact<'a> {
    let until = run.iter().filter_map(|failure| failure.row.log_time).max();
    let success = accepted
        .after(run[0])
        .filter(|logon| is_within(DAY, until, logon.log_time));
    let is_before = |failure: &&&Failure<'_, '_>| success.is_none_or(|logon| failure.row.log_time <= logon.log_time);
    let counted = || run.iter().filter(|failure| failure.counts);
    let (events, before) = (counted().count(), counted().filter(is_before).count());
    let last_before = run
        .iter()
        .filter(is_before)
        .filter_map(|failure| failure.row.log_time)
        .max();
    let pause = success.and_then(|logon| logon.log_time).zip(last_before);
    let pause = pause.map(|(logon, failure)| format!("pause of {:.0} s", logon.abs_diff(failure) as f64 / 1e9));
    let after = (before < events).then(|| format!("{} failures after it", events - before));
    let reasons = joined(run.iter().filter_map(|failure| failure.reason.as_deref()));
    let detail: Vec<_> = [reasons, pause, after].into_iter().flatten().collect();
    let records = run.iter().map(|failure| failure.row.record);
    // One of each event.
    let mut ids = HashSet::new();
    let of_events = records.clone().filter(|record| ids.insert(record.event_id)).take(3);
    let others = [
        run.iter().find_map(|failure| failure.addressing),
        success.map(|logon| logon.record),
    ];
    let evidence = records
        .clone()
        .take(4)
        .chain(of_events)
        .chain(others.into_iter().flatten())
        .chain(run.last().map(|failure| failure.row.record))
        .collect();
    let fact = Fact::of_records("failed logons", records, run.iter().map(|failure| failure.doubts));
    Fact {
        computer: run[0].row.computer,
        level: match success {
            Some(_) if before >= SEVERAL => "high",
            _ if events >= 10 => "medium",
            _ if events >= SEVERAL || success.is_some() => "low",
            _ => "info",
        },
        fact: format!(
            "{before} failed logon{}{}",
            if before == 1 { "" } else { "s" },
            if success.is_some() {
                ", then a logon of the same account"
            } else {
                ""
            }
        )
        .into(),
        last: fact.last.max(success.and_then(|logon| logon.record.time)),
        events: events as u64,
        account: run.iter().find_map(|failure| failure.account),
        account_sid: run.iter().find_map(|failure| failure.account_sid),
        source: run[0].source,
        detail: (!detail.is_empty()).then(|| detail.join("; ").into()),
        evidence,
        ..fact
    }
}
