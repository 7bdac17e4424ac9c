//! The classes of events in a scan.

use std::sync::{Arc, Mutex};

use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::fold::EventClass;
use super::set::RuleSet;

/// Classes by a key. When there are too many, all are forgotten. Real logs have some hundreds, and some thousands of
/// keys.
#[derive(Debug)]
pub struct ClassCache<K> {
    classes: HashMap<Box<[u8]>, Arc<K>>,
    /// The bytes that they take.
    bytes: usize,
}

impl<K> Default for ClassCache<K> {
    fn default() -> Self {
        ClassCache {
            classes: HashMap::new(),
            bytes: 0,
        }
    }
}

impl<K> ClassCache<K> {
    /// The most classes to keep, and the most bytes.
    const COUNT: usize = 1 << 14;
    const BYTES: usize = 32 << 20;

    /// The class with a key.
    pub fn get(&self, key: &[u8]) -> Option<Arc<K>> {
        self.classes.get(key).map(Arc::clone)
    }

    /// Keeps a class that takes so many bytes.
    pub fn insert(&mut self, key: &[u8], class: &Arc<K>, bytes: usize) {
        let bytes = key.len() + bytes;
        if self.classes.len() >= Self::COUNT || self.bytes + bytes > Self::BYTES {
            *self = ClassCache::default();
        }
        self.bytes += bytes;
        self.classes.insert(key.into(), Arc::clone(class));
    }
}

/// Classes of events, each folded once for all threads and templates.
#[derive(Debug)]
pub struct EventClasses {
    rules: Arc<RuleSet>,
    /// By the names of their fields, and the known texts of `System`.
    kept: Mutex<ClassCache<EventClass>>,
}

impl EventClasses {
    /// Starts without classes.
    pub fn new(rules: Arc<RuleSet>) -> EventClasses {
        EventClasses {
            rules,
            kept: Mutex::default(),
        }
    }

    /// The same as [`RuleSet::class`].
    ///
    /// # Errors
    /// [`Interrupted`].
    ///
    /// # Panics
    /// If `known` is longer than `fields`.
    pub fn class(
        &self,
        fields: &[&str],
        known: &[Option<&str>],
        interrupt: Interrupt<'_>,
    ) -> Result<Arc<EventClass>, Interrupted> {
        let key = key(fields, known);
        if let Some(class) = self.kept.lock().ok().and_then(|kept| kept.get(&key)) {
            return Ok(class);
        }
        // Two threads may fold the same class, which is rare. No thread waits for another.
        let class = Arc::new(self.rules.class(fields, known, interrupt)?);
        if let Ok(mut kept) = self.kept.lock() {
            kept.insert(&key, &class, class.bytes());
        }
        Ok(class)
    }
}

/// Names and texts as bytes, each with its presence and length before it, so that different lists have different bytes.
fn key(fields: &[&str], known: &[Option<&str>]) -> Vec<u8> {
    let mut key = Vec::new();
    key.extend(known.len().to_le_bytes());
    for text in fields.iter().copied().map(Some).chain(known.iter().copied()) {
        key.push(text.is_some().into());
        let text = text.unwrap_or_default();
        key.extend(text.len().to_le_bytes());
        key.extend(text.as_bytes());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::load_rules;
    use crate::engine::set::RuleForEvents;
    use crate::placeholders::Placeholders;

    /// A rule with an item, for the events of the channel `c`.
    fn rule(item: &str) -> RuleForEvents {
        let text = format!("title: t\nlogsource: {{service: s}}\ndetection: {{s: {{{item}}}, condition: s}}");
        let rule = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let log_sources = "logsources: [{service: s, channels: [c]}]";
        let log_sources = crate::logsource::LogSources::load(log_sources, Interrupt::NEVER)
            .expect("nothing interrupts it")
            .expect("a table");
        let alternatives = log_sources.resolve(&rule.log_sources).expect("an entry");
        RuleForEvents { rule, alternatives }
    }

    #[test]
    fn shares_the_classes_with_the_same_fields() {
        let classes = EventClasses::new(Arc::new(RuleSet::new(vec![rule("F: a")])));
        let class =
            |fields: &[&str], known: &[Option<&str>]| classes.class(fields, known, Interrupt::NEVER).expect("a class");
        let one = class(&["Channel", "F"], &[Some("c"), None]);
        assert!(!one.is_empty());
        assert!(Arc::ptr_eq(&one, &class(&["Channel", "F"], &[Some("c"), None])));
        for (fields, known) in [
            (["Channel", "F"], [Some("c"), Some("")]),
            (["Channel", "F"], [Some("d"), None]),
            (["F", "Channel"], [None, Some("c")]),
        ] {
            let other = class(&fields, &known);
            assert!(!Arc::ptr_eq(&one, &other), "{fields:?} {known:?}");
            let folded = classes.rules.class(&fields, &known, Interrupt::NEVER).expect("a class");
            assert_eq!(folded.is_empty(), other.is_empty(), "{fields:?} {known:?}");
        }
    }

    #[test]
    fn work_for_rules_can_be_stopped() {
        let rules = || vec![rule("F|contains: a"); 1000];
        let classes = EventClasses::new(Arc::new(RuleSet::new(rules())));
        // The first question is before the first rule, the second before the automaton for a known text.
        for asked in [0_u32, 1, 3] {
            let left = std::cell::Cell::new(asked);
            let is_set = || left.replace(left.get().saturating_sub(1)) == 0;
            let class = classes.class(&["Channel", "F"], &[Some("c"), Some("b")], Interrupt::new(&is_set));
            assert_eq!(class.err(), Some(Interrupted), "{asked}");
        }
        let class = classes.class(&["Channel", "F"], &[Some("c"), Some("b")], Interrupt::NEVER);
        assert!(class.is_ok_and(|class| class.is_empty()));
    }
}
