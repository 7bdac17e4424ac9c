//! The functions that redact records, for a vector of rows at a time.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use evtx_format::Interrupt;
use evtx_scan::{ScanError, Storage};
use evtx_writer::{Redactor, Rules};

use crate::boundary::EvtxError;
use crate::scalar::{EvtxVector, Pairs, Scalar, ScalarFunction, locked};

/// Makes rules of pairs: a name or text, and what replaces it.
type Make = fn(&[(&str, Option<&str>)]) -> Result<Rules, String>;

/// The functions that redact, by number: what makes the rules, their names, descriptions and examples.
const REDACT_FUNCTIONS: &[(Make, &str, &str, &str)] = &[
    (
        Rules::fields,
        "evtx_redact",
        "A record with other values of the fields that a map names. NULL in the map makes a value NULL. For COPY ... TO \
         (FORMAT evtx).",
        "SELECT evtx_redact(record, MAP {'TargetUserName': 'user-1'}) FROM read_evtx('Security.evtx', record := true)",
    ),
    (
        Rules::values,
        "evtx_redact_values",
        "A record in which each text of a map is replaced wherever it occurs, in any case: in texts, names, SIDs and \
         binary values. For COPY ... TO (FORMAT evtx).",
        "SELECT evtx_redact_values(record, MAP {'alice': 'user-1'}) FROM read_evtx('Security.evtx', record := true)",
    ),
];

/// The functions, each of a record and a map.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    let functions = REDACT_FUNCTIONS.iter().enumerate();
    functions.map(|(number, &(_, name, description, example))| {
        let text = |name| Field::new(name, DataType::Utf8, true);
        let pair = DataType::Struct(vec![text("key"), text("value")].into());
        let map = DataType::Map(Field::new("entries", pair, false).into(), false);
        ScalarFunction {
            name,
            description,
            example,
            parameters: vec![
                Field::new("record", DataType::Binary, true),
                Field::new("replacements", map, true),
            ],
            result: Field::new("redacted", DataType::Binary, true),
            make: Box::new(move || {
                Box::new(RecordRedactor {
                    function: number,
                    last: None,
                })
            }),
        }
    })
}

/// Rules, and the pairs that they were made of.
#[derive(Debug)]
struct Known {
    function: usize,
    pairs: Vec<(String, Option<String>)>,
    rules: Arc<Rules>,
}

/// The last rules of many texts, which all threads use as long as one does.
static LAST: Mutex<Weak<Known>> = Mutex::new(Weak::new());

/// How many bytes of texts are many: rules of fewer are made sooner than an interrupt has to be answered.
const MANY: usize = 10_000;

/// How long to wait before the next look for an interrupt.
const PAUSE: Duration = Duration::from_millis(5);

/// What one thread redacts records with.
#[derive(Debug)]
struct RecordRedactor {
    function: usize,
    last: Option<(Arc<Known>, Redactor)>,
}

impl Known {
    fn is_of(&self, function: usize, pairs: &[(&str, Option<&str>)]) -> bool {
        let known = self.pairs.iter().map(|(key, new)| (key.as_str(), new.as_deref()));
        self.function == function && pairs.iter().copied().eq(known)
    }

    fn make(function: usize, pairs: Vec<(String, Option<String>)>) -> Result<Arc<Self>, String> {
        let (make, name, ..) = REDACT_FUNCTIONS.get(function).ok_or("no function has this number")?;
        let lent: Vec<_> = pairs.iter().map(|(key, new)| (key.as_str(), new.as_deref())).collect();
        let rules = Arc::new(make(&lent).map_err(|why| format!("{name}: {why}"))?);
        Ok(Arc::new(Known { function, pairs, rules }))
    }

    /// The rules of a function for some pairs. Rules of many texts take seconds to make, and nothing can stop that. So
    /// threads share them, and another thread makes them while this one looks for an interrupt.
    fn get(function: usize, pairs: &[(&str, Option<&str>)], interrupt: Interrupt<'_>) -> Result<Arc<Self>, EvtxError> {
        let owned = || {
            let pairs = pairs.iter();
            pairs
                .map(|(key, new)| ((*key).to_owned(), new.map(str::to_owned)))
                .collect()
        };
        if pairs.iter().map(|(key, _)| key.len()).sum::<usize>() < MANY {
            return Ok(Known::make(function, owned())?);
        }
        let mut last = locked(&LAST, interrupt)?;
        if let Some(known) = last.upgrade().filter(|known| known.is_of(function, pairs)) {
            return Ok(known);
        }
        let owned = owned();
        let known = made_aside(move || Known::make(function, owned), interrupt)??;
        *last = Arc::downgrade(&known);
        Ok(known)
    }
}

/// Makes something on another thread, while this one looks for an interrupt. After one, nobody receives it.
pub(crate) fn made_aside<T: Send + 'static>(
    make: impl FnOnce() -> T + Send + 'static,
    interrupt: Interrupt<'_>,
) -> Result<T, ScanError> {
    let (sender, made) = mpsc::channel();
    let maker = std::thread::Builder::new().spawn(move || sender.send(make()));
    maker.map_err(|error| ScanError::Input(error.to_string()))?;
    loop {
        match made.recv_timeout(PAUSE) {
            Ok(made) => return Ok(made),
            Err(RecvTimeoutError::Timeout) => interrupt.check()?,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ScanError::Input("the search for the keys could not be made".to_owned()));
            }
        }
    }
}

impl RecordRedactor {
    /// The redactor for some pairs.
    fn by(&mut self, pairs: &[(&str, Option<&str>)], interrupt: Interrupt<'_>) -> Result<&mut Redactor, EvtxError> {
        let last = self.last.take().filter(|(known, _)| known.is_of(self.function, pairs));
        let last = match last {
            Some(last) => last,
            None => {
                let known = Known::get(self.function, pairs, interrupt)?;
                let redactor = Redactor::new(Arc::clone(&known.rules));
                (known, redactor)
            }
        };
        Ok(&mut self.last.insert(last).1)
    }
}

impl Scalar for RecordRedactor {
    /// NULL for a NULL record or map.
    unsafe fn call(
        &mut self,
        vectors: &[EvtxVector],
        _: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<ArrayRef, EvtxError> {
        let &[records, maps, entries, keys, values] = vectors else {
            return Err("a redaction has two arguments".into());
        };
        let replacements = Pairs::new([maps, entries, keys, values]);
        let name = REDACT_FUNCTIONS.get(self.function).map_or("", |(_, name, ..)| name);
        let mut redacted = BinaryBuilder::new();
        let mut last = None;
        for row in 0..records.rows {
            interrupt.check().map_err(ScanError::from)?;
            // SAFETY: by the contract of this function.
            let (record, map) = unsafe { (records.bytes(row), maps.value::<[u64; 2]>(row)) };
            let (Some(record), Some(map)) = (record, map) else {
                redacted.append_null();
                continue;
            };
            let redactor = match &mut self.last {
                Some((_, redactor)) if last == Some(map) => redactor,
                _ => {
                    // SAFETY: as above.
                    let pairs: Vec<_> = unsafe { replacements.row(row) }.collect::<Result<_, _>>()?;
                    last = Some(map);
                    self.by(&pairs, interrupt)?
                }
            };
            let record = redactor.redact_and_seal(record, name);
            redacted.append_value(record.map_err(|why| format!("{name}: record: {why}"))?);
        }
        Ok(Arc::new(redacted.finish()))
    }
}
