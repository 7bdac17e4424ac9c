//! Sessions with services: SSH, WinRM, SQL Server, gateways and VPNs.

use std::borrow::Cow;
use std::cmp::Reverse;

use evtx_codes::LogonKind;
use evtx_format::case::fold;
use hashbrown::HashMap;

use super::event::{Moment, full_name};
use super::logon::Logon;
use super::visit::Visit;

/// How long before a visit the logon can be that the service requests, in nanoseconds.
const LONGEST: i64 = 10_000_000_000;
/// How far apart their ends are at most.
const ENDING: u64 = 2_000_000_000;
/// How many logons are compared with a visit: an account can have any number within these seconds.
const COMPARED: usize = 64;

/// What sessions with services tell of a logon of Windows.
#[derive(Debug)]
pub(super) struct Service<'e> {
    pub(super) kind: LogonKind,
    pub(super) end: Option<Moment>,
    pub(super) host: Option<Cow<'e, str>>,
    pub(super) method: Option<&'e str>,
    pub(super) is_contested: bool,
}

/// The kinds of sessions for which Windows has a logon of this type and process.
fn kinds(logon: &Logon<'_>) -> &'static [LogonKind] {
    let is_ssh = logon
        .process
        .is_some_and(|process| process.to_lowercase().ends_with("\\sshd.exe"));
    match (logon.logon_type, is_ssh) {
        (Some(3), false) => &[LogonKind::WinRm, LogonKind::SqlServer],
        (Some(3), true) => &[LogonKind::WinRm, LogonKind::SqlServer, LogonKind::Ssh],
        (Some(8), true) => &[LogonKind::Ssh],
        _ => &[],
    }
}

/// The logons of each kind and account, with their times.
type Known<'l> = HashMap<(LogonKind, Cow<'l, str>), Vec<(i64, usize)>>;

/// For each visit the logon of Windows with the same account, if there is one just before it: one that ends with it, or else the last.
/// A session of WinRM can share it with others.
fn logons_of(visits: &[&Visit<'_>], logons: &[Logon<'_>]) -> Vec<Option<usize>> {
    let mut known = Known::new();
    for (index, logon) in logons.iter().enumerate() {
        let Some(time) = logon.start.and_then(|start| start.log_time) else {
            continue;
        };
        for &kind in kinds(logon) {
            for who in logon.who.clone().into_iter().chain(logon.sid.map(fold)) {
                known.entry((kind, who)).or_default().push((time, index));
            }
        }
    }
    known.values_mut().for_each(|times| times.sort_unstable());
    let log_time = |moment: Option<Moment>| moment.and_then(|moment| moment.log_time);
    let mut used = vec![false; logons.len()];
    let mut of = |visit: &Visit<'_>| {
        let time = log_time(visit.settled)?;
        let times = known.get(&(visit.kind, visit.who.clone()?))?;
        let times = &times[..times.partition_point(|&(before, _)| before <= time)];
        let recent = times.iter().rev().take(COMPARED);
        let recent = recent.take_while(|(before, _)| time.saturating_sub(*before) <= LONGEST);
        let is_own = |index: &usize| {
            let host = &logons[*index].host;
            !used[*index] && (host.is_none() || visit.host.is_none() || *host == visit.host)
        };
        let found: Vec<_> = recent.map(|&(_, index)| index).filter(is_own).collect();
        let ends_with = |index: &&usize| {
            let ends = log_time(logons[**index].end).zip(log_time(visit.ended));
            ends.is_some_and(|(end, ended)| end.abs_diff(ended) <= ENDING)
        };
        let index = *found.iter().find(ends_with).or(found.first())?;
        used[index] = visit.kind != LogonKind::WinRm;
        Some(index)
    };
    let mut order: Vec<_> = (0..visits.len()).collect();
    order.sort_by_key(|&at| visits[at].settled);
    let mut found = vec![None; visits.len()];
    order.into_iter().for_each(|at| found[at] = of(visits[at]));
    found
}

/// The visits to services that are logons of Windows, by their indexes, and the others.
pub(super) fn services<'v, 'e>(
    visits: &'v [Visit<'e>],
    logons: &[Logon<'e>],
) -> (HashMap<usize, Service<'e>>, Vec<&'v Visit<'e>>) {
    let visits: Vec<_> = visits
        .iter()
        .filter(|visit| visit.kind != LogonKind::RemoteDesktop)
        .collect();
    let (mut found, mut others): (HashMap<usize, Service<'e>>, _) = (HashMap::new(), Vec::new());
    for (visit, logon) in visits.iter().zip(logons_of(&visits, logons)) {
        let Some(logon) = logon else {
            others.push(*visit);
            continue;
        };
        let service = found.entry(logon).or_insert_with(|| Service {
            kind: visit.kind,
            end: visit.ended,
            host: visit.host.clone(),
            method: visit.method,
            is_contested: visit.is_contested,
        });
        // Of several, the first of each value counts.
        service.end = service.end.into_iter().chain(visit.ended).min();
        service.host = service.host.take().or_else(|| visit.host.clone());
        service.method = service.method.or(visit.method);
        service.is_contested |= visit.is_contested;
    }
    (found, others)
}

/// The names of a SID.
#[derive(Default)]
struct Names<'e> {
    counts: HashMap<Cow<'e, str>, usize>,
    /// The one that most logons have. Of several, the first by letters.
    best: Option<(Reverse<usize>, Cow<'e, str>)>,
}

/// The names of visits that have nothing but a SID: for each the one that most logons with that SID have until then, or else at all.
pub(super) fn names<'e>(visits: &[&Visit<'e>], logons: &[Logon<'e>]) -> Vec<Option<Cow<'e, str>>> {
    let mut found = vec![None; visits.len()];
    let unnamed = |at: &usize| visits[*at].name.is_none() && visits[*at].sid.is_some();
    let mut order: Vec<usize> = (0..visits.len()).filter(unnamed).collect();
    if order.is_empty() {
        return found;
    }
    order.sort_by_key(|&at| visits[at].settled);
    let mut of_sids: HashMap<Cow<'_, str>, Names<'e>> = HashMap::new();
    let mut later = order.iter().peekable();
    let named = |of_sids: &HashMap<Cow<'_, str>, Names<'e>>, at: usize| {
        let names = of_sids.get(&fold(visits[at].sid?))?;
        names.best.as_ref().map(|(_, name)| name.clone())
    };
    for logon in logons {
        while let Some(&at) = later.next_if(|&&at| visits[at].settled < Some(logon.first)) {
            found[at] = named(&of_sids, at);
        }
        let (Some(sid), Some(name)) = (logon.sid, full_name(logon.domain, logon.account)) else {
            continue;
        };
        let names = of_sids.entry(fold(sid)).or_default();
        let count = names.counts.entry(name.clone()).or_default();
        *count += 1;
        names.best = names.best.take().into_iter().chain([(Reverse(*count), name)]).min();
    }
    for at in order {
        found[at] = found[at].take().or_else(|| named(&of_sids, at));
    }
    found
}
