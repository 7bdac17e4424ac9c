//! Finds the needles of all rules in the text of a field, in one search.

use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::{self, NFA};
use aho_corasick::{Anchored, MatchKind};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::atoms::{Atom, AtomId, Test};
use super::bits::Bits;
use crate::pattern::Anchor;

/// Decides the needles of one field.
#[derive(Debug, Default)]
pub(super) struct FieldAutomaton {
    /// Needles that are the whole text.
    whole: HashMap<Box<str>, AtomId>,
    /// Searches for all other needles, usually one.
    searches: Vec<Search>,
}

/// Searches a text for needles.
#[derive(Debug)]
struct Search {
    automaton: NFA,
    /// By the index of a needle in the automaton, its atoms.
    atoms: Vec<Vec<(AtomId, Anchor)>>,
}

/// Bytes of text between two checks for an interrupt.
const STEP: usize = 1 << 16;

/// The most bytes of needles in an automaton. Building it takes some 1,000 instructions per byte, without such a check.
const TOGETHER: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };

impl FieldAutomaton {
    /// Builds the automaton of some atoms.
    pub(super) fn new(ids: &[AtomId], all: &[Atom], interrupt: Interrupt<'_>) -> Result<FieldAutomaton, Interrupted> {
        let mut automaton = FieldAutomaton::default();
        let mut inside: HashMap<&str, Vec<(AtomId, Anchor)>> = HashMap::new();
        for &id in ids {
            interrupt.check()?;
            match &all[id as usize].test {
                Test::Needle(Anchor::Whole, needle) => _ = automaton.whole.insert(needle.clone(), id),
                Test::Needle(anchor, needle) => inside.entry(needle).or_default().push((id, *anchor)),
                Test::Costly(_) => {}
            }
        }
        let mut needles: Vec<_> = inside.into_iter().collect();
        needles.sort_unstable_by_key(|(needle, _)| *needle);
        let mut needles = needles.into_iter().peekable();
        while needles.peek().is_some() {
            interrupt.check()?;
            let mut bytes = 0;
            let together = std::iter::from_fn(|| {
                needles.next_if(|(needle, _)| {
                    bytes += needle.len();
                    bytes <= TOGETHER
                })
            });
            automaton.searches.push(Search::new(together));
        }
        Ok(automaton)
    }

    /// Adds the atoms that are true for a folded text, in no particular order. `seen` is a buffer.
    pub(super) fn look(
        &self,
        text: &str,
        all: &[Atom],
        seen: &mut Bits,
        interrupt: Interrupt<'_>,
        found: &mut Vec<AtomId>,
    ) -> Result<(), Interrupted> {
        found.extend(self.whole.get(text));
        let is_at = |anchor: Anchor, id| anchor == Anchor::Anywhere || anchor.holds(text, needle_of(id, all));
        for search in &self.searches {
            seen.clear();
            search.run(text, seen, interrupt)?;
            for needle in seen.iter() {
                let atoms = search.atoms[needle as usize].iter();
                found.extend(atoms.filter(|(id, anchor)| is_at(*anchor, *id)).map(|(id, _)| id));
            }
        }
        Ok(())
    }
}

fn needle_of(atom: AtomId, all: &[Atom]) -> &str {
    match &all[atom as usize].test {
        Test::Needle(_, needle) => needle,
        Test::Costly(_) => "",
    }
}

impl Search {
    fn new<'a>(needles: impl Iterator<Item = (&'a str, Vec<(AtomId, Anchor)>)>) -> Search {
        let (needles, atoms): (Vec<_>, Vec<_>) = needles.unzip();
        let automaton = contiguous::Builder::new()
            .match_kind(MatchKind::Standard)
            .prefilter(false)
            .build(&needles);
        let automaton = automaton.expect("the limits of a set keep its needles within those of an automaton");
        Search { automaton, atoms }
    }

    /// Adds the needles that a text contains.
    fn run(&self, text: &str, seen: &mut Bits, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let automaton = &self.automaton;
        let start = automaton.start_state(Anchored::No);
        let mut state = start.expect("the automaton finds needles anywhere");
        for (number, bytes) in text.as_bytes().chunks(STEP).enumerate() {
            if number > 0 {
                interrupt.check()?;
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

#[cfg(test)]
mod tests {
    use super::super::atoms::Atoms;
    use super::*;

    /// Needles that share starts of any length, in texts that contain them, parts of them or many of them.
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
        let mut atoms = Atoms::default();
        let field = atoms.add_field("F");
        for needle in &needles {
            for anchor in [Anchor::Whole, Anchor::Start, Anchor::End, Anchor::Anywhere] {
                atoms.needle(field, anchor, needle);
            }
        }
        let all = atoms.all;
        let ids: Vec<AtomId> = (0..all.len() as AtomId).collect();
        let automaton = FieldAutomaton::new(&ids, &all, Interrupt::NEVER).expect("nothing interrupts it");
        let (mut seen, mut found) = (Bits::default(), Vec::new());
        let mut texts: Vec<String> = needles.clone();
        texts.extend(needles.windows(2).map(|pair| pair.concat()));
        texts.extend(needles.iter().map(|needle| format!("-{needle}-")));
        texts.extend([String::new(), needles.concat(), "abcdefghij".repeat(20)]);
        for text in &texts {
            found.clear();
            let result = automaton.look(text, &all, &mut seen, Interrupt::NEVER, &mut found);
            assert_eq!(result, Ok(()));
            found.sort_unstable();
            found.dedup();
            let is_true = |&&id: &&AtomId| match &all[id as usize].test {
                Test::Needle(anchor, needle) => anchor.holds(text, needle),
                Test::Costly(_) => false,
            };
            assert_eq!(found, ids.iter().filter(is_true).copied().collect::<Vec<_>>(), "{text}");
        }
    }
}
