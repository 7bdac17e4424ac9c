//! The rules of some files, collected in their order into a set.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted, free};
use evtx_scan::ScanError;
use evtx_sigma::{
    About, Correlation, Correlations, Document, Filter, Level, Limits, LoadError, LogSources, Refused, Rule,
    RuleForEvents, RuleSetBuilder,
};

use crate::filters::{Filtered, Outcome};
use crate::rule_row::RuleRow;
use crate::rules::Rules;

/// A document of a file: what it defines, or why it cannot be used.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) row: RuleRow,
    /// One for most documents, several for an aggregation, and none for a correlation or if there is an error.
    pub(crate) rules: Vec<RuleForEvents>,
    correlation: Option<Correlation>,
    filter: Option<Filter>,
}

/// The rules of some files.
#[derive(Clone)]
pub struct LoadedRules {
    /// What became of each document.
    pub rows: Arc<[RuleRow]>,
    /// Those that have no error.
    rules: Arc<Rules>,
}

/// The rules of the files that were read so far.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) rows: Vec<RuleRow>,
    /// Those that are wanted and have no error, with the file of each.
    set: RuleSetBuilder,
    files: Vec<Arc<str>>,
    /// Others, which correlations may need: each with the index of its row.
    others: Vec<(RuleForEvents, usize)>,
    others_bytes: usize,
    /// The correlations, each with the index of its row and whether it is wanted.
    correlations: Vec<(Correlation, usize, bool)>,
    /// The filters, each with the index of its row.
    filters: Vec<(Filter, usize)>,
    /// By their IDs in small letters, the files of all.
    known: HashMap<String, Arc<str>>,
    tuning: Tuning,
}

/// What files say about rules, by their IDs in small letters.
#[derive(Default, Clone, PartialEq)]
pub(crate) struct Tuning {
    pub(crate) excluded: HashSet<String>,
    pub(crate) levels: HashMap<String, Level>,
}

/// An ID as it is compared.
pub(crate) fn id_of(text: &str) -> String {
    text.trim().trim_matches(['{', '}']).to_ascii_lowercase()
}

impl Loaded {
    /// A document, or a whole file, that cannot be used.
    pub(crate) fn unusable(file: &Arc<str>, why: String) -> Self {
        let row = RuleRow {
            file: Arc::clone(file),
            error: Some(why),
            ..RuleRow::default()
        };
        Loaded {
            row,
            ..Loaded::default()
        }
    }

    /// A document.
    pub(crate) fn new(file: &Arc<str>, loaded: Result<Document, Box<Refused>>, log_sources: &LogSources) -> Self {
        let (rules, correlation) = match loaded {
            Ok(Document::Rule(rule)) => (vec![rule], None),
            Ok(Document::Correlation(correlation)) => (Vec::new(), Some(correlation)),
            Ok(Document::Aggregation(rules, correlation)) => (rules, Some(correlation)),
            Ok(Document::Filter(filter)) => {
                return Loaded {
                    row: RuleRow::of_filter(file, &filter),
                    filter: Some(filter),
                    ..Loaded::default()
                };
            }
            Err(refused) => {
                let mut loaded = Loaded::unusable(file, refused.error.to_string());
                loaded.row.about = Arc::new(About {
                    id: refused.id,
                    title: refused.title.unwrap_or_default(),
                    ..About::default()
                });
                return loaded;
            }
        };
        let mut row = RuleRow {
            file: Arc::clone(file),
            ..RuleRow::default()
        };
        let mut all = Vec::new();
        for rule in rules {
            let position = rule.log_source_position;
            let (alternatives, error) = match log_sources.resolve(&rule.log_sources) {
                Ok(alternatives) => (alternatives, None),
                Err(problem) => (Vec::new(), Some(LoadError { position, problem }.to_string())),
            };
            row = RuleRow::new(file, &rule, &alternatives, error);
            all.push(RuleForEvents { rule, alternatives });
        }
        if row.error.is_some() {
            return Loaded {
                row,
                ..Loaded::default()
            };
        }
        if let Some(correlation) = &correlation {
            row = row.describing(correlation);
        }
        Loaded {
            row,
            rules: all,
            correlation,
            filter: None,
        }
    }
}

impl Collected {
    pub(crate) fn new(tuning: Tuning) -> Self {
        Collected {
            tuning,
            ..Collected::default()
        }
    }

    /// Adds a document, unless its ID is that of another one, or the set has no space for it.
    pub(crate) fn add(&mut self, loaded: Loaded, wants: impl Fn(&RuleRow) -> bool) {
        let Loaded {
            mut row,
            mut rules,
            mut correlation,
            filter,
        } = loaded;
        let id = row.about.id.as_deref().map(id_of).unwrap_or_default();
        if let Some(&level) = self.tuning.levels.get(&id) {
            let abouts = rules.iter_mut().map(|known| &mut known.rule.about);
            let abouts = abouts.chain(correlation.iter_mut().map(|known| &mut known.about));
            abouts
                .chain([&mut row.about])
                .for_each(|about| Arc::make_mut(about).level = Some(level));
        }
        let is_excluded = self.tuning.excluded.contains(&id);
        let is_wanted = wants(&row) && !is_excluded;
        let outcome = if row.error.is_some() {
            Ok(())
        } else {
            self.add_parts(rules, correlation, &row, is_wanted)
        };
        row.error = outcome.err().or(row.error);
        if let Some(filter) = filter.filter(|_| row.error.is_none() && !is_excluded) {
            self.filters.push((filter, self.rows.len()));
        }
        self.rows.push(row);
    }

