//! The facts that the list of events makes: equal events that follow each other within a day are one.

use evtx_format::{Interrupt, Interrupted};

use crate::rows::{EventRow, Fact, higher};
use crate::runs::{DAY, is_within, runs};

pub(crate) fn facts<'a>(events: &[EventRow<'a>], interrupt: Interrupt<'_>) -> Result<Vec<Fact<'a>>, Interrupted> {
    let is_listed = |row: &&EventRow<'_>| {
        !(row.topic.is_empty() || row.is_connection() || row.is_start() || row.clock.is_some() || row.is_failure())
    };
    let runs = runs(
        events.iter().filter(is_listed),
        |row| {
            let who = (row.account, row.account_sid);
            (
                row.computer,
                row.topic,
                row.event,
                who,
                row.source,
                row.target,
                row.detail,
            )
        },
        |before, row| is_within(DAY, before.log_time, row.log_time),
        interrupt,
    )?;
    let of_run = |run: Vec<&EventRow<'a>>| Fact {
        level: run.iter().fold("info", |level, row| higher(level, row.level)),
        fact: run[0].event.unwrap_or_default().into(),
        account: run[0].account,
        account_sid: run[0].account_sid,
        source: run[0].source,
        target: run[0].target,
        detail: run[0].detail.map(Into::into),
        ..Fact::of(run[0].topic, &run)
    };
    Ok(runs.into_iter().map(of_run).collect())
}
