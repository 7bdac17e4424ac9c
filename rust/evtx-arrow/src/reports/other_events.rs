//! Records of other events, told by a few of their bytes.
//!
//! Most records of a log are not of the events that a query asks for. To pass one of them, the fields of the event are
//! not needed, only its ID, whose place among the values is that of its template.

use std::ops::Range;

use evtx_format::binxml::instance::LeadingInstance;

use crate::plan::Projection;
use crate::record::{ChunkTemplates, Part, RecordGroup};
use crate::schema::EVENT_ID;

/// How many templates are known at a time.
const PLACES: usize = 64;

/// The events that count, and where the templates of the chunk at hand have the ID of an event.
#[derive(Debug)]
pub(super) struct OtherEvents {
    /// Their IDs, in order.
    ids: Box<[u32]>,
    /// The index of the ID's place in [`Projection::places`].
    place: Option<usize>,
    /// By chunk offset of the definition, modulo [`PLACES`]: the definition and the substitution that is the ID.
    known: [Option<(u32, u16)>; PLACES],
}

impl OtherEvents {
    /// Tells records of other events than those with some IDs. `target` is what records are read for, to learn from.
    pub(super) fn new(ids: &[u32], target: &Projection) -> Self {
        let mut ids: Box<[u32]> = ids.into();
        ids.sort_unstable();
        OtherEvents {
            ids,
            place: target.places.iter().position(|place| *place == EVENT_ID),
            known: [None; PLACES],
        }
    }

    /// Forgets the templates, which are those of a chunk.
    pub(super) fn clear(&mut self) {
        self.known = [None; PLACES];
    }

    /// Whether the record with the BinXML in a range of the chunk is of another event. False if a look at some bytes does
    /// not tell.
    #[inline]
    pub(super) fn has(&self, chunk: &[u8], binxml: Range<usize>) -> bool {
        let id = || {
            let instance = LeadingInstance::read(chunk, binxml)?;
            let (definition, substitution) = self.known[place(instance.definition)]?;
            instance
                .number(substitution)
                .filter(|_| definition == instance.definition)
        };
        id().is_some_and(|id| self.ids.binary_search(&id).is_err())
    }

    /// Learns from a record that was read where its template has the ID.
    pub(super) fn learn(
        &mut self,
        chunk: &[u8],
        binxml: Range<usize>,
        records: &RecordGroup<'_>,
        templates: &ChunkTemplates,
    ) {
        let substitution = || {
            let definition = LeadingInstance::read(chunk, binxml)?.definition;
            let (at, _) = records.current().event().and_then(Part::instance)?;
            let plan = &templates.get(at).ok()?.plan;
            Some((definition, plan.bare_substitution[self.place?]?))
        };
        if let Some((definition, substitution)) = substitution() {
            self.known[place(definition)] = Some((definition, substitution));
        }
    }
}

/// The place of a definition in [`OtherEvents::known`].
fn place(definition: u32) -> usize {
    // Definitions take some hundred bytes.
    (definition >> 6) as usize % PLACES
}
