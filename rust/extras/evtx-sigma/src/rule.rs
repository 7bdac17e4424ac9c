//! Rules: documents of YAML, checked and with their modifiers applied.

use std::sync::Arc;

use crate::about::About;
use crate::condition::{Condition, Piped, condition};
use crate::error::{LoadError, Position, Problem};
use crate::event::{CHANNEL, SYSTEM_CHANNEL};
use crate::item::{CLEARED_CHANNEL, Context, Item, items, keywords};
use crate::limits::Limits;
use crate::matcher::Matcher;
use crate::source::LogSource;
use crate::yaml::{Key, Node, Value};

/// A rule. It does not change after it is loaded.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What it says about itself.
    pub about: Arc<About>,
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

/// A detection. It is true if one of its alternatives is.
#[derive(Debug, Clone)]
pub struct Detection {
    /// Its name.
    pub name: String,
    /// The alternatives. Each has at least one item, and is true if all of them are.
    pub any: Vec<Vec<Item>>,
}

impl Rule {
    /// The items of all detections.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
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
        let all = of_matchers.chain(of_items).chain(of_detections);
        size_of::<Rule>() + self.about.bytes() + all.sum::<usize>()
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
pub(crate) struct Aggregated<'t> {
    pub(crate) piped: Piped<'t>,
    /// The timespan of its windows.
    pub(crate) timeframe: Option<Node<'t>>,
}

/// Reads a rule, and its aggregation if it has one.
pub(crate) fn rule<'t>(
    document: &Node<'t>,
    context: &mut Context<'_>,
) -> Result<(Rule, Option<Aggregated<'t>>), LoadError> {
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
    let about = Arc::new(About::read(document)?);
    let (mut detections, condition, aggregated) = detection(needed("detection")?, context)?;
    let log_sources = LogSource::read_all(needed("logsource")?)?;
    name_channel_of_log_source(&mut detections, &log_sources);
    let rule = Rule {
        about,
        log_sources,
        log_source_position: document.key_position("logsource"),
        detections,
        condition,
        lint: lint(document, aggregated.is_some())?,
        identity: Identity::new(),
    };
    Ok((rule, aggregated))
}

/// Hayabusa's converter of rules makes a detection of the log source, named after its service. There, `Channel` is always
/// that of `System`. Elsewhere, it is a log that was cleared, if there is one.
fn name_channel_of_log_source(detections: &mut [Detection], log_sources: &[LogSource]) {
    let is_channel = |item: &Item| item.field.as_deref() == Some(CHANNEL);
    let asking = |detection: &&Detection| detection.any.iter().flatten().any(is_channel);
    if detections.iter().filter(asking).count() < 2 {
        return;
    }
    for detection in detections {
        let mut services = log_sources.iter().filter_map(|source| source.service.as_deref());
        if services.any(|service| service == detection.name) && detection.any.iter().flatten().all(is_channel) {
            let items = detection.any.iter_mut().flatten();
            items.for_each(|item| item.field = Some(SYSTEM_CHANNEL.into()));
        }
    }
}

/// A timespan next to `detection` has no effect. Without an aggregation, it also has no meaning.
fn lint(document: &Node, is_aggregated: bool) -> Result<Vec<LoadError>, LoadError> {
    if document.get("timeframe").is_none() {
        return Ok(Vec::new());
    }
    let why = "\"timeframe\" belongs in \"detection\"; here, it has no effect";
    let error = Problem::text(why).at(document.key_position("timeframe"));
    if is_aggregated { Err(error) } else { Ok(vec![error]) }
}

type DetectionPart<'t> = (Vec<Detection>, Condition, Option<Aggregated<'t>>);

fn detection<'t>(node: &Node<'t>, context: &mut Context<'_>) -> Result<DetectionPart<'t>, LoadError> {
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
pub(crate) fn detections_of<'t>(
    node: &Node<'t>,
    text: &Node<'t>,
    others: &[&str],
    context: &mut Context<'_>,
) -> Result<(Vec<Detection>, Condition, Option<Piped<'t>>), LoadError> {
    let entries = node.entries("detection")?.iter();
    let mut keys = entries
        .clone()
        .flat_map(|(_, value)| value.each())
        .flat_map(|map| map.entries("a map").unwrap_or_default())
        .map(|(key, _)| key.text.split('|').next());
    context.names_cleared_channel = keys.any(|field| field == Some(CLEARED_CHANNEL));
    let named = entries.filter(|(name, _)| !others.contains(&&*name.text));
    if let Some((_, more)) = named.clone().nth(Limits::DETECTIONS) {
        return Err(more.error(Problem::limit("detections of a rule", Limits::DETECTIONS)));
    }
    let detections = named.map(|(name, value)| {
        Ok(Detection {
            name: name.text.to_string(),
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
    if any.is_empty() {
        Err(node.error(Problem::Empty("this detection")))
    } else {
        Ok(any)
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
