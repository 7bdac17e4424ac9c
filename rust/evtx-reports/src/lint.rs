//! Finds Sigma rules that load, but can never match as they are written.
//!
//! A rule is evaluated on **candidates**: events that its log source has, of which only the ID and the names of the fields
//! are known. So an item is true, false or open. If the condition is false for each candidate, the rule can
//! never match. What is not known for certain is open: a false alarm costs more than a find is worth.

mod known;

use std::collections::HashSet;
use std::sync::Arc;

use evtx_sigma::{Alternative, Condition, Detection, Item, Matcher, Pattern, Place, Rule};

use known::{Channel, Channels, Fields, is_of_any_event};

/// The most items of all candidates of a rule that are evaluated. A rule with more is left alone.
const MAX_WORK: usize = 50_000;

/// Finds what is odd about rules. It remembers the events that rules are for, and threads can share it.
#[derive(Default)]
pub struct Linter(Channels);

/// An event that a rule can be for.
struct Candidate<'a> {
    alternative: &'a Alternative,
    id: Id,
    /// The channel, if its events are known.
    channel: Option<Arc<Channel>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Id {
    Known(u32),
    /// An ID that the rule does not name.
    Other,
}

/// Whether something is true for a candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    False,
    Open,
    True,
}

/// Why an item is false.
#[derive(Clone, PartialEq, Eq)]
enum Why {
    /// Another event ID.
    OtherId,
    /// The event has no such field, and none that resembles it.
    NoField(String),
    /// What to write instead.
    Wrong(String),
}

impl Linter {
    /// What is odd about a rule for the events of `alternatives`, in sentences.
    pub fn lint(&self, rule: &Rule, alternatives: &[Alternative]) -> Vec<String> {
        let Some(candidates) = self.candidates(rule, alternatives) else {
            return Vec::new();
        };
        let items: Vec<&Item> = rule.items().collect();
        let matchers: usize = items.iter().map(|item| 1 + item.any.len()).sum();
        if matchers.saturating_mul(candidates.len()) > MAX_WORK {
            return Vec::new();
        }
        let is_dead = candidates
            .iter()
            .all(|candidate| candidate.truth(rule, &rule.condition) == Truth::False);
        let mut found = match is_dead {
            true => reasons(&candidates, &items),
            // An item that is false for all events. One for other events than those that the rule names can be on purpose.
            false => items.iter().filter_map(|item| wrong(&candidates, item)).collect(),
        };
        let mut seen = HashSet::new();
        found.retain(|why| seen.insert(why.clone()));
        let what = if is_dead { "the rule" } else { "an item" };
        found.iter().map(|why| format!("{what} never matches: {why}")).collect()
    }

    /// The events that a rule can be for, or `None` if they are too many to say anything.
    fn candidates<'a>(&self, rule: &Rule, alternatives: &'a [Alternative]) -> Option<Vec<Candidate<'a>>> {
        let ids = named_ids(rule)?;
        // What a rule calls the event ID is another field then.
        if alternatives
            .iter()
            .any(|alternative| alternative.renames.contains_key("EventID"))
        {
            return None;
        }
        // Another provider can write to a channel; then its events are not those that are known.
        let names_provider = |item: &Item| {
            item.field
                .as_deref()
                .is_some_and(|field| field.starts_with("Provider_"))
        };
        let is_any_provider = rule.items().any(names_provider);
        let mut candidates = Vec::new();
        for alternative in alternatives {
            let mut channels: Vec<Option<Arc<Channel>>> = Vec::new();
            for channel in &alternative.channels {
                channels.push(self.0.get(channel).filter(|_| !is_any_provider));
            }
            if channels.is_empty() {
                channels.push(None);
            }
            for channel in channels {
                let all = ids_of(alternative, channel.as_deref(), &ids);
                candidates.extend(all.into_iter().map(|id| Candidate {
                    alternative,
                    id,
                    channel: channel.clone(),
                }));
            }
        }
        Some(candidates)
    }
}

