//! Atoms: what rules ask of fields, each question once however many rules ask it.

use hashbrown::HashMap;

use crate::matcher::Matcher;
use crate::pattern::Pattern;

/// The index of an atom, of all rules of a set.
pub(super) type AtomId = u32;

/// The index of a field name, of all rules of a set. The names are those of rules, before they are renamed.
pub(super) type FieldId = u32;

/// The field that stands for every value of an event: that of keywords.
pub(super) const EVERY_VALUE: FieldId = 0;

/// A question about the texts of a field. It is true if it is for one of them.
#[derive(Debug)]
pub(super) struct Atom {
    pub(super) field: FieldId,
    pub(super) test: Test,
    /// How many rules ask it.
    pub(super) uses: u32,
}

/// How an atom is decided.
#[derive(Debug)]
pub(super) enum Test {
    /// With all others of this kind, by one look at the folded text: it is the pattern, which has no wildcards and is
    /// not empty at an end.
    Text(Pattern),
    /// Alone, and only if a rule depends on it.
    Costly(Matcher),
}

/// The atoms of all rules.
#[derive(Debug, Default)]
pub(super) struct Atoms {
    pub(super) all: Vec<Atom>,
    /// The names of fields; the first is that of every value.
    pub(super) fields: Vec<Box<str>>,
    field_ids: HashMap<Box<str>, FieldId>,
}

/// Atoms while rules are added.
#[derive(Debug)]
pub(super) struct AtomsBuilder {
    pub(super) atoms: Atoms,
    texts: HashMap<(FieldId, Pattern), AtomId>,
    costly: HashMap<(FieldId, Pattern, bool), AtomId>,
}

impl Default for AtomsBuilder {
    fn default() -> Self {
        let atoms = Atoms {
            all: Vec::new(),
            fields: vec!["".into()],
            field_ids: HashMap::new(),
        };
        AtomsBuilder {
            atoms,
            texts: HashMap::new(),
            costly: HashMap::new(),
        }
    }
}

impl Atoms {
    /// The field of a name, if a rule asks for it.
    pub(super) fn field(&self, name: &str) -> Option<FieldId> {
        self.field_ids.get(name).copied()
    }
}

impl AtomsBuilder {
    /// The field of a name.
    pub(super) fn field(&mut self, name: &str) -> FieldId {
        let Atoms { fields, field_ids, .. } = &mut self.atoms;
        if let Some(&field) = field_ids.get(name) {
            return field;
        }
        let field = fields.len() as FieldId;
        fields.push(name.into());
        field_ids.insert(name.into(), field);
        field
    }

    /// The atom of a pattern without wildcards.
    pub(super) fn text(&mut self, field: FieldId, pattern: Pattern) -> AtomId {
        let all = &mut self.atoms.all;
        let id = *self
            .texts
            .entry((field, pattern))
            .or_insert_with_key(|(_, pattern)| add(all, field, Test::Text(pattern.clone())));
        self.atoms.all[id as usize].uses += 1;
        id
    }

    /// The atom of any other matcher.
    pub(super) fn costly(&mut self, field: FieldId, matcher: &Matcher) -> AtomId {
        let all = &mut self.atoms.all;
        match matcher {
            Matcher::Text { pattern, cased } => {
                let key = (field, pattern.clone(), *cased);
                let make = || add(all, field, Test::Costly(matcher.clone()));
                *self.costly.entry(key).or_insert_with(make)
            }
            _ => add(all, field, Test::Costly(matcher.clone())),
        }
    }
}

fn add(all: &mut Vec<Atom>, field: FieldId, test: Test) -> AtomId {
    all.push(Atom { field, test, uses: 0 });
    all.len() as AtomId - 1
}
