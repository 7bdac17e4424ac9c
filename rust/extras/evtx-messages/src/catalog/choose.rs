//! Which of several messages is that of an event.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use evtx_format::Interrupt;
use hashbrown::{HashMap, HashSet};

use super::block::{Block, MAX_ROW, Record, column};
use super::text::{Claim, Fingerprints, Language, is_contested, visible};
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

/// The bytes of the name of a language that are compared, at most. *(choice)*
const MAX_LANGUAGE: usize = 32;

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

/// How well a message fits an event, without its language: the lower, the better.
type Fit = (u8, bool, bool, usize, u8);

/// A message that an event can have.
struct Candidate<'r> {
    fit: Fit,
    language: Language<'r>,
    /// How far its version is.
    distance: u8,
    /// Whether there is a text, and its length.
    length: Reverse<usize>,
    /// It, and the same of other files.
    records: &'r [Ranked],
    order: Order,
}

/// A message with its rank.
type Ranked = ([u8; 4], Record);

/// The best message of a block for an event: `None` if none fits, `Some(None)` if those that fit contest each other.
pub(super) fn best(block: &Block, key: &EventKey<'_>) -> Option<Option<(Record, Order)>> {
    let indexes = block.messages_of(key.event_id);
    if indexes.len() > MAX_RECORDS {
        return Some(None);
    }
    let mut ranked: Vec<Ranked> = indexes
        .map(|index| block.message(index))
        .filter_map(|record| Some((rank(block, &record, key)?, record)))
        .collect();
    ranked.sort_by_key(|(rank, _)| *rank);
    // The file is the last column.
    let mut distinct = ranked.chunk_by(|(_, one), (_, next)| one[..column::FILE] == next[..column::FILE]);
    let fitting: Vec<_> = distinct
        .by_ref()
        .take(MAX_CANDIDATES)
        .filter_map(|records| candidate(block, key, records))
        .collect();
    let best = fitting
        .iter()
        .min_by_key(|of| (of.fit, of.language.0, of.distance, of.language.1, of.length))?;
    let [(best_rank, record), ..] = best.records else {
        return None;
    };
    let of_other_providers = || are_of_several_providers(block, record, fitting.iter().map(|of| &of.records[0].1));
    if version_of(record).is_none() && of_other_providers() {
        return Some(None);
    }
    let fingerprints = Fingerprints::default();
    // What a manifest says about its own text, such as how many values it has, does not make it better than that of another.
    // Texts without a version are of a database. Those of several versions of Windows differ in the values that they have.
    let can_be = |other: &Record| qualifiers_of(other).is_none_or(|found| key.qualifiers == Some(found));
    let is_exact = |other: &Record| version_of(other) == Some(key.version) && can_be(other);
    let is_same = |other: &Record| {
        subject(other) == subject(record) || other[column::EVENT] == record[column::EVENT] && can_be(other)
    };
    let is_rival = |of: &&Candidate<'_>| {
        let [(_, rival), ..] = of.records else { return false };
        (of.fit, of.distance) == (best.fit, best.distance)
            || version_of(record).is_some() && is_same(rival)
            || is_exact(rival) && !is_exact(record)
    };
    let claim = |record: &Record, text| Claim {
        language: language(block, record[column::LANGUAGE]),
        text,
        file: fingerprints.of_file(file(block, record)),
    };
    let mut claims = Vec::new();
    for rival in fitting.iter().filter(is_rival) {
        let text = fingerprint(block, rival.records[0].1[column::TEXT], &fingerprints);
        claims.extend(rival.records.iter().map(|(_, record)| claim(record, text)));
    }
    for (rank, other) in distinct.flatten() {
        // So many alike that some were not looked at could contest it, too.
        if rank == best_rank {
            return Some(None);
        }
        if is_same(other) {
            let text = block.string(other[column::TEXT]).filter(|text| !text.is_empty());
            claims.push(claim(other, text.map(|_| 0)));
        }
    }
    Some((!is_contested(best.language, &claims)).then(|| (*record, best.order.clone())))
}

