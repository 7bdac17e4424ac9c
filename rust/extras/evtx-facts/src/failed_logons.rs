//! Runs of failed logons of an account from a source, and the logon of this account that ends them.

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::failures::Failure;
use crate::rows::{Fact, LogonRow, joined, plain_name};
use crate::runs::{DAY, is_within, runs};

/// The accepted logons of an account, and those from one source. They can be from an unknown one.
type Accepted<'l, 'a> = HashMap<(Option<&'a str>, String, Option<Option<String>>), Vec<&'l LogonRow<'a>>>;

fn accepted<'l, 'a>(logons: &'l [LogonRow<'a>], interrupt: Interrupt<'_>) -> Result<Accepted<'l, 'a>, Interrupted> {
    let mut found = Accepted::new();
    for (step, logon) in logons
        .iter()
        .filter(|logon| logon.is_accepted && logon.log_time.is_some())
        .enumerate()
    {
        interrupt.check_step(step)?;
        let Some(account) = logon.account else { continue };
        let client = logon.client.map(|client| Some(Some(lower_case(client))));
        for source in [None, Some(logon.source.map(lower_case))].into_iter().chain(client) {
            found
                .entry((logon.computer, plain_name(account), source))
                .or_default()
                .push(logon);
        }
    }
    Ok(found)
}

pub(crate) fn facts<'a>(
    failures: &[Failure<'_, 'a>],
    logons: &[LogonRow<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let accepted = accepted(logons, interrupt)?;
    let runs = runs(
        failures,
        |failure| (failure.row.computer, failure.who.as_deref(), failure.source),
        |before, failure| is_within(DAY, before.row.log_time, failure.row.log_time),
        interrupt,
    )?;
    let runs = runs.into_iter().filter(|run| run.iter().any(|failure| failure.counts));
    let mut found = Vec::new();
    for (step, run) in runs.enumerate() {
        interrupt.check_step(step)?;
        found.push(of_run(&run, &accepted));
    }
    Ok(found)
}

fn of_run<'a>(run: &[&Failure<'_, 'a>], accepted: &Accepted<'_, 'a>) -> Fact<'a> {
    let row = run[0].row;
    let [since, until] = [
        row.log_time,
        run.iter().filter_map(|failure| failure.row.log_time).max(),
    ];
    let success = run[0].who.as_ref().and_then(|who| {
        let sources = match run[0].source {
            None => vec![None],
            Some(source) => vec![Some(None), Some(Some(lower_case(source)))],
        };
        let of_source = sources.into_iter().filter_map(|source| {
            let of_account = accepted.get(&(row.computer, who.clone(), source))?;
            of_account
                .get(of_account.partition_point(|logon| logon.log_time <= since))
                .copied()
        });
        of_source
            .min_by_key(|logon| logon.place())
            .filter(|logon| is_within(DAY, until, logon.log_time))
    });
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
    let rows: Vec<_> = run.iter().map(|failure| failure.row).collect();
    let fact = Fact::of("failed logons", &rows);
    Fact {
        level: match success {
            Some(_) if before >= 5 => "high",
            _ if events >= 10 => "medium",
            _ if events >= 5 || success.is_some() => "low",
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
