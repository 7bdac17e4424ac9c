//! The functions that match rows of a table against Sigma rules. The macro `evtx_sigma_of` calls them.
//!
//! A statement with correlations first collects their hits, as the scan of logs does, and then finds the bursts in them.

use std::sync::{Arc, Mutex, Weak};

use arrow_array::{ArrayRef, BooleanArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use evtx_archive::ArchiveStorage;
use evtx_detect::{EventRow, EventValue, Findings, Hit, HitRule, RowMatcher, Rules, event_fields, findings_field};
use evtx_query::{Query, rules_of_rows};
use evtx_scan::ScanError;

use crate::arguments::EvtxArguments;
use crate::boundary::EvtxError;
use crate::paths::EvtxPaths;
use crate::rows::{Row, array, members, typed};
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, locked};

members!(Hit<'a> { time, filename, record_id, rules });
members!(HitRule<'a> { rule, fields });

/// The function of SQL whose macro calls these, for errors.
const CALLER: &str = "evtx_sigma_of";

/// What the archives of rules may take of memory: a quarter of this.
const MEMORY: &str = "1 GiB";

/// What a function finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Whether there are correlations.
    Correlations,
    /// The rules that a row matches.
    Matches,
    /// The hits of a row, for correlations.
    Hits,
    /// The bursts in hits.
    Bursts,
}

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    let arguments = Field::new("arguments", DataType::Utf8, true);
    let event = Field::new("event", DataType::Struct(event_fields()), true);
    [
        (
            Wanted::Correlations,
            "evtx_sigma_correlates",
            "Whether the Sigma rules that the arguments of evtx_sigma name, as JSON, have a correlation. For \
             evtx_sigma_of.",
            vec![arguments.clone()],
            Field::new("correlates", DataType::Boolean, true),
        ),
        (
            Wanted::Matches,
            "evtx_sigma_matches",
            "The Sigma rules that an event matches, as evtx_sigma shows them. For evtx_sigma_of.",
            vec![arguments.clone(), event.clone()],
            findings_field(),
        ),
        (
            Wanted::Hits,
            "evtx_sigma_hits",
            "What correlations of Sigma rules keep of an event, in a list that is empty if they do not count it. For \
             evtx_sigma_of.",
            vec![arguments.clone(), event.clone()],
            typed::<Vec<Hit<'_>>>("found"),
        ),
        (
            Wanted::Bursts,
            "evtx_sigma_bursts",
            "What correlations of Sigma rules find in the hits of all events. For evtx_sigma_of.",
            vec![arguments.clone(), typed::<Vec<Hit<'_>>>("found")],
            findings_field(),
        ),
    ]
    .into_iter()
    .map(|(wanted, name, description, parameters, result)| ScalarFunction {
        name,
        description,
        example: "FROM evtx_sigma_of('events', 'rules')",
        parameters,
        result,
        make: Box::new(move || Box::new(RowRules { wanted, last: None })),
    })
}

/// The rules that arguments name.
#[derive(Debug)]
struct Known {
    arguments: String,
    /// All.
    rules: Arc<Rules>,
    /// The correlations with the rules that they need.
    correlations: Arc<Rules>,
}

/// The rules of the last statement, which all its threads share.
#[derive(Debug)]
struct Last {
    used: Weak<Known>,
    /// From the planning of a statement until a thread of it takes them. Those with correlations are kept for both steps.
    planned: Option<Arc<Known>>,
}

static LAST: Mutex<Last> = Mutex::new(Last {
    used: Weak::new(),
    planned: None,
});

impl Known {
    fn load(arguments: &str, caller: Caller<'_>) -> Result<Self, EvtxError> {
        let values = serde_json::from_str(arguments);
        let values = values.map_err(|_| format!("{CALLER}: the arguments are no JSON object"))?;
        let call = EvtxArguments::of_json(Query::Matches, CALLER, values)?;
        let archives = EvtxPaths::new(&call, MEMORY, "", "").archives;
        let storage = ArchiveStorage::new(caller.storage, &archives);
        let ([rules, correlations], _) = rules_of_rows(&call.arguments, CALLER, &storage, caller.interrupt)?;
        Ok(Known {
            arguments: arguments.to_owned(),
            rules,
            correlations,
        })
    }

    fn get(arguments: &str, is_planning: bool, caller: Caller<'_>) -> Result<Arc<Self>, EvtxError> {
        let mut last = locked(&LAST, caller.interrupt)?;
        if !is_planning {
            let is_it = |known: &Arc<Known>| known.arguments == arguments;
            let planned = last.planned.take_if(|known| is_it(known));
            if let Some(known) = planned.or_else(|| last.used.upgrade()).filter(is_it) {
                last.used = Arc::downgrade(&known);
                if !known.correlations.is_empty() {
                    last.planned = Some(Arc::clone(&known));
                }
                return Ok(known);
            }
        }
        let known = Arc::new(Known::load(arguments, caller)?);
        last.used = Arc::downgrade(&known);
        if is_planning {
            last.planned = Some(Arc::clone(&known));
        }
        Ok(known)
    }
}

/// What a thread keeps.
struct RowRules {
    wanted: Wanted,
    last: Option<(Arc<Known>, RowMatcher)>,
}

impl RowRules {
    /// The rules of the first row. All rows have the same arguments, except in a call by hand.
    fn by(&mut self, arguments: &str, caller: Caller<'_>) -> Result<&mut (Arc<Known>, RowMatcher), EvtxError> {
        let last = self.last.take().filter(|(known, _)| known.arguments == arguments);
        let last = match last {
            Some(last) => last,
            None => {
                let is_planning = self.wanted == Wanted::Correlations;
                let known = Known::get(arguments, is_planning, caller)?;
                let rules = if self.wanted == Wanted::Matches {
                    &known.rules
                } else {
                    &known.correlations
                };
                let matcher = RowMatcher::new(Arc::clone(rules));
                (known, matcher)
            }
        };
        Ok(self.last.insert(last))
    }
}

impl Scalar for RowRules {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let (arguments, vectors) = vectors.split_first().ok_or("the arguments are missing")?;
        let rows = arguments.rows;
        // SAFETY: by the contract of this function.
        let text = |row| unsafe { arguments.text(row) };
        let first = if rows == 0 { None } else { text(0)? };
        let first = first.ok_or_else(|| EvtxError::from(format!("{CALLER} needs rules")))?;
        let wanted = self.wanted;
        let (known, matcher) = self.by(first, caller)?;
        for row in 1..rows {
            if text(row)? != Some(first) {
                return Err(format!("{CALLER} needs the same rules for all rows").into());
            }
        }
        // SAFETY: likewise.
        unsafe {
            match wanted {
                Wanted::Correlations => Ok(Arc::new(BooleanArray::from(vec![!known.correlations.is_empty(); rows]))),
                Wanted::Matches => {
                    let mut findings = Findings::new(&known.rules);
                    of_rows(vectors, rows, &mut |row| {
                        Ok(matcher
                            .find(row, &mut findings, caller.interrupt)
                            .map_err(ScanError::from)?)
                    })?;
                    finish(findings.finish())
                }
                Wanted::Hits => {
                    let mut hits = Vec::with_capacity(rows);
                    of_rows(vectors, rows, &mut |row| {
                        hits.push(Vec::from_iter(matcher.hit(row, caller.interrupt)?));
                        Ok(())
                    })?;
                    Ok(array(&hits))
                }
                Wanted::Bursts => {
                    let mut findings = Findings::new(&known.correlations);
                    for mut row in Row::all(vectors, caller.interrupt) {
                        let hits: Vec<Hit<'_>> = row.next()?.unwrap_or_default();
                        findings.push_bursts(&hits, caller.interrupt).map_err(ScanError::from)?;
                        findings.end_row();
                    }
                    finish(findings.finish())
                }
            }
        }
    }
}

