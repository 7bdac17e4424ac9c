//! Which fields of an event each rule has to keep for correlations.

use hashbrown::HashMap;

use super::model::Correlation;
use crate::about::About;
use crate::rule::Rule;

/// What a correlation refers to, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Target {
    Rule(u32),
    Correlation(u32),
}

/// What is kept of a hit of a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct RulePlan {
    /// The index of the rule in the set.
    pub(super) rule: u32,
    /// Distinct lists of fields. The values of each become one number.
    pub(super) lists: Vec<Vec<String>>,
    /// The correlations that need the hits.
    pub(super) uses: Vec<Use>,
}

/// A correlation that uses a rule, directly or by others, and the indices of the lists that it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use {
    pub(super) correlation: u32,
    pub(super) group: u16,
    pub(super) value: Option<u16>,
}

impl RulePlan {
    /// How a correlation uses the rule.
    pub(super) fn of(&self, correlation: u32) -> Option<&Use> {
        self.uses.iter().find(|one| one.correlation == correlation)
    }

    /// The index of a list of fields. Correlations with the same fields share it.
    fn list(&mut self, fields: Vec<String>) -> u16 {
        let known = self.lists.iter().position(|list| *list == fields);
        let index = known.unwrap_or_else(|| {
            self.lists.push(fields);
            self.lists.len() - 1
        });
        index as u16
    }
}

/// The plans of all rules that correlations use, and by rule the index of its plan. `leaves` has the rules of each
/// correlation.
pub(super) fn plans(
    rules: &[&Rule],
    all: &[Correlation],
    targets: &[Vec<Target>],
    leaves: &[&[u32]],
) -> (Vec<Option<u32>>, Vec<RulePlan>) {
    let fields = Fields {
        rules,
        all,
        targets,
        leaves,
    };
    let mut bases = vec![None; rules.len()];
    let mut plans: Vec<RulePlan> = Vec::new();
    let mut known: HashMap<u32, usize> = HashMap::new();
    for (index, correlation) in all.iter().enumerate() {
        for rule in leaves[index] {
            let plan = *known.entry(*rule).or_insert_with(|| {
                bases[*rule as usize] = Some(plans.len() as u32);
                plans.push(RulePlan {
                    rule: *rule,
                    ..RulePlan::default()
                });
                plans.len() - 1
            });
            let names = |names: &[String]| names.iter().map(|name| fields.field(index, name, *rule)).collect();
            let plan = &mut plans[plan];
            let group = plan.list(names(&correlation.group_by));
            let value = (!correlation.fields.is_empty()).then(|| plan.list(names(&correlation.fields)));
            let correlation = index as u32;
            plan.uses.push(Use {
                correlation,
                group,
                value,
            });
        }
    }
    (bases, plans)
}

struct Fields<'a> {
    rules: &'a [&'a Rule],
    all: &'a [Correlation],
    targets: &'a [Vec<Target>],
    leaves: &'a [&'a [u32]],
}

impl Fields<'_> {
    /// The field of a rule that a correlation means by a name. An alias for the rule comes first, then one for the
    /// correlation by which the rule is used; that correlation can have aliases, too.
    fn field(&self, mut correlation: usize, name: &str, rule: u32) -> String {
        let mut name = name;
        loop {
            let targets = self.targets[correlation].iter();
            let within = targets.filter_map(|target| match *target {
                Target::Correlation(other) => Some(other as usize),
                Target::Rule(_) => None,
            });
            let within = within.filter(|other| self.leaves[*other].binary_search(&rule).is_ok());
            let within: Vec<usize> = within.collect();
            let alias = self.all[correlation].aliases.iter().find(|alias| alias.name == name);
            let of = |about: &About| {
                let is_one = |key: &str| {
                    let mut names = [&about.id, &about.name].into_iter().flatten();
                    names.any(|known| known.eq_ignore_ascii_case(key))
                };
                let mut fields = alias?.fields.iter();
                fields.find(|(key, _)| is_one(key)).map(|(_, field)| field)
            };
            if let Some(field) = of(&self.rules[rule as usize].about) {
                return field.clone();
            }
            let by_other = within
                .iter()
                .find_map(|other| Some((*other, of(&self.all[*other].about)?)));
            match (by_other, within.first()) {
                (Some((other, field)), _) => (correlation, name) = (other, field),
                (None, Some(other)) => correlation = *other,
                (None, None) => return name.to_string(),
            }
        }
    }
}
