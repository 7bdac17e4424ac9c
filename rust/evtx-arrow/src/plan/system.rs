//! The substitutions from which the columns of `System` are read. Records of a template with equal values of them have
//! the same row in these columns.

use evtx_format::binxml::instance::ValueTable;

use super::column_plan::Plan;
use super::projection::Projection;

/// The substitutions of a template from which the columns of `System` are read.
#[derive(Debug)]
pub(crate) struct SystemSubstitutions {
    /// The number of the template. Not 0.
    pub(crate) template: u64,
    /// Runs of consecutive substitutions: the first, and how many there are.
    runs: Box<[(u16, usize)]>,
}

impl SystemSubstitutions {
    /// The substitutions of the plan of a template, given its number; `None` if the template has no `System` element, or if too few of its columns are
    /// read to share their rows.
    pub(crate) fn new(template: u64, target: &Projection, plan: &Plan) -> Option<Self> {
        SystemSubstitutions::of_runs(template, target, plan, |a, b| a + 1 == b)
    }

    /// As [`new`](Self::new), for value tables whose values do not follow each other. Each value is a run.
    pub(crate) fn scattered(template: u64, target: &Projection, plan: &Plan) -> Option<Self> {
        SystemSubstitutions::of_runs(template, target, plan, |_, _| false)
    }

    /// `follows` tells whether the values of two substitutions are in one run.
    fn of_runs(template: u64, target: &Projection, plan: &Plan, follows: fn(u16, u16) -> bool) -> Option<Self> {
        if !plan.system || !target.shares_system() {
            return None;
        }
        let mut substitutions: Vec<u16> = Vec::new();
        for (place, source) in target.places.iter().zip(&plan.fields) {
            if let (true, Some(source)) = (place.repeats(), source) {
                substitutions.extend(source.substitutions());
            }
        }
        substitutions.sort_unstable();
        substitutions.dedup();
        let runs = substitutions.chunk_by(|a, b| follows(*a, *b));
        Some(SystemSubstitutions {
            template,
            runs: runs.filter_map(|run| Some((*run.first()?, run.len()))).collect(),
        })
    }

    /// For each run, the descriptors and the bytes of its values; `None` if the value table is too short for the run.
    #[inline(always)]
    pub(crate) fn values<'v>(&self, values: ValueTable<'v>) -> impl Iterator<Item = Option<(&'v [u8], &'v [u8])>> {
        self.runs.iter().map(move |&(first, count)| {
            let (descriptors, bytes) = values.run(first, count)?;
            Some((descriptors.as_flattened(), bytes))
        })
    }

    /// A hash of the values, and how many bytes they have with their descriptors. `None` if the value table is too
    /// short for a run: the values that it has of that run would not be compared.
    // Kept out of line, and apart from `matches`, so that neither runs out of registers.
    #[inline(never)]
    pub(crate) fn hash(&self, values: ValueTable<'_>) -> Option<(u64, usize)> {
        let (mut hash, mut len) = (self.template, 0);
        for run in self.values(values) {
            let (descriptors, bytes) = run?;
            len += descriptors.len() + bytes.len();
            hash = hash_step(hash, bytes);
        }
        Some((hash, len))
    }

    /// Whether `known` has the same descriptors and values, run by run.
    #[inline(never)]
    pub(crate) fn matches(&self, values: ValueTable<'_>, mut known: &[u8]) -> bool {
        let mut is_next = |part: &[u8]| {
            let Some((next, rest)) = known.split_at_checked(part.len()) else {
                return false;
            };
            known = rest;
            bytes_equal(part, next)
        };
        let mut runs = self.values(values).flatten();
        runs.all(|(descriptors, bytes)| is_next(descriptors) && is_next(bytes))
    }
}

/// Whether two slices of the same length are equal. Inlined for short slices, which most are: a call to `memcmp` would
/// take longer.
#[inline(always)]
fn bytes_equal(a: &[u8], b: &[u8]) -> bool {
    #[inline(always)]
    fn ends<const N: usize>(a: &[u8], b: &[u8]) -> bool {
        a.first_chunk::<N>() == b.first_chunk::<N>() && a.last_chunk::<N>() == b.last_chunk::<N>()
    }
    match a.len() {
        33.. => a == b,
        16.. => ends::<16>(a, b),
        8.. => ends::<8>(a, b),
        4.. => ends::<4>(a, b),
        _ => a.iter().zip(b).all(|(a, b)| a == b),
    }
}

/// Adds some bytes to a hash: only the first and last eight of them, where values usually differ.
#[inline]
fn hash_step(hash: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let (first, last) = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)), 0),
    };
    let hash = (hash ^ first).wrapping_mul(FACTOR);
    (hash ^ last ^ hash >> 32).wrapping_mul(FACTOR)
}

