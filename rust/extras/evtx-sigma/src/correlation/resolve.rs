//! Finds what correlations refer to.

use hashbrown::{HashMap, HashSet};

use super::fields::{RulePlan, Target, plans};
use super::model::{Correlation, Reference};
use crate::about::About;
use crate::error::{LoadError, Problem};
use crate::limits::Limits;
use crate::rule::Rule;

/// The correlations of a set of rules, with what they refer to.
#[derive(Debug, Clone, Default)]
pub struct Correlations {
    all: Vec<Correlation>,
    /// What each refers to.
    pub(super) targets: Vec<Vec<Target>>,
    /// All indices; a correlation comes after those it refers to.
    pub(super) order: Vec<u32>,
    /// The index in `plans` of each rule of the set that is a base.
    bases: Vec<Option<u32>>,
    pub(super) plans: Vec<RulePlan>,
    silent_rules: Vec<bool>,
    silent: Vec<bool>,
}

impl Correlations {
    /// Finds the rules and correlations that correlations refer to. `rules` are all that loaded, in the order of the set.
    ///
    /// Returns, by correlation, why it cannot be used: it refers to an unknown rule, to itself, or to one that cannot be
    /// used, or it exceeds a limit. The others keep their order and get consecutive indices.
    pub fn resolve(rules: &[&Rule], correlations: Vec<Correlation>) -> (Correlations, Vec<Option<LoadError>>) {
        let names = Names::new(rules, &correlations);
        let mut errors = vec![None; correlations.len()];
        let mut targets = Vec::new();
        for (index, correlation) in correlations.iter().enumerate() {
            let (found, error) = names.targets(correlation, index as u32);
            targets.push(found);
            errors[index] = error;
        }
        let (silent_rules, silent) = silent(rules.len(), &correlations, &targets);
        let (order, leaves) = sort(rules.len(), &correlations, &targets, &mut errors);
        // From here on, only those without an error have an index.
        let used: Vec<usize> = (0..errors.len()).filter(|index| errors[*index].is_none()).collect();
        let mut new = vec![0; errors.len()];
        for (index, old) in used.iter().enumerate() {
            new[*old] = index as u32;
        }
        for target in targets.iter_mut().flatten() {
            if let Target::Correlation(other) = target {
                *other = new[*other as usize];
            }
        }
        let mut correlations: Vec<_> = correlations.into_iter().map(Some).collect();
        let all: Vec<_> = used.iter().filter_map(|index| correlations[*index].take()).collect();
        let targets: Vec<_> = used.iter().map(|index| std::mem::take(&mut targets[*index])).collect();
        let leaves: Vec<_> = used.iter().map(|index| leaves[*index].as_slice()).collect();
        let (bases, plans) = plans(rules, &all, &targets, &leaves);
        let resolved = Correlations {
            all,
            targets,
            order: order.into_iter().map(|index| new[index as usize]).collect(),
            bases,
            plans,
            silent_rules,
            silent: used.iter().map(|index| silent[*index]).collect(),
        };
        (resolved, errors)
    }

