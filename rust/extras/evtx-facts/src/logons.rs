//! Logons from other machines, and those of services for remote access.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::addresses::{Addresses, is_address};
use crate::rows::{CITED, EventRow, Fact, LogonRow, joined, plain_name};
use crate::runs::{DAY, SECOND, is_within, runs};

/// How long before a session of Remote Desktop the client logs on over the network (CredSSP) at most, in nanoseconds.
const OPENING: u64 = 5 * SECOND;

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
    let mut sessions: HashMap<(Option<&str>, String), LogonRow<'_>> = HashMap::new();
    for (step, logon) in logons.iter_mut().rev().enumerate() {
        interrupt.check_step(step)?;
        let Some(account) = logon.account else { continue };
        let key = (logon.computer, plain_name(account));
        if logon.kind == "remote desktop" && logon.source.is_some_and(is_address) {
            sessions.insert(key, *logon);
        } else if logon.kind == "windows" && logon.logon_type == Some("Network") {
            let name = logon.source.filter(|source| !is_address(source));
            let is_opened = |session: &&LogonRow<'_>| {
                let is_same = name.is_some() || session.source == logon.source;
                is_same && is_within(OPENING, logon.log_time, session.log_time)
            };
            if let Some(session) = sessions.get(&key).filter(is_opened) {
                (logon.source, logon.account, logon.is_opening) = (session.source, session.account, true);
                (logon.kind, logon.logon_type, logon.client) = (session.kind, session.logon_type, name);
            } else if let Some(name) = name
                && let Some((record, Some(address))) = addresses.near(logon.computer, logon.log_time)
            {
                (logon.source, logon.client, logon.addressing) = (Some(address), Some(name), Some(record));
            }
        }
    }
    Ok(())
}

fn is_public(source: &str) -> bool {
    let address = source.parse::<Ipv4Addr>();
    address.is_ok_and(|ip| !(ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.octets()[0] == 0))
}

pub(crate) fn facts<'a>(logons: &[LogonRow<'a>], interrupt: Interrupt<'_>) -> Result<Vec<Fact<'a>>, Interrupted> {
    let is_remote = |logon: &&LogonRow<'_>| {
        logon.source.is_some() || !matches!(logon.kind, "windows" | "winrm") || logon.doubts().claims_own_name()
    };
    let runs = runs(
        logons.iter().filter(is_remote),
        |logon| {
            (
                logon.computer,
                logon.account.map(lower_case),
                logon.source,
                logon.kind,
                logon.logon_type,
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
