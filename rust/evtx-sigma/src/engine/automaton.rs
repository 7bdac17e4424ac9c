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
    /// What has to be found inside of the text: one automaton, or several if there are very many needles.
    inside: Vec<Inside>,
    /// Bytes of the shortest needle.
    shortest: usize,
}

#[derive(Debug)]
struct Inside {
    /// It finds heads: the first bytes of needles, or all of them.
    automaton: NFA,
    /// By the index of a head: the needles with it, as a range of `needles`.
    heads: Vec<(u32, u32)>,
    needles: Vec<Needle>,
    atoms: Vec<(AtomId, Where)>,
    /// Atoms of needles that `needles` does not have, with the index of one that is the end of it.
    nested: Vec<(u32, AtomId, Where)>,
}

#[derive(Debug)]
struct Needle {
    /// Bytes of its head.
    head: u32,
    /// Its atoms, as a range of `atoms`.
    atoms: (u32, u32),
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

/// How many needles an automaton has at most. To make one of so many takes some 50 ms. Real rules have fewer for a field.
const TOGETHER: usize = if cfg!(test) { 100 } else { 1 << 13 };

/// How many needles may be the ends of a needle in the automaton. Each place in the automaton has a list of the needles
/// that end there: without this limit, needles that are the ends of each other make it larger than their texts by any
/// factor.
const NESTED: usize = 8;

/// Bytes of heads. The next length is for needles that share a head with too many others.
const HEADS: [usize; 3] = [8, 16, 24];

/// How many needles may have the same head, unless it is all of them. Each is compared with the text behind the head.
const SHARED: usize = 8;

impl FieldAutomaton {
    /// Makes the automaton of some atoms.
    ///
    /// # Errors
    /// [`Stopped`] if `stop` ends the work.
    pub(super) fn new(ids: &[AtomId], all: &[Atom], stop: &Stop<'_>) -> Result<FieldAutomaton, Stopped> {
        let hasher = DefaultHashBuilder::default();
        let mut automaton = FieldAutomaton {
            hasher,
            exact: HashTable::new(),
            names: HashTable::new(),
            inside: Vec::new(),
            shortest: usize::MAX,
        };
        let mut inside: HashMap<&str, Vec<(AtomId, Where)>> = HashMap::new();
        for (number, &id) in ids.iter().enumerate() {
            if number.is_multiple_of(TOGETHER) {
                stop.check()?;
            }
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
        let mut needles: Vec<_> = inside.into_iter().collect();
        // In this order, a needle stands after all that are ends of it.
        needles.sort_unstable_by(|(one, _), (other, _)| one.bytes().rev().cmp(other.bytes().rev()));
        let mut needles = needles.into_iter();
        while needles.len() > 0 {
            stop.check()?;
            automaton.inside.push(Inside::new(needles.by_ref().take(TOGETHER)));
        }
        Ok(automaton)
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
        let mut inside = self.inside.iter();
        inside.try_for_each(|inside| inside.look(text, all, seen, stop, found))
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
    /// Needles with their atoms. A needle stands after all that are ends of it.
    fn new<'a>(needles: impl Iterator<Item = (&'a str, Vec<(AtomId, Where)>)>) -> Inside {
        let (mut atoms, mut nested) = (Vec::new(), Vec::new());
        let mut kept: Vec<(&str, (u32, u32))> = Vec::new();
        // The needles that are kept and ends of each other, and of the needle at hand.
        let mut ends: Vec<(&str, u32)> = Vec::new();
        for (text, of_needle) in needles {
            while ends.pop_if(|(end, _)| !text.ends_with(*end)).is_some() {}
            if let (NESTED.., Some(&(_, end))) = (ends.len(), ends.last()) {
                nested.extend(of_needle.iter().map(|&(id, place)| (end, id, place)));
                continue;
            }
            let start = atoms.len() as u32;
            atoms.extend(of_needle);
            ends.push((text, kept.len() as u32));
            kept.push((text, (start, atoms.len() as u32)));
        }
        let texts: Vec<&str> = kept.iter().map(|(text, _)| *text).collect();
        let by_head = heads(&texts);
        // By the index in `kept`, that in `needles`.
        let mut places = vec![0; kept.len()];
        let (mut heads, mut patterns, mut needles) = (Vec::new(), Vec::new(), Vec::new());
        for of_head in by_head.chunk_by(|(one, _), (other, _)| one == other) {
            let start = needles.len() as u32;
            let head = of_head[0].0;
            for &(_, at) in of_head {
                places[at as usize] = needles.len() as u32;
                needles.push(Needle {
                    head: head.len() as u32,
                    atoms: kept[at as usize].1,
                });
            }
            heads.push((start, needles.len() as u32));
            patterns.push(head);
        }
        for (end, ..) in &mut nested {
            *end = places[*end as usize];
        }
        let automaton = contiguous::Builder::new()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(&patterns);
        Inside {
            automaton: automaton.expect("a set has less bytes of needles than an automaton has room for"),
            heads,
            needles,
            atoms,
            nested,
        }
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
        let result = self.run(text, all, seen, stop);
        for at in 0..seen.found.len() {
            let (start, end) = self.needles[seen.found[at] as usize].atoms;
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
    fn run(&self, text: &str, all: &[Atom], seen: &mut Seen, stop: &Stop<'_>) -> Result<(), Stopped> {
        let automaton = &self.automaton;
        let start = automaton.start_state(Anchored::No);
        let mut state = start.expect("the automaton finds needles anywhere");
        for (number, bytes) in text.as_bytes().chunks(Stop::BYTES).enumerate() {
            if number > 0 {
                stop.check()?;
            }
            for (at, &byte) in (number * Stop::BYTES..).zip(bytes) {
                state = automaton.next_state(Anchored::No, state, byte);
                if automaton.is_special(state) && automaton.is_match(state) {
                    for index in 0..automaton.match_len(state) {
                        let (start, end) = self.heads[automaton.match_pattern(state, index).as_usize()];
                        for needle in start..end {
                            if self.is_here(needle, &text.as_bytes()[at + 1..], all) {
                                seen.insert(needle);
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a needle is where its head ends, with this text behind it.
    fn is_here(&self, index: u32, behind: &[u8], all: &[Atom]) -> bool {
        let Needle { head, atoms } = &self.needles[index as usize];
        let (atom, _) = self.atoms[atoms.0 as usize];
        behind.starts_with(&needle(atom, all).as_bytes()[*head as usize..])
    }
}

/// The head of each needle, with the index of the needle, sorted. Each state of an automaton costs a thousand
/// instructions and more when it is made, so heads are short where this tells needles apart.
fn heads<'a>(needles: &[&'a str]) -> Vec<(&'a [u8], u32)> {
    let mut heads = Vec::with_capacity(needles.len());
    let mut left: Vec<(&[u8], u32)> = needles.iter().map(|needle| needle.as_bytes()).zip(0..).collect();
    left.sort_unstable();
    for length in HEADS {
        let cut = |needle: &'a [u8]| &needle[..needle.len().min(length)];
        let mut longer = Vec::new();
        for with_head in left.chunk_by(|(one, _), (other, _)| cut(one) == cut(other)) {
            match with_head.len() <= SHARED {
                true => heads.extend(with_head.iter().map(|&(needle, at)| (cut(needle), at))),
                false => longer.extend(with_head),
            }
        }
        left = longer;
    }
    heads.extend(left);
    heads.sort_unstable();
    heads
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

#[cfg(test)]
mod tests {
    use super::super::atoms::AtomsBuilder;
    use super::*;

    /// Needles with heads of any length in common, in texts that have them, parts of them and much of them.
    #[test]
    fn finds_what_each_pattern_alone_finds() {
        let mut needles: Vec<String> = Vec::new();
        for shared in [0, 3, 7, 8, 9, 15, 16, 17, 24, 30, 40] {
            for number in 0..20 {
                needles.push("abcdefghij".repeat(4)[..shared].to_string() + &number.to_string());
            }
        }
        needles.extend((1..=60).map(|length| "a".repeat(length)));
        needles.extend(["äöüäöü".to_string(), "äöüäöx".to_string(), "x".to_string()]);
        let mut builder = AtomsBuilder::default();
        let field = builder.field("F");
        for needle in &needles {
            let needle = || needle.as_str().into();
            builder.text(field, Pattern::Contains(needle()));
            builder.text(field, Pattern::StartsWith(needle()));
            builder.text(field, Pattern::EndsWith(needle()));
        }
        let all = builder.atoms.all;
        let ids: Vec<AtomId> = (0..all.len() as AtomId).collect();
        let automaton = FieldAutomaton::new(&ids, &all, &Stop::never()).expect("nobody stops this");
        let (mut seen, mut found) = (Seen::default(), Vec::new());
        let mut texts: Vec<String> = needles.clone();
        texts.extend(needles.windows(2).map(|pair| pair.concat()));
        texts.extend(needles.iter().map(|needle| format!("-{needle}-")));
        texts.extend([String::new(), needles.concat(), "abcdefghij".repeat(20)]);
        for text in &texts {
            found.clear();
            let result = automaton.look(text, &all, &mut seen, &Stop::never(), &mut found);
            assert_eq!(result, Ok(()));
            found.sort_unstable();
            found.dedup();
            let is_true = |&&id: &&AtomId| match &all[id as usize].test {
                Test::Text(pattern) => pattern.matches(text),
                Test::Costly(_) => false,
            };
            assert_eq!(found, ids.iter().filter(is_true).copied().collect::<Vec<_>>(), "{text}");
        }
    }
}
