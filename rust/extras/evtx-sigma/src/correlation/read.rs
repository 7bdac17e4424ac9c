//! Reads correlation rules ("Components" of the specification).

use super::model::{Alias, Correlation, CorrelationKind, Reference};
use crate::about::About;
use crate::error::{LoadError, Problem};
use crate::limits::Limits;
use crate::matcher::Comparison;
use crate::number::Number;
use crate::yaml::{Key, Node, Value};

const KEYS: &str = "type, rules, aliases, group-by, timespan, condition, generate";
const TYPES: &str = "event_count, value_count, temporal, temporal_ordered, value_sum, value_avg, value_percentile";
const CONDITION: &str = "gt, gte, lt, lte, eq, neq, field, percentile";

/// Reads a correlation rule.
pub(crate) fn correlation(document: &Node) -> Result<Correlation, LoadError> {
    let node = needed(document, "correlation")?;
    for (key, _) in node.entries("correlation")? {
        if !KEYS.split(", ").any(|known| known == key.text) {
            return Err(unknown("key", &key.text, KEYS).at(key.at));
        }
    }
    let references = references(needed(node, "rules")?)?;
    let type_node = needed(node, "type")?;
    let type_name = type_node.need_text("type")?;
    let kind = match type_name {
        "event_count" => CorrelationKind::EventCount,
        "value_count" => CorrelationKind::ValueCount,
        "temporal" => CorrelationKind::Temporal {
            absent: references.len(),
        },
        "temporal_ordered" => CorrelationKind::TemporalOrdered,
        "value_sum" => CorrelationKind::ValueSum,
        "value_avg" => CorrelationKind::ValueAverage,
        "value_percentile" => CorrelationKind::ValueShare { rarest: false },
        _ => return Err(type_node.error(unknown("type of correlation", type_name, TYPES))),
    };
    let span = needed(node, "timespan")?;
    let mut lint = Vec::new();
    let mut correlation = Correlation {
        about: About::read(document)?.into(),
        position: document.key_position("correlation"),
        kind,
        references,
        group_by: fields(node.get("group-by"), "group-by", &mut lint)?,
        fields: Vec::new(),
        timespan: Some(timespan(span)?),
        aliases: aliases(node)?,
        condition: Vec::new(),
        generate: generate(document, node)?,
        lint,
    };
    match node.get("condition") {
        Some(condition) => read_condition(condition, &mut correlation)?,
        None if !correlation.counts_records() => {}
        None => return Err(node.error(Problem::Missing("condition"))),
    }
    if correlation.condition.is_empty() {
        // "All events defined by the rules referred" ("Temporal Proximity").
        let all = correlation.references.len() as f64;
        correlation.condition.push((Comparison::GreaterOrEqual, all));
    }
    if !correlation.can_hold() {
        let at = node.get("condition").map_or(node.at, |condition| condition.at);
        return Err(never().at(at));
    }
    Ok(correlation)
}

/// Why a correlation is refused whose condition no window can meet.
pub(crate) fn never() -> Problem {
    Problem::text("no number meets this condition, so the rule can never match")
}

fn unknown(what: &'static str, name: &str, known: &str) -> Problem {
    let (name, known) = (name.to_string(), known.to_string());
    Problem::Unknown { what, name, known }
}

/// At most so many nodes, or an error that calls them `what`.
fn limited<'a, 't>(nodes: &'a [Node<'t>], what: &'static str, limit: usize) -> Result<&'a [Node<'t>], LoadError> {
    match nodes.get(limit) {
        Some(node) => Err(node.error(Problem::limit(what, limit))),
        None => Ok(nodes),
    }
}

fn references(rules: &Node) -> Result<Vec<Reference>, LoadError> {
    let nodes = limited(rules.each(), "rules that a correlation refers to", Limits::REFERENCES)?;
    if nodes.is_empty() {
        return Err(rules.error(Problem::Empty("the list of rules")));
    }
    let read = |node: &Node| {
        Ok(Reference::Named(
            node.need_text("the ID or name of a rule")?.to_owned(),
            node.at,
        ))
    };
    nodes.iter().map(read).collect()
}

/// The names of fields, in a text or list.
fn fields(node: Option<&Node>, what: &'static str, lint: &mut Vec<LoadError>) -> Result<Vec<String>, LoadError> {
    let nodes = limited(
        node.map_or(&[], Node::each),
        "fields of a correlation",
        Limits::GROUP_FIELDS,
    )?;
    // Names of fields have no spaces, as in detections.
    let mut names: Vec<String> = Vec::new();
    for node in nodes {
        let name = node.need_text(what)?.replace(' ', "");
        if name.is_empty() {
            return Err(node.error(Problem::Empty("the name of this field")));
        } else if names.contains(&name) {
            lint.push(node.error(Problem::text(format!("{what} has the field \"{name}\" twice"))));
        }
        names.push(name);
    }
    Ok(names)
}

