//! Facts: what happened on a machine, in a sentence each, with the records that prove it.
//!
//! Most facts are rows of the list of events (`listed`). The others are made of several events, each kind in a module: a
//! run of failed logons, a gap, a start of Windows. All times are nanoseconds since 1970.
#![forbid(unsafe_code)]

mod rows;
mod runs;
mod listed;
mod failures;
mod failed_logons;
mod other_logons;
mod sprays;
mod logons;
mod clock;
mod starts;
mod gaps;
mod logs;

use evtx_format::{Interrupt, Interrupted};

use runs::sort;

pub use rows::{EventRow, Fact, LogonRow, Mark, Record};
pub use starts::{Starting, starts};

/// The facts of some machines: of the events that have a topic, the logons, and the records that mark how time goes on, in any order.
/// `wrapped` are the files of logs that overwrote their oldest records.
///
/// # Errors
/// [`Interrupted`].
pub fn facts<'a>(
    mut events: Vec<EventRow<'a>>,
    mut logons: Vec<LogonRow<'a>>,
    marks: &[Mark<'a>],
    wrapped: &[&str],
    interrupt: Interrupt<'_>,
) -> Result<Vec<Fact<'a>>, Interrupted> {
    // A record in several copies of a log counts once.
    sort(&mut events, |row| (row.place(), row.record), interrupt)?;
    events.dedup_by_key(|row| row.place());
    sort(&mut logons, LogonRow::place, interrupt)?;
    let failures = failures::failures(&events, interrupt)?;
    let mut found = listed::facts(&events, interrupt)?;
    found.extend(failed_logons::facts(&failures, &logons, interrupt)?);
    found.extend(other_logons::facts(&failures, &logons, interrupt)?);
    found.extend(sprays::facts(&failures, interrupt)?);
    found.extend(logons::facts(&logons, interrupt)?);
    found.extend(clock::facts(&events, interrupt)?);
    found.extend(starts::facts(&events, marks, interrupt)?);
    found.extend(gaps::facts(&events, marks, interrupt)?);
    found.extend(logs::facts(marks, wrapped, interrupt)?);
    for fact in &mut found {
        fact.evidence.sort_unstable();
        fact.evidence.dedup();
    }
    Ok(found)
}