/// What is wrong with an item that is false for all candidates.
fn wrong(candidates: &[Candidate<'_>], item: &Item) -> Option<String> {
    let all: Option<Vec<Why>> = candidates.iter().map(|one| one.why_false(item)).collect();
    all?.into_iter().find_map(|why| match why {
        Why::Wrong(why) => Some(why),
        Why::OtherId | Why::NoField(_) => None,
    })
}

/// Why a rule is false for all candidates.
fn reasons(candidates: &[Candidate<'_>], items: &[&Item]) -> Vec<String> {
    // Items whose IDs no candidate has explain all the rest.
    let is_never = |item: &&&Item| is_event_id(item) && candidates.iter().all(|one| one.why_false(item).is_some());
    let of_ids = items.iter().filter(is_never).map(|item| {
        impossible_ids(item).unwrap_or_else(|| {
            let ids = plain_ids(item).unwrap_or_default().join(", ");
            format!("no event of its log source has the event ID {ids}")
        })
    });
    let of_ids: Vec<String> = of_ids.collect();
    if !of_ids.is_empty() {
        return of_ids;
    }
    // Of the others, the event that comes closest tells most.
    let false_of = |candidate: &Candidate<'_>| {
        let all = items.iter().filter_map(|item| candidate.why_false(item));
        all.collect::<Vec<_>>()
    };
    let of_ids = |all: &Vec<Why>| all.iter().filter(|why| **why == Why::OtherId).count();
    let closest = candidates
        .iter()
        .map(false_of)
        .min_by_key(|all| (of_ids(all), all.len()));
    let texts = closest.unwrap_or_default().into_iter().filter_map(|why| match why {
        Why::NoField(why) | Why::Wrong(why) => Some(why),
        Why::OtherId => None,
    });
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => vec!["no event of its log source has all event IDs that it names".to_owned()],
        false => texts,
    }
}

/// The IDs of the candidates of a channel, for a rule that names some.
fn ids_of(alternative: &Alternative, channel: Option<&Channel>, named: &[u32]) -> Vec<Id> {
    if !alternative.event_ids.is_empty() {
        return alternative.event_ids.iter().copied().map(Id::Known).collect();
    }
    let mut ids = vec![Id::Other];
    ids.extend(named.iter().copied().map(Id::Known));
    if let Some((channel, all)) = channel.and_then(|channel| Some((channel, channel.all_ids()?))) {
        // A rule that names no ID is taken to be for the known events, and not for those of newer versions.
        ids.retain(|id| matches!(id, Id::Known(id) if channel.can_have(*id)));
        ids.extend(all.into_iter().filter(|id| !named.contains(id)).map(Id::Known));
    }
    ids
}

/// The values of an item about event IDs, if all are plain texts.
fn plain_ids(item: &Item) -> Option<Vec<&str>> {
    let texts = item.any.iter().map(|matcher| match matcher {
        Matcher::Text {
            pattern: Pattern::Needle(Place::Whole, text),
            ..
        } => Some(&**text),
        _ => None,
    });
    texts.collect()
}

fn is_event_id(item: &Item) -> bool {
    item.field.as_deref() == Some("EventID")
}

/// The event IDs that a rule names, or `None` if it describes some by wildcards or comparisons.
fn named_ids(rule: &Rule) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for item in rule.items().filter(|item| is_event_id(item)) {
        // Templates declare the ID as UInt16.
        ids.extend(
            plain_ids(item)?
                .iter()
                .filter_map(|id| id.parse::<u16>().ok())
                .map(u32::from),
        );
    }
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

/// Says so if an item asks for event IDs that no event can have.
fn impossible_ids(item: &Item) -> Option<String> {
    let is_wrong = |id: &&str| id.parse::<u16>().ok().is_none_or(|number| number.to_string() != **id);
    let all = plain_ids(item).filter(|_| is_event_id(item) && !item.is_negated)?;
    let first = all.first()?;
    all.iter()
        .all(is_wrong)
        .then(|| format!("\"{first}\" is not an event ID, which is a number from 0 to 65535"))
}

