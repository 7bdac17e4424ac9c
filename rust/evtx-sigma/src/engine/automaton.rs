//! Which needles of all rules are in the text of a field, by one look at it.

use std::hash::BuildHasher;

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::{self, NFA};
use aho_corasick::{Anchored, MatchKind};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use super::atoms::{Atom, AtomId, Test};
use crate::pattern::Pattern;
use crate::stop::{Stop, Stopped};

/// Decides all atoms of one field that are decided together.
#[derive(Debug)]
pub(super) struct FieldAutomaton {
    hasher: DefaultHashBuilder,
    /// The texts that are a whole text.
    exact: HashTable<AtomId>,
    /// The texts that end a text and have a backslash at their start and nowhere else, such as `\cmd.exe`: the text has
    /// to be the same from its last backslash on.
    names: HashTable<AtomId>,
    /// What has to be found inside of the text.
    inside: Option<Inside>,
    /// Bytes of the shortest needle.
    shortest: usize,
}

#[derive(Debug)]
struct Inside {
    automaton: NFA,
    /// By the index of a needle in the automaton: its atoms, as a range of `atoms`.
    needles: Vec<(u32, u32)>,
    atoms: Vec<(AtomId, Where)>,
    /// Atoms of needles that the automaton does not have, with the index of one that is the end of it.
    nested: Vec<(u32, AtomId, Where)>,
}

/// Where a needle has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Start,
    End,
    Anywhere,
}

/// Which needles were found in a text.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// A bit for each needle; all are zero while no text is looked at.
    words: Vec<u64>,
    found: Vec<u32>,
}

impl Seen {
    fn insert(&mut self, needle: u32) {
        let word = needle as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & 1 << (needle % 64) == 0 {
            self.words[word] |= 1 << (needle % 64);
            self.found.push(needle);
        }
    }

    fn contains(&self, needle: u32) -> bool {
        let word = self.words.get(needle as usize / 64);
        word.is_some_and(|word| word & 1 << (needle % 64) != 0)
    }
}

/// How many needles may be the ends of a needle in the automaton. Each place in the automaton has a list of the needles
/// that end there: without this limit, needles that are the ends of each other make it larger than their texts by any
/// factor.
const NESTED: usize = 8;

impl FieldAutomaton {
    /// Makes the automaton of some atoms.
    pub(super) fn new(ids: &[AtomId], all: &[Atom]) -> FieldAutomaton {
        let hasher = DefaultHashBuilder::default();
        let mut automaton = FieldAutomaton {
            hasher,
            exact: HashTable::new(),
            names: HashTable::new(),
            inside: None,
            shortest: usize::MAX,
        };
        let mut inside: HashMap<&str, Vec<(AtomId, Where)>> = HashMap::new();
        for &id in ids {
            let Test::Text(pattern) = &all[id as usize].test else {
                continue;
            };
            automaton.shortest = automaton.shortest.min(needle(id, all).len());
            let (needle, place) = match pattern {
                Pattern::Exact(text) => {
                    add(&mut automaton.exact, &automaton.hasher, id, text, all);
                    continue;
                }
                Pattern::EndsWith(text) if text.rfind('\\') == Some(0) => {
                    add(&mut automaton.names, &automaton.hasher, id, text, all);
                    continue;
                }
                Pattern::StartsWith(text) => (text, Where::Start),
                Pattern::EndsWith(text) => (text, Where::End),
                Pattern::Contains(text) => (text, Where::Anywhere),
                Pattern::Wildcards(_) => continue,
            };
            inside.entry(needle).or_default().push((id, place));
        }
        automaton.inside = (!inside.is_empty()).then(|| Inside::new(inside));
        automaton
    }

    /// Whether a text that is not folded yet is too short for every needle.
    pub(super) fn is_too_short(&self, text: &str) -> bool {
        // Folding keeps the number of bytes of ASCII alone.
        text.len() < self.shortest && text.is_ascii()
    }

    /// Adds the atoms that are true for a folded text, in no order.
    pub(super) fn look(
        &self,
        text: &str,
        all: &[Atom],
        seen: &mut Seen,
        stop: &Stop<'_>,
        found: &mut Vec<AtomId>,
    ) -> Result<(), Stopped> {
        found.extend(get(&self.exact, &self.hasher, text, all));
        if !self.names.is_empty()
            && let Some(start) = memchr::memrchr(b'\\', text.as_bytes())
        {
            found.extend(get(&self.names, &self.hasher, &text[start..], all));
        }
        match &self.inside {
            Some(inside) => inside.look(text, all, seen, stop, found),
            None => Ok(()),
        }
    }
}

