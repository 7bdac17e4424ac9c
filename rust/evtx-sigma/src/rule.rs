//! Rules: documents of YAML, checked and with their modifiers applied.

use std::fmt;

use crate::condition::{Condition, condition};
use crate::error::{LoadError, Position, Problem};
use crate::item::{Context, Item, items, keywords};
use crate::limits::{Budget, Limits};
use crate::matcher::Matcher;
use crate::placeholders::Placeholders;
use crate::stop::{Stop, Stopped};
use crate::yaml::{Key, Node, Value, documents};

/// A rule. It does not change after it is loaded.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its ID, mostly a UUID.
    pub id: Option<String>,
    /// Its name, by which correlation rules can refer to it.
    pub name: Option<String>,
    /// Its title.
    pub title: String,
    /// How serious a match is.
    pub level: Option<Level>,
    /// How mature it is.
    pub status: Option<Status>,
    /// Its tags, such as `attack.t1059`.
    pub tags: Vec<String>,
    /// Which events it is for.
    pub log_source: LogSource,
    /// The position of its log source in the text.
    pub log_source_position: Position,
    /// Its detections, in the order of the text. [`Condition::Detection`] has their indices.
    pub detections: Vec<Detection>,
    /// Which detections must be true together.
    pub condition: Condition,
}

/// A detection. It is true if one of its alternatives is.
#[derive(Debug, Clone)]
pub struct Detection {
    /// Its name.
    pub name: String,
    /// The alternatives. Each has at least one item, and is true if all of them are.
    pub any: Vec<Vec<Item>>,
}

/// Which events a rule is for. At least one of the three names is set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogSource {
    /// A group of events of any product, such as `process_creation`.
    pub category: Option<String>,
    /// A product, such as `windows`.
    pub product: Option<String>,
    /// A log of a product, such as `security`.
    pub service: Option<String>,
}

/// How serious a match is, from the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Marks the event. Nobody needs to look at it.
    Informational,
    /// Notable, but rarely an incident.
    Low,
    /// Relevant: look at it from time to time.
    Medium,
    /// Relevant: look at it soon.
    High,
    /// An incident.
    Critical,
}

/// How mature a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Ready for production.
    Stable,
    /// May need adjustments.
    Test,
    /// May report false positives.
    Experimental,
    /// Replaced by another rule.
    Deprecated,
    /// Not usable as it is.
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
    /// The items of all detections.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.detections
            .iter()
            .flat_map(|detection| detection.any.iter().flatten())
    }

    /// The matchers of all items.
    pub(crate) fn matchers(&self) -> impl Iterator<Item = &Matcher> {
        self.items().flat_map(|item| &item.any)
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        let of_matchers = self.matchers().map(|matcher| {
            let texts = match matcher {
                Matcher::Text { pattern, .. } => pattern.needles().map(str::len).sum(),
                Matcher::Regex(expression) => expression.bytes() + expression.as_str().len(),
                Matcher::FieldReference { field, .. } => field.len(),
                _ => 0,
            };
            size_of::<Matcher>() + texts
        });
        let field = |item: &Item| item.field.as_ref().map_or(0, |field| field.len());
        let of_items = self.items().map(|item| size_of::<Item>() + field(item));
        let of_detections = self.detections.iter();
        let of_detections = of_detections.map(|detection| size_of::<Detection>() + detection.name.len());
        let of_tags = self.tags.iter().map(|tag| size_of::<String>() + tag.len());
        let all = of_matchers.chain(of_items).chain(of_detections).chain(of_tags);
        size_of::<Rule>() + self.title.len() + all.sum::<usize>()
    }

    /// How many bytes of memory its regular expressions take.
    pub fn regex_bytes(&self) -> usize {
        let bytes = self.matchers().map(|matcher| match matcher {
            Matcher::Regex(expression) => expression.bytes(),
            _ => 0,
        });
        bytes.sum()
    }
}

impl LogSource {
    /// Reads the log source in a map.
    pub(crate) fn read(node: &Node) -> Result<LogSource, LoadError> {
        node.entries("logsource")?;
        let text = |key| text_of(node, key);
        let (category, product, service) = (text("category")?, text("product")?, text("service")?);
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

/// Its names, such as `category process_creation, product windows`.
impl fmt::Display for LogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            ("category", &self.category),
            ("product", &self.product),
            ("service", &self.service),
        ];
        let given = names
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        f.write_str(&given.collect::<Vec<_>>().join(", "))
    }
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
    /// The base rules that a correlation rule without `generate` silences (Sigma correlation rules, 2.1).
    pub silences: Vec<String>,
}

