//! Events that rows have as XML. They are read as those of `read_evtx_xml`.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use evtx_archive::log_of_texts;
use evtx_arrow::{DecodeError, Decoder, Options, Scan};
use evtx_format::Interrupt;
use evtx_format::container::layout::Layout;

use crate::rows::{COLUMNS, Cell, Row, array, column, event_schema};
use crate::sources::ALWAYS;

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

/// The events that some rows have as XML.
pub(crate) struct XmlRows {
    events: RecordBatch,
    /// By row: the index of its event.
    of_row: Vec<Option<usize>>,
}

impl XmlRows {
    /// Reads the XML of rows. Also returns why an event cannot be read, or not as a whole, by the index of its row.
    ///
    /// # Errors
    /// Those of [`Decoder`].
    pub(crate) fn read(
        rows: &[Row],
        xml: &[(usize, Xml)],
        interrupt: Interrupt<'_>,
    ) -> Result<(Self, Vec<(usize, String)>), DecodeError> {
        let texts: Vec<String> = xml.iter().map(|(_, xml)| xml.text()).collect();
        let (log, reasons) = log_of_texts(texts.iter().map(String::as_str));
        let all: Vec<usize> = (0..COLUMNS.len()).collect();
        let mut decoder = Decoder::new(Arc::new(Scan::new(Options::default(), &all)));
        let layout = Layout::new(log.len() as u64, 0);
        let mut batches = Vec::new();
        for block in (0..).map_while(|index| layout.block(index)) {
            let mut rest = log.get(block.offset as usize..).unwrap_or_default();
            decoder.start(&"".into(), None, block);
            while !decoder.is_done() {
                rest = &rest[decoder.decode(rest, interrupt)?..];
                batches.extend(decoder.flush()?);
            }
        }
        let events = concat_batches(&event_schema(), &batches)?;
        // The ID of a record is the number of its text.
        let mut of_row = vec![None; rows.len()];
        for (event, id) in events
            .column(column("record_id"))
            .as_primitive::<UInt64Type>()
            .values()
            .iter()
            .enumerate()
        {
            if let Some((row, _)) = usize::try_from(*id).ok().and_then(|id| xml.get(id.checked_sub(1)?)) {
                of_row[*row] = Some(event);
            }
        }
        let read = XmlRows { events, of_row };
        let lacks = |row: usize, name: &str| {
            let event = read.of_row[row];
            rows[row][column(name)] == Cell::Null
                && event.is_none_or(|event| read.events.column(column(name)).is_null(event))
        };
        let reasons = xml.iter().zip(reasons).filter_map(|((row, xml), why)| {
            let why = why.map(|why| format!("the XML cannot be read: {why}"));
            let lacking = ALWAYS
                .into_iter()
                .find(|name| matches!(xml, Xml::Event(_)) && lacks(*row, name));
            Some((*row, why.or_else(|| Some(format!("its XML has no {}", lacking?)))?))
        });
        let reasons = reasons.collect();
        Ok((read, reasons))
    }

    /// A column of the rows, with the values of the events where the rows have none.
    ///
    /// # Errors
    /// The error of Arrow if it refuses an array.
    pub(crate) fn array(&self, rows: &[Row], index: usize) -> Result<ArrayRef, ArrowError> {
        let own = array(rows, index)?;
        let from = match &**COLUMNS[index].name() {
            "error" | "filename" => return Ok(own),
            // That of the log is the number of the text.
            "record_id" => column("event_record_id"),
            _ => index,
        };
        let place = |row: usize| match self.of_row[row] {
            Some(event) if own.is_null(row) => (1, event),
            _ => (0, row),
        };
        let places: Vec<_> = (0..rows.len()).map(place).collect();
        interleave(&[&own, self.events.column(from)], &places)
    }
}
