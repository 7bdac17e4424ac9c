//! Finds what is left of values in the bytes of a record.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Input, MatchKind};

use super::typed::sid;
use crate::value::utf16;

/// How many bytes of UTF-16 a value needs to be searched for among any bytes. Fewer occur by chance, in sizes and offsets.
const MIN_UTF16: usize = 6;
/// As many bytes of UTF-8.
const MIN_UTF8: usize = 5;

/// Searches bytes for texts in UTF-16LE and UTF-8, at any offset, and for SIDs.
#[derive(Debug)]
pub(super) struct Remains {
    texts: AhoCorasick,
    /// By pattern, the index of the text, the encoding, and whether the text is a SID. Another digit after it makes it
    /// another one.
    of_texts: Vec<(usize, &'static str, bool)>,
    /// Finds the authority and the sub-authorities of SIDs, or of their first parts.
    sids: Option<AhoCorasick>,
    of_sids: Vec<usize>,
}

impl Remains {
    /// # Errors
    /// If the texts need too much memory.
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Result<Self, String> {
        let (mut patterns, mut of_texts) = (Vec::new(), Vec::new());
        let (mut sids, mut of_sids) = (Vec::new(), Vec::new());
        for (index, text) in texts.enumerate() {
            // The search ignores the case of ASCII letters only.
            let mut spellings = vec![text.to_owned()];
            if !text.is_ascii() {
                spellings.extend([text.to_lowercase(), text.to_uppercase()]);
            }
            for spelling in spellings {
                let (wide, narrow) = (utf16(&spelling).collect::<Vec<u8>>(), spelling.into_bytes());
                for (bytes, least, name) in [(wide, MIN_UTF16, "UTF-16"), (narrow, MIN_UTF8, "UTF-8")] {
                    if bytes.len() >= least {
                        patterns.push(bytes);
                        of_texts.push((index, name, sid(text).is_some()));
                    }
                }
            }
            // Without sub-authorities, it is six bytes, most of them zero.
            if let Some(sid) = sid(text).filter(|sid| sid.len() > 8) {
                sids.push(sid[2..].to_vec());
                of_sids.push(index);
            }
        }
        let texts = AhoCorasickBuilder::new().ascii_case_insensitive(true).build(&patterns);
        let sids = (!sids.is_empty()).then(|| {
            AhoCorasickBuilder::new()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&sids)
        });
        Ok(Remains {
            texts: texts.map_err(|error| error.to_string())?,
            of_texts,
            sids: sids.transpose().map_err(|error| error.to_string())?,
            of_sids,
        })
    }

    /// The next SID from an offset on that begins with one of the SIDs.
    pub(super) fn sid(&self, bytes: &[u8], from: usize) -> Option<Range<usize>> {
        self.sid_of(bytes, from).map(|(_, place)| place)
    }

    fn sid_of(&self, bytes: &[u8], from: usize) -> Option<(usize, Range<usize>)> {
        let finder = self.sids.as_ref()?;
        let mut start = from;
        while let Some(found) = finder.find(Input::new(bytes).range(start..)) {
            // Before it are the revision and the number of sub-authorities.
            let count = usize::from(bytes[..found.start()].last().copied().unwrap_or_default());
            let is_sid = found.start() >= from + 2 && bytes[found.start() - 2] == 1 && count <= 15;
            let place = found.start().saturating_sub(2)..found.start() + 6 + 4 * count;
            if is_sid && place.end >= found.end() && place.end <= bytes.len() {
                return Some((self.of_sids[found.pattern()], place));
            }
            start = found.start() + 1;
        }
        None
    }

    /// The first text or SID in some bytes: its index, its offset, and as what it is there.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<(usize, usize, &'static str)> {
        // Overlapping, because a match that does not count must not hide another one.
        for found in self.texts.find_overlapping_iter(bytes) {
            let (index, encoding, is_sid) = self.of_texts[found.pattern()];
            let follows = bytes.get(found.end()).is_some_and(u8::is_ascii_digit);
            if !is_sid || !follows {
                return Some((index, found.start(), encoding));
            }
        }
        let (index, place) = self.sid_of(bytes, 0)?;
        Some((index, place.start, "a SID"))
    }
}