    /// What is odd about the aliases of each correlation: they name rules that it does not use. `rules` are those of
    /// [`resolve`](Self::resolve).
    pub fn lint(&self, rules: &[&Rule]) -> Vec<Vec<LoadError>> {
        let of = |index: usize| {
            let correlation = &self.all[index];
            if correlation.aliases.is_empty() {
                return Vec::new();
            }
            let mut names = HashSet::new();
            let mut open = self.targets[index].clone();
            let mut seen: HashSet<Target> = open.iter().copied().collect();
            while let Some(target) = open.pop() {
                let about = match target {
                    Target::Rule(rule) => &rules[rule as usize].about,
                    Target::Correlation(other) => {
                        let others = &self.targets[other as usize];
                        open.extend(others.iter().copied().filter(|other| seen.insert(*other)));
                        &self.all[other as usize].about
                    }
                };
                names.extend(about.names());
            }
            let keys = correlation.aliases.iter().flat_map(|alias| {
                let rules = alias.fields.iter().map(|(rule, _)| rule);
                rules.map(|rule| (&alias.name, rule))
            });
            let odd = keys.filter(|(_, rule)| !names.contains(&rule.to_ascii_lowercase()));
            odd.map(|(alias, rule)| {
                let why = format!("the alias \"{alias}\" names \"{rule}\", which this correlation does not use");
                Problem::text(why).at(correlation.position)
            })
            .collect()
        };
        (0..self.all.len()).map(of).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that can be used, by their index.
    pub fn all(&self) -> &[Correlation] {
        &self.all
    }

    /// Whether the hits of a rule are needed.
    pub fn is_base(&self, rule: u32) -> bool {
        self.base(rule).is_some()
    }

    /// The fields that are kept of each hit of a rule, in the order in which [`Hits::push`](crate::Hits::push) asks for
    /// them.
    pub fn fields(&self, rule: u32) -> impl Iterator<Item = &str> {
        let plan = self.base(rule).map(|base| &self.plans[base as usize]);
        let fields = plan.into_iter().flat_map(|plan| plan.lists.iter().flatten());
        fields.map(String::as_str)
    }

    /// The index in `plans` of a rule.
    pub(super) fn base(&self, rule: u32) -> Option<u32> {
        self.bases.get(rule as usize).copied().flatten()
    }

    /// Whether a rule has no matches of its own: correlations refer to it, and none of them has `generate`. Those that
    /// cannot be used count, too.
    pub fn is_silent(&self, rule: u32) -> bool {
        self.silent_rules.get(rule as usize).is_some_and(|silent| *silent)
    }

    /// Whether a correlation has no bursts of its own, for the same reason.
    pub fn is_silent_correlation(&self, correlation: u32) -> bool {
        self.silent.get(correlation as usize).is_some_and(|silent| *silent)
    }
}

/// The rules and correlations by what references name.
struct Names {
    by_name: HashMap<String, Target>,
    by_identity: HashMap<usize, u32>,
}

impl Names {
    /// IDs precede names. Correlations precede rules, because an aggregation and its rule have the same ID.
    fn new(rules: &[&Rule], correlations: &[Correlation]) -> Self {
        let mut by_name = HashMap::new();
        let mut put = |name: &Option<String>, target| {
            if let Some(name) = name {
                by_name.entry(name.to_ascii_lowercase()).or_insert(target);
            }
        };
        let names: [fn(&About) -> &Option<String>; 2] = [|about| &about.id, |about| &about.name];
        for name in names {
            for (index, one) in (0..).zip(correlations) {
                put(name(&one.about), Target::Correlation(index));
            }
            for (index, one) in (0..).zip(rules) {
                put(name(&one.about), Target::Rule(index));
            }
        }
        let identities = rules.iter().enumerate();
        let by_identity = identities
            .map(|(index, rule)| (rule.identity.number(), index as u32))
            .collect();
        Names { by_name, by_identity }
    }

