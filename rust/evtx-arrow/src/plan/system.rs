//! The substitutions from which the columns of `System` are read. Records of a template with equal values of them have
//! the same row in these columns.

use evtx_format::binxml::{SubstitutionRuns, ValueLayout};

use super::column_plan::Plan;
use super::projection::Projection;

/// The substitutions of a template from which the columns of `System` are read.
#[derive(Debug)]
pub(crate) struct SystemSubstitutions {
    /// The number of the template. Not 0.
    pub(crate) template: u64,
    pub(crate) runs: SubstitutionRuns,
}

impl SystemSubstitutions {
    /// The substitutions of the plan of a template, given its number; `None` if the template has no `System` element,
    /// or if too few of its columns are read to share their rows.
    pub(crate) fn new(template: u64, projection: &Projection, plan: &Plan, layout: ValueLayout) -> Option<Self> {
        if !plan.system || !projection.shares_system() {
            return None;
        }
        let mut substitutions: Vec<u16> = Vec::new();
        for (place, source) in projection.places.iter().zip(&plan.places) {
            if let (true, Some(source)) = (place.repeats(), source) {
                substitutions.extend(source.substitutions());
            }
        }
        Some(SystemSubstitutions {
            template,
            runs: SubstitutionRuns::new(substitutions, layout),
        })
    }
}

#[cfg(test)]
mod tests {
    use evtx_format::binxml::instance::Definition;
    use evtx_writer::{Element, Event, Template, Value};

    use super::*;
    use crate::plan::keys::Keys;
    use crate::plan::root::TreeRoot;
    use crate::schema::{COLUMNS, ColumnSource};
    use crate::testing::{chunk, leaf, with_instances};

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
            let mut projection = Projection::default();
            for column in COLUMNS {
                if let ColumnSource::Place(place, _) = column.source {
                    projection.place(place);
                }
            }
            let definition = Definition::read(&chunk, instances[0].definition).expect("a definition");
            let tree = reader.template(&definition).expect("a template").root;
            let plan = Plan::new(&projection, &Keys::default(), tree, TreeRoot::Event);
            let few = Projection::default();
            assert!(
                SystemSubstitutions::new(7, &few, &plan, ValueLayout::Consecutive).is_none(),
                "too few columns"
            );
            assert!(
                SystemSubstitutions::new(7, &projection, &Plan::default(), ValueLayout::Consecutive).is_none(),
                "no `System`"
            );
            let system =
                SystemSubstitutions::new(7, &projection, &plan, ValueLayout::Consecutive).expect("columns that repeat");
            let next =
                SystemSubstitutions::new(8, &projection, &plan, ValueLayout::Consecutive).expect("columns that repeat");

            let first = instances[0].values;
            let mut known = Vec::new();
            system.runs.keep(first, &mut known);
            let (hash, len) = system.runs.hash(system.template, first).expect("the values");
            assert_eq!(len, known.len());
            assert_eq!(len, 4 * 4 + 4 * 2);
            assert_ne!(
                Some((hash, len)),
                next.runs.hash(next.template, first),
                "of another template"
            );
            for (changed, instance) in instances[1..8].iter().enumerate() {
                let counts = [1, 2, 4, 5].contains(&changed);
                assert_eq!(system.runs.matches(instance.values, &known), !counts, "{changed}");
                assert_eq!(
                    system.runs.hash(system.template, instance.values) == Some((hash, len)),
                    !counts,
                    "{changed}"
                );
            }
            assert!(!system.runs.matches(instances[8].values, &known), "of another type");
            assert!(!system.runs.matches(instances[9].values, &known), "of another size");
            assert!(!system.runs.matches(first, &known[..known.len() - 1]));
            assert_eq!(
                system.runs.hash(system.template, instances[10].values),
                None,
                "a table that is too short"
            );
        });
    }
}