#[cfg(test)]
mod tests {
    use evtx_format::binxml::instance::Definition;
    use evtx_writer::{Element, Event, Template, Value};

    use super::*;
    use crate::plan::column_plan::TreeRoot;
    use crate::plan::keys::Keys;
    use crate::schema::{COLUMNS, ColumnSource};
    use crate::testing::{chunk, leaf, with_instances};

    #[test]
    fn parts_are_the_same_if_every_byte_is() {
        for len in 0..=70 {
            let part: Vec<u8> = (0..len).collect();
            assert!(bytes_equal(&part, &part.clone()), "{len}");
            for at in 0..part.len() {
                let mut other = part.clone();
                other[at] ^= 0x80;
                assert!(!bytes_equal(&part, &other), "byte {at} of {len}");
            }
        }
    }

    #[test]
    fn a_hash_tells_the_first_and_the_last_bytes() {
        for len in 0..=40_usize {
            let bytes: Vec<u8> = (1..=len as u8).collect();
            let hash = hash_step(1, &bytes);
            assert_ne!(hash, hash_step(2, &bytes), "what came before counts");
            let looked_at = |at: usize| at < 8 || at + 8 >= len;
            for at in (0..len).filter(|&at| looked_at(at)) {
                let mut other = bytes.clone();
                other[at] ^= 0x40;
                assert_ne!(hash, hash_step(1, &other), "byte {at} of {len}");
            }
        }
    }

    /// What the columns of `System` are read from, of a log whose first record has all, and others have other values.
    #[test]
    fn rows_are_known_again_by_the_values_that_they_are_read_from() {
        // Two runs, 1 to 2 and 4 to 5, which no column is read from in between.
        let names = [
            ("EventID", 1),
            ("Level", 2),
            ("Other", 3),
            ("Task", 4),
            ("Computer", 5),
            ("EventRecordID", 6),
        ];
        let system = names.into_iter().fold(Element::new("System"), |system, (name, index)| {
            system.child(leaf(name, index))
        });
        let template = Template::new([7; 16], Element::new("Event").child(system));
        let values = |changed: usize, value: Value| {
            let mut values: Vec<_> = (0..7).map(|number| Value::UInt16(300 + number)).collect();
            values.splice(changed..=changed, [value]);
            Event::new(&template, values)
        };
        let same = Value::UInt16(300);
        let events: Vec<_> = [values(0, same.clone())]
            .into_iter()
            .chain((0..7).map(|changed| values(changed, Value::UInt16(7))))
            // The same bytes of another type, and as many bytes in other sizes.
            .chain([values(1, Value::Int16(301)), values(5, Value::string("ab"))])
            .chain([Event::new(&template, vec![Value::UInt16(300); 5])])
            .collect();
        let chunk = chunk(&events);
        with_instances(&chunk, |reader, instances| {
            let mut target = Projection::default();
            for column in COLUMNS {
                if let ColumnSource::Field(place, _) = column.source {
                    target.place(place);
                }
            }
            let definition = Definition::read(&chunk, instances[0].definition).expect("a definition");
            let tree = reader.template(&definition).expect("a template").root;
            let plan = Plan::of_template(&target, &Keys::default(), tree, TreeRoot::Event);
            let few = Projection::default();
            assert!(SystemSubstitutions::new(7, &few, &plan).is_none(), "too few columns");
            assert!(
                SystemSubstitutions::new(7, &target, &Plan::default()).is_none(),
                "no `System`"
            );
            let system = SystemSubstitutions::new(7, &target, &plan).expect("columns that repeat");
            let next = SystemSubstitutions::new(8, &target, &plan).expect("columns that repeat");
            assert_eq!(*system.runs, [(1, 2), (4, 2)]);

            let first = instances[0].values;
            let known: Vec<u8> = system
                .values(first)
                .flatten()
                .flat_map(|(descriptors, bytes)| [descriptors, bytes].concat())
                .collect();
            let (hash, len) = system.hash(first).expect("the values");
            assert_eq!(len, known.len());
            assert_eq!(len, 4 * 4 + 4 * 2);
            assert_ne!(Some((hash, len)), next.hash(first), "of another template");
            for (changed, instance) in instances[1..8].iter().enumerate() {
                let counts = [1, 2, 4, 5].contains(&changed);
                assert_eq!(system.matches(instance.values, &known), !counts, "{changed}");
                assert_eq!(system.hash(instance.values) == Some((hash, len)), !counts, "{changed}");
            }
            assert!(!system.matches(instances[8].values, &known), "of another type");
            assert!(!system.matches(instances[9].values, &known), "of another size");
            assert!(!system.matches(first, &known[..known.len() - 1]));
            assert_eq!(system.hash(instances[10].values), None, "a table that is too short");
        });
    }
}
