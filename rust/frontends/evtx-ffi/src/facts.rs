//! The functions that make facts, and the starts of Windows among them, of the rows of macros.

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;
use evtx_codes::RolesReader;
use evtx_events::RecordNames;
use evtx_facts::{Fact, Logs, Record, Said, Starting, facts, starts, told};
use evtx_format::Interrupt;

use crate::boundary::EvtxError;
use crate::names::hours_of;
use crate::places::{record, record_parameters, text_len};
use crate::rows::{Row, array, by_row, columns, list_array, members, typed};
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, Unchecked, text};

columns!(record: Record<'_> { filename = record.file, record_id, event_id, time });

columns!(fact: Fact<'_> {
    computer,
    topic,
    level,
    fact,
    account,
    account_sid,
    source,
    target,
    detail,
    first,
    last,
    events,
    evidence,
    doubts,
});

members!(Starting<'a> { computer, number, log_time, event_id, process });

columns!(start: (Option<&str>, u64) { computer = start.0, first = start.1 });

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 3] {
    let place = [text("filename"), typed::<u64>("record_id"), typed::<u64>("log")];
    [
        ScalarFunction {
            name: "evtx_fact_row",
            description: "What a record tells for facts, as a text for evtx_fact_list; NULL if it tells nothing. log is a number for its log. \
                          The names of accounts in many records are in the text of one. For evtx_facts_of.",
            example: "FROM evtx_facts_of('events')",
            parameters: place.into_iter().chain(record_parameters()).collect(),
            result: text("row"),
            make: Box::new(|| Box::new(FactRows::default())),
        },
        ScalarFunction {
            name: "evtx_fact_list",
            description: "The facts of evtx_facts: of what records tell (evtx_fact_row), the hours of logs (evtx_log_hours), and the files of \
                          logs that overwrote their oldest records. For evtx_facts_of.",
            example: "FROM evtx_facts_of('events')",
            parameters: vec![
                typed::<Vec<&str>>("rows"),
                typed::<Vec<&str>>("hours"),
                typed::<Vec<&str>>("wrapped"),
            ],
            result: typed::<Vec<Fact<'_>>>("facts"),
            make: Box::new(|| Box::new(Facts)),
        },
        ScalarFunction {
            name: "evtx_start_list",
            description: "The number of the first event of each start of Windows, from the events of starts and the programs that PID 4 \
                          started (4688), in their order. For evtx_process_tree_of.",
            example: "FROM evtx_process_tree_of('events')",
            parameters: vec![typed::<Vec<Starting<'_>>>("events")],
            result: typed::<Vec<(Option<&str>, u64)>>("starts"),
            make: by_row!(starts),
        },
    ]
}

#[derive(Default)]
struct FactRows(RolesReader);

impl Scalar for FactRows {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let Some((&[file, record_id, log], rest)) = vectors.split_first_chunk() else {
            return Err("evtx_fact_row has twelve arguments".into());
        };
        let of: &[EvtxVector; 12] = rest.try_into().map_err(|_| "evtx_fact_row has twelve arguments")?;
        let (mut rows, mut pairs, mut unchecked) = (Vec::new(), Vec::new(), Unchecked::default());
        let mut names = RecordNames::default();
        for row in 0..file.rows {
            // SAFETY: by the contract of this function.
            unsafe {
                let columns = record(of, row, &mut pairs)?;
                unchecked.add(text_len(&columns), caller.interrupt)?;
                let (file, record_id, log) = (file.text(row)?, record_id.value(row), log.value(row));
                rows.push(told(&mut self.0, &mut names, file, record_id, log, &columns));
            }
        }
        // The names of all rows go with the last one.
        if let Some(last) = rows.last_mut() {
            let lines = last.take().into_iter().chain(names.into_lines());
            *last = lines.reduce(|lines, line| lines + "\n" + &line);
        }
        Ok(array(&rows))
    }
}

/// What some records tell.
///
/// # Errors
/// If a text is none that `evtx_fact_row` returned.
fn said<'t>(texts: &[&'t str], interrupt: Interrupt<'_>) -> Result<Said<'t>, EvtxError> {
    let (mut said, mut unchecked) = (Said::default(), Unchecked::default());
    for line in texts.iter().flat_map(|text| text.split('\n')) {
        unchecked.add(line.len(), interrupt)?;
        said.add(line)?;
    }
    Ok(said)
}

struct Facts;

impl Scalar for Facts {
    /// A list for NULL, too: one without rows.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        type Lists<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>);
        let interrupt = caller.interrupt;
        let (mut found, mut lengths) = (vec![array::<Fact<'_>>(&[])], Vec::new());
        for mut row in Row::all(vectors, interrupt) {
            // SAFETY: by the contract of this function.
            let lists: Option<Lists<'_>> = unsafe { row.next()? };
            let (texts, hours, wrapped) = lists.unwrap_or_default();
            let said = said(&texts, interrupt)?;
            let logs = Logs {
                said: &said,
                hours: &hours_of(&hours, interrupt)?,
                wrapped: &wrapped,
            };
            let of_row = facts(&logs, |facts| array(facts), interrupt)?;
            lengths.push(of_row.len());
            found.push(of_row);
        }
        let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
        let all = concat(&found).map_err(|error| error.to_string())?;
        Ok(list_array(all, lengths, None))
    }
}
