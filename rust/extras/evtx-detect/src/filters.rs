//! Applies Sigma filters to rules, once all files are loaded.

use std::collections::{HashMap, HashSet};

use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{Filter, Limits, LoadError, Position, Problem, Rule, RuleForEvents, RuleSetBuilder};

/// The rules that filters can narrow.
pub(crate) struct Filtered<'a> {
    /// Those of the set.
    pub(crate) set: &'a mut RuleSetBuilder,
    /// Others, which correlations may need. Those of one document have the same number.
    pub(crate) others: &'a mut [(RuleForEvents, usize)],
    /// About how many bytes of memory these take.
    pub(crate) others_bytes: &'a mut usize,
    /// The IDs and names of correlations, in small letters.
    pub(crate) correlations: HashSet<String>,
}

/// What became of a filter.
pub(crate) enum Outcome {
    /// It narrows rules. The list says which of its references have no effect, and why.
    Applied(Vec<String>),
    /// It narrows no rule.
    Refused(String),
}

/// The rules of a document.
#[derive(Clone, Copy)]
enum Member {
    /// A rule of the set, by its index.
    OfSet(usize),
    /// Some of the others: the index of the first, and their number.
    Others(usize, usize),
}

impl Filtered<'_> {
    /// Applies filters, in their order.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn apply(&mut self, filters: &[Filter], interrupt: Interrupt<'_>) -> Result<Vec<Outcome>, Interrupted> {
        let members = self.members();
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, member) in members.iter().enumerate() {
            let rule = self.rule(*member);
            let names: HashSet<String> = rule.about.names().collect();
            names
                .into_iter()
                .for_each(|name| by_name.entry(name).or_default().push(index));
        }
        let mut outcomes = Vec::new();
        for (number, filter) in filters.iter().enumerate() {
            interrupt.check()?;
            if number >= Limits::FILTERS {
                let problem = Problem::limit("filters", Limits::FILTERS);
                outcomes.push(Outcome::Refused(at(filter.position, problem)));
                continue;
            }
            let (chosen, problems) = self.chosen(filter, &members, &by_name, interrupt)?;
            outcomes.push(self.narrow(filter, &chosen, problems, interrupt)?);
        }
        Ok(outcomes)
    }

    fn members(&self) -> Vec<Member> {
        let mut members: Vec<Member> = (0..self.set.rules().len()).map(Member::OfSet).collect();
        let mut document = None;
        for (index, (_, of)) in self.others.iter().enumerate() {
            match members.last_mut() {
                Some(Member::Others(_, count)) if document == Some(of) => *count += 1,
                _ => members.push(Member::Others(index, 1)),
            }
            document = Some(of);
        }
        members
    }

    fn rule(&self, member: Member) -> &Rule {
        match member {
            Member::OfSet(index) => &self.set.rules()[index].rule,
            Member::Others(index, _) => &self.others[index].0.rule,
        }
    }

    /// The rules that a filter is for, and which of its references have no effect.
    fn chosen(
        &self,
        filter: &Filter,
        members: &[Member],
        by_name: &HashMap<String, Vec<usize>>,
        interrupt: Interrupt<'_>,
    ) -> Result<(Vec<Member>, Vec<String>), Interrupted> {
        let is_for = |member: &Member| filter.is_for(&self.rule(*member).log_sources);
        let (mut chosen, mut problems) = (Vec::new(), Vec::new());
        let Some(names) = &filter.rules else {
            for some in members.chunks(1024) {
                interrupt.check()?;
                chosen.extend(some.iter().copied().filter(is_for));
            }
            if chosen.is_empty() {
                problems.push(at(filter.position, text("no rule has the log source of this filter")));
            }
            return Ok((chosen, problems));
        };
        let mut indices = HashSet::new();
        for (name, position) in names {
            interrupt.check()?;
            let key = name.to_ascii_lowercase();
            let found = by_name.get(&key).map_or(&[][..], Vec::as_slice);
            let before = indices.len();
            let fitting = found.iter().filter(|index| is_for(&members[**index]));
            let mut is_any = false;
            for index in fitting {
                is_any = true;
                indices.insert(*index);
            }
            let why = if is_any && indices.len() > before {
                continue;
            } else if is_any {
                format!("this filter refers to \"{name}\" twice")
            } else if !found.is_empty() {
                format!("the rule \"{name}\" has another log source than this filter")
            } else if self.correlations.contains(&key) {
                format!("\"{name}\" is a correlation, but filters are for the rules that it refers to")
            } else {
                format!("no rule with the ID or name \"{name}\" is used")
            };
            problems.push(at(*position, text(why)));
        }
        let mut indices: Vec<usize> = indices.into_iter().collect();
        indices.sort_unstable();
        chosen.extend(indices.into_iter().map(|index| members[index]));
        Ok((chosen, problems))
    }

    /// Narrows rules by a filter: all of them, or none.
    fn narrow(
        &mut self,
        filter: &Filter,
        chosen: &[Member],
        mut problems: Vec<String>,
        interrupt: Interrupt<'_>,
    ) -> Result<Outcome, Interrupted> {
        let Some(first) = chosen.first() else {
            // A filter for any rule is for those to come, too.
            return Ok(match filter.rules {
                Some(_) => Outcome::Refused(problems.swap_remove(0)),
                None => Outcome::Applied(problems),
            });
        };
        let example = self.rule(*first).clone();
        let bytes = filter.applied(&example).bytes() - example.bytes();
        let (mut of_set, mut of_others) = (0, 0);
        for member in chosen {
            match member {
                Member::OfSet(_) => of_set += 1,
                Member::Others(_, count) => of_others += count,
            }
        }
        let with_others = bytes.saturating_mul(of_others).saturating_add(*self.others_bytes);
        let reserved = if with_others > Limits::SET_BYTES {
            Err(text("the rules that this filter is for take too much memory with it"))
        } else {
            self.set.reserve(filter, &example, of_set)
        };
        if let Err(problem) = reserved {
            return Ok(Outcome::Refused(at(filter.position, problem)));
        }
        *self.others_bytes = with_others;
        for (number, member) in chosen.iter().enumerate() {
            interrupt.check_step(number)?;
            match *member {
                Member::OfSet(index) => self.set.filter(index, filter),
                Member::Others(index, count) => {
                    let rules = self.others[index..][..count].iter_mut();
                    rules.for_each(|(one, _)| one.rule = filter.applied(&one.rule));
                }
            }
        }
        Ok(Outcome::Applied(problems))
    }
}

fn text(why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::Text(why.into())
}

fn at(position: Position, problem: Problem) -> String {
    LoadError { position, problem }.to_string()
}
