//! Failed logons, with the address that they come from. Of the records of one failure, one counts.

use std::cmp::Reverse;

use evtx_codes::{Code, code_name};
use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use crate::addresses::{Addresses, NEAR, is_address};
use crate::rows::{Doubts, EventRow, Record, plain_name};
use crate::runs::{is_within, only, runs};

/// A record of a failed logon.
#[derive(Debug, Clone)]
pub(crate) struct Failure<'f, 'a> {
    pub(crate) row: &'f EventRow<'a>,
    pub(crate) account: Option<&'a str>,
    pub(crate) account_sid: Option<&'a str>,
    /// The account without its domain, in lower case.
    pub(crate) who: Option<String>,
    pub(crate) source: Option<&'a str>,
    /// Why it failed.
    pub(crate) reason: Option<String>,
    /// The record of another event that has the address.
    pub(crate) addressing: Option<Record<'a>>,
    pub(crate) counts: bool,
    pub(crate) doubts: Doubts,
    /// The source, if it is an address.
    address: Option<&'a str>,
    needs_address: bool,
    /// Whether it has the name that OpenSSH gives to Windows for accounts that do not exist.
    is_nouser: bool,
}

/// The name of a code, or the code itself.
fn named(table: &str, code: &str) -> String {
    code_name(table, Code::Text(code)).unwrap_or(code).to_owned()
}

impl<'f, 'a> Failure<'f, 'a> {
    /// The machine, the account, and the source in lower case. The client chooses its letter case.
    pub(crate) fn key(&self) -> (Option<&str>, Option<&str>, Option<String>) {
        (self.row.computer, self.who.as_deref(), self.source.map(lower_case))
    }

    fn new(row: &'f EventRow<'a>) -> Self {
        let id = row.id();
        // Remote Desktop (140) names no account but that of its service, and neither does Windows if SSH does.
        let is_named = id != 140;
        let who = row.account.filter(|_| is_named).map(plain_name);
        let is_nouser = matches!(id, 4625 | 4776) && who.as_deref() == Some("nouser");
        let address = row.source.filter(|source| is_address(source));
        Failure {
            row,
            account: row.account.filter(|_| is_named),
            account_sid: row.account_sid.filter(|_| is_named),
            who: who.filter(|_| !is_nouser),
            is_nouser,
            source: row.source,
            reason: row.detail.map(|detail| match id {
                4768 | 4771 => named("kerberos_failure", detail),
                4625 | 4776 => named("status", detail),
                _ => detail.to_owned(),
            }),
            addressing: None,
            counts: false,
            doubts: row.doubts(),
            address,
            needs_address: id == 4625 && address.is_none() && matches!(row.logon_type, Some("3" | "8" | "10")),
        }
    }
}

/// The failures among events in their order.
pub(crate) fn failures<'f, 'a>(
    events: &'f [EventRow<'a>],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Failure<'f, 'a>>, Interrupted> {
    let attempts = events.iter().filter(|row| row.is_failure() || row.is_connection());
    let mut attempts: Vec<_> = attempts.map(Failure::new).collect();
    address(&mut attempts, interrupt)?;
    attempts.retain(|attempt| attempt.row.is_failure());
    count(&mut attempts, interrupt)?;
    Ok(attempts)
}

/// Gives failures the address that Remote Desktop, SSH or SQL Server has in the same seconds, if it is the only one.
fn address(attempts: &mut [Failure<'_, '_>], interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
    let known = Addresses::new(attempts.iter().map(|attempt| attempt.row));
    let needing = attempts.iter_mut().filter(|attempt| attempt.needs_address);
    for (step, attempt) in needing.enumerate() {
        interrupt.check_step(step)?;
        if let Some((record, address)) = known.near(attempt.row.computer, attempt.row.log_time) {
            (attempt.addressing, attempt.address) = (Some(record), address);
        }
    }
    Ok(())
}

/// Decides which records count. Several logs can tell of one failure: those of an account that follow each other within two seconds tell
/// of as many as the most frequent of them, unless they have different addresses.
fn count(failures: &mut [Failure<'_, '_>], interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
    let follows = |of: &[Failure<'_, '_>], before: usize, at: usize| {
        is_within(NEAR, of[before].row.log_time, of[at].row.log_time)
    };
    let of_accounts = runs(
        0..failures.len(),
        |at| (failures[at].row.computer, failures[at].who.as_deref()),
        |before, at| follows(failures, before, at),
        interrupt,
    )?;
    for run in of_accounts {
        let address = only(run.iter().filter_map(|&at| failures[at].address));
        // The logon of a program of this machine. Then, 4776 has the machine's own name, too.
        let is_here = run.iter().any(|&at| {
            let row = failures[at].row;
            row.id() == 4625 && !matches!(row.logon_type, None | Some("3" | "8"))
        });
        let mut alike: HashMap<(Option<&str>, u32), usize> = HashMap::new();
        for &at in &run {
            let failure = &mut failures[at];
            failure.source = failure.address.or(address).or(failure.source);
            if is_here && failure.row.id() == 4776 {
                failure.doubts = failure.doubts.without_claim();
            }
            *alike.entry((failure.source, failure.row.id())).or_default() += 1;
        }
        let mut best: HashMap<Option<&str>, (usize, bool, Reverse<u32>)> = HashMap::new();
        for (&(source, id), &records) in &alike {
            let rank = (records, id == 4625, Reverse(id));
            let best = best.entry(source).or_insert(rank);
            *best = rank.max(*best);
        }
        for at in run {
            let failure = &mut failures[at];
            failure.counts = best
                .get(&failure.source)
                .is_some_and(|best| best.2.0 == failure.row.id());
        }
    }
    // A failure without an account is one of those with an account. If several clients try at once, that of SSH has no address.
    for of_ssh in [false, true] {
        let bursts = runs(
            0..failures.len(),
            |at| (failures[at].row.computer, failures[at].source.filter(|_| !of_ssh)),
            |before, at| follows(failures, before, at),
            interrupt,
        )?;
        for burst in bursts {
            let mut named = burst
                .iter()
                .filter(|&&at| failures[at].counts && failures[at].who.is_some())
                .count();
            for at in burst {
                let failure = &mut failures[at];
                if failure.counts && failure.who.is_none() && named > 0 && (failure.is_nouser || !of_ssh) {
                    named -= 1;
                    failure.counts = false;
                }
            }
        }
    }
    Ok(())
}
