//! Documents of a text of rules: rules, correlations, filters, and rules of Sigma 1 with an aggregation.

use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};

use crate::about::About;
use crate::condition::Condition;
use crate::correlation::{
    Aggregation, Correlation, CorrelationKind, Reference, aggregation, correlation, never, timespan,
};
use crate::error::{LoadError, Position, Problem};
use crate::filter::{Filter, filter};
use crate::item::Context;
use crate::limits::Budget;
use crate::matcher::Comparison;
use crate::placeholders::Placeholders;
use crate::rule::{Aggregated, Identity, Rule, rule};
use crate::yaml::{Node, documents};

/// A document of a text of rules.
#[derive(Debug, Clone)]
pub enum Document {
    /// A rule.
    Rule(Rule),
    /// A correlation rule.
    Correlation(Correlation),
    /// The rules that an aggregation counts, and the aggregation. There is one rule, and one more for each detection after
    /// `near`; these have no ID and name.
    Aggregation(Vec<Rule>, Correlation),
    /// A filter, which narrows rules.
    Filter(Filter),
}

/// A document that cannot be loaded, with what is known about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Its ID, if it has one.
    pub id: Option<String>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Why.
    pub error: LoadError,
}

/// Loads the rules of a text that are about single events. Each document is a rule or an error. There is always at least
/// one result.
pub fn load_rules(text: &str, placeholders: &Placeholders) -> Vec<Result<Rule, Box<Refused>>> {
    let documents = load_documents(text, placeholders, Interrupt::NEVER).unwrap_or_default();
    let other = |about: Arc<About>, position| {
        let error = Problem::text("this rule is not about single events").at(position);
        let (id, title) = (about.id.clone(), Some(about.title.clone()));
        Err(Box::new(Refused { id, title, error }))
    };
    let rule = |document| match document {
        Document::Rule(rule) => Ok(rule),
        Document::Correlation(one) | Document::Aggregation(_, one) => other(one.about, one.position),
        Document::Filter(one) => other(one.about, one.position),
    };
    documents.into_iter().map(|document| document.and_then(rule)).collect()
}

/// Loads the documents of a text, which can take some 100 ms. There is always at least one result.
///
/// # Errors
/// [`Interrupted`].
pub fn load_documents(
    text: &str,
    placeholders: &Placeholders,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Result<Document, Box<Refused>>>, Interrupted> {
    let mut documents = documents(text, interrupt)?;
    if documents.is_empty() {
        documents.push(Err(Problem::NoRule.at(Position::START)));
    }
    let mut context = Context {
        placeholders,
        interrupt,
        budget: Budget::default(),
        names_cleared_channel: false,
    };
    let loaded = documents.into_iter().map(|document| {
        context.budget.next_rule();
        let loaded = match &document {
            Ok(document) => load(document, &mut context),
            Err(error) => Err(error.clone()),
        };
        interrupt.check()?;
        Ok(loaded.map_err(|error| {
            let named = |key: &str| document.as_ref().ok()?.get(key)?.text().map(str::to_owned);
            let (id, title) = (named("id"), named("title"));
            Box::new(Refused { id, title, error })
        }))
    });
    loaded.collect()
}

fn load(document: &Node, context: &mut Context<'_>) -> Result<Document, LoadError> {
    // Some rules have a note of this name, in plain text.
    let is_note = |node: &&Node| node.text().is_some() && document.get("detection").is_some();
    if document.get("correlation").filter(|node| !is_note(node)).is_some() {
        if document.get("detection").is_some() {
            let why = "a document with \"correlation\" has no \"detection\"; write the rule as a document of its own";
            return Err(Problem::text(why).at(document.key_position("detection")));
        }
        return correlation(document).map(Document::Correlation);
    }
    // Chainsaw's rules have these keys, too.
    if document.get("filter").is_some() && document.get("kind").is_none() {
        return filter(document, context).map(Document::Filter);
    }
    let (rule, aggregated) = rule(document, context)?;
    match aggregated {
        None => Ok(Document::Rule(rule)),
        Some(aggregated) => aggregate(rule, &aggregated),
    }
}

/// Turns a rule with an aggregation into its rules and a correlation.
fn aggregate(rule: Rule, aggregated: &Aggregated) -> Result<Document, LoadError> {
    let piped = &aggregated.piped;
    let parsed = aggregation(&piped.text).map_err(|(at, problem)| piped.error(at, problem))?;
    let timeframe = aggregated.timeframe.as_ref();
    let mut correlation = Correlation {
        about: Arc::clone(&rule.about),
        position: piped.error(0, Problem::NoRule).position,
        timespan: timeframe.map(timespan).transpose()?,
        lint: rule.lint.clone(),
        ..Correlation::default()
    };
    let mut rules = vec![rule];
    match parsed {
        Aggregation::Compared {
            kind,
            field,
            by,
            condition,
        } => {
            correlation.kind = kind;
            correlation.group_by = by;
            correlation.fields = field.into_iter().collect();
            correlation.condition.push(condition);
        }
        Aggregation::Near(present, absent) => {
            let count = 1 + present.len();
            correlation.kind = CorrelationKind::Temporal { absent: count };
            correlation.condition.push((Comparison::GreaterOrEqual, count as f64));
            for name in present.iter().chain(&absent) {
                let other = detection_alone(&rules[0], name);
                let other = other.ok_or_else(|| piped.error(0, Problem::UnknownDetection(name.clone())))?;
                rules.push(other);
            }
        }
    }
    if !correlation.can_hold() {
        return Err(piped.error(0, never()));
    }
    let twice =
        (1..correlation.group_by.len()).find(|at| correlation.group_by[..*at].contains(&correlation.group_by[*at]));
    if let Some(at) = twice {
        let why = format!("the aggregation groups by \"{}\" twice", correlation.group_by[at]);
        correlation.lint.push(piped.error(0, Problem::text(why)));
    }
    let own = |rule: &Rule| Reference::Own(rule.identity.clone());
    correlation.references = rules.iter().map(own).collect();
    Ok(Document::Aggregation(rules, correlation))
}

/// A rule that is true if one detection of another is.
fn detection_alone(rule: &Rule, name: &str) -> Option<Rule> {
    let index = rule.detections.iter().position(|detection| detection.name == name)?;
    Some(Rule {
        about: Arc::new(About {
            id: None,
            name: None,
            ..About::clone(&rule.about)
        }),
        detections: vec![rule.detections[index].clone()],
        condition: Condition::Detection(0),
        identity: Identity::new(),
        ..rule.clone()
    })
}
