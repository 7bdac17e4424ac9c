//! Logons from other machines, and those of services for remote access.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};

use crate::rows::{Fact, LogonRow};
use crate::runs::{DAY, is_within, runs};

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
        let is_windows = kind == "windows";
        let is_of_machine = account.is_some_and(|name| name.ends_with('$'));
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
            detail: run.iter().filter_map(|logon| logon.method).min().map(Into::into),
            ..Fact::of_records(
                "logons from elsewhere",
                run.iter().map(|logon| logon.record),
                run.iter().map(|logon| logon.doubts()),
            )
        }
    };
    Ok(runs.into_iter().map(of_run).collect())
}