/// A message with its rank; `None` if the event lacks insertions that the text asks for.
fn candidate<'r>(block: &'r Block, key: &EventKey<'_>, records: &'r [Ranked]) -> Option<Candidate<'r>> {
    let (rank, record) = records.first()?;
    let text = block.string(record[column::TEXT]);
    let template = Template::parse(text.unwrap_or_default());
    let order = order(block, record, &template, key.names)?;
    let asked = template.insertions();
    let [qualifiers, version, _, distance] = *rank;
    let is_other = version == 2;
    if order == Order::Same && is_other && asked > key.insertions {
        return None;
    }
    // Without fields, the highest insertion says how many there are.
    let declared = block.field_count(record[column::FIELDS]).unwrap_or(asked);
    let spare = key.insertions.checked_sub(declared).unwrap_or(usize::MAX);
    let is_by_name = order != Order::Same;
    Some(Candidate {
        fit: (qualifiers, is_by_name, is_other, spare, version),
        language: language(block, record[column::LANGUAGE]),
        distance,
        length: Reverse(text.map_or(0, str::len)),
        records,
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

/// What a message is about: the event, its version and qualifiers.
fn subject(record: &Record) -> [u32; 2] {
    let qualifiers = record[column::QUALIFIERS] & !column::HAS_MESSAGE_ID;
    [record[column::EVENT], qualifiers]
}

/// Whether two messages can be about the same event: one without qualifiers can be about any.
fn are_alike([event, qualifiers]: [u32; 2], [other, others]: [u32; 2]) -> bool {
    let has = |qualifiers| qualifiers & column::HAS_QUALIFIERS != 0;
    event == other && (qualifiers == others || !has(qualifiers) || !has(others))
}

/// What the message at an index is about, and the references of its language, text and file. Parameters come after the
/// messages, and are about their ID.
fn about(block: &Block, index: usize) -> ([u32; 2], [u32; 3]) {
    if index < block.message_count() {
        let record = block.message(index);
        return (
            subject(&record),
            [column::LANGUAGE, column::TEXT, column::FILE].map(|at| record[at]),
        );
    }
    let [id, references @ ..] = block.parameter(index - block.message_count());
    ([id, 0], references)
}

/// Which of the messages of an event, or of the parameters with an ID, are contested, from the first one on: files disagree
/// about the text of a parameter, or of an event with the same version, and the same qualifiers or none, in the best language
/// that it has. All are if they are so many that none is used.
pub(super) fn contested(block: &Block, first: usize, interrupt: Interrupt<'_>) -> Result<Vec<bool>> {
    let messages = block.message_count();
    let (end, id) = if first < messages {
        (messages, 0xffff)
    } else {
        (messages + block.parameter_count(), u32::MAX)
    };
    let id_at = |index| about(block, index).0[0] & id;
    let all = (first..end).take_while(|index| id_at(*index) == id_at(first));
    let count = all.clone().count();
    if count > MAX_RECORDS {
        return Ok(vec![true; count]);
    }
    // Texts and files are stored once, so each is read once.
    let (mut claims, fingerprints) = (HashMap::<_, Vec<_>>::new(), Fingerprints::default());
    let (mut texts, mut files) = (HashMap::new(), HashMap::new());
    // The different messages of a subject and a kind of language.
    let mut different = HashMap::<_, HashSet<Record>>::new();
    for index in all.clone() {
        interrupt.check()?;
        let (subject, [language_of, text, file]) = about(block, index);
        if index < messages {
            let mut record = block.message(index);
            record[column::FILE] = 0;
            let kind = language(block, language_of).0;
            different.entry((subject, kind)).or_default().insert(record);
        }
        claims.entry(subject).or_default().push(Claim {
            language: language(block, language_of),
            text: *texts
                .entry(text)
                .or_insert_with(|| fingerprint(block, text, &fingerprints)),
            file: *files
                .entry(file)
                .or_insert_with(|| fingerprints.of_file(block.string(file).unwrap_or_default())),
        });
    }
    let mut contests = HashMap::new();
    for subject in claims.keys() {
        let alike = claims.iter().filter(|(other, _)| are_alike(*subject, **other));
        let claims: Vec<_> = alike.flat_map(|(_, claims)| claims).copied().collect();
        interrupt.check()?;
        let with_text = claims.iter().filter(|claim| claim.text.is_some());
        let language = with_text.map(|claim| claim.language).min().unwrap_or_default();
        let rivals = different.get(&(*subject, language.0));
        let are_too_many = rivals.is_some_and(|rivals| rivals.len() > MAX_CANDIDATES);
        contests.insert(subject, are_too_many || is_contested(language, &claims));
    }
    Ok(all.map(|index| contests[&about(block, index).0]).collect())
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
    let (language, _) = language(block, record[column::LANGUAGE]);
    Some([qualifiers, version, language, distance])
}

/// The language of a reference. Of those that are equally good, the first by name is the best, as of no file's own choice.
fn language(block: &Block, reference: u32) -> Language<'_> {
    match block
        .string(reference)
        .map(|name| &name.as_bytes()[..name.len().min(MAX_LANGUAGE)])
    {
        Some(name) if name.eq_ignore_ascii_case(b"en-US") => (0, b""),
        Some(name) if name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"en")) => (1, name),
        None => (2, b""),
        Some(name) => (3, name),
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
    let all = indexes.map(|index| block.parameter(index));
    let best = all.clone().min_by_key(|[_, of, ..]| language(block, *of))?;
    let fingerprints = Fingerprints::default();
    let claims = all.map(|[_, of, text, file]| Claim {
        language: language(block, of),
        text: fingerprint(block, text, &fingerprints),
        file: fingerprints.of_file(block.string(file).unwrap_or_default()),
    });
    let is_contested = is_contested(language(block, best[1]), &claims.collect::<Vec<_>>());
    block.string(best[2]).filter(|_| !is_contested)
}
