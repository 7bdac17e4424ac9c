//! The row source of matches: each match of a rule is a row, then each burst of a correlation.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::vec::IntoIter;

use evtx_arrow::{
    ExtraColumn, Keeps, Known, Needs, Place, PlaceReader, ReadRecord, RecordHeader, RowFinder, RowSource, ScanLayout,
    system_names,
};
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::Hits;

use crate::detect::{Detector, Slot};
use crate::findings::{Finding, Found, FoundBurst};
use crate::kinds::KnownKind;
use crate::rule_column::{MatchColumn, RuleColumn};
use crate::rules::Rules;

/// The rules of a scan.
#[derive(Debug)]
pub struct RuleSource {
    /// Those that the predicates leave.
    rules: Arc<Rules>,
    /// All rules of the table. Which damage is reported does not depend on predicates.
    all: Arc<Rules>,
    /// How many matches all threads keep for correlations.
    kept_hits: Arc<AtomicUsize>,
}

impl RuleSource {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        RuleSource {
            all: Arc::clone(&rules),
            rules,
            kept_hits: Arc::default(),
        }
    }

    /// The source of a scan, if it is one of matches.
    pub fn of(source: Option<&Arc<dyn RowSource>>) -> Option<&RuleSource> {
        let source: &dyn Any = &**source?;
        source.downcast_ref()
    }

    /// The rules that the predicates leave.
    pub fn rules(&self) -> &Arc<Rules> {
        &self.rules
    }
}

impl RowSource for RuleSource {
    fn needs(&self) -> Needs {
        // A row reports damage that may have destroyed a match.
        Needs::all_values(system_names().map(|(_, place)| place).collect())
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
            kept_hits: Arc::default(),
        })
    }

    fn concerns(&self, chunk: &[u8], interrupt: Interrupt<'_>) -> Result<Option<bool>, Interrupted> {
        concerns(&self.all, chunk, interrupt)
    }

    fn finder(&self, scan: &ScanLayout<'_>) -> Box<dyn RowFinder> {
        Box::new(RuleFinder {
            rules: Arc::clone(&self.rules),
            all: Arc::clone(&self.all),
            pass: Pass::Matches(Detector::new(scan, &self.rules, &self.kept_hits).into()),
            kind: None,
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
    PlaceReader::new(&[Place::CHANNEL]).read(chunk, PromisedIds::default(), interrupt, |values| {
        if let Some(channel) = values.text(0) {
            is_relevant = Some(is_relevant == Some(true) || rules.set.is_for_channel(&channel));
        }
    })?;
    Ok(is_relevant)
}

/// The bursts of a file that have no row yet, by the file offset of their last record.
pub type BurstEnds = BTreeMap<u64, Vec<FoundBurst>>;

enum Pass {
    /// Each match of a rule is a row, with its record.
    Matches(Box<Detector>),
    /// Each burst is a row, with its last record. The scan has all matches by then.
    Bursts(BurstEnds),
}

/// Finds the matches of one thread, and then the bursts.
pub struct RuleFinder {
    rules: Arc<Rules>,
    all: Arc<Rules>,
    pass: Pass,
    /// The kind of the current record, once it is known.
    kind: Option<Arc<KnownKind<Slot>>>,
    /// What was found last and has no row.
    found: IntoIter<Finding>,
    /// The findings of the rows of the group.
    rows: Found,
    concerns_log: bool,
    concerns_chunk: Option<bool>,
}

impl RuleFinder {
    /// Says whether the rules are for the log of the next block, as [`RowSource::concerns`] finds out. Damage to other logs
    /// is not reported. `file` is an index for the log, by which correlations refer to it.
    pub fn of_log(&mut self, file: usize, concerns: bool) {
        self.concerns_log = concerns;
        if let Pass::Matches(detector) = &mut self.pass {
            detector.file = file as u32;
        }
    }

    /// Whether damage to the log is reported.
    pub fn concerns_log(&self) -> bool {
        self.concerns_log
    }

    /// If the scan correlates: the matches that correlations need, since the last call.
    pub fn take_hits(&mut self) -> Option<Hits> {
        match &mut self.pass {
            Pass::Matches(detector) => detector.take_hits(),
            Pass::Bursts(_) => None,
        }
    }

    /// From here on, each row is a burst of one file, with the record at whose file offset it ends. Returns how many bursts
    /// of the last call have no row.
    pub fn find_bursts(&mut self, ends: BurstEnds) -> usize {
        match std::mem::replace(&mut self.pass, Pass::Bursts(ends)) {
            Pass::Bursts(left) => left.values().map(Vec::len).sum(),
            Pass::Matches(_) => 0,
        }
    }

    /// Whether a burst without a row ends in a range of file offsets.
    pub fn has_bursts(&self, range: Range<u64>) -> bool {
        match &self.pass {
            Pass::Bursts(ends) => ends.range(range).next().is_some(),
            Pass::Matches(_) => false,
        }
    }
}

impl RowFinder for RuleFinder {
    fn start_chunk(&mut self) {
        self.concerns_chunk = None;
    }

    fn begin(&mut self, header: &RecordHeader) -> bool {
        self.kind = None;
        match &self.pass {
            Pass::Matches(_) => true,
            Pass::Bursts(ends) => {
                let ended = ends.get(&header.offset);
                // If the file was replaced meanwhile, another record can be there.
                let is_end = |end: &FoundBurst| end.burst.place.record_id == header.id;
                ended.into_iter().flatten().any(is_end)
            }
        }
    }

    fn may_find(&mut self, record: ReadRecord<'_>, interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        let Pass::Matches(detector) = &mut self.pass else {
            return Ok(true);
        };
        let kind = detector.kind(record, interrupt)?;
        let may_match = kind.may_match();
        self.kind = Some(kind);
        Ok(may_match)
    }

    fn find(
        &mut self,
        record: ReadRecord<'_>,
        header: &RecordHeader,
        is_damaged: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<usize, Interrupted> {
        let found: Vec<Finding> = match &mut self.pass {
            Pass::Matches(detector) => {
                let kind = match self.kind.take() {
                    Some(kind) => kind,
                    None => detector.kind(record, interrupt)?,
                };
                detector
                    .detect(&kind, record, (header, is_damaged), interrupt)?
                    .collect()
            }
            Pass::Bursts(ends) => {
                let ended = ends.remove(&header.offset).into_iter().flatten();
                ended.map(|found| Finding::of_burst(&self.rules, found)).collect()
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
        matches!(self.pass, Pass::Matches(_))
    }
}
