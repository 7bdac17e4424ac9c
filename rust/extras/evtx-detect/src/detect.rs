//! Matches records against the rules of a scan: gives the engine of `evtx-sigma` the fields of records, by the names that
//! rules have for them.
//!
//! Rules are folded once for each **class** of events: those with the same fields, channel, provider and event ID. Each
//! thread finds the class of a record by its templates. The threads share the folded rules. If no rule is for a class,
//! nothing more of its records is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use evtx_arrow::{EventPath, FoundValue, PathId, ReadRecord, RecordHeader, ScanLayout, system_names};
use evtx_format::value::time::push_instant;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::correlation::RecordLocation;
use evtx_sigma::{ClassCache, Hits, Match, Matching, Presence, Values};

use crate::classes::{ClassOfFields, ClassWithSlots};
use crate::findings::Finding;
use crate::record_values::{Arrays, FieldSlot, RecordValues};
use crate::rules::Rules;

/// The fields of `System` by which most rules select their events. Their values distinguish classes.
const KEY_FIELDS: [&str; 3] = ["EventID", "Channel", "Provider_Name"];

/// The most bytes of the value of such a field. Rules are matched against a longer one in each record.
const MAX_KEY_VALUE: usize = 1 << 10;

pub(crate) struct Detector {
    matching: Matching,
    rules: Arc<Rules>,
    paths: Vec<(String, PathId)>,
    key_paths: Vec<PathId>,
    /// By their templates and the values at these paths.
    classes: ClassCache<ClassWithSlots<Slot>>,
    key: Vec<u8>,
    matches: Vec<Match>,
    /// If the scan correlates: the matches that correlations need, of the file with this index.
    hits: Option<Hits>,
    /// By file, how many events correlations leave out because they have no time.
    without_time: BTreeMap<u32, u64>,
    pub(crate) file: u32,
    time: Option<PathId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Slot {
    Path(PathId),
    /// The time of the event, whose text is that of a FILETIME even if the record spells it in another way.
    Time(PathId),
    Field(FieldSlot),
}

struct SlotValues<'v, 'a> {
    slots: &'v [Slot],
    values: RecordValues<'a>,
}

impl<'a> SlotValues<'_, 'a> {
    /// Whether no value was read. A row of a table has the time of the record's header if the event has none.
    fn is_empty(&self) -> bool {
        let mut slots = self.slots.iter().enumerate();
        slots.all(|(at, slot)| matches!(slot, Slot::Time(_)) || self.get(at).is_none())
    }

    fn get(&self, slot: usize) -> Option<FoundValue<'a>> {
        match *self.slots.get(slot)? {
            Slot::Path(path) | Slot::Time(path) => self.values.value_at(path),
            Slot::Field(field) => self.values.field(field),
        }
    }
}

impl Values for SlotValues<'_, '_> {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
        let Some(found) = self.get(slot) else {
            return Presence::Absent;
        };
        // Texts of the core are UTF-8, so this makes no copy.
        let mut bytes = std::mem::take(out).into_bytes();
        match (self.slots.get(slot), found.nanos()) {
            (Some(Slot::Time(_)), Some(nanos)) => push_instant(&mut bytes, nanos),
            _ => found.push_entry(&mut bytes),
        }
        *out = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Presence::Text
    }
}

impl Detector {
    /// A detector for a scan that reads all paths of `System`.
    pub(crate) fn new(scan: &ScanLayout<'_>, rules: &Arc<Rules>, kept_hits: &Arc<AtomicUsize>) -> Self {
        let paths = system_names().filter_map(|(name, path)| Some((name, scan.path(path)?)));
        let paths: Vec<_> = paths.collect();
        let key_paths = paths.iter().filter(|(name, _)| KEY_FIELDS.contains(&&**name));
        Detector {
            matching: Matching::new(Arc::clone(&rules.set)),
            rules: Arc::clone(rules),
            key_paths: key_paths.map(|(_, path)| *path).collect(),
            paths,
            classes: ClassCache::default(),
            key: Vec::new(),
            matches: Vec::new(),
            hits: rules
                .correlates()
                .then(|| Hits::new(Arc::clone(&rules.correlations), Arc::clone(kept_hits))),
            without_time: BTreeMap::new(),
            file: 0,
            time: scan.path(EventPath::TIME_CREATED),
        }
    }

