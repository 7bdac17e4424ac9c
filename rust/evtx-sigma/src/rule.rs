//! Rules: what a document of YAML says, checked and with its modifiers applied.

use std::fmt;

use crate::condition::{Condition, condition};
use crate::error::{LoadError, Position, Problem};
use crate::item::{Context, Item, items, keywords};
use crate::limits::{Budget, Limits};
use crate::matcher::Matcher;
use crate::placeholders::Placeholders;
use crate::stop::{Stop, Stopped};
use crate::yaml::{Key, Node, Value, documents};

/// A rule. Nothing in it changes after it is loaded.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its ID, mostly a UUID.
    pub id: Option<String>,
    /// Its name, by which correlation rules can refer to it.
    pub name: Option<String>,
    /// Its title.
    pub title: String,
    /// How much it matters that an event matches.
    pub level: Option<Level>,
    /// How mature it is.
    pub status: Option<Status>,
    /// Its tags, such as `attack.t1059`.
    pub tags: Vec<String>,
    /// Which events it is for.
    pub log_source: LogSource,
    /// Where that stands in the text of the rule.
    pub log_source_position: Position,
    /// Its detections, in the order of the text. [`Condition::Detection`] has their indices.
    pub detections: Vec<Detection>,
    /// Which detections have to be true together.
    pub condition: Condition,
}

/// A detection: it is true if one of its alternatives is.
#[derive(Debug, Clone)]
pub struct Detection {
    /// Its name.
    pub name: String,
    /// The alternatives. Each is true if all of its items are, of which it has at least one.
    pub any: Vec<Vec<Item>>,
}

/// Which events a rule is for. At least one of the three names is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogSource {
    /// A group of events of any product, such as `process_creation`.
    pub category: Option<String>,
    /// A product, such as `windows`.
    pub product: Option<String>,
    /// A log of a product, such as `security`.
    pub service: Option<String>,
}

/// How much it matters that an event matches, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The event is to be marked, not to be looked at.
    Informational,
    /// Notable, rarely an incident.
    Low,
    /// Relevant, to be looked at from time to time.
    Medium,
    /// Relevant, to be looked at soon.
    High,
    /// An incident.
    Critical,
}

/// How mature a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It can be used in production.
    Stable,
    /// It may need to be adjusted.
    Test,
    /// It can find what is none.
    Experimental,
    /// Another rule replaces it.
    Deprecated,
    /// It cannot be used as it is.
    Unsupported,
}

impl Level {
    /// All levels with their names in rules, from the lowest.
    pub const ALL: [(Level, &str); 5] = [
        (Level::Informational, "informational"),
        (Level::Low, "low"),
        (Level::Medium, "medium"),
        (Level::High, "high"),
        (Level::Critical, "critical"),
    ];

    /// Its name in rules.
    pub fn name(self) -> &'static str {
        Level::ALL[self as usize].1
    }
}

impl Status {
    /// All statuses with their names in rules.
    pub const ALL: [(Status, &str); 5] = [
        (Status::Stable, "stable"),
        (Status::Test, "test"),
        (Status::Experimental, "experimental"),
        (Status::Deprecated, "deprecated"),
        (Status::Unsupported, "unsupported"),
    ];

    /// Its name in rules.
    pub fn name(self) -> &'static str {
        Status::ALL[self as usize].1
    }
}

impl Rule {
    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let of_matcher = |matcher: &Matcher| {
            let texts = match matcher {
                Matcher::Text { pattern, .. } => pattern.needles().map(str::len).sum(),
                Matcher::Regex(expression) => expression.bytes() + expression.as_str().len(),
                Matcher::FieldReference { field, .. } => field.len(),
                _ => 0,
            };
            size_of::<Matcher>() + texts
        };
        let of_item = |item: &Item| {
            let field = item.field.as_ref().map_or(0, |field| field.len());
            size_of::<Item>() + field + item.any.iter().map(of_matcher).sum::<usize>()
        };
        let of_detections = self.detections.iter().map(|detection| {
            let items = detection.any.iter().flatten().map(of_item);
            size_of::<Detection>() + detection.name.len() + items.sum::<usize>()
        });
        let of_tags = self.tags.iter().map(|tag| size_of::<String>() + tag.len());
        size_of::<Rule>() + self.title.len() + of_detections.sum::<usize>() + of_tags.sum::<usize>()
    }

    /// How many bytes of memory its regular expressions take.
    pub fn regex_bytes(&self) -> usize {
        let items = self
            .detections
            .iter()
            .flat_map(|detection| detection.any.iter().flatten());
        let matchers = items.flat_map(|item| &item.any);
        let bytes = matchers.map(|matcher| match matcher {
            Matcher::Regex(expression) => expression.bytes(),
            _ => 0,
        });
        bytes.sum()
    }
}

