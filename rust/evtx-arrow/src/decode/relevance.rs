//! Whether the rules of a scan are for the events of a log. Damage to other logs is not reported.

use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::events::PlaceReader;
use crate::scan::Scan;

/// Whether the rules of the scan are for a log, and for the current chunk of it.
pub(super) struct Relevance {
    pub(super) of_log: bool,
    pub(super) of_chunk: Option<bool>,
}

impl Relevance {
    /// Whether damage to the current chunk is reported.
    pub(super) fn of_chunk(
        &mut self,
        scan: &Scan,
        chunk: &[u8],
        interrupt: Interrupt<'_>,
    ) -> Result<bool, Interrupted> {
        if let Some(known) = self.of_chunk {
            return Ok(known);
        }
        let relevant = is_relevant(scan, chunk, interrupt)?.unwrap_or(self.of_log);
        self.of_chunk = Some(relevant);
        Ok(relevant)
    }
}

/// Whether the rules of a scan are for events of a chunk, by the channels of its records. `None` if no channel can be
/// read. All chunks are relevant for a scan without rules.
pub(super) fn is_relevant(scan: &Scan, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, Interrupted> {
    let Some(rules) = &scan.all_rules else {
        return Ok(Some(true));
    };
    let mut is_relevant = None;
    PlaceReader::new(&["channel"]).read(chunk, PromisedIds::default(), interrupt, |values| {
        if let Some(channel) = values.text(0) {
            is_relevant = Some(is_relevant == Some(true) || rules.set.is_for_channel(&channel));
        }
    })?;
    Ok(is_relevant)
}