    /// What a correlation refers to, as far as it is known, and an error.
    fn targets(&self, correlation: &Correlation, index: u32) -> (Vec<Target>, Option<LoadError>) {
        let mut error = None;
        let mut targets = Vec::new();
        for reference in &correlation.references {
            let found = match reference {
                Reference::Own(identity) => match self.by_identity.get(&identity.number()) {
                    Some(rule) => Ok(Target::Rule(*rule)),
                    None => {
                        let why = "the rule of this aggregation is not used";
                        Err(Problem::text(why).at(correlation.position))
                    }
                },
                Reference::Named(name, at) => match self.by_name.get(&name.to_ascii_lowercase()) {
                    Some(Target::Correlation(own)) if *own == index => {
                        Err(Problem::text("this correlation refers to itself").at(*at))
                    }
                    Some(target) if targets.contains(target) => {
                        Err(Problem::text(format!("this correlation refers to \"{name}\" twice")).at(*at))
                    }
                    Some(target) => Ok(*target),
                    None => {
                        let why = format!("no rule with the ID or name \"{name}\" is used");
                        Err(Problem::text(why).at(*at))
                    }
                },
            };
            match found {
                Ok(target) => targets.push(target),
                Err(why) => error = error.or(Some(why)),
            }
        }
        (targets, error)
    }
}

/// Which rules and correlations are silent.
fn silent(rules: usize, all: &[Correlation], targets: &[Vec<Target>]) -> (Vec<bool>, Vec<bool>) {
    let mut silent = (vec![false; rules], vec![false; all.len()]);
    // Those with `generate` come last.
    for generate in [false, true] {
        let chosen = all.iter().zip(targets).filter(|(one, _)| one.generate == generate);
        for target in chosen.flat_map(|(_, targets)| targets) {
            match *target {
                Target::Rule(rule) => silent.0[rule as usize] = !generate,
                Target::Correlation(other) => silent.1[other as usize] = !generate,
            }
        }
    }
    silent
}

/// Sorts correlations after those they refer to, and adds errors. Returns the order of those without errors, and by
/// correlation the rules that it refers to, also by others, sorted.
fn sort(
    rules: usize,
    all: &[Correlation],
    targets: &[Vec<Target>],
    errors: &mut [Option<LoadError>],
) -> (Vec<u32>, Vec<Vec<u32>>) {
    let mut dependents = vec![Vec::new(); all.len()];
    let mut missing = vec![0_usize; all.len()];
    for (index, targets) in targets.iter().enumerate() {
        for target in targets {
            if let Target::Correlation(other) = *target {
                dependents[other as usize].push(index);
                missing[index] += 1;
            }
        }
    }
    let mut ready: Vec<usize> = (0..all.len()).filter(|index| missing[*index] == 0).collect();
    let mut sorter = Sorter {
        all,
        targets,
        order: Vec::new(),
        leaves: vec![Vec::new(); all.len()],
        uses: vec![0; rules],
    };
    let mut done = vec![false; all.len()];
    while let Some(index) = ready.pop() {
        done[index] = true;
        if errors[index].is_none() {
            errors[index] = sorter.take(index, errors).err();
        }
        for dependent in &dependents[index] {
            missing[*dependent] -= 1;
            if missing[*dependent] == 0 {
                ready.push(*dependent);
            }
        }
    }
    for index in (0..all.len()).filter(|index| !done[*index]) {
        let why = "this correlation refers to itself by other correlations, or to one that does";
        errors[index] = errors[index]
            .take()
            .or(Some(Problem::text(why).at(all[index].position)));
    }
    (sorter.order, sorter.leaves)
}

struct Sorter<'a> {
    all: &'a [Correlation],
    targets: &'a [Vec<Target>],
    order: Vec<u32>,
    leaves: Vec<Vec<u32>>,
    /// How many correlations use each rule.
    uses: Vec<usize>,
}

impl Sorter<'_> {
    /// Takes a correlation after those it refers to.
    fn take(&mut self, index: usize, errors: &[Option<LoadError>]) -> Result<(), LoadError> {
        let at = self.all[index].position;
        let limit = |what, limit| Err(Problem::limit(what, limit).at(at));
        let mut leaves = HashSet::new();
        for target in &self.targets[index] {
            match *target {
                Target::Rule(rule) => _ = leaves.insert(rule),
                Target::Correlation(other) if errors[other as usize].is_some() => {
                    let title = &self.all[other as usize].about.title;
                    let why = format!("this correlation refers to \"{title}\", which cannot be used");
                    return Err(Problem::text(why).at(at));
                }
                Target::Correlation(other) => leaves.extend(&self.leaves[other as usize]),
            }
        }
        if self.order.len() >= Limits::CORRELATIONS {
            return limit("correlations", Limits::CORRELATIONS);
        }
        if leaves
            .iter()
            .any(|rule| self.uses[*rule as usize] >= Limits::CORRELATIONS_OF_RULE)
        {
            return limit("correlations that use a rule", Limits::CORRELATIONS_OF_RULE);
        }
        leaves.iter().for_each(|rule| self.uses[*rule as usize] += 1);
        self.leaves[index] = leaves.into_iter().collect();
        self.leaves[index].sort_unstable();
        self.order.push(index as u32);
        Ok(())
    }
}
