//! The clock: when somebody set it, and the time zones that Windows reports.

use evtx_codes::{Code, code_name};
use evtx_events::is_guest_tool;
use evtx_format::{Interrupt, Interrupted};
use jiff::Timestamp;

use crate::rows::{EventRow, Fact, duration};
use crate::runs::{DAY, SECOND, is_within, runs};

/// How far the clock moved, in nanoseconds.
fn moved(row: &EventRow<'_>) -> i128 {
    let [old, new] = row.clock.unwrap_or_default();
    i128::from(new) - i128::from(old)
}

/// How far the clock moved in a run of changes: as far as one of them tells, or small ones in sum. Two logs can tell of each.
fn moved_by(run: &[&EventRow<'_>]) -> i128 {
    if !is_small(run[0]) {
        return moved(run[0]);
    }
    let of = |id| run.iter().filter(|row| row.id() == id).map(|row| moved(row)).sum();
    let [one, other]: [i128; 2] = [of(1), of(4616)];
    if one.abs() > other.abs() { one } else { other }
}

/// Whether nobody set the clock: Windows woke. Tools of virtual machines also move the clock when one wakes, and such a change stays a
/// fact, because any program can have their names.
fn is_woken(row: &EventRow<'_>) -> bool {
    row.is_woken && !row.process.is_some_and(is_guest_tool)
}

/// Changes by less, in nanoseconds, are how Windows corrects the clock.
const LEAST: u128 = 60 * SECOND as u128;

fn is_small(row: &EventRow<'_>) -> bool {
    moved(row).unsigned_abs() < LEAST
}

pub(crate) fn facts<'a>(events: &[EventRow<'a>], interrupt: Interrupt<'_>) -> Result<Vec<Fact<'a>>, Interrupted> {
    let changes = runs(
        events.iter().filter(|row| row.clock.is_some() && !is_woken(row)),
        |row| (row.computer, is_small(row).then_some(row.account_sid)),
        |before, row| {
            if is_small(row) {
                return is_within(DAY, before.log_time, row.log_time);
            }
            // Several logs tell of one change.
            let is_same = (moved(row) - moved(before)).unsigned_abs() <= u128::from(2 * SECOND);
            let [new, new_before] = [row, before].map(|row| row.clock.unwrap_or_default()[1]);
            is_same && new.abs_diff(new_before) <= 5 * SECOND && is_within(5 * SECOND, before.log_time, row.log_time)
        },
        interrupt,
    )?;
    let zones = runs(
        events.iter().filter(|row| row.zone.is_some()),
        |row| row.computer,
        |before, row| before.zone == row.zone,
        interrupt,
    )?;
    let zones = zones.into_iter().filter_map(|run| Some((run[0].zone?, run)));
    let zones = zones.map(|(zone, run)| Fact {
        fact: "Time zone reported".into(),
        detail: Some(told(zone).into()),
        ..Fact::of("clock", &run)
    });
    Ok(changes.into_iter().map(change).chain(zones).collect())
}

fn change<'a>(run: Vec<&EventRow<'a>>) -> Fact<'a> {
    let (moved, is_sum) = (moved_by(&run), is_small(run[0]));
    let is_small = moved.unsigned_abs() < LEAST;
    let named = || run.iter().filter(|row| row.account.is_some());
    // The event of the Security log knows who set the clock. The other (1) names the service that did.
    let account = named().find(|row| row.id() != 1).or_else(|| named().next());
    let sids = run.iter().filter_map(|row| row.account_sid);
    let way = if moved < 0 { "back" } else { "forward" };
    let shown = |time| {
        Timestamp::from_nanosecond(i128::from(time))
            .unwrap_or_default()
            .strftime("%Y-%m-%d %H:%M:%S%.f")
    };
    let detail = run[0]
        .clock
        .map(|[old, new]| format!("from {} to {}", shown(old), shown(new)));
    Fact {
        level: match sids.clone().min() {
            _ if is_small => "info",
            None | Some("S-1-5-18" | "S-1-5-19") => "low",
            Some(_) => "medium",
        },
        fact: match moved.unsigned_abs() as f64 / 1e9 {
            _ if is_small => "Clock corrected by less than a minute".into(),
            seconds if is_sum => format!("Clock moved {way} by {} in small steps", duration(seconds)).into(),
            seconds => format!("Clock set {way} by {}", duration(seconds)).into(),
        },
        account: account.and_then(|row| row.account),
        account_sid: sids.clone().next(),
        target: run.iter().filter_map(|row| row.process).min(),
        detail: detail.filter(|_| !is_sum).map(Into::into),
        ..Fact::of("clock", &run)
    }
}

/// A time zone as Windows reports it, a number and a name, with its name elsewhere.
fn told(zone: &str) -> String {
    let name = zone.split_once(' ').map_or("", |(_, name)| name);
    match code_name("time_zone", Code::Text(name)) {
        Some(known) => format!("{zone} ({known})"),
        _ => zone.to_owned(),
    }
}