impl LogSource {
    /// The log source that a map names.
    pub(crate) fn read(node: &Node) -> Result<LogSource, LoadError> {
        node.entries("logsource")?;
        let part = |key| node.get(key).map(|value| value.need_text(key)).transpose();
        let (category, product, service) = (part("category")?, part("product")?, part("service")?);
        if category.is_none() && product.is_none() && service.is_none() {
            return Err(node.error(Problem::Missing("category, product or service")));
        }
        Ok(LogSource {
            category,
            product,
            service,
        })
    }
}

/// Its parts with their names, such as `category process_creation, product windows`.
impl fmt::Display for LogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("category", &self.category),
            ("product", &self.product),
            ("service", &self.service),
        ];
        let parts = parts
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        f.write_str(&parts.collect::<Vec<_>>().join(", "))
    }
}

/// A document that is no rule, with what can be said of it nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct Refused {
    /// Its ID, if it has one.
    pub id: Option<String>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// What is wrong.
    pub error: LoadError,
    /// The names and IDs of the rules that do not match on their own, as this is a correlation rule without `generate`
    /// (Sigma correlation rules specification, 2.1).
    pub silences: Vec<String>,
}

/// Loads the rules of a text: each of its documents is a rule, or an error. There is always at least one result.
pub fn load_rules(text: &str, placeholders: &Placeholders) -> Vec<Result<Rule, Box<Refused>>> {
    load_rules_until(text, placeholders, &|| false).unwrap_or_default()
}

