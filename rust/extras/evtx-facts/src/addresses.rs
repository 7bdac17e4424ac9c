//! The addresses that Remote Desktop, SSH and SQL Server log, for what other logs only know by the name that the client gives.

use std::cmp::Ordering;

use crate::rows::{EventRow, Record, last};
use crate::runs::{SECOND, changes, is_within};

/// How far apart records of one attempt are at most, in nanoseconds.
pub(crate) const NEAR: u64 = 2 * SECOND;

/// Whether a text has only digits and separators of an IP address.
pub(crate) fn is_address(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    digits.starts_with(['.', ':']) && digits.chars().all(|c| c.is_ascii_hexdigit() || ".:%".contains(c))
}

/// Events with addresses, in their order.
pub(crate) struct Addresses<'f, 'a> {
    known: Vec<(&'f EventRow<'a>, Option<&'a str>)>,
    /// For each, where the next other address is.
    others: Vec<usize>,
}

impl<'f, 'a> Addresses<'f, 'a> {
    pub(crate) fn new(events: impl Iterator<Item = &'f EventRow<'a>>) -> Self {
        let known = events.map(|row| (row, row.source.filter(|source| is_address(source))));
        let known: Vec<_> = known.filter(|(_, address)| address.is_some()).collect();
        let others = changes(&known.iter().map(|(_, address)| *address).collect::<Vec<_>>());
        Addresses { known, others }
    }

    /// The first record near a time that has an address, and the address if it is the only one then.
    pub(crate) fn near(&self, computer: Option<&str>, time: Option<i64>) -> Option<(Record<'a>, Option<&'a str>)> {
        let computer = last(computer);
        let first = self
            .known
            .partition_point(|(row, _)| match last(row.computer).cmp(&computer) {
                Ordering::Equal => row.log_time.is_some() && !is_within(NEAR, row.log_time, time),
                order => order.is_lt(),
            });
        let end = self
            .known
            .partition_point(|(row, _)| match last(row.computer).cmp(&computer) {
                Ordering::Equal => is_within(NEAR, time, row.log_time),
                order => order.is_lt(),
            });
        let (row, address) = self.known[..end].get(first)?;
        Some((row.record, address.filter(|_| self.others[first] >= end)))
    }
}
