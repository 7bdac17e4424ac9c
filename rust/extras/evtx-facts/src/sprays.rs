//! Failed logons of many accounts from one source.

use evtx_format::search::lower_case;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;

use crate::failures::Failure;
use crate::rows::{Fact, joined};
use crate::runs::{DAY, is_within, runs};

pub(crate) fn facts<'a>(failures: &[Failure<'_, 'a>], interrupt: Interrupt<'_>) -> Result<Vec<Fact<'a>>, Interrupted> {
    let runs = runs(
        failures
            .iter()
            .filter(|failure| failure.counts && failure.source.is_some()),
        |failure| (failure.row.computer, failure.source.map(lower_case)),
        |before, failure| is_within(DAY, before.row.log_time, failure.row.log_time),
        interrupt,
    )?;
    let of_run = |run: Vec<&Failure<'_, 'a>>| {
        let accounts = run.iter().filter_map(|failure| failure.who.as_deref());
        let accounts = accounts.collect::<HashSet<_>>().len();
        let rows: Vec<_> = run.iter().map(|failure| failure.row).collect();
        (accounts >= 5).then(|| Fact {
            level: if accounts >= 10 { "medium" } else { "low" },
            fact: format!("{} failed logons of {accounts} accounts", run.len()).into(),
            source: run[0].source,
            detail: joined(run.iter().filter_map(|failure| failure.reason.as_deref())).map(Into::into),
            ..Fact::of("failed logons", &rows)
        })
    };
    Ok(runs.into_iter().filter_map(of_run).collect())
}
