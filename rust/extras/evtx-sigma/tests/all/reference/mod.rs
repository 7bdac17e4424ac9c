//! The slow evaluator: for each group and each time, it collects the window and computes its number anew.

use std::collections::{BTreeMap, BTreeSet};

use evtx_sigma::Burst;
use evtx_sigma::correlation::RecordLocation;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Count,
    Values,
    Temporal,
    Ordered,
    Sum,
    Average,
    Min,
    Max,
    Percentile(f64),
    Share,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Rule(usize),
    Model(usize),
}

impl Target {
    pub(crate) fn name(self) -> String {
        match self {
            Target::Rule(rule) => format!("r{rule}"),
            Target::Model(model) => format!("c{model}"),
        }
    }
}

/// A correlation. The only alias is `who`.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) kind: Kind,
    pub(crate) references: Vec<Target>,
    /// References from this index on must have no hit.
    pub(crate) absent: usize,
    pub(crate) group_by: Vec<String>,
    pub(crate) fields: Vec<String>,
    pub(crate) span: Option<i64>,
    /// The index of an operator (gte, gt, eq, neq, lt, lte), and the limit.
    pub(crate) conditions: Vec<(usize, f64)>,
    /// The fields of `who`, by the names of rules and correlations.
    pub(crate) aliases: BTreeMap<String, String>,
    pub(crate) generate: bool,
}

#[derive(Debug)]
pub(crate) struct Hit {
    pub(crate) rule: usize,
    pub(crate) time: i64,
    pub(crate) location: RecordLocation,
    pub(crate) fields: BTreeMap<String, String>,
}

pub(crate) struct Reference<'a> {
    pub(crate) models: &'a [Model],
    pub(crate) hits: &'a [Hit],
}

type Group = Vec<Option<String>>;

/// A hit of a rule or a burst, as a correlation sees it.
#[derive(Debug, Clone)]
struct One {
    reference: usize,
    time: i64,
    first: i64,
    last: i64,
    group: Group,
    value: Option<Vec<String>>,
    /// The hits of rules.
    leaves: Vec<usize>,
}

impl Reference<'_> {
    pub(crate) fn bursts(&self) -> Vec<Burst> {
        let is_silent = |index: usize| {
            let mut users = self.models.iter();
            let mut users = users
                .by_ref()
                .filter(|model| model.references.contains(&Target::Model(index)));
            let all: Vec<_> = users.by_ref().map(|model| model.generate).collect();
            !all.is_empty() && !all.contains(&true)
        };
        let shown = (0..self.models.len()).filter(|index| !is_silent(*index));
        shown
            .flat_map(|index| self.found(index).into_iter().map(|(burst, _)| burst))
            .collect()
    }

    /// The bursts of a correlation, each with the hits of rules.
    fn found(&self, index: usize) -> Vec<(Burst, Vec<usize>)> {
        let model = &self.models[index];
        let mut groups: BTreeMap<Group, Vec<One>> = BTreeMap::new();
        for one in self.ones(index) {
            groups.entry(one.group.clone()).or_default().push(one);
        }
        let mut found = Vec::new();
        for ones in groups.into_values() {
            let times: BTreeSet<i64> = ones.iter().map(|one| one.time).collect();
            let mut consumed = None;
            for start in times {
                if consumed.is_some_and(|end| start <= end) {
                    continue;
                }
                let is_in = |one: &&One| {
                    let after = i128::from(one.time) - i128::from(start);
                    after >= 0 && model.span.is_none_or(|span| after <= i128::from(span))
                };
                let window: Vec<&One> = ones.iter().filter(is_in).collect();
                if let Some(number) = number(model, &window).filter(|number| holds(model, *number)) {
                    consumed = window.iter().map(|one| one.time).max();
                    found.push(self.burst(index, &window, number));
                }
            }
        }
        found
    }

    fn ones(&self, index: usize) -> Vec<One> {
        let model = &self.models[index];
        let mut ones: Vec<One> = Vec::new();
        for (reference, target) in model.references.iter().enumerate() {
            match *target {
                Target::Rule(rule) => {
                    for (number, hit) in self.hits.iter().enumerate().filter(|(_, hit)| hit.rule == rule) {
                        let group = self.values(index, &model.group_by, hit);
                        let is_same = |one: &One| {
                            matches!(model.references[one.reference], Target::Rule(_))
                                && (&one.group, one.time) == (&group, hit.time)
                                && self.hits[one.leaves[0]].location == hit.location
                        };
                        let is_first = !ones.iter().any(is_same);
                        // An event counts once in a group, though several rules match it, unless the rules matter.
                        if is_first || matches!(model.kind, Kind::Temporal | Kind::Ordered) {
                            ones.push(One {
                                reference,
                                time: hit.time,
                                first: hit.time,
                                last: hit.time,
                                group,
                                value: self.values(index, &model.fields, hit).into_iter().collect(),
                                leaves: vec![number],
                            });
                        }
                    }
                }
                Target::Model(other) => {
                    for (burst, leaves) in self.found(other) {
                        let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
                        for leaf in leaves {
                            let group = self.values(index, &model.group_by, &self.hits[leaf]);
                            groups.entry(group).or_default().push(leaf);
                        }
                        for (group, mut leaves) in groups {
                            leaves.sort_by_key(|leaf| {
                                let hit = &self.hits[*leaf];
                                (hit.time, hit.location, hit.rule)
                            });
                            let value = |leaf: &usize| -> Option<Vec<String>> {
                                self.values(index, &model.fields, &self.hits[*leaf])
                                    .into_iter()
                                    .collect()
                            };
                            ones.push(One {
                                reference,
                                time: burst.first,
                                first: burst.first,
                                last: burst.last,
                                group,
                                value: leaves.iter().find_map(value),
                                leaves,
                            });
                        }
                    }
                }
            }
        }
        ones
    }

    fn values(&self, index: usize, names: &[String], hit: &Hit) -> Vec<Option<String>> {
        let value = |name: &String| hit.fields.get(&self.field(index, name, hit.rule)).cloned();
        names.iter().map(value).collect()
    }

    /// The field that a correlation means for a rule.
    fn field(&self, index: usize, name: &str, rule: usize) -> String {
        let model = &self.models[index];
        let alias = |target: Target| (name == "who").then(|| model.aliases.get(&target.name()))?;
        if let Some(field) = alias(Target::Rule(rule)) {
            return field.clone();
        }
        let others: Vec<usize> = model
            .references
            .iter()
            .filter_map(|target| match *target {
                Target::Model(other) if self.uses(other, rule) => Some(other),
                _ => None,
            })
            .collect();
        for other in &others {
            if let Some(field) = alias(Target::Model(*other)) {
                return self.field(*other, field, rule);
            }
        }
        others
            .first()
            .map_or(name.to_string(), |other| self.field(*other, name, rule))
    }

    fn uses(&self, index: usize, rule: usize) -> bool {
        let mut targets = self.models[index].references.iter();
        targets.any(|target| match *target {
            Target::Rule(own) => own == rule,
            Target::Model(other) => self.uses(other, rule),
        })
    }

    fn burst(&self, index: usize, window: &[&One], number: f64) -> (Burst, Vec<usize>) {
        let model = &self.models[index];
        let leaves: BTreeSet<usize> = window.iter().flat_map(|one| one.leaves.clone()).collect();
        let mut records: Vec<_> = leaves
            .iter()
            .map(|leaf| {
                (
                    self.hits[*leaf].time,
                    self.hits[*leaf].location,
                    self.hits[*leaf].rule as u32,
                )
            })
            .collect();
        records.sort_unstable();
        let values: BTreeSet<String> = match model.kind {
            Kind::Values => window
                .iter()
                .filter_map(|one| Some(one.value.as_ref()?.join(", ")))
                .collect(),
            _ => BTreeSet::new(),
        };
        let burst = Burst {
            correlation: index as u32,
            first: window.iter().map(|one| one.first).min().expect("a hit"),
            last: window.iter().map(|one| one.last).max().expect("a hit"),
            count: window.len() as u64,
            value: (!matches!(model.kind, Kind::Count | Kind::Temporal | Kind::Ordered)).then_some(number),
            values: values.into_iter().collect(),
            group: model.group_by.iter().cloned().zip(window[0].group.clone()).collect(),
            location: records.last().expect("a record").1,
            records: records
                .into_iter()
                .map(|(_, location, rule)| (rule, location))
                .collect(),
        };
        (burst, leaves.into_iter().collect())
    }
}