/// As [`load_rules`], which can take some 100 ms for a text.
///
/// # Errors
/// [`Stopped`] soon after `stop` gives `true`.
pub fn load_rules_until(
    text: &str,
    placeholders: &Placeholders,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Result<Rule, Box<Refused>>>, Stopped> {
    let stop = Stop::new(stop);
    let mut documents = documents(text, &stop)?;
    if documents.is_empty() {
        documents.push(Err(Problem::NoRule.at(Position { line: 1, column: 1 })));
    }
    let mut context = Context {
        placeholders,
        budget: Budget::default(),
    };
    let rules = documents.into_iter().map(|document| {
        stop.check()?;
        context.budget.next_rule();
        let (document, loaded) = match document {
            Ok(document) => {
                let loaded = rule(&document, &mut context);
                (Some(document), loaded)
            }
            Err(error) => (None, Err(error)),
        };
        Ok(loaded.map_err(|error| {
            let named = |key: &str| document.as_ref()?.get(key).and_then(Node::text);
            let (id, title) = (named("id"), named("title"));
            let silences = document.as_ref().map(silences).unwrap_or_default();
            Box::new(Refused {
                id,
                title,
                error,
                silences,
            })
        }))
    });
    rules.collect()
}

/// The rules that a document silences, if it is a correlation rule.
fn silences(document: &Node) -> Vec<String> {
    let Some(correlation) = document.get("correlation") else {
        return Vec::new();
    };
    let generates = correlation.get("generate").and_then(Node::text);
    if generates.is_some_and(|text| text == "true") {
        return Vec::new();
    }
    let rules = correlation.get("rules").map_or(&[][..], Node::each);
    rules.iter().filter_map(Node::text).collect()
}

fn rule(document: &Node, context: &mut Context<'_>) -> Result<Rule, LoadError> {
    document.entries("a rule")?;
    let kinds = [
        (
            "correlation",
            "a correlation rule is about several events; this is for rules about one",
        ),
        // Sigma's own keys have no `kind`.
        match document.get("kind") {
            Some(_) => ("filter", "this is a rule of Chainsaw's own form, not of Sigma's"),
            None => ("filter", "a Sigma filter changes other rules; it is no rule"),
        },
        (
            "action",
            "collections with \"action\" were a part of Sigma 1; each rule is a document of its own",
        ),
    ];
    for (key, why) in kinds {
        if document.get(key).is_some() {
            return Err(Problem::NotSupported(why).at(document.key_position(key)));
        }
    }
    let needed = |key| document.get(key).ok_or_else(|| document.error(Problem::Missing(key)));
    let title = needed("title")?.need_text("title")?;
    let (detections, condition) = detection(needed("detection")?, context)?;
    Ok(Rule {
        id: document
            .get("id")
            .map(|id| id.need_text("id"))
            .transpose()?
            .filter(|id| !id.is_empty()),
        name: document.get("name").and_then(Node::text),
        title,
        level: named(
            document,
            "level",
            &Level::ALL,
            "informational, low, medium, high, critical",
        )?,
        status: named(
            document,
            "status",
            &Status::ALL,
            "stable, test, experimental, deprecated, unsupported",
        )?,
        tags: tags(document)?,
        log_source: LogSource::read(needed("logsource")?)?,
        log_source_position: document.key_position("logsource"),
        detections,
        condition,
    })
}

fn tags(document: &Node) -> Result<Vec<String>, LoadError> {
    let tags = document.get("tags").map_or(&[][..], Node::each);
    if let Some(tag) = tags.get(Limits::TAGS) {
        let (what, limit) = ("tags of a rule", Limits::TAGS);
        return Err(tag.error(Problem::Limit { what, limit }));
    }
    tags.iter().map(|tag| tag.need_text("a tag")).collect()
}

/// The value of a key that has one of some names.
fn named<T: Copy>(
    document: &Node,
    key: &'static str,
    all: &[(T, &str)],
    known: &'static str,
) -> Result<Option<T>, LoadError> {
    let Some(node) = document.get(key) else { return Ok(None) };
    let name = node.need_text(key)?;
    match all.iter().find(|(_, known)| known.eq_ignore_ascii_case(&name)) {
        Some((value, _)) => Ok(Some(*value)),
        None => Err(node.error(Problem::Unknown { what: key, name, known })),
    }
}

fn detection(node: &Node, context: &mut Context<'_>) -> Result<(Vec<Detection>, Condition), LoadError> {
    let entries = node.entries("detection")?;
    if node.get("timeframe").is_some() {
        let why = "\"timeframe\" belongs to the aggregations of Sigma 1; Sigma 2 has correlation rules in their place";
        return Err(Problem::NotSupported(why).at(node.key_position("timeframe")));
    }
    let text = node
        .get("condition")
        .ok_or_else(|| node.error(Problem::Missing("condition")))?;
    let named = entries
        .iter()
        .filter(|(name, _)| !["condition", "timeframe"].contains(&name.text.as_str()));
    let detections = named.map(|(name, value)| {
        Ok(Detection {
            name: name.text.clone(),
            any: alternatives(value, context)?,
        })
    });
    let detections: Vec<_> = detections.collect::<Result<_, LoadError>>()?;
    let names: Vec<_> = detections.iter().map(|detection| detection.name.as_str()).collect();
    let condition = condition(text, &names, &mut context.budget)?;
    Ok((detections, condition))
}

/// The alternatives of a detection: a map, a keyword, or a list of both.
fn alternatives(node: &Node, context: &mut Context<'_>) -> Result<Vec<Vec<Item>>, LoadError> {
    let mut any = Vec::new();
    let mut words = Vec::new();
    for member in node.each() {
        match &member.value {
            Value::Map(entries) => any.push(all_of(member, entries, context)?),
            Value::List(_) => return Err(member.wrong_kind("a member of a detection", "a map or a keyword")),
            _ => words.push(member.clone()),
        }
    }
    if !words.is_empty() {
        any.push(vec![keywords(&words, context)?]);
    }
    match any.is_empty() {
        true => Err(node.error(Problem::Empty("this detection"))),
        false => Ok(any),
    }
}

/// The items of a map, which all have to be true.
pub(crate) fn all_of(node: &Node, entries: &[(Key, Node)], context: &mut Context<'_>) -> Result<Vec<Item>, LoadError> {
    if entries.is_empty() {
        return Err(node.error(Problem::Empty("this map")));
    }
    let items = entries.iter().map(|(key, value)| items(key, value, context));
    Ok(items.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
