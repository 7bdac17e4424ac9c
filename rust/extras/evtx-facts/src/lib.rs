//! Facts: what happened on a machine, in a sentence each, with the records that prove it.
//!
//! Most facts are rows of the list of events (`listed`). The others are made of several events, each kind in a module: a
//! run of failed logons, a gap, a start of Windows. All times are nanoseconds since 1970.
#![forbid(unsafe_code)]

mod runs;
mod rows;
mod told;
mod case;
mod addresses;
mod names;
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

use evtx_events::{AccountNames, ToldName, account_names};
use evtx_format::{Interrupt, Interrupted};

use case::{Rows, Texts, sessions};
use rows::LogonRow;
use runs::sort;

pub use case::Logs;
pub use rows::{Fact, Record};
pub use starts::{Starting, starts};
pub use told::{Said, told};

/// What `read` makes of the facts of some machines, which are made from what their logs say.
///
/// # Errors
/// [`Interrupted`].
pub fn facts<T>(
    logs: &Logs<'_>,
    read: impl FnOnce(&[Fact<'_>]) -> T,
    interrupt: Interrupt<'_>,
) -> Result<T, Interrupted> {
    let uses: Vec<_> = logs.said.names.iter().map(ToldName::name_use).collect();
    let names = AccountNames::new(&account_names(&uses, interrupt)?, interrupt)?;
    let texts = Texts::of(logs, &names, interrupt)?;
    let mut rows = Rows::of(logs, &texts, interrupt)?;
    let mut events = std::mem::take(&mut rows.events);
    let sessions = sessions(&rows.steps, interrupt)?;
    let mut logons: Vec<_> = sessions
        .iter()
        .flat_map(|(machine, sessions)| rows.logons(machine, sessions))
        .collect();
    // A record in several copies of a log counts once.
    sort(&mut events, |row| (row.place(), row.record), interrupt)?;
    events.dedup_by_key(|row| row.place());
    sort(&mut logons, LogonRow::place, interrupt)?;
    names::settle(&mut events, &mut logons, &rows.marks, interrupt)?;
    logons::connect(&mut logons, &events, interrupt)?;
    let failures = failures::failures(&events, interrupt)?;
    let mut all = listed::facts(&events, interrupt)?;
    all.extend(failed_logons::facts(&failures, &logons, interrupt)?);
    all.extend(other_logons::facts(&failures, &logons, interrupt)?);
    all.extend(sprays::facts(&failures, interrupt)?);
    all.extend(logons::facts(&logons, &failures, interrupt)?);
    all.extend(clock::facts(&events, interrupt)?);
    all.extend(starts::facts(&events, &rows.marks, interrupt)?);
    all.extend(gaps::facts(&events, &rows.marks, interrupt)?);
    all.extend(logs::facts(&rows.marks, logs.wrapped, interrupt)?);
    for fact in &mut all {
        fact.evidence.sort_unstable();
        fact.evidence.dedup();
    }
    Ok(read(&all))
}