    /// The matches that correlations need, and by file how many events they leave out.
    pub(crate) fn take_hits(&mut self) -> (Option<Hits>, BTreeMap<u32, u64>) {
        (self.hits.take(), std::mem::take(&mut self.without_time))
    }

    /// Finds the rules that a record of a class matches, in their order. Correlations get those that they need. A
    /// damaged record of which no value was read matches none.
    pub(crate) fn detect(
        &mut self,
        known: &ClassWithSlots<Slot>,
        record: ReadRecord<'_>,
        (header, is_damaged): (&RecordHeader, bool),
        interrupt: Interrupt<'_>,
    ) -> Result<impl Iterator<Item = Finding>, Interrupted> {
        self.matches.clear();
        let values = SlotValues {
            slots: &known.slots,
            values: RecordValues::of(record),
        };
        if is_damaged && values.is_empty() {
            return Ok(self.matches.drain(..).map(Finding::of_match));
        }
        self.matching
            .matches(&known.class, &values, interrupt, &mut self.matches)?;
        if let Some(hits) = &mut self.hits
            && !self.matches.is_empty()
        {
            let time = self.time.and_then(|path| values.values.value_at(path)?.nanos());
            let is_base = |found: &Match| self.rules.correlations.is_base(found.rule);
            if time.is_none() && self.matches.iter().any(is_base) {
                *self.without_time.entry(self.file).or_default() += 1;
            }
            let location = RecordLocation {
                file: self.file,
                offset: header.offset,
                record_id: header.id,
            };
            for found in &self.matches {
                if let Some(time) = time
                    && is_base(found)
                {
                    let mut text = |field: &str, out: &mut String| {
                        let name = self.rules.renamed(found, field);
                        known.class.push_named(&values, name, out)
                    };
                    hits.push(found.rule, time, location, &mut text);
                }
            }
            self.matches.retain(|found| self.rules.reports(found.rule));
        }
        Ok(self.matches.drain(..).map(Finding::of_match))
    }

    /// The class of a record.
    pub(crate) fn class(
        &mut self,
        record: ReadRecord<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<Arc<ClassWithSlots<Slot>>, Interrupted> {
        let arrays = Arrays::of(record);
        self.key.clear();
        if !arrays.write_shape(record, &mut self.key) {
            return self.new_class(record, &arrays, interrupt).map(Arc::new);
        }
        self.write_key(record);
        if let Some(known) = self.classes.get(&self.key) {
            return Ok(known);
        }
        let class = Arc::new(self.new_class(record, &arrays, interrupt)?);
        self.classes.insert(&self.key, &class, class.bytes());
        Ok(class)
    }

    fn write_key(&mut self, record: ReadRecord<'_>) {
        for &path in &self.key_paths {
            match record.value_at(path) {
                None => self.key.push(0),
                Some(found) if found.is_constant() => self.key.push(1),
                Some(found) => {
                    let start = self.key.len();
                    found.push_text(&mut self.key);
                    let len = self.key.len() - start;
                    if len > MAX_KEY_VALUE {
                        self.key.truncate(start);
                    }
                    self.key.extend(len.min(MAX_KEY_VALUE + 1).to_le_bytes());
                    self.key.push(2);
                }
            }
        }
    }

    #[cold]
    fn new_class(
        &self,
        record: ReadRecord<'_>,
        arrays: &Arrays<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<ClassWithSlots<Slot>, Interrupted> {
        let mut fields = ClassOfFields::default();
        for (name, path) in &self.paths {
            let text = if self.key_paths.contains(path) {
                let Some(found) = record.value_at(*path) else { continue };
                found.text().filter(|text| text.len() <= MAX_KEY_VALUE)
            } else if record.may_have(*path) {
                // A record of the same templates can have a value there.
                None
            } else {
                continue;
            };
            let slot = if self.time == Some(*path) {
                Slot::Time(*path)
            } else {
                Slot::Path(*path)
            };
            fields.add_of_system(name, text, slot);
        }
        arrays.fields(record, |name, is_item, field| {
            fields.add(name, is_item, Slot::Field(field))
        });
        fields.class(&self.rules, interrupt)
    }
}
