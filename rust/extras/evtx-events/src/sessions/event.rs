//! What sessions are made of: events in the order of a machine.

use std::borrow::Cow;
use std::cmp::Ordering;

use evtx_codes::{LogonKind, LogonStep, Machine, Writer, remote_host};
use evtx_format::case::fold;

use crate::order::last;

/// When a record was written. Moments compare in the order of the machine's logs. What is unknown comes last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time by the clock as it was set last, in nanoseconds.
    pub log_time: Option<i64>,
    /// The number of the record in its log.
    pub number: Option<u64>,
    /// The time stamp.
    pub time: Option<i64>,
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |moment: &Moment| (last(moment.log_time), last(moment.number), last(moment.time));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An event of a logon session.
#[derive(Debug, Clone, Default)]
pub struct LogonEvent<'a> {
    /// Its ID.
    pub event_id: u32,
    /// The number of the record in its log.
    pub number: Option<u64>,
    /// The time stamp, in nanoseconds.
    pub time: Option<i64>,
    /// The time by the clock as it was set last.
    pub log_time: Option<i64>,
    /// A number for all that it says. Copies of a record have the same.
    pub digest: u64,
    /// Whether another record claims its place.
    pub is_contested: bool,
    /// The computer that wrote it.
    pub computer: Option<&'a str>,
    /// What it says.
    pub step: LogonStep<'a>,
}

impl<'a> LogonEvent<'a> {
    /// When it was written.
    pub(super) fn at(&self) -> Moment {
        Moment {
            log_time: self.log_time,
            number: self.number,
            time: self.time,
        }
    }

    /// The account as it compares, or else its SID.
    pub(super) fn who(&self) -> Option<Cow<'a, str>> {
        self.step.account.or(self.step.sid).and_then(bare)
    }

    /// The account with its domain.
    pub(super) fn name(&self) -> Option<Cow<'a, str>> {
        full_name(self.step.domain, self.step.account)
    }

    /// Whether the address is one. For a session at the console, it is the word LOCAL in the language of Windows.
    pub(super) fn has_address(&self) -> bool {
        let is_of_address = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ':');
        self.step.address.is_some_and(|text| text.contains(is_of_address))
    }

    /// The other machine.
    pub(super) fn host(&self) -> Option<Cow<'a, str>> {
        let is_read = self.has_address() || self.step.kind == LogonKind::SqlServer;
        self.step.address.filter(|_| is_read).and_then(host)
    }
}

/// The other machine that an address names.
pub(super) fn host(address: &str) -> Option<Cow<'_, str>> {
    match remote_host(address, "", Writer::Windows) {
        Machine::Other(host) => Some(host),
        Machine::Own | Machine::Unknown => None,
    }
}

/// An account as it compares: without domain and case.
pub(super) fn bare(account: &str) -> Option<Cow<'_, str>> {
    let name = account.rsplit('\\').next()?.trim_start_matches('@');
    name.split('@').next().filter(|name| !name.is_empty()).map(fold)
}

/// An account with its domain, as Windows writes it.
pub(super) fn full_name<'a>(domain: Option<&'a str>, account: Option<&'a str>) -> Option<Cow<'a, str>> {
    Some(match domain {
        Some(domain) => format!("{domain}\\{}", account?).into(),
        None => account?.into(),
    })
}

/// The name that the other machine gave, and whether it is that of this one. Windows writes its own name, unless a client names its
/// own.
pub(super) fn workstation<'e>(
    name: Option<&'e str>,
    computer: Option<&str>,
    is_by_windows: bool,
) -> (Option<&'e str>, bool) {
    let name = name
        .map(|name| name.trim_start_matches('\\'))
        .filter(|name| !matches!(*name, "" | "-"));
    let is_own =
        name.is_some_and(|name| remote_host(name, computer.unwrap_or_default(), Writer::Client) == Machine::Own);
    (name.filter(|_| !is_own || !is_by_windows), is_own && !is_by_windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_comes_last() {
        let at = |log_time, number| Moment {
            log_time,
            number,
            time: Some(0),
        };
        let order = [
            at(Some(1), Some(2)),
            at(Some(1), None),
            at(Some(2), Some(1)),
            at(None, Some(0)),
        ];
        assert!(order.is_sorted_by(|one, next| one < next));
    }

    #[test]
    fn accounts_compare_without_domain_and_case() {
        for (account, expected) in [
            ("D\\Anna", Some("anna")),
            ("anna@corp.example", Some("anna")),
            ("D\\ÄNNE@corp", Some("änne")),
            ("@anna@b@c", Some("anna")),
            ("D\\", None),
            ("", None),
        ] {
            assert_eq!(bare(account).as_deref(), expected, "{account}");
        }
    }
}