/// Loads the rules of a text. Each document is a rule or an error. There is always at least one result.
pub fn load_rules(text: &str, placeholders: &Placeholders) -> Vec<Result<Rule, Box<Refused>>> {
    load_rules_until(text, placeholders, &|| false).unwrap_or_default()
}

/// As [`load_rules`], which can take some 100 ms for a text.
///
/// # Errors
/// [`Stopped`] soon after `stop` returns `true`.
pub fn load_rules_until(
    text: &str,
    placeholders: &Placeholders,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Result<Rule, Box<Refused>>>, Stopped> {
    let stop = Stop::new(stop);
    let mut documents = documents(text, &stop)?;
    if documents.is_empty() {
        documents.push(Err(Problem::NoRule.at(Position::START)));
    }
    let mut context = Context {
        placeholders,
        budget: Budget::default(),
    };
    let rules = documents.into_iter().map(|document| {
        stop.check()?;
        context.budget.next_rule();
        let loaded = match &document {
            Ok(document) => rule(document, &mut context),
            Err(error) => Err(error.clone()),
        };
        Ok(loaded.map_err(|error| {
            let named = |key: &str| document.as_ref().ok()?.get(key)?.text();
            Box::new(Refused {
                id: named("id"),
                title: named("title"),
                silences: document.as_ref().map(silences).unwrap_or_default(),
                error,
            })
        }))
    });
    rules.collect()
}

/// The base rules that a document silences, if it is a correlation rule.
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
    // Sigma has no key `kind`.
    let filter = match document.get("kind") {
        Some(_) => "this is a Chainsaw rule, not a Sigma rule",
        None => "a Sigma filter changes other rules; it is not a rule",
    };
    let correlation = "correlation rules are not supported, only rules about single events";
    let action = "collections with \"action\" belong to Sigma 1; write each rule as a document of its own";
    for (key, why) in [("correlation", correlation), ("filter", filter), ("action", action)] {
        if document.get(key).is_some() {
            return Err(Problem::text(why).at(document.key_position(key)));
        }
    }
    let needed = |key| document.get(key).ok_or_else(|| document.error(Problem::Missing(key)));
    let title = needed("title")?.need_text("title")?;
    let (detections, condition) = detection(needed("detection")?, context)?;
    Ok(Rule {
        id: text_of(document, "id")?.filter(|id| !id.is_empty()),
        name: document.get("name").and_then(Node::text),
        title,
        level: named(document, "level", &Level::ALL)?,
        status: named(document, "status", &Status::ALL)?,
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

/// The text of a key, if it has one.
fn text_of(node: &Node, key: &str) -> Result<Option<String>, LoadError> {
    node.get(key).map(|value| value.need_text(key)).transpose()
}

/// The value of a key that takes one of some names.
fn named<T: Copy>(document: &Node, key: &'static str, all: &[(T, &str)]) -> Result<Option<T>, LoadError> {
    let Some(name) = text_of(document, key)? else {
        return Ok(None);
    };
    if let Some((value, _)) = all.iter().find(|(_, known)| known.eq_ignore_ascii_case(&name)) {
        return Ok(Some(*value));
    }
    let known = all.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let at = document.get(key).map_or(document.at, |node| node.at);
    Err(Problem::Unknown { what: key, name, known }.at(at))
}

fn detection(node: &Node, context: &mut Context<'_>) -> Result<(Vec<Detection>, Condition), LoadError> {
    let entries = node.entries("detection")?;
    if node.get("timeframe").is_some() {
        let why = "\"timeframe\" belongs to the aggregations of Sigma 1; Sigma 2 replaced them with correlation rules";
        return Err(Problem::text(why).at(node.key_position("timeframe")));
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
            Value::List(_) => return Err(member.wrong_type("a member of a detection", "a map or a keyword")),
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

/// The items of a map, all of which must be true.
pub(crate) fn all_of(node: &Node, entries: &[(Key, Node)], context: &mut Context<'_>) -> Result<Vec<Item>, LoadError> {
    if entries.is_empty() {
        return Err(node.error(Problem::Empty("this map")));
    }
    let items = entries.iter().map(|(key, value)| items(key, value, context));
    Ok(items.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}
