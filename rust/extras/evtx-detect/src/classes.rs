//! Classes of events: rules are folded once for each.

use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted, Numbering};
use evtx_sigma::{EventClass, SYSTEM_CHANNEL};

use crate::record_values::UNNAMED;
use crate::rules::Rules;

/// A class of events, and where the values of its fields are.
#[derive(Debug)]
pub(crate) struct ClassWithSlots<S> {
    pub(crate) class: Arc<EventClass>,
    pub(crate) slots: Box<[S]>,
}

/// The fields of a class of events, in order: those of `System`, then all others.
pub(crate) struct ClassOfFields<S> {
    slots: Vec<S>,
    names: Vec<String>,
    /// Of the fields of `System`, the text if all events of the class have it.
    known: Vec<Option<String>>,
    keys: Numbering<String, fn(&str) -> String>,
    /// The names of the last field.
    last: Vec<String>,
}

impl<S> Default for ClassOfFields<S> {
    fn default() -> Self {
        ClassOfFields {
            slots: Vec::new(),
            names: Vec::new(),
            known: Vec::new(),
            keys: Numbering::new(str::to_owned),
            last: Vec::new(),
        }
    }
}

impl<S: Copy> ClassOfFields<S> {
    /// Adds a field of `System`, before all others.
    pub(crate) fn add_of_system(&mut self, name: &str, known: Option<String>, slot: S) {
        self.names.push(name.to_owned());
        self.known.push(known);
        self.slots.push(slot);
    }

    /// Adds a value of another field, or the next item of its array.
    ///
    /// A repeated `X` is `X_1` in `event_data`, where it cannot be distinguished from a field with this name. So each has
    /// both names, also in a log.
    pub(crate) fn add(&mut self, name: Option<&str>, is_item: bool, slot: S) {
        if !is_item {
            self.last = match name.map(|name| name.replace(' ', "")) {
                None => vec![UNNAMED.to_owned()],
                Some(name) => {
                    let (key, is_numbered) = self.keys.take(name.clone());
                    let base = if is_numbered {
                        name
                    } else {
                        base(&key, |name| self.keys.has(name)).to_owned()
                    };
                    if base == key { vec![key] } else { vec![base, key] }
                }
            };
        }
        self.slots.extend(self.last.iter().map(|_| slot));
        self.names.extend_from_slice(&self.last);
    }

    /// The class of events with these fields.
    pub(crate) fn class(self, rules: &Rules, interrupt: Interrupt<'_>) -> Result<ClassWithSlots<S>, Interrupted> {
        let ClassOfFields {
            slots,
            mut names,
            known,
            ..
        } = self;
        if is_cleared(&names, &known)
            && let Some(channel) = names.iter_mut().find(|name| *name == "Channel")
        {
            SYSTEM_CHANNEL.clone_into(channel);
        }
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let known: Vec<Option<&str>> = known.iter().map(Option::as_deref).collect();
        Ok(ClassWithSlots {
            class: rules.classes.class(&texts, &known, interrupt)?,
            slots: slots.into(),
        })
    }
}

impl<S> ClassWithSlots<S> {
    /// Whether a rule can match events of the class.
    pub(crate) fn may_match(&self) -> bool {
        !self.class.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.class.bytes() + size_of_val(&*self.slots)
    }
}

/// Whether an event reports that a log was cleared. It names that log in a second `Channel`, after that of `System`.
fn is_cleared(names: &[String], known: &[Option<String>]) -> bool {
    let is = |name: &str, texts: &[&str]| {
        let mut values = names.iter().zip(known).filter(|(known, _)| *known == name);
        values.any(|(_, text)| text.as_deref().is_some_and(|text| texts.contains(&text)))
    };
    let (of_system, of_data) = names.split_at(known.len());
    [of_system, of_data]
        .iter()
        .all(|names| names.iter().any(|name| name == "Channel"))
        && is("EventID", &["104", "1102"])
        && is("Provider_Name", &["Microsoft-Windows-Eventlog"])
}

/// A name without the number that it got because an earlier one is the same: [`Numbering`] adds it.
pub(crate) fn base(key: &str, is_there: impl Fn(&str) -> bool) -> &str {
    let numbered = |(name, digits): &(&str, &str)| {
        let number = digits.parse::<u32>().ok().filter(|_| !digits.starts_with('0'));
        let is_next = |number| number == 1 || is_there(&format!("{name}_{}", number - 1));
        !name.is_empty() && is_there(name) && number.is_some_and(is_next)
    };
    key.rsplit_once('_').filter(numbered).map_or(key, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_part_of_a_name_unless_the_name_is_there_without_it() {
        let is_there = |name: &str| name == "a" || name == "a_1";
        assert_eq!(
            ["a_2", "a_3", "a_1_1", "b_1", "a_0", "a_", "_1"].map(|key| base(key, is_there)),
            ["a", "a_3", "a_1", "b_1", "a_0", "a_", "_1"]
        );
    }

    #[test]
    fn fields_have_the_names_that_a_table_cannot_tell_apart() {
        let names = |fields: &[(Option<&str>, bool)]| {
            let mut all = ClassOfFields::default();
            fields.iter().for_each(|(name, is_item)| all.add(*name, *is_item, ()));
            all.names.join(" ")
        };
        let of =
            |names_of: &[&'static str]| names(&names_of.iter().map(|name| (Some(*name), false)).collect::<Vec<_>>());
        assert_eq!(of(&["X", "Y", "X", "X"]), "X Y X X_1 X X_2");
        assert_eq!(of(&["X", "X_1", "X_2", "X_4", "Z_1"]), "X X X_1 X X_2 X_4 Z_1");
        assert_eq!(of(&["X", "X_1", "X"]), "X X X_1 X X_2");
        let items = [
            (None, false),
            (None, false),
            (Some("A b"), false),
            (Some("A b"), true),
            (Some("Ab_1"), false),
        ];
        assert_eq!(names(&items), "Data Data Ab Ab Ab Ab_1");
    }
}
