//! Whether the rules of a scan are for the events of a log. Damage to other logs is not reported.

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};

use crate::read::RecordReader;
use crate::record::{ChunkTemplates, RecordGroup};
use crate::scan::Scan;
use crate::schema::{Options, schema};

/// Whether the rules of the scan are for a log, and for the current chunk of it.
pub(super) struct Relevance {
    pub(super) of_log: bool,
    /// Once it is known.
    pub(super) of_chunk: Option<bool>,
}

impl Default for Relevance {
    fn default() -> Self {
        Relevance {
            of_log: true,
            of_chunk: None,
        }
    }
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
    let options = Options::default();
    let scan = Scan::new(options, &[schema(&options).index_of("channel").unwrap_or_default()]);
    let (names, mut arena) = (Bump::new(), Bump::new());
    let names = Names::new(chunk, &names);
    let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
    let mut templates = ChunkTemplates::default();
    let mut is_known = false;
    while let Some(found) = walk.next(chunk) {
        interrupt.check()?;
        let Ok(found) = found else { continue };
        if templates.are_many() {
            templates.clear();
        }
        arena.reset();
        let reader = RecordReader::new(&scan, chunk, &names, &arena, interrupt);
        let mut group = RecordGroup::new(&scan.target, 1, &arena);
        reader.read_event(&mut templates, &mut group, found.record.binxml());
        if !group.current().has_system(&templates) {
            reader.read_children(&mut templates, &mut group);
        }
        if let Some(channel) = group.current().field(&templates, 0).and_then(|found| found.text()) {
            is_known = true;
            if rules.set.is_for_channel(&channel) {
                return Ok(Some(true));
            }
        }
    }
    Ok(is_known.then_some(false))
}