fn aliases(node: &Node) -> Result<Vec<Alias>, LoadError> {
    let Some(aliases) = node.get("aliases") else {
        return Ok(Vec::new());
    };
    let entries = aliases.entries("aliases")?;
    let limit = |at: &Node| at.error(Problem::limit("aliases of a correlation", Limits::ALIASES));
    if entries.len() > Limits::ALIASES {
        return Err(limit(aliases));
    }
    let read = |(name, value): &(Key, Node)| {
        let rules = value.entries("an alias")?;
        if rules.len() > Limits::REFERENCES {
            return Err(limit(value));
        }
        let field = |(rule, field): &(Key, Node)| {
            let field = field.need_text("the field of an alias")?.replace(' ', "");
            Ok((rule.text.to_string(), field))
        };
        Ok(Alias {
            name: name.text.replace(' ', ""),
            fields: rules.iter().map(field).collect::<Result<_, LoadError>>()?,
        })
    };
    entries.iter().map(read).collect()
}

fn needed<'a, 't>(node: &'a Node<'t>, key: &'static str) -> Result<&'a Node<'t>, LoadError> {
    node.get(key).ok_or_else(|| node.error(Problem::Missing(key)))
}

/// `generate` is a key of the document; many rules have it in `correlation`, and Hayabusa reads it there.
fn generate(document: &Node, node: &Node) -> Result<bool, LoadError> {
    let given = node.get("generate").or_else(|| document.get("generate"));
    match given.map(|given| (given, &given.value)) {
        None => Ok(false),
        Some((_, Value::Boolean(generate))) => Ok(*generate),
        Some((given, _)) => Err(given.wrong_type("generate", "true or false")),
    }
}

/// Reads a timespan, such as `90m`, in ns.
pub(crate) fn timespan(node: &Node) -> Result<i64, LoadError> {
    let text = node.need_text("a timespan")?;
    let form = || {
        let why = format!("a timespan is a whole number and s, m, h or d, such as 90m, but this is \"{text}\"");
        node.error(Problem::text(why))
    };
    let unit = text.chars().last().ok_or_else(form)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(form()),
    };
    let digits = &text[..text.len() - 1];
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(form());
    }
    let span = digits
        .parse::<i64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds * 1_000_000_000));
    span.ok_or_else(|| node.error(Problem::text("a timespan is at most 106751 days")))
}

/// Reads the condition, and from it the fields.
fn read_condition(node: &Node, correlation: &mut Correlation) -> Result<(), LoadError> {
    let mut percentile = None;
    for (key, value) in node.entries("the condition of a correlation")? {
        let number = || match &value.value {
            Value::Number(Number::Integer(number), _) => Ok(*number as f64),
            Value::Number(Number::Real(number, _), _) => Ok(*number),
            _ => Err(value.wrong_type(&key.text, "a number")),
        };
        let comparison = Comparison::ALL.iter().find(|(_, name, _)| *name == key.text);
        match (comparison, &*key.text) {
            (Some((comparison, ..)), _) => correlation.condition.push((*comparison, number()?)),
            (None, "field") => correlation.fields = fields(Some(value), "field", &mut correlation.lint)?,
            (None, "percentile") => percentile = Some((number()?, value)),
            _ => return Err(unknown("key", &key.text, CONDITION).at(key.at)),
        }
    }
    if let Some((number, value)) = percentile
        && !(0.0..=100.0).contains(&number)
    {
        return Err(value.error(Problem::text("a percentile is a number from 0 to 100")));
    }
    if !correlation.counts_records() {
        return Ok(());
    }
    if correlation.condition.is_empty() {
        return Err(node.error(Problem::Missing("gt, gte, lt, lte, eq or neq")));
    }
    if correlation.kind == CorrelationKind::EventCount {
        correlation.fields.clear();
        return Ok(());
    }
    if let CorrelationKind::ValueShare { .. } = correlation.kind {
        let mut comparisons = correlation.condition.iter().map(|(comparison, _)| comparison);
        let rarest = comparisons.any(|one| matches!(one, Comparison::Less | Comparison::LessOrEqual));
        correlation.kind = match percentile {
            Some((number, _)) => CorrelationKind::ValuePercentile(number),
            None => CorrelationKind::ValueShare { rarest },
        };
    }
    let takes_several = matches!(
        correlation.kind,
        CorrelationKind::ValueCount | CorrelationKind::ValueShare { .. }
    );
    match correlation.fields.len() {
        0 => Err(node.error(Problem::Missing("field"))),
        2.. if !takes_several => Err(node.error(Problem::text("numbers are those of one field"))),
        _ => Ok(()),
    }
}