    fn add_parts(
        &mut self,
        rules: Vec<RuleForEvents>,
        correlation: Option<Correlation>,
        row: &RuleRow,
        is_wanted: bool,
    ) -> Result<(), String> {
        if let Some(id) = row.about.id.as_deref().map(id_of) {
            if let Some(file) = self.known.get(&id) {
                return Err(format!("a rule of {file} has the same ID"));
            }
            self.known.insert(id, Arc::clone(&row.file));
        }
        let index = self.rows.len();
        for rule in rules {
            if is_wanted && correlation.is_none() {
                self.set.add(rule).map_err(|problem| problem.to_string())?;
                self.files.push(Arc::clone(&row.file));
            } else if self.others_bytes < Limits::SET_BYTES {
                self.others_bytes += rule.rule.bytes();
                self.others.push((rule, index));
            }
        }
        self.correlations
            .extend(correlation.map(|correlation| (correlation, index, is_wanted)));
        Ok(())
    }

    /// Applies the filters, and says of those that have no effect why.
    fn filter(&mut self, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        if self.filters.is_empty() {
            return Ok(());
        }
        let (filters, rows): (Vec<_>, Vec<_>) = std::mem::take(&mut self.filters).into_iter().unzip();
        let names = self.correlations.iter().flat_map(|(one, ..)| one.about.names());
        let mut filtered = Filtered {
            correlations: names.collect(),
            set: &mut self.set,
            others: &mut self.others,
            others_bytes: &mut self.others_bytes,
        };
        let outcomes = filtered.apply(&filters, interrupt)?;
        for (row, outcome) in rows.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Applied(lint) => self.rows[row].lint.extend(lint),
                Outcome::Refused(why) => self.rows[row].error = Some(why),
            }
        }
        Ok(())
    }

    /// Applies the filters, adds the rules that correlations need, and says of filters and correlations that cannot be
    /// used why.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(crate) fn finish(mut self, interrupt: Interrupt<'_>) -> Result<LoadedRules, Interrupted> {
        if let Err(interrupted) = self.filter(interrupt) {
            free(self);
            return Err(interrupted);
        }
        Ok(self.correlate())
    }

    fn correlate(mut self) -> LoadedRules {
        if self.correlations.is_empty() {
            return LoadedRules {
                rows: self.rows.into(),
                rules: Rules::new(self.set.finish(), self.files).into(),
            };
        }
        let correlations: Vec<_> = self.correlations.iter().map(|(one, ..)| one.clone()).collect();
        let mut wanted = vec![true; self.files.len()];
        let others = std::mem::take(&mut self.others);
        let known = self.set.rules().iter().map(|known| &known.rule);
        let all: Vec<&Rule> = known.chain(others.iter().map(|(other, _)| &other.rule)).collect();
        let first = self.set.rules().len();
        let (resolved, _) = Correlations::resolve(&all, correlations.clone());
        let is_needed = |index: usize| resolved.is_base((first + index) as u32);
        for (_, (rule, row)) in others.into_iter().enumerate().filter(|(index, _)| is_needed(*index)) {
            let row = &mut self.rows[row];
            match self.set.add(rule) {
                Ok(()) => {
                    self.files.push(Arc::clone(&row.file));
                    wanted.push(false);
                }
                Err(problem) => row.error = Some(problem.to_string()),
            }
        }
        let set = self.set.finish();
        let rules: Vec<&Rule> = set.rules().iter().map(|known| &known.rule).collect();
        let (correlations, errors) = Correlations::resolve(&rules, correlations);
        let mut lint = correlations.lint(&rules).into_iter();
        for ((_, row, is_wanted), error) in self.correlations.iter().zip(errors) {
            let row = &mut self.rows[*row];
            match error {
                Some(error) => row.error = Some(error.to_string()),
                None => {
                    let lint = lint.next().unwrap_or_default();
                    row.lint.extend(lint.iter().map(ToString::to_string));
                    self.files.push(Arc::clone(&row.file));
                    wanted.push(*is_wanted);
                }
            }
        }
        // Leaves out correlations and their rules if no correlation is wanted.
        let rules = Rules::correlated(set, correlations, self.files, wanted).only(|_| true);
        LoadedRules {
            rows: self.rows.into(),
            rules: rules.into(),
        }
    }
}

impl LoadedRules {
    /// The rules that the arguments want, and a warning if others did not load. It names the function that lists rules,
    /// which is called like `function`, the caller, with `_rules`.
    ///
    /// # Errors
    /// [`ScanError::Input`] if none can be used because none loads.
    pub fn into_rules(self, function: &str) -> Result<(Arc<Rules>, Option<String>), ScanError> {
        let rules = self.rules;
        let mut failed = self.rows.iter().filter(|row| row.error.is_some());
        let Some(first) = failed.next() else {
            return Ok((rules, None));
        };
        let (count, all) = (1 + failed.count(), self.rows.len());
        let warning = format!(
            "{count} of {all} rules did not load; {function}_rules gives the reason for each. The first is that of {}: {}",
            first.file,
            first.error.as_deref().unwrap_or_default()
        );
        if count < all {
            Ok((rules, Some(warning)))
        } else {
            Err(ScanError::Input(warning))
        }
    }
}
