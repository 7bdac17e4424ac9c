//! Finds SIDs in bytes.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Input, MatchKind};

use super::typed::sid;

/// Finds SIDs that begin with a key.
#[derive(Debug)]
pub(super) struct Sids {
    /// The authority and the sub-authorities of each key.
    finder: AhoCorasick,
}

impl Sids {
    /// `None` if no key is a SID.
    ///
    /// # Errors
    /// If the keys need too much memory.
    pub(super) fn new<'k>(keys: impl Iterator<Item = &'k str>) -> Result<Option<Self>, String> {
        // Without sub-authorities, it is six bytes, most of them zero.
        let sids = keys.filter_map(sid).filter(|sid| sid.len() > 8);
        let patterns: Vec<_> = sids.map(|sid| sid[2..].to_vec()).collect();
        if patterns.is_empty() {
            return Ok(None);
        }
        let finder = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&patterns)
            .map_err(|error| error.to_string())?;
        Ok(Some(Sids { finder }))
    }

    /// The next SID from an offset on that begins with a key.
    pub(super) fn find(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        let mut start = from;
        while let Some(found) = self.finder.find(Input::new(bytes).range(start..)) {
            // Before it are the revision and the number of sub-authorities.
            let count = usize::from(bytes[..found.start()].last().copied().unwrap_or_default());
            let is_sid = found.start() >= from + 2 && bytes[found.start() - 2] == 1 && count <= 15;
            let place = found.start().saturating_sub(2)..found.start() + 6 + 4 * count;
            if is_sid && place.end >= found.end() && place.end <= bytes.len() {
                return Some(place);
            }
            start = found.start() + 1;
        }
        None
    }
}
