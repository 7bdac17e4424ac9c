//! Filters: documents that narrow other rules ("Sigma Filters Specification").

use std::sync::Arc;

use crate::about::About;
use crate::condition::Condition;
use crate::error::{LoadError, Position, Problem};
use crate::item::Context;
use crate::rule::{Detection, Rule, detections_of};
use crate::source::LogSource;
use crate::yaml::Node;

/// A filter. It does not change after it is loaded.
#[derive(Debug, Clone)]
pub struct Filter {
    /// What it says about itself.
    pub about: Arc<About>,
    /// The log sources of the rules that it narrows.
    pub log_sources: Vec<LogSource>,
    /// The IDs or names of these rules, and their positions. `None` for all rules with these log sources.
    pub rules: Option<Vec<(String, Position)>>,
    /// The position of the filter in its text.
    pub position: Position,
    detections: Vec<Detection>,
    condition: Condition,
}

/// Reads a filter.
pub(crate) fn filter(document: &Node, context: &mut Context<'_>) -> Result<Filter, LoadError> {
    let position = document.key_position("filter");
    if document.get("detection").is_some() {
        let why = "a document with \"filter\" has no \"detection\"; write the rule as a document of its own";
        return Err(Problem::text(why).at(document.key_position("detection")));
    }
    let needed = |key| document.get(key).ok_or_else(|| document.error(Problem::Missing(key)));
    let node = needed("filter")?;
    node.entries("filter")?;
    let missing = |key| node.error(Problem::Missing(key));
    let text = node.get("condition").ok_or_else(|| missing("condition"))?;
    text.need_text("the condition of a filter")?;
    let rules = rules(node.get("rules").ok_or_else(|| missing("rules"))?)?;
    let (detections, condition, piped) = detections_of(node, text, &["condition", "rules"], context)?;
    if piped.is_some() {
        return Err(text.error(Problem::text("the condition of a filter has no aggregation")));
    }
    Ok(Filter {
        about: About::read(document)?.into(),
        log_sources: LogSource::read_all(needed("logsource")?)?,
        rules,
        position,
        detections,
        condition,
    })
}

/// The rules that a filter names. `any` and an empty list stand for all, as in pySigma.
fn rules(node: &Node) -> Result<Option<Vec<(String, Position)>>, LoadError> {
    let name = |node: &Node| Ok((node.need_text("the ID or name of a rule")?.to_owned(), node.at));
    let names: Vec<_> = node.each().iter().map(name).collect::<Result<_, LoadError>>()?;
    let is_any = match names.as_slice() {
        [] => true,
        [(name, _)] => name.eq_ignore_ascii_case("any"),
        [..] => false,
    };
    Ok((!is_any).then_some(names))
}

impl Filter {
    /// Whether the filter is for rules with these log sources: each must be one of the filter's, or have what it names
    /// and more.
    pub fn is_for(&self, sources: &[LogSource]) -> bool {
        sources
            .iter()
            .all(|source| self.log_sources.iter().any(|own| own.includes(source)))
    }

    /// Narrows a rule: the condition of the filter must be true, too.
    pub(crate) fn apply(&self, rule: &mut Rule) {
        let condition = shifted(&self.condition, rule.detections.len());
        rule.detections.extend(self.detections.iter().cloned());
        match &mut rule.condition {
            // So conditions do not get deeper with each filter.
            Condition::All(parts) => parts.push(condition),
            other => *other = Condition::All(vec![other.clone(), condition]),
        }
    }

    /// The rule that this filter makes of another one.
    #[must_use]
    pub fn applied(&self, rule: &Rule) -> Rule {
        let mut rule = rule.clone();
        self.apply(&mut rule);
        rule
    }
}

/// A condition over detections that come after `before` others.
fn shifted(condition: &Condition, before: usize) -> Condition {
    let all = |parts: &[Condition]| parts.iter().map(|part| shifted(part, before)).collect();
    match condition {
        Condition::Detection(index) => Condition::Detection(index + before),
        Condition::Not(inner) => Condition::Not(Box::new(shifted(inner, before))),
        Condition::All(parts) => Condition::All(all(parts)),
        Condition::Any(parts) => Condition::Any(all(parts)),
    }
}
