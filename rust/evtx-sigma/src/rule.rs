//! Rules: documents of YAML, checked and with their modifiers applied.

use std::sync::Arc;

use crate::condition::{Condition, Piped, condition};
use crate::error::{LoadError, Position, Problem};
use crate::item::{Context, Item, items, keywords};
use crate::limits::Limits;
use crate::matcher::Matcher;
use crate::source::{LogSource, text_of};
use crate::yaml::{Key, Node, Value};

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
    /// What else it says about itself.
    pub metadata: Metadata,
    /// Which events it is for: those of any of these. There is at least one.
    pub log_sources: Vec<LogSource>,
    /// The position of its log source in the text.
    pub log_source_position: Position,
    /// Its detections, in the order of the text. [`Condition::Detection`] has their indices.
    pub detections: Vec<Detection>,
    /// Which detections must be true together.
    pub condition: Condition,
    /// What is odd about it, although it can be used.
    pub lint: Vec<LoadError>,
    pub(crate) identity: Identity,
}

/// What a rule and its clones have in common, but no other rule. By it, an aggregation finds its rule.
#[derive(Debug, Clone)]
pub struct Identity(Arc<()>);

impl Identity {
    pub(crate) fn new() -> Self {
        Identity(Arc::new(()))
    }

    /// A number that no other identity has while this one exists.
    pub(crate) fn number(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// What a rule says about itself, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// What it finds.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, as in the text.
    pub date: Option<String>,
    /// Where more is said, mostly URLs.
    pub references: Vec<String>,
    /// Which harmless events it matches.
    pub false_positives: Vec<String>,
}

impl Metadata {
    /// Reads what a document says. What has another type than it should is left out, because no match depends on it.
    pub(crate) fn read(document: &Node) -> Metadata {
        let texts = |key| {
            let nodes = document.get(key).map_or(&[][..], Node::each);
            nodes
                .iter()
                .take(Limits::TAGS)
                .filter_map(Node::text)
                .collect::<Vec<_>>()
        };
        let text = |key| Some(texts(key).join(", ")).filter(|text| !text.is_empty());
        Metadata {
            description: text("description"),
            author: text("author"),
            date: text("date"),
            references: texts("references"),
            false_positives: texts("falsepositives"),
        }
    }

    /// About how many bytes of memory it takes, besides itself.
    pub(crate) fn bytes(&self) -> usize {
        let one = [&self.description, &self.author, &self.date].into_iter().flatten();
        let all = one.chain(&self.references).chain(&self.false_positives);
        all.map(|text| size_of::<String>() + text.len()).sum()
    }
}

/// A detection. It is true if one of its alternatives is.
#[derive(Debug, Clone)]
pub struct Detection {
    /// Its name.
    pub name: String,
    /// The alternatives. Each has at least one item, and is true if all of them are.
    pub any: Vec<Vec<Item>>,
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
        size_of::<Rule>() + self.title.len() + self.metadata.bytes() + all.sum::<usize>()
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

/// What turns a rule into an aggregation of Sigma 1.
pub(crate) struct Aggregated {
    pub(crate) piped: Piped,
    /// The timespan of its windows.
    pub(crate) timeframe: Option<Node>,
}

/// Reads a rule, and its aggregation if it has one.
pub(crate) fn rule(document: &Node, context: &mut Context<'_>) -> Result<(Rule, Option<Aggregated>), LoadError> {
    document.entries("a rule")?;
    // Sigma has no key `kind`.
    let chainsaw = "this is a Chainsaw rule, not a Sigma rule";
    let action = "collections with \"action\" belong to Sigma 1; write each rule as a document of its own";
    for (key, why) in [("filter", chainsaw), ("action", action)] {
        if document.get(key).is_some() {
            return Err(Problem::text(why).at(document.key_position(key)));
        }
    }
    let needed = |key| document.get(key).ok_or_else(|| document.error(Problem::Missing(key)));
    let title = needed("title")?.need_text("title")?;
    let (detections, condition, aggregated) = detection(needed("detection")?, context)?;
    let rule = Rule {
        id: text_of(document, "id")?.filter(|id| !id.is_empty()),
        name: document.get("name").and_then(Node::text),
        title,
        level: named(document, "level", &Level::ALL)?,
        status: named(document, "status", &Status::ALL)?,
        tags: tags(document)?,
        metadata: Metadata::read(document),
        log_sources: LogSource::read_all(needed("logsource")?)?,
        log_source_position: document.key_position("logsource"),
        detections,
        condition,
        lint: lint(document, aggregated.is_some())?,
        identity: Identity::new(),
    };
    Ok((rule, aggregated))
}

/// A timespan next to `detection` has no effect. Without an aggregation, it also has no meaning.
fn lint(document: &Node, is_aggregated: bool) -> Result<Vec<LoadError>, LoadError> {
    if document.get("timeframe").is_none() {
        return Ok(Vec::new());
    }
    let why = "\"timeframe\" belongs in \"detection\"; here, it has no effect";
    let error = Problem::text(why).at(document.key_position("timeframe"));
    match is_aggregated {
        true => Err(error),
        false => Ok(vec![error]),
    }
}

pub(crate) fn tags(document: &Node) -> Result<Vec<String>, LoadError> {
    let tags = document.get("tags").map_or(&[][..], Node::each);
    if let Some(tag) = tags.get(Limits::TAGS) {
        let (what, limit) = ("tags of a rule", Limits::TAGS);
        return Err(tag.error(Problem::Limit { what, limit }));
    }
    tags.iter().map(|tag| tag.need_text("a tag")).collect()
}

/// The value of a key that takes one of some names.
pub(crate) fn named<T: Copy>(document: &Node, key: &'static str, all: &[(T, &str)]) -> Result<Option<T>, LoadError> {
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

type DetectionPart = (Vec<Detection>, Condition, Option<Aggregated>);

fn detection(node: &Node, context: &mut Context<'_>) -> Result<DetectionPart, LoadError> {
    node.entries("detection")?;
    let text = node
        .get("condition")
        .ok_or_else(|| node.error(Problem::Missing("condition")))?;
    let (detections, condition, piped) = detections_of(node, text, &["condition", "timeframe"], context)?;
    let timeframe = node.get("timeframe").cloned();
    let aggregated = piped.map(|piped| (piped, timeframe.clone()));
    if aggregated.is_none() && timeframe.is_some() {
        let why = "\"timeframe\" needs an aggregation in the condition, such as \"| count() > 5\"";
        return Err(Problem::text(why).at(node.key_position("timeframe")));
    }
    let aggregated = aggregated.map(|(piped, timeframe)| Aggregated { piped, timeframe });
    Ok((detections, condition, aggregated))
}

/// The detections of a map, all but the keys `others`, and the condition over them.
pub(crate) fn detections_of(
    node: &Node,
    text: &Node,
    others: &[&str],
    context: &mut Context<'_>,
) -> Result<(Vec<Detection>, Condition, Option<Piped>), LoadError> {
    let entries = node.entries("detection")?.iter();
    let named = entries.filter(|(name, _)| !others.contains(&name.text.as_str()));
    let detections = named.map(|(name, value)| {
        Ok(Detection {
            name: name.text.clone(),
            any: alternatives(value, context)?,
        })
    });
    let detections: Vec<_> = detections.collect::<Result<_, LoadError>>()?;
    let names: Vec<_> = detections.iter().map(|detection| detection.name.as_str()).collect();
    let (condition, piped) = condition(text, &names, &mut context.budget)?;
    Ok((detections, condition, piped))
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
