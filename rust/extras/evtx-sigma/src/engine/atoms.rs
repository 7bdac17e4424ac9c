//! Atoms: what rules ask about fields. Rules that ask the same share an atom.

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::matcher::Matcher;
use crate::pattern::{Anchor, Pattern};

/// The index of an atom, in a set of rules.
pub(super) type AtomId = u32;

/// The index of a field name, in a set of rules. These are the names in rules, before they are renamed.
pub(super) type FieldId = u32;

/// The field that stands for every value of an event, for keywords.
pub(super) const EVERY_VALUE: FieldId = 0;

/// A question about the texts of a field. It is true if it is true for one of them.
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
    /// A folded needle, with all others of the field in one search. It is empty only for [`Anchor::Whole`].
    Needle(Anchor, Box<str>),
    /// On its own, and only if a rule depends on it.
    Costly(Matcher),
}

/// The atoms of all rules.
#[derive(Debug)]
pub(super) struct Atoms {
    pub(super) all: Vec<Atom>,
    /// The names of fields, after [`EVERY_VALUE`].
    pub(super) fields: Vec<Box<str>>,
    field_ids: HashMap<Box<str>, FieldId>,
    /// By field, pattern, and whether case matters.
    ids: HashMap<(FieldId, Pattern, bool), AtomId>,
}

impl Default for Atoms {
    fn default() -> Self {
        Atoms {
            all: Vec::new(),
            fields: vec!["".into()],
            field_ids: HashMap::new(),
            ids: HashMap::new(),
        }
    }
}

impl Atoms {
    /// The field with a name, if a rule asks for it.
    pub(super) fn field(&self, name: &str) -> Option<FieldId> {
        self.field_ids.get(name).copied()
    }

    /// The field with a name, which is added if it is new.
    pub(super) fn add_field(&mut self, name: &str) -> FieldId {
        if let Some(field) = self.field(name) {
            return field;
        }
        let field = self.fields.len() as FieldId;
        self.fields.push(name.into());
        self.field_ids.insert(name.into(), field);
        field
    }

    /// The atom of a folded needle.
    pub(super) fn needle(&mut self, field: FieldId, anchor: Anchor, needle: &str) -> AtomId {
        let pattern = Pattern::Needle(anchor, needle.into());
        let id = self.shared(field, pattern, false, || Test::Needle(anchor, needle.into()));
        self.all[id as usize].uses += 1;
        id
    }

    /// The atom of any other matcher.
    pub(super) fn costly(&mut self, field: FieldId, matcher: &Matcher) -> AtomId {
        let test = || Test::Costly(matcher.clone());
        match matcher {
            Matcher::Text { pattern, cased } => self.shared(field, pattern.clone(), *cased, test),
            _ => add(&mut self.all, field, test()),
        }
    }

    fn shared(&mut self, field: FieldId, pattern: Pattern, cased: bool, test: impl FnOnce() -> Test) -> AtomId {
        match self.ids.entry((field, pattern, cased)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => *new.insert(add(&mut self.all, field, test())),
        }
    }

    /// Forgets what is needed only to add atoms.
    pub(super) fn finish(&mut self) {
        self.ids = HashMap::new();
    }
}

fn add(all: &mut Vec<Atom>, field: FieldId, test: Test) -> AtomId {
    all.push(Atom { field, test, uses: 0 });
    all.len() as AtomId - 1
}
