//! Whether an event matches a rule, and by which fields.

use evtx_format::{Interrupt, Interrupted};

use crate::condition::Condition;
use crate::event::{Event, break_if};
use crate::excerpt::{LONGEST, excerpt};
use crate::item::Item;
use crate::matcher::{Matcher, Subject};
use crate::rule::{Detection, Rule};

/// The fields that made a rule true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// Names of fields with their values, in the order of the condition and its detections, each pair once. For a field
    /// with several values, the first that matched. Of a value of more than 200 characters it is the part around what
    /// matched, with `…` where something is left out. The value is `None` if the item asked for NULL or for an absent
    /// field. Detections after `not` do not count.
    pub fields: Vec<(String, Option<String>)>,
}

impl Rule {
    /// Whether an event matches, and by which fields. The log source is not considered.
    pub fn matches(&self, event: &dyn Event) -> Option<Matched> {
        self.matches_until(event, Interrupt::NEVER).ok().flatten()
    }

    /// The same, but the work can be interrupted.
    pub(crate) fn matches_until(
        &self,
        event: &dyn Event,
        interrupt: Interrupt<'_>,
    ) -> Result<Option<Matched>, Interrupted> {
        let mut evaluation = Evaluation {
            rule: self,
            event,
            interrupt,
            known: vec![None; self.detections.len()],
            fields: Vec::new(),
        };
        let is_true = evaluation.is_true(&self.condition);
        if is_true {
            evaluation.collect(&self.condition);
        }
        interrupt.check()?;
        let shown = evaluation.fields.into_iter().map(|found| {
            let value = found.value.map(|value| excerpt(&value, found.at));
            (found.field, value)
        });
        let fields = shown.collect();
        Ok(is_true.then_some(Matched { fields }))
    }
}

/// The evaluation of a rule on an event.
struct Evaluation<'a> {
    rule: &'a Rule,
    event: &'a dyn Event,
    interrupt: Interrupt<'a>,
    /// By detection, whether it is true, once that is known.
    known: Vec<Option<bool>>,
    /// The fields that made the rule true.
    fields: Vec<Found>,
}

/// A field that made a rule true, with its value, and the byte offset in it to look at.
struct Found {
    field: String,
    value: Option<String>,
    at: usize,
}

impl Evaluation<'_> {
    /// Whether a condition is true.
    fn is_true(&mut self, condition: &Condition) -> bool {
        match condition {
            &Condition::Detection(index) => {
                let detection = &self.rule.detections[index];
                let is_true = || detection.first(self.event, self.interrupt).is_some();
                *self.known[index].get_or_insert_with(is_true)
            }
            Condition::Not(inner) => !self.is_true(inner),
            Condition::All(parts) => parts.iter().all(|part| self.is_true(part)),
            Condition::Any(parts) => parts.iter().any(|part| self.is_true(part)),
        }
    }

    /// Adds the fields of the detections that make a condition true. In a list with `or`, all that are true count.
    fn collect(&mut self, condition: &Condition) {
        match condition {
            &Condition::Detection(index) => {
                let items = self.rule.detections[index].first(self.event, self.interrupt);
                for item in items.unwrap_or_default() {
                    item.is_true(self.event, self.interrupt, &mut |field, value| {
                        let at = value.map_or(0, |text| item.place_in(text, self.event, self.interrupt));
                        let mut known = self.fields.iter_mut();
                        match known.find(|found| found.field == field && found.value.as_deref() == value) {
                            // The excerpt starts at the first match, to show as many as it can.
                            Some(found) => found.at = found.at.min(at),
                            None => self.fields.push(Found {
                                field: field.to_string(),
                                value: value.map(str::to_string),
                                at,
                            }),
                        }
                    });
                }
            }
            Condition::Not(_) => {}
            Condition::All(parts) | Condition::Any(parts) => {
                for part in parts {
                    if self.is_true(part) {
                        self.collect(part);
                    }
                }
            }
        }
    }
}

impl Detection {
    /// The items of the first alternative that is true.
    fn first(&self, event: &dyn Event, interrupt: Interrupt<'_>) -> Option<&[Item]> {
        self.any
            .iter()
            .find(|items| items.iter().all(|item| item.is_true(event, interrupt, &mut |_, _| ())))
            .map(Vec::as_slice)
    }
}

impl Item {
    /// Whether the item is true for an event.
    pub fn matches(&self, event: &dyn Event) -> bool {
        self.is_true(event, Interrupt::NEVER, &mut |_, _| ())
    }

    /// Where to look in a text for which the item is true, as a byte offset. 0 if the text is short.
    fn place_in(&self, text: &str, event: &dyn Event, interrupt: Interrupt<'_>) -> usize {
        let subject = Subject::new(text);
        let mut matchers = self.any.iter().filter(|_| text.len() > LONGEST);
        let first = matchers.find(|matcher| matcher.matches(&subject, event, interrupt));
        first.map_or(0, |matcher| matcher.place_in(&subject, interrupt))
    }

    /// Whether the item is true for an event. If it is, `found` gets the field and value that made it true.
    fn is_true(&self, event: &dyn Event, interrupt: Interrupt<'_>, found: &mut dyn FnMut(&str, Option<&str>)) -> bool {
        let is_match = |text: &str| {
            if interrupt.check().is_err() {
                return false;
            }
            let subject = Subject::new(text);
            self.any
                .iter()
                .any(|matcher| matcher.matches(&subject, event, interrupt))
        };
        let Some(field) = self.field.as_deref() else {
            let mut is_true = false;
            event.every_value(&mut |field, text| {
                is_true = is_match(text);
                if is_true {
                    found(field, Some(text));
                }
                break_if(is_true)
            });
            return is_true;
        };
        let wants_null = self.any.iter().any(|matcher| matches!(matcher, Matcher::Null));
        let wants_field = self.any.iter().any(|matcher| matches!(matcher, Matcher::Exists(true)));
        let wants_no_field = self.any.iter().any(|matcher| matches!(matcher, Matcher::Exists(false)));
        // `first` is the first value that is not NULL. `neq` reports it if no test is true.
        let (mut is_true, mut first, mut is_there) = (false, None, false);
        event.values(field, &mut |value| {
            is_there = true;
            is_true = match value {
                Some(text) => wants_field || is_match(text),
                None => wants_field || wants_null,
            };
            if is_true && !self.is_negated {
                found(field, value);
            }
            if let (true, None, Some(text)) = (self.is_negated, &first, value) {
                first = Some(text.to_string());
            }
            break_if(is_true)
        });
        if !is_there && (wants_null || wants_no_field) {
            is_true = true;
            if !self.is_negated {
                found(field, None);
            }
        }
        match (self.is_negated, first) {
            (false, _) => is_true,
            (true, Some(text)) if !is_true => {
                found(field, Some(&text));
                true
            }
            (true, _) => false,
        }
    }
}
