//! Events that a row has as XML. They are read as those of `read_evtx_xml`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use evtx_archive::log_of_texts;
use evtx_arrow::{DecodeError, Decoder, Options, Scan};
use evtx_format::Interrupt;
use evtx_format::container::layout::Layout;

use crate::rows::{Cell, Row};
use crate::sources::{ALWAYS, COLUMNS, column};

/// The namespace of events.
const EVENTS: &str = "http://schemas.microsoft.com/win/2004/08/events/event";

/// What a row has as XML.
#[derive(Debug)]
pub(crate) enum Xml {
    /// The event.
    Event(String),
    /// The fields of the event.
    Fields(String),
}

impl Xml {
    fn text(&self) -> String {
        match self {
            Xml::Event(text) => text.clone(),
            Xml::Fields(text) => {
                // Around them are elements of an agent.
                let element = ["EventData", "UserData"].into_iter().find_map(|name| {
                    let text = &text[text.find(&format!("<{name}"))?..];
                    let end = format!("</{name}>");
                    let tag = text.find('>').map_or(text.len(), |at| at + 1);
                    match text.rfind(&end) {
                        Some(at) => text.get(..at + end.len()),
                        None if text[..tag].ends_with("/>") => Some(&text[..tag]),
                        // It is cut.
                        None => Some(text),
                    }
                });
                let element = element.unwrap_or("<EventData/>");
                format!("<Event xmlns='{EVENTS}'><System/>{element}</Event>")
            }
        }
    }
}

/// Fills rows with what they have as XML. Returns why an event cannot be read, or not as a whole, with the index of its row.
///
/// # Errors
/// Those of [`Decoder`].
pub(crate) fn fill(
    rows: &mut [Row],
    xml: &[(usize, Xml)],
    interrupt: Interrupt<'_>,
) -> Result<Vec<(usize, String)>, DecodeError> {
    if xml.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<String> = xml.iter().map(|(_, xml)| xml.text()).collect();
    let (log, reasons) = log_of_texts(texts.iter().map(String::as_str));
    let id = column("record_id").unwrap_or_default();
    let all: Vec<usize> = (0..COLUMNS.len()).collect();
    let mut decoder = Decoder::new(Arc::new(Scan::new(Options::default(), &all)));
    let layout = Layout::new(log.len() as u64, 0);
    let blocks = (0..).map_while(|index| layout.block(index));
    for block in blocks {
        let mut rest = log.get(block.offset as usize..).unwrap_or_default();
        decoder.start(&"".into(), None, block);
        while !decoder.is_done() {
            rest = &rest[decoder.decode(rest, interrupt)?..];
            let Some(batch) = decoder.flush()? else { continue };
            for row in 0..batch.num_rows() {
                let number = if let Cell::Number(id) = cell(&batch, id, row) {
                    id
                } else {
                    0
                };
                let number = usize::try_from(number).unwrap_or_default();
                if let Some((at, xml)) = number.checked_sub(1).and_then(|number| xml.get(number)) {
                    xml.fill(&mut rows[*at], &batch, row);
                }
            }
        }
    }
    let lacks = |row: &Row, xml: &Xml| {
        let mut lacks = ALWAYS.iter().filter(|&&column| row[column] == Cell::Null);
        let name = lacks.next().filter(|_| matches!(xml, Xml::Event(_)));
        name.map(|&column| format!("its XML has no {}", COLUMNS[column].name()))
    };
    let reasons = xml.iter().zip(reasons).filter_map(|((at, xml), why)| {
        let why = why.map(|why| format!("the XML cannot be read: {why}"));
        Some((*at, why.or_else(|| lacks(&rows[*at], xml))?))
    });
    Ok(reasons.collect())
}

impl Xml {
    /// Fills the columns that a row lacks.
    fn fill(&self, row: &mut Row, batch: &RecordBatch, from: usize) {
        let is_of = |name: &str| match self {
            // The ID of the record is that of the event.
            Xml::Event(_) => !["record_id", "filename", "error"].contains(&name),
            Xml::Fields(_) => ["event_data", "user_data"].contains(&name),
        };
        for (at, _) in COLUMNS.iter().enumerate().filter(|(_, column)| is_of(column.name())) {
            if row[at] == Cell::Null {
                row[at] = cell(batch, at, from);
            }
        }
        if let (Xml::Event(_), Some(id), Some(number)) = (self, column("record_id"), column("event_record_id")) {
            row[id] = row[number].clone();
        }
    }
}

/// A value of a batch.
fn cell(batch: &RecordBatch, column: usize, row: usize) -> Cell {
    let array = batch.column(column);
    if array.is_null(row) {
        return Cell::Null;
    }
    match array.data_type() {
        DataType::UInt8 => Cell::Number(array.as_primitive::<UInt8Type>().value(row).into()),
        DataType::UInt16 => Cell::Number(array.as_primitive::<UInt16Type>().value(row).into()),
        DataType::UInt32 => Cell::Number(array.as_primitive::<UInt32Type>().value(row).into()),
        DataType::UInt64 => Cell::Number(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Timestamp(..) => Cell::Time(array.as_primitive::<TimestampNanosecondType>().value(row)),
        DataType::FixedSizeBinary(_) => {
            let bytes = array.as_fixed_size_binary().value(row);
            bytes.try_into().map_or(Cell::Null, Cell::Guid)
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let [names, values] = [0, 1].map(|at| entries.column(at));
            let fields = (0..entries.len()).map(|at| (text(names, at), text(values, at)));
            Cell::Fields(fields.collect())
        }
        _ => text(array, row).map_or(Cell::Null, Cell::Text),
    }
}

fn text(array: &dyn Array, row: usize) -> Option<String> {
    if array.is_null(row) {
        return None;
    }
    let found = match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = dictionary.normalized_keys()[row];
            dictionary.values().as_string::<i32>().value(key)
        }
        DataType::Utf8View => array.as_string_view().value(row),
        _ => array.as_string::<i32>().value(row),
    };
    Some(found.to_owned())
}
