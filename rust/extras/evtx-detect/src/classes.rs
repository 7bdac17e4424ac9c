//! Classes of events: rules are folded once for each.

use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{EventClass, SYSTEM_CHANNEL};

use crate::rules::Rules;

/// A class of events, and where the values of its fields are.
#[derive(Debug)]
pub(crate) struct ClassWithSlots<S> {
    pub(crate) class: Arc<EventClass>,
    pub(crate) slots: Box<[S]>,
}

impl<S> ClassWithSlots<S> {
    /// The class of events with these fields: the slot and the name of each, and of those of `System`, which come first, the
    /// text if it is known.
    pub(crate) fn new(
        rules: &Rules,
        slots: Vec<S>,
        mut names: Vec<String>,
        known: Vec<Option<String>>,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Interrupted> {
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
    [of_system, of_data].iter().all(|names| names.iter().any(|name| name == "Channel"))
        && is("EventID", &["104", "1102"])
        && is("Provider_Name", &["Microsoft-Windows-Eventlog"])
}
