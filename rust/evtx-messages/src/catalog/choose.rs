//! Which of several messages is that of an event.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use evtx_format::Interrupt;
use hashbrown::HashMap;

use super::block::{Block, MAX_ROW, Record, column};
use super::text::{Contest, Fingerprints, visible};
use crate::error::Result;
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
    /// The names of the first insertions; empty where a name is not known.
    pub names: &'k [&'k str],
}

/// The messages of one event, or the parameters with one ID, that are compared, at most. Of more, none is used. *(choice)*
const MAX_RECORDS: usize = 4096;

/// The messages of one event whose texts are looked at, at most. *(choice)*
const MAX_CANDIDATES: usize = 64;

/// How many texts without a version one event can have. Databases that keep providers apart have at most three; more than
/// six are those of several providers. *(choice)*
const MAX_TEXTS: usize = 6;

/// The characters of a text that are compared with other texts without a version, at most. *(choice)*
const MAX_COMPARED: usize = 1000;

/// The highest number of an insertion in a text.
const MAX_INSERTION: usize = 99;

/// The insertions of an event that are found by their names, at most. *(choice)*
const MAX_NAMES: usize = 1024;

/// Where an event has the insertions of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// In the order of the text.
    Same,
    /// By insertion of the text: the index of the event's insertion of that name.
    ByName(Box<[Option<usize>]>),
}

/// A message that an event can have.
struct Candidate {
    /// The lower, the better.
    rank: (u8, bool, bool, usize, u8, u8, u8),
    /// Whether there is a text, and its length.
    length: Reverse<usize>,
    record: Record,
    order: Order,
}

/// The best message of a block for an event.
pub(super) fn best(block: &Block, key: &EventKey<'_>) -> Option<(Record, Order)> {
    let indexes = block.messages_of(key.event_id);
    if indexes.len() > MAX_RECORDS {
        return None;
    }
    let mut ranked: Vec<_> = indexes
        .map(|index| block.message(index))
        .filter_map(|record| Some((rank(block, &record, key)?, record)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    let fitting: Vec<_> = ranked
        .iter()
        .take(MAX_CANDIDATES)
        .filter_map(|(rank, record)| candidate(block, key, *rank, record))
        .collect();
    let best = fitting
        .iter()
        .min_by_key(|candidate| (candidate.rank, candidate.length))?;
    let of_other_providers = || are_of_several_providers(block, &best.record, fitting.iter().map(|of| &of.record));
    if version_of(&best.record).is_none() && of_other_providers() {
        return None;
    }
    let (mut contest, fingerprints) = (Contest::default(), Fingerprints::default());
    // What a manifest says about its own text, such as how many values it has, does not make it better than that of another.
    // Texts without a version are of a database. Those of several versions of Windows differ in the values that they have.
    let names = |of: &Candidate| block.field_names(of.record[column::FIELDS]).take(MAX_INSERTION);
    let rivals = fitting.iter().filter(|rival| {
        rival.rank == best.rank
            || version_of(&best.record).is_some()
                && subject(&rival.record) == subject(&best.record)
                && names(rival).eq(names(best))
    });
    for rival in rivals {
        contest.add(
            fingerprint(block, rival.record[column::TEXT], &fingerprints),
            file(block, &rival.record),
        );
    }
    // So many alike that some were not looked at could contest it, too.
    let is_cut = ranked
        .get(MAX_CANDIDATES)
        .is_some_and(|(next, _)| Some(*next) == rank(block, &best.record, key));
    (!contest.is_contested() && !is_cut).then(|| (best.record, best.order.clone()))
}

/// A message with its rank; `None` if the event lacks insertions that the text asks for.
fn candidate(block: &Block, key: &EventKey<'_>, rank: [u8; 4], record: &Record) -> Option<Candidate> {
    let text = block.string(record[column::TEXT]);
    let template = Template::parse(text.unwrap_or_default());
    let order = order(block, record, &template, key.names)?;
    let asked = template.insertions();
    let [qualifiers, version, language, distance] = rank;
    let is_other = version == 2;
    if order == Order::Same && is_other && asked > key.insertions {
        return None;
    }
    // Without fields, the highest insertion says how many there are.
    let declared = block.field_count(record[column::FIELDS]).unwrap_or(asked);
    let spare = key.insertions.checked_sub(declared).unwrap_or(usize::MAX);
    let is_by_name = order != Order::Same;
    Some(Candidate {
        rank: (qualifiers, is_by_name, is_other, spare, version, language, distance),
        length: Reverse(text.map_or(0, str::len)),
        record: *record,
        order,
    })
}

/// Where an event has the insertions of a text, by the names of both; `None` if it lacks one that the text asks for.
fn order(block: &Block, record: &Record, template: &Template, names: &[&str]) -> Option<Order> {
    let declared = || block.field_names(record[column::FIELDS]).take(MAX_INSERTION);
    let is_other =
        |(one, other): (&str, &&str)| !one.is_empty() && !other.is_empty() && !one.eq_ignore_ascii_case(other);
    if !declared().zip(names).any(is_other) {
        return Some(Order::Same);
    }
    let names = &names[..names.len().min(MAX_NAMES)];
    let index = |field: &str| {
        let is_named = |name: &&str| !name.is_empty() && name.eq_ignore_ascii_case(field);
        names.iter().position(is_named)
    };
    let found: Box<[_]> = declared().map(index).collect();
    let has = |number: usize| found.get(number - 1).is_some_and(Option::is_some);
    template.numbers().all(has).then_some(Order::ByName(found))
}

/// Whether the texts without a version, in the language of the best one, are too many to be those of one event.
fn are_of_several_providers<'r>(block: &Block, best: &Record, rivals: impl Iterator<Item = &'r Record>) -> bool {
    let alike = rivals
        .filter(|record| version_of(record).is_none() && record[column::LANGUAGE] == best[column::LANGUAGE])
        .filter_map(|record| block.string(record[column::TEXT]));
    let starts = alike.map(|text| visible(text).take(MAX_COMPARED).collect::<String>());
    starts.collect::<BTreeSet<_>>().len() > MAX_TEXTS
}

fn file<'b>(block: &'b Block, record: &Record) -> &'b str {
    block.string(record[column::FILE]).unwrap_or_default()
}