fn holds(model: &Model, number: f64) -> bool {
    model.conditions.iter().all(|(operator, limit)| match operator {
        0 => number >= *limit,
        1 => number > *limit,
        2 => number == *limit,
        3 => number != *limit,
        4 => number < *limit,
        _ => number <= *limit,
    })
}

/// The number of a window. `None` if there is no value.
fn number(model: &Model, window: &[&One]) -> Option<f64> {
    let values: Vec<&Vec<String>> = window.iter().filter_map(|one| one.value.as_ref()).collect();
    let mut numbers: Vec<f64> = values.iter().filter_map(|value| numeric(value.first()?)).collect();
    numbers.sort_by(f64::total_cmp);
    let references: BTreeSet<usize> = window.iter().map(|one| one.reference).collect();
    let sum = || (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>());
    match model.kind {
        Kind::Count => Some(window.len() as f64),
        Kind::Values => Some(values.iter().collect::<BTreeSet<_>>().len() as f64),
        Kind::Temporal if references.iter().any(|reference| *reference >= model.absent) => Some(0.0),
        Kind::Temporal => Some(references.len() as f64),
        Kind::Ordered => Some(longest(window)),
        Kind::Sum => sum(),
        Kind::Average => Some(sum()? / numbers.len() as f64),
        Kind::Min => numbers.first().copied(),
        Kind::Max => numbers.last().copied(),
        Kind::Percentile(percent) => {
            let is_enough = |count: usize| count as f64 >= percent / 100.0 * numbers.len() as f64;
            let nearest = (1..=numbers.len()).find(|count| is_enough(*count));
            nearest.map(|count| numbers[count - 1])
        }
        Kind::Share => {
            let mut counts: BTreeMap<&Vec<String>, usize> = BTreeMap::new();
            values.iter().for_each(|value| *counts.entry(value).or_default() += 1);
            let is_less = model.conditions.iter().any(|(operator, _)| *operator >= 4);
            let count = if is_less {
                counts.values().min()
            } else {
                counts.values().max()
            };
            Some(*count? as f64 * 100.0 / values.len() as f64)
        }
    }
}

/// The length of the longest chain of references in their order, each at the time of the one before or later.
fn longest(window: &[&One]) -> f64 {
    fn after(window: &[&One], time: i64, reference: Option<usize>) -> usize {
        let next = window
            .iter()
            .filter(|one| one.time >= time && reference.is_none_or(|reference| one.reference > reference));
        next.map(|one| 1 + after(window, one.time, Some(one.reference)))
            .max()
            .unwrap_or(0)
    }
    after(window, i64::MIN, None) as f64
}

fn numeric(text: &str) -> Option<f64> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => text.parse().ok(),
    }
}
