//! Logons from other machines, and those of services for remote access.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::addresses::{Addresses, is_address};
use crate::failures::Failure;
use crate::rows::{CITED, EventRow, Fact, LogonRow, joined, plain_name};
use crate::runs::{DAY, SECOND, is_within, runs};

/// How long before a session of Remote Desktop the client logs on over the network (CredSSP) at most, in nanoseconds.
const OPENING: u64 = 5 * SECOND;

/// How long after a connection to Remote Desktop its password can be wrong, in nanoseconds.
const REFUSING: u64 = 60 * SECOND;

/// Gives logons over the network the source of the session of Remote Desktop that they open, or else the address that a service logged
/// in the same seconds.
pub(crate) fn connect<'a>(
    logons: &mut [LogonRow<'a>],
    events: &[EventRow<'a>],
    interrupt: Interrupt<'_>,
) -> Result<(), Interrupted> {
    let of_services = events.iter().filter(|row| row.is_failure() || row.is_connection());
    let addresses = Addresses::new(of_services.filter(|row| matches!(row.id(), 4 | 131 | 140 | 18456)));
    // The next session of each account.
    let mut sessions: HashMap<(Option<&str>, String), usize> = HashMap::new();
    for at in (0..logons.len()).rev() {
        interrupt.check_step(at)?;
        let mut logon = logons[at];
        let Some(account) = logon.account else { continue };
        let key = (logon.computer, plain_name(account));
        if logon.kind == "remote desktop" && logon.source.is_some_and(is_address) {
            sessions.insert(key, at);
        } else if logon.kind == "windows" && logon.logon_type == Some("Network") {
            let name = logon.source.filter(|source| !is_address(source));
            let is_opened = |&of: &usize| {
                let session = &logons[of];
                let is_same = name.is_some() || session.source == logon.source;
                is_same && is_within(OPENING, logon.log_time, session.log_time)
            };
            if let Some(of) = sessions.get(&key).copied().filter(is_opened) {
                // Its password was right.
                logons[of].is_accepted = true;
                let session = logons[of];
                (logon.source, logon.account, logon.is_opening) = (session.source, session.account, true);
                (logon.kind, logon.logon_type, logon.client) = (session.kind, session.logon_type, name);
            } else if let Some(name) = name
                && let Some((record, Some(address))) = addresses.near(logon.computer, logon.log_time)
            {
                (logon.source, logon.client, logon.addressing) = (Some(address), Some(name), Some(record));
            }
            logons[at] = logon;
        }
    }
    Ok(())
}

fn is_public(source: &str) -> bool {
    let address = source.parse::<Ipv4Addr>();
    address.is_ok_and(|ip| !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.octets()[0] == 0))
}

/// The times of failures by machine, account and source.
type Refusals<'f> = HashMap<(Option<&'f str>, Option<&'f str>, Option<String>), Vec<i64>>;

/// Whether a connection can have come before a wrong password: its account failed soon after it, from there or from an unknown source.
fn is_refused(logon: &LogonRow<'_>, refusals: &Refusals<'_>) -> bool {
    let Some(who) = logon.account.map(plain_name).filter(|_| !logon.is_accepted) else {
        return false;
    };
    let mut sources = [None, logon.source.map(lower_case)].into_iter();
    sources.any(|source| {
        let times = refusals.get(&(logon.computer, Some(&*who), source));
        let next = times.and_then(|times| times.get(times.partition_point(|&time| Some(time) < logon.log_time)));
        is_within(REFUSING, logon.log_time, next.copied())
    })
}

pub(crate) fn facts<'a>(
    logons: &[LogonRow<'a>],
    failures: &[Failure<'_, 'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    let mut refusals = Refusals::new();
    for (step, failure) in failures.iter().enumerate() {
        interrupt.check_step(step)?;
        refusals.entry(failure.key()).or_default().extend(failure.row.log_time);
    }
    let is_remote = |logon: &&LogonRow<'_>| {
        logon.source.is_some() || !matches!(logon.kind, "windows" | "winrm") || logon.doubts().claims_own_name()
    };
    let runs = runs(
        logons
            .iter()
            .filter(is_remote)
            .filter(|logon| !is_refused(logon, &refusals)),
        |logon| {
            (
                logon.computer,
                logon.account.map(lower_case),
                logon.source,
                logon.kind,
                logon.logon_type,
                logon.is_accepted,
            )
        },
        |before, logon| is_within(DAY, before.log_time, logon.log_time),
        interrupt,
    )?;
    let of_run = |run: Vec<&LogonRow<'a>>| {
        let LogonRow {
            source,
            kind,
            logon_type,
            ..
        } = *run[0];
        let account = run.iter().filter_map(|logon| logon.account).min();
        // A session is one logon, with the one that opens it.
        let sessions = || run.iter().filter(|logon| !logon.is_opening);
        let method = sessions().filter_map(|logon| logon.method).min().map(str::to_owned);
        let clients = joined(run.iter().filter_map(|logon| logon.client));
        let clients = clients.map(|clients| format!("client name {clients}"));
        let detail: Vec<_> = method.into_iter().chain(clients).collect();
        let is_windows = kind == "windows";
        let is_of_machine = account.is_some_and(|name| name.ends_with('$'));
        let records = run.iter().map(|logon| logon.record);
        let mut fact = Fact::of_records("logons from elsewhere", records, run.iter().map(|logon| logon.doubts()));
        if let Some(record) = run.iter().find_map(|logon| logon.addressing) {
            if fact.evidence.len() > CITED {
                fact.evidence.remove(CITED - 1);
            }
            fact.evidence.push(record);
        }
        Fact {
            computer: run[0].computer,
            level: match logon_type {
                Some(name) if is_windows && is_of_machine && !name.starts_with("Remote") => "info",
                _ if source.is_some_and(is_public) => "medium",
                _ if is_windows => "info",
                _ => "low",
            },
            fact: match logon_type {
                _ if !run[0].is_accepted => format!("Connection by {kind}").into(),
                _ if !is_windows => format!("Logon by {kind}").into(),
                Some(name) => format!("{name} logon").into(),
                None => Cow::from("Logon"),
            },
            account,
            account_sid: run.iter().filter_map(|logon| logon.account_sid).min(),
            source,
            detail: (!detail.is_empty()).then(|| detail.join("; ").into()),
            events: sessions().count() as u64,
            ..fact
        }
    };
    Ok(runs.into_iter().map(of_run).collect())
}
