//! Which of several messages is that of an event.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::block::{Block, Record, column};
use crate::row::Guid;
use crate::template::Template;

/// What identifies the message of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventKey<'k> {
    /// The name of the provider. ASCII case does not matter.
    pub provider: &'k str,
    /// The GUID of the provider, if the event has it.
    pub guid: Option<Guid>,
    /// The event ID.
    pub event_id: u16,
    /// The version of the event.
    pub version: u8,
    /// The qualifiers, which classic events have.
    pub qualifiers: Option<u16>,
    /// How many insertions the event has.
    pub insertions: usize,
}

/// The messages of one event that are compared, at most. *(choice)*
const MAX_RECORDS: usize = 4096;

/// The messages of one event whose texts are looked at, at most. *(choice)*
const MAX_CANDIDATES: usize = 64;

/// How many texts without a version one event can have. Databases that keep providers apart have at most three; more than
/// six are those of several providers. *(choice)*
const MAX_TEXTS: usize = 6;

/// The characters of a text that are compared with other texts, at most. *(choice)*
const MAX_COMPARED: usize = 1000;

/// The best message of a block for an event.
pub(super) fn best(block: &Block, key: &EventKey<'_>) -> Option<Record> {
    let records = block
        .messages_of(key.event_id)
        .take(MAX_RECORDS)
        .map(|index| block.message(index));
    let mut ranked: Vec<_> = records
        .filter_map(|record| Some((rank(&record, key)?, record)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let fitting = ranked.into_iter().take(MAX_CANDIDATES).filter_map(|(rank, record)| {
        let text = block.string(record[column::TEXT]);
        let asked = Template::parse(text.unwrap_or_default()).insertions();
        let is_of_version = version_of(&record).is_none_or(|version| version == key.version);
        if asked > key.insertions && !is_of_version {
            return None;
        }
        // Without fields, the highest insertion says how many there are.
        let declared = block.field_count(record[column::FIELDS]).unwrap_or(asked);
        let spare = key.insertions.checked_sub(declared).unwrap_or(usize::MAX);
        let [qualifiers, version, distance] = rank;
        let language = language_rank(block.string(record[column::LANGUAGE]));
        let length = Reverse(text.map_or(0, str::len));
        let is_other = version == 2;
        Some((
            (qualifiers, is_other, spare, version, language, distance, length),
            record,
        ))
    });
    let fitting: Vec<_> = fitting.collect();
    let (_, best) = fitting.iter().min_by_key(|(rank, _)| *rank)?;
    let rivals = fitting.iter().map(|(_, record)| record);
    let is_clear = version_of(best).is_some() || !are_of_several_providers(block, best, rivals);
    is_clear.then_some(*best)
}

/// Whether the texts without a version, in the language of the best one, are too many to be those of one event.
fn are_of_several_providers<'r>(block: &Block, best: &Record, rivals: impl Iterator<Item = &'r Record>) -> bool {
    let alike = rivals
        .filter(|record| version_of(record).is_none() && record[column::LANGUAGE] == best[column::LANGUAGE])
        .filter_map(|record| block.string(record[column::TEXT]));
    alike.map(without_whitespace).collect::<BTreeSet<_>>().len() > MAX_TEXTS
}

/// The start of a text, without whitespace and its escapes, which some databases have lost.
fn without_whitespace(text: &str) -> String {
    let start = text.chars().take(MAX_COMPARED).filter(|char| !char.is_whitespace());
    let escapes = ["%n", "%t", "%r", "%0", r"\n", r"\t", r"\r"];
    escapes
        .iter()
        .fold(start.collect(), |text: String, escape| text.replace(escape, ""))
}

/// How well a message fits an event: the lower, the better; `None` if it cannot be that of the event.
fn rank(record: &Record, key: &EventKey<'_>) -> Option<[u8; 3]> {
    let qualifiers = match (key.qualifiers, qualifiers_of(record)) {
        (Some(wanted), Some(found)) if wanted == found => 0,
        (Some(_), Some(_)) => return None,
        (Some(_), None) => 1,
        (None, None) => 0,
        (None, Some(0)) => 1,
        (None, Some(_)) => 2,
    };
    let (version, distance) = match version_of(record) {
        Some(version) if version == key.version => (0, 0),
        None => (1, 0),
        Some(version) => (2, version.abs_diff(key.version)),
    };
    Some([qualifiers, version, distance])
}

fn language_rank(found: Option<&str>) -> u8 {
    match found {
        Some(found) if found.eq_ignore_ascii_case("en-US") => 0,
        Some(found) if found.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("en")) => 1,
        None => 2,
        Some(_) => 3,
    }
}

pub(super) fn version_of(record: &Record) -> Option<u8> {
    u8::try_from((record[column::EVENT] >> 16).checked_sub(1)?).ok()
}

pub(super) fn qualifiers_of(record: &Record) -> Option<u16> {
    let qualifiers = record[column::QUALIFIERS];
    (qualifiers & column::HAS_QUALIFIERS != 0).then_some(qualifiers as u16)
}

pub(super) fn parameter(block: &Block, id: u32) -> Option<&str> {
    let records = block.parameters_of(id).map(|index| block.parameter(index));
    let [_, _, text] = records.min_by_key(|[_, found, _]| language_rank(block.string(*found)))?;
    block.string(text)
}