fn finish(array: Result<ArrayRef, ArrowError>) -> Result<ArrayRef, EvtxError> {
    array.map_err(|error| error.to_string().into())
}

/// Gives `each` the rows of the vectors of events.
///
/// # Safety
/// The vectors are those of a struct of [`event_fields`].
unsafe fn of_rows(
    vectors: &[EvtxVector],
    rows: usize,
    each: &mut dyn FnMut(&EventRow<'_>) -> Result<(), EvtxError>,
) -> Result<(), EvtxError> {
    let fields = event_fields();
    let columns = fields.len() - 1;
    let (values, pairs) = vectors[1..].split_at(columns);
    let pairs = Pairs::new(pairs.try_into().map_err(|_| "the columns are not those of events")?);
    let (mut row_values, mut event_data) = (Vec::with_capacity(columns), Vec::new());
    for row in 0..rows {
        row_values.clear();
        event_data.clear();
        for (vector, field) in values.iter().zip(&fields) {
            // SAFETY: by the contract of this function.
            row_values.push(unsafe { value(vector, field, row)? });
        }
        // SAFETY: likewise.
        for pair in unsafe { pairs.row(row) } {
            event_data.push(pair?);
        }
        each(&EventRow {
            values: &row_values,
            event_data: &event_data,
        })?;
    }
    Ok(())
}

/// # Safety
/// The vector is one of a field of [`event_fields`], other than the last.
unsafe fn value<'a>(vector: &EvtxVector, field: &FieldRef, row: usize) -> Result<Option<EventValue<'a>>, EvtxError> {
    // SAFETY: by the contract of this function.
    unsafe {
        let number = |number: Option<u64>| number.map(EventValue::Number);
        Ok(match field.data_type() {
            DataType::UInt8 => number(vector.value::<u8>(row).map(u64::from)),
            DataType::UInt16 => number(vector.value::<u16>(row).map(u64::from)),
            DataType::UInt32 => number(vector.value::<u32>(row).map(u64::from)),
            DataType::UInt64 => number(vector.value(row)),
            DataType::Timestamp(..) => vector.value(row).map(EventValue::Time),
            // DuckDB flips the first bit, so that UUIDs sort as signed numbers.
            DataType::FixedSizeBinary(_) => {
                let uuid = vector.value::<u128>(row);
                uuid.map(|uuid| EventValue::Uuid((uuid ^ 1 << 127).to_be_bytes()))
            }
            _ => vector.text(row)?.map(EventValue::Text),
        })
    }
}