/// The needle of an atom.
fn needle(atom: AtomId, all: &[Atom]) -> &str {
    match &all[atom as usize].test {
        Test::Text(pattern) => pattern.needles().next().unwrap_or_default(),
        Test::Costly(_) => "",
    }
}

fn add(table: &mut HashTable<AtomId>, hasher: &DefaultHashBuilder, id: AtomId, text: &str, all: &[Atom]) {
    table.insert_unique(hasher.hash_one(text), id, |&other| hasher.hash_one(needle(other, all)));
}

fn get(table: &HashTable<AtomId>, hasher: &DefaultHashBuilder, text: &str, all: &[Atom]) -> Option<AtomId> {
    if table.is_empty() {
        return None;
    }
    table
        .find(hasher.hash_one(text), |&id| needle(id, all) == text)
        .copied()
}

impl Inside {
    fn new(by_needle: HashMap<&str, Vec<(AtomId, Where)>>) -> Inside {
        let mut needles: Vec<(&str, Vec<(AtomId, Where)>)> = by_needle.into_iter().collect();
        // In this order, a needle stands after all that are ends of it.
        needles.sort_by(|(one, _), (other, _)| one.bytes().rev().cmp(other.bytes().rev()));
        let mut inside = Inside {
            automaton: NFA::new::<_, &str>([]).expect("an empty automaton"),
            needles: Vec::new(),
            atoms: Vec::new(),
            nested: Vec::new(),
        };
        let mut kept: Vec<&str> = Vec::new();
        // The needles in the automaton that are ends of each other, and of the needle at hand.
        let mut ends: Vec<(&str, u32)> = Vec::new();
        for (text, atoms) in needles {
            while ends.pop_if(|(end, _)| !text.ends_with(*end)).is_some() {}
            if let (NESTED.., Some(&(_, end))) = (ends.len(), ends.last()) {
                inside.nested.extend(atoms.iter().map(|&(id, place)| (end, id, place)));
                continue;
            }
            let start = inside.atoms.len() as u32;
            inside.atoms.extend(atoms);
            ends.push((text, kept.len() as u32));
            inside.needles.push((start, inside.atoms.len() as u32));
            kept.push(text);
        }
        let builder = contiguous::Builder::new()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(&kept);
        inside.automaton = builder.expect("a set has less bytes of needles than an automaton has room for");
        inside
    }

    fn look(
        &self,
        text: &str,
        all: &[Atom],
        seen: &mut Seen,
        stop: &Stop<'_>,
        found: &mut Vec<AtomId>,
    ) -> Result<(), Stopped> {
        seen.found.clear();
        let result = self.run(text, seen, stop);
        for at in 0..seen.found.len() {
            let (start, end) = self.needles[seen.found[at] as usize];
            let atoms = &self.atoms[start as usize..end as usize];
            let is_true = |&&(id, place): &&(AtomId, Where)| place.holds(text, needle(id, all));
            found.extend(atoms.iter().filter(is_true).map(|&(id, _)| id));
        }
        for &(end, id, place) in &self.nested {
            if seen.contains(end) && result.is_ok() {
                if stop.check().is_err() {
                    break;
                }
                let needle = needle(id, all);
                found.extend((text.contains(needle) && place.holds(text, needle)).then_some(id));
            }
        }
        for at in 0..seen.found.len() {
            seen.words[seen.found[at] as usize / 64] = 0;
        }
        result.and(stop.result())
    }

    /// Finds which needles are in a text.
    fn run(&self, text: &str, seen: &mut Seen, stop: &Stop<'_>) -> Result<(), Stopped> {
        let automaton = &self.automaton;
        let start = automaton.start_state(Anchored::No);
        let mut state = start.expect("the automaton finds needles anywhere");
        for (number, bytes) in text.as_bytes().chunks(Stop::BYTES).enumerate() {
            if number > 0 {
                stop.check()?;
            }
            for &byte in bytes {
                state = automaton.next_state(Anchored::No, state, byte);
                if automaton.is_special(state) && automaton.is_match(state) {
                    for index in 0..automaton.match_len(state) {
                        seen.insert(automaton.match_pattern(state, index).as_u32());
                    }
                }
            }
        }
        Ok(())
    }
}

impl Where {
    /// Whether a needle that is in a text is at this place of it.
    fn holds(self, text: &str, needle: &str) -> bool {
        match self {
            Where::Start => text.starts_with(needle),
            Where::End => text.ends_with(needle),
            Where::Anywhere => true,
        }
    }
}
