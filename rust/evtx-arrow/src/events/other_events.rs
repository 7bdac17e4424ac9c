//! Rejects records of other events by a few of their bytes.
//!
//! Most records of a log are not of the events that a query asks for. To reject one, the event's ID is enough. All
//! instances of a template have it in the same substitution.

use std::ops::Range;

use evtx_format::binxml::instance::LeadingInstance;

use crate::plan::PlaceId;
use crate::record::{ChunkTemplates, Part, RecordGroup};

const PLACES: usize = 64;

/// The events that count, and the substitutions in which templates of the current chunk have the event's ID.
#[derive(Debug)]
pub(super) struct OtherEvents {
    /// The IDs that count, sorted.
    ids: Box<[u32]>,
    place: PlaceId,
    /// The chunk offset of a definition and the substitution that is the ID, at [`place`].
    known: [Option<(u32, u16)>; PLACES],
}

impl OtherEvents {
    /// Rejects events without one of these IDs, which records have at a place.
    pub(super) fn new(ids: &[u32], place: PlaceId) -> Self {
        let mut ids: Box<[u32]> = ids.into();
        ids.sort_unstable();
        OtherEvents {
            ids,
            place,
            known: [None; PLACES],
        }
    }

    /// Forgets the templates at the end of their chunk.
    pub(super) fn clear(&mut self) {
        self.known = [None; PLACES];
    }

    /// Whether the record whose BinXML is in a range of the chunk is certainly of another event.
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

    /// Learns from a record in which substitution its template has the ID.
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
            Some((definition, plan.bare_substitution[self.place.0]?))
        };
        if let Some((definition, substitution)) = substitution() {
            self.known[place(definition)] = Some((definition, substitution));
        }
    }
}

/// The place of a definition in [`OtherEvents::known`].
fn place(definition: u32) -> usize {
    // A definition takes at least some hundred bytes.
    (definition >> 6) as usize % PLACES
}