/// The fingerprint of a text. One that is too long for a row has none.
fn fingerprint(block: &Block, text: u32, fingerprints: &Fingerprints) -> Option<u64> {
    fingerprints.of(block.string(text).filter(|text| text.len() <= MAX_ROW)?)
}

/// What a message is about: the event, its version and qualifiers, and the language.
fn subject(record: &Record) -> [u32; 3] {
    let qualifiers = record[column::QUALIFIERS] & !column::HAS_MESSAGE_ID;
    [record[column::EVENT], qualifiers, record[column::LANGUAGE]]
}

/// What a message or a parameter is, of those that can contest each other.
struct Contester {
    /// The event ID, or the ID of the parameter.
    id: u32,
    subject: [u32; 3],
    /// The references of the text and its file.
    text: u32,
    file: u32,
}

impl Contester {
    /// That at an index: parameters come after the messages.
    fn at(block: &Block, index: usize) -> Self {
        if index < block.message_count() {
            let record = block.message(index);
            return Contester {
                id: record[column::EVENT] & 0xffff,
                subject: subject(&record),
                text: record[column::TEXT],
                file: record[column::FILE],
            };
        }
        let [id, language, text, file] = block.parameter(index - block.message_count());
        Contester {
            id,
            subject: [id, 0, language],
            text,
            file,
        }
    }
}

/// Which of the messages of an event, or of the parameters with an ID, are contested, from the first one on: files disagree
/// about the text of an event with the same version and qualifiers, or of a parameter, in one language. All are if they
/// are so many that none is used. The index of a parameter comes after those of the messages.
pub(super) fn contested(block: &Block, first: usize, interrupt: Interrupt<'_>) -> Result<Vec<bool>> {
    let messages = block.message_count();
    let end = if first < messages {
        messages
    } else {
        messages + block.parameter_count()
    };
    let id = Contester::at(block, first).id;
    let all = (first..end).map(|index| Contester::at(block, index));
    let all = all.take_while(|of| of.id == id);
    let count = all.clone().count();
    if count > MAX_RECORDS {
        return Ok(vec![true; count]);
    }
    // Texts are stored once, so each is read once.
    let (mut contests, mut known, fingerprints) = (HashMap::new(), HashMap::new(), Fingerprints::default());
    for of in all.clone() {
        interrupt.check()?;
        let text = known.entry(of.text);
        let text = *text.or_insert_with(|| fingerprint(block, of.text, &fingerprints));
        let contest: &mut Contest<'_> = contests.entry(of.subject).or_default();
        contest.add(text, block.string(of.file).unwrap_or_default());
    }
    Ok(all.map(|of| contests[&of.subject].is_contested()).collect())
}

/// How well a message fits an event: the lower, the better; `None` if it cannot be that of the event.
fn rank(block: &Block, record: &Record, key: &EventKey<'_>) -> Option<[u8; 4]> {
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
    let language = language_rank(block.string(record[column::LANGUAGE]));
    Some([qualifiers, version, language, distance])
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

/// The text of a parameter; `None` if there is none, if files disagree about it, or if it has too many.
pub(super) fn parameter(block: &Block, id: u32) -> Option<&str> {
    let indexes = block.parameters_of(id);
    if indexes.len() > MAX_RECORDS {
        return None;
    }
    let ranked = indexes.map(|index| {
        let [_, language, text, file] = block.parameter(index);
        (language_rank(block.string(language)), text, file)
    });
    let ranked: Vec<_> = ranked.collect();
    let best = ranked.iter().min_by_key(|(language, ..)| *language)?;
    let (mut contest, fingerprints) = (Contest::default(), Fingerprints::default());
    for (_, text, file) in ranked.iter().filter(|(language, ..)| *language == best.0) {
        contest.add(
            fingerprint(block, *text, &fingerprints),
            block.string(*file).unwrap_or_default(),
        );
    }
    block.string(best.1).filter(|_| !contest.is_contested())
}