impl Candidate<'_> {
    fn fields(&self) -> Option<&Fields> {
        match self.id {
            Id::Known(id) => self.channel.as_ref()?.event(id),
            Id::Other => None,
        }
    }

    fn truth(&self, rule: &Rule, condition: &Condition) -> Truth {
        match condition {
            Condition::Detection(index) => self.detection(&rule.detections[*index]),
            Condition::Not(inner) => match self.truth(rule, inner) {
                Truth::False => Truth::True,
                Truth::Open => Truth::Open,
                Truth::True => Truth::False,
            },
            Condition::All(parts) => all(parts.iter().map(|part| self.truth(rule, part))),
            Condition::Any(parts) => any(parts.iter().map(|part| self.truth(rule, part))),
        }
    }

    fn detection(&self, detection: &Detection) -> Truth {
        any(detection
            .any
            .iter()
            .map(|items| all(items.iter().map(|item| self.item(item)))))
    }

    fn item(&self, item: &Item) -> Truth {
        match self.why_false(item) {
            Some(_) => Truth::False,
            None if is_event_id(item) && self.id_truth(item) == Truth::True => Truth::True,
            None if self.lacks(item) && wants_absence(item) => Truth::True,
            None => Truth::Open,
        }
    }

    /// Whether the event has an ID of an item with plain IDs.
    fn id_truth(&self, item: &Item) -> Truth {
        let Some(ids) = plain_ids(item) else {
            return Truth::Open;
        };
        let is_one = match self.id {
            Id::Known(id) => ids.contains(&id.to_string().as_str()),
            Id::Other => false,
        };
        match is_one != item.is_negated {
            true => Truth::True,
            false => Truth::False,
        }
    }

    /// Whether the event has no such field, for certain.
    fn lacks(&self, item: &Item) -> bool {
        let (Some(field), Some(fields)) = (item.field.as_deref(), self.fields()) else {
            return false;
        };
        let name = self.alternative.name_in_log(field);
        !is_of_any_event(name) && !fields.has(name) && (fields.is_complete() || fields.similar(name).is_some())
    }

    /// Why an item is false, or `None` if it is true or open.
    fn why_false(&self, item: &Item) -> Option<Why> {
        let field = item.field.as_deref()?;
        if is_event_id(item) {
            let why = impossible_ids(item).map_or(Why::OtherId, Why::Wrong);
            return (self.id_truth(item) == Truth::False).then_some(why);
        }
        let is_false = self.lacks(item) && (item.is_negated || !wants_absence(item));
        is_false.then(|| self.no_field(field))
    }

    fn no_field(&self, field: &str) -> Why {
        let text = match self.id {
            Id::Known(id) => format!("the event {id} has no field \"{field}\""),
            Id::Other => format!("the events have no field \"{field}\""),
        };
        let similar = self.fields().and_then(|fields| {
            let renamed = self
                .alternative
                .renames
                .keys()
                .find(|name| known::plain(name) == known::plain(field));
            renamed.map(String::as_str).or_else(|| fields.similar(field))
        });
        match similar {
            Some(name) => Why::Wrong(format!("{text}; use \"{name}\"")),
            None => Why::NoField(text),
        }
    }
}

/// Whether an item is true for an event without its field.
fn wants_absence(item: &Item) -> bool {
    let is_one = |matcher: &Matcher| matches!(matcher, Matcher::Null | Matcher::Exists(false));
    item.any.iter().any(is_one)
}

fn all(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut truth = Truth::True;
    for part in parts {
        match part {
            Truth::False => return Truth::False,
            Truth::Open => truth = Truth::Open,
            Truth::True => {}
        }
    }
    truth
}

fn any(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut truth = Truth::False;
    for part in parts {
        match part {
            Truth::True => return Truth::True,
            Truth::Open => truth = Truth::Open,
            Truth::False => {}
        }
    }
    truth
}
