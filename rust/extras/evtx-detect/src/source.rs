//! The row source of matches: each match of a rule is a row, then each burst of a correlation.

use std::any::Any;
use std::sync::Arc;
use std::vec::IntoIter;

use evtx_arrow::{
    EventPath, ExtraColumn, Keeps, Known, ReadRecord, RecordHeader, RecordScan, Requirements, RowFinder, RowSource,
    ScanLayout, SecondPass, system_names,
};
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::classes::ClassWithSlots;
use crate::correlate::{Correlating, Pass, Passes};
use crate::detect::{Detector, Slot};
use crate::findings::{Finding, Found, FoundBurst};
use crate::rule_column::{MatchColumn, RuleColumn};
use crate::rules::Rules;

/// The rules of a scan.
#[derive(Debug)]
pub(crate) struct RuleSource {
    /// Those that the predicates leave.
    rules: Arc<Rules>,
    /// All rules of the table. Which damage is reported does not depend on predicates.
    all: Arc<Rules>,
    correlating: Arc<Correlating>,
}

impl RuleSource {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        RuleSource {
            all: Arc::clone(&rules),
            rules,
            correlating: Arc::default(),
        }
    }

    /// The rules that the predicates leave.
    pub(crate) fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }
}

impl RowSource for RuleSource {
    fn requirements(&self) -> Requirements {
        // A row reports damage that may have destroyed a match.
        Requirements::all_values(system_names().map(|(_, path)| path).collect())
    }

    fn sees_all(&self) -> bool {
        self.rules.correlates()
    }

    fn of_scan(&self, keeps: Option<&Keeps<'_>>) -> Arc<dyn RowSource> {
        let only = |keeps: &Keeps<'_>| {
            let is_kept = |rule: usize| keeps(&|column: &dyn ExtraColumn| known(&self.all, rule, column));
            Arc::new(self.all.only(is_kept))
        };
        Arc::new(RuleSource {
            rules: keeps.map_or_else(|| Arc::clone(&self.all), only),
            all: Arc::clone(&self.all),
            correlating: Arc::default(),
        })
    }

    fn concerns(&self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, Interrupted> {
        concerns(&self.all, chunk, interrupt)
    }

    fn finder(&self, scan: &ScanLayout<'_>) -> Box<dyn RowFinder> {
        Box::new(RuleFinder {
            all: Arc::clone(&self.all),
            passes: Passes {
                rules: Arc::clone(&self.rules),
                correlating: Arc::clone(&self.correlating),
                now: Pass::Matches(Detector::new(scan, &self.rules, &self.correlating.kept).into()),
            },
            class: None,
            found: Vec::new().into_iter(),
            rows: Vec::new(),
            concerns_log: true,
            concerns_chunk: None,
        })
    }
}

/// The value of a column for a rule, as far as predicates are about it.
fn known<'r>(rules: &'r Rules, rule: usize, column: &dyn ExtraColumn) -> Option<Known<'r>> {
    let column: &dyn Any = column;
    match column.downcast_ref()? {
        MatchColumn::Rule(RuleColumn::Level) => rules.level(rule).map(|level| Known::Number(level.into())),
        MatchColumn::Rule(column) => rules.text(rule, *column).map(Known::Text),
        MatchColumn::Matched | MatchColumn::Correlation => None,
    }
}

/// Whether rules are for events of a chunk, by the channels of its records. `None` if no channel can be read.
fn concerns(rules: &Rules, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, Interrupted> {
    let mut is_relevant = None;
    let mut scan = RecordScan::new(Requirements::of_paths(&[EventPath::CHANNEL]), None);
    let channel = scan.path(EventPath::CHANNEL);
    scan.read(chunk, PromisedIds::default(), interrupt, |record| {
        if let Some(channel) = channel.and_then(|path| record.value_at(path)?.text()) {
            is_relevant = Some(is_relevant == Some(true) || rules.set.is_for_channel(&channel));
        }
        Ok::<_, Interrupted>(())
    })?;
    Ok(is_relevant)
}

/// Finds the matches of one thread, and then the bursts.
struct RuleFinder {
    all: Arc<Rules>,
    passes: Passes,
    /// The class of the current record, once it is known.
    class: Option<Arc<ClassWithSlots<Slot>>>,
    /// What was found last and has no row.
    found: IntoIter<Finding>,
    /// The findings of the rows of the group.
    rows: Found,
    concerns_log: bool,
    concerns_chunk: Option<bool>,
}

impl RowFinder for RuleFinder {
    fn start_block(&mut self, log: usize, concerns: bool) {
        self.concerns_log = concerns;
        if let Pass::Matches(detector) = &mut self.passes.now {
            detector.file = log as u32;
        }
    }

    fn start_chunk(&mut self) {
        self.concerns_chunk = None;
    }

    fn begin(&mut self, header: &RecordHeader) -> bool {
        self.class = None;
        match &self.passes.now {
            Pass::Matches(_) => true,
            Pass::Bursts(bursts) => {
                let ended = bursts.of_log.get(&header.offset);
                // If the file was replaced meanwhile, another record can be there.
                let is_end = |end: &FoundBurst| end.burst.location.record_id == header.id;
                ended.into_iter().flatten().any(is_end)
            }
        }
    }

    fn may_find(&mut self, record: ReadRecord<'_>, interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        let Pass::Matches(detector) = &mut self.passes.now else {
            return Ok(true);
        };
        let class = detector.class(record, interrupt)?;
        let may_match = class.may_match();
        self.class = Some(class);
        Ok(may_match)
    }

    fn find(
        &mut self,
        record: ReadRecord<'_>,
        header: &RecordHeader,
        is_damaged: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, Interrupted> {
        let found: Vec<Finding> = match &mut self.passes.now {
            Pass::Matches(detector) => {
                let class = match self.class.take() {
                    Some(class) => class,
                    None => detector.class(record, interrupt)?,
                };
                detector
                    .detect(&class, record, (header, is_damaged), interrupt)?
                    .collect()
            }
            Pass::Bursts(bursts) => {
                let ended = bursts.of_log.remove(&header.offset).into_iter().flatten();
                ended
                    .map(|found| Finding::of_burst(&self.passes.rules, found))
                    .collect()
            }
        };
        self.found = found.into_iter();
        Ok(self.found.len())
    }

    fn keep(&mut self) {
        self.rows.push(self.found.next());
    }

    fn left(&self) -> usize {
        self.found.len()
    }

    fn rows(&self) -> &dyn Any {
        &self.rows
    }

    fn clear(&mut self) {
        self.rows.clear();
    }

    fn reports_damage(&mut self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        if let Some(known) = self.concerns_chunk {
            return Ok(known);
        }
        let relevant = concerns(&self.all, chunk, interrupt)?.unwrap_or(self.concerns_log);
        self.concerns_chunk = Some(relevant);
        Ok(relevant)
    }

    fn reports_chunks(&self) -> bool {
        matches!(self.passes.now, Pass::Matches(_))
    }

    fn reports_log(&self) -> bool {
        self.concerns_log
    }

    fn second_pass(&mut self) -> Option<&mut dyn SecondPass> {
        Some(&mut self.passes)
    }
}
