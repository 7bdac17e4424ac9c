//! Matches records against the rules of a scan: gives the engine of `evtx-sigma` the fields of records, by the names that
//! rules have for them.
//!
//! Rules are folded once for each **kind** of events: those with the same fields, channel, provider and event ID. Each
//! thread finds the kind of a record by its templates. The threads share the folded rules. If no rule is for a kind,
//! nothing more of its records is read.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use evtx_format::container::record::Record;
use evtx_format::value::time::push_instant;
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::correlation::Place;
use evtx_sigma::{EventKind, Hits, KindCache, Match, Matching, Presence, SYSTEM_CHANNEL, Values};

use crate::findings::Finding;
use crate::plan::{Entry, EntryId, EventData, PlaceId, Resolved};
use crate::record::{ChunkTemplates, Keyed, KeyedEntries, Places, RecordView};
use crate::scan::Scan;
use crate::schema::{self, Rules, TIME_CREATED};

/// The most items of all arrays of a record that count as values. A later array is one value, a JSON text.
const MAX_ITEMS: usize = 1 << 16;

/// The fields of `System` by which most rules select their events. They distinguish kinds.
const TELLING: [&str; 3] = ["EventID", "Channel", "Provider_Name"];

/// The most bytes of the value of such a field. Rules are matched against a longer one in each record.
const MAX_TELLING: usize = 1 << 10;

/// The field name of unnamed values.
pub(crate) const UNNAMED: &str = "Data";

pub(crate) struct Detector {
    matching: Matching,
    rules: Arc<Rules>,
    places: Vec<(String, PlaceId)>,
    telling: Vec<PlaceId>,
    /// By their templates and the values at these places.
    kinds: KindCache<KnownKind>,
    key: Vec<u8>,
    matches: Vec<Match>,
    /// If the scan correlates: the matches that correlations need, of the file with this index.
    hits: Option<Hits>,
    /// How many of them all threads keep.
    kept_hits: Arc<AtomicUsize>,
    pub(crate) file: u32,
    time: Option<PlaceId>,
}

/// A kind of events, and where the values of its fields are.
#[derive(Debug)]
pub(crate) struct KnownKind<S = Slot> {
    pub(crate) kind: Arc<EventKind>,
    pub(crate) slots: Box<[S]>,
}

impl<S> KnownKind<S> {
    /// The kind of events with these fields: the slot, the name and the known text of each. Texts that `known` lacks are not
    /// known.
    pub(crate) fn new(
        rules: &Rules,
        slots: Vec<S>,
        mut names: Vec<String>,
        mut known: Vec<Option<String>>,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Interrupted> {
        if is_cleared(&names, &known)
            && let Some(channel) = names.iter_mut().find(|name| *name == "Channel")
        {
            SYSTEM_CHANNEL.clone_into(channel);
        }
        known.resize(slots.len(), None);
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        let known: Vec<Option<&str>> = known.iter().map(Option::as_deref).collect();
        Ok(KnownKind {
            kind: rules.kinds.kind(&texts, &known, interrupt)?,
            slots: slots.into(),
        })
    }

    /// Whether a rule can match events of the kind.
    pub(crate) fn may_match(&self) -> bool {
        !self.kind.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.kind.bytes() + size_of_val(&*self.slots)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Slot {
    Place(PlaceId),
    /// The time of the event, whose text is that of a FILETIME even if the record spells it in another way.
    Time(PlaceId),
    /// An entry of `EventData` if the flag is true, else a leaf of `UserData`.
    Entry(bool, EntryId),
    /// The item with an index among those of all arrays of the record.
    Item(usize),
    /// Another value, of the part with an index among those that have other values.
    Other(usize, EntryId),
}

/// The arrays of a record, as far as their items count as values.
#[derive(Default)]
struct Arrays<'p, 'r> {
    /// Whether each is in `EventData`, its entry, and how many items it has.
    all: Vec<(bool, EntryId, usize)>,
    items: Vec<Resolved<'p, 'r>>,
}

impl<'p, 'r> Arrays<'p, 'r> {
    fn new(record: RecordView<'p, 'r>, templates: &'p ChunkTemplates) -> Self {
        let mut arrays = Arrays::default();
        if record.may_have_arrays(templates) {
            for (in_event_data, entry, array) in record.keyed_entries(templates).arrays() {
                let before = arrays.items.len();
                arrays.items.extend(array.items().into_iter().flatten());
                arrays.all.push((in_event_data, entry, arrays.items.len() - before));
                if arrays.items.len() > MAX_ITEMS {
                    break;
                }
            }
        }
        arrays
    }
}

struct RecordValues<'v, 'p, 'r> {
    slots: &'v [Slot],
    places: Places<'p, 'r>,
    entries: KeyedEntries<'p, 'r>,
    arrays: Arrays<'p, 'r>,
    others: Vec<Keyed<'p, 'r>>,
}

impl<'p, 'r> RecordValues<'_, 'p, 'r> {
    /// Whether no value was read. A row of a table has the time of the record's header if the event has none.
    fn is_empty(&self) -> bool {
        let mut slots = self.slots.iter().enumerate();
        slots.all(|(at, slot)| matches!(slot, Slot::Time(_)) || self.get(at).is_none())
    }

    fn get(&self, slot: usize) -> Option<Resolved<'p, 'r>> {
        self.slots.get(slot).and_then(|slot| match *slot {
            Slot::Place(place) | Slot::Time(place) => self.places.get(place),
            Slot::Entry(in_event_data, entry) => self.entries.leaf(in_event_data, entry),
            Slot::Item(item) => self.arrays.items.get(item).copied(),
            Slot::Other(part, entry) => self.others.get(part)?.get(entry),
        })
    }
}

impl Values for RecordValues<'_, '_, '_> {
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

fn no_hits(rules: &Rules, kept: &Arc<AtomicUsize>) -> Hits {
    Hits::new(Arc::clone(&rules.correlations), Arc::clone(kept))
}

/// Whether an event reports that a log was cleared. It names that log in a second `Channel`, after that of `System`.
fn is_cleared(names: &[String], known: &[Option<String>]) -> bool {
    let is = |name: &str, texts: &[&str]| {
        let mut places = names.iter().zip(known).filter(|(known, _)| *known == name);
        places.any(|(_, text)| text.as_deref().is_some_and(|text| texts.contains(&text)))
    };
    names.iter().filter(|name| *name == "Channel").count() > 1
        && is("EventID", &["104", "1102"])
        && is("Provider_Name", &["Microsoft-Windows-Eventlog"])
}

impl Detector {
    /// A detector for a scan, whose projection has all places of `System`.
    pub(crate) fn new(scan: &Scan, rules: &Arc<Rules>) -> Self {
        let places = schema::sigma_names();
        let places = places.filter_map(|(name, place)| Some((name, scan.projection.place_id(place)?)));
        let places: Vec<_> = places.collect();
        let telling = places.iter().filter(|(name, _)| TELLING.contains(&&**name));
        Detector {
            matching: Matching::new(Arc::clone(&rules.set)),
            rules: Arc::clone(rules),
            telling: telling.map(|(_, place)| *place).collect(),
            places,
            kinds: KindCache::default(),
            key: Vec::new(),
            matches: Vec::new(),
            hits: scan.correlates().then(|| no_hits(rules, &scan.kept_hits)),
            kept_hits: Arc::clone(&scan.kept_hits),
            file: 0,
            time: scan.projection.place_id(TIME_CREATED),
        }
    }

    /// The matches that correlations need. Those of later records are new.
    pub(crate) fn take_hits(&mut self) -> Option<Hits> {
        let new = no_hits(&self.rules, &self.kept_hits);
        self.hits.as_mut().map(|hits| std::mem::replace(hits, new))
    }

    /// Finds the rules that a record of a kind matches, in their order. Correlations get those that they need. `offset` is
    /// the file offset of the record. A damaged record of which no value was read matches none.
    pub(crate) fn detect(
        &mut self,
        known: &KnownKind,
        view: RecordView<'_, '_>,
        templates: &ChunkTemplates,
        (record, offset, is_damaged): (&Record, u64, bool),
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<Finding>, Interrupted> {
        self.matches.clear();
        let values = RecordValues {
            slots: &known.slots,
            places: view.places(templates),
            arrays: Arrays::new(view, templates),
            entries: view.keyed_entries(templates),
            others: view.other_values(templates),
        };
        if is_damaged && values.is_empty() {
            return Ok(Vec::new());
        }
        self.matching
            .matches(&known.kind, &values, interrupt, &mut self.matches)?;
        if let Some(hits) = &mut self.hits
            && !self.matches.is_empty()
        {
            let time = self.time.and_then(|place| values.places.get(place)?.nanos());
            let time = time.or(record.written_nanos()).unwrap_or_default();
            let place = Place {
                file: self.file,
                offset,
                record_id: record.id,
            };
            for found in &self.matches {
                if self.rules.correlations.is_base(found.rule) {
                    let mut text = |field: &str, out: &mut String| {
                        let name = self.rules.renamed(found, field);
                        known.kind.push_named(&values, name, out)
                    };
                    hits.push(found.rule, time, place, &mut text);
                }
            }
            self.matches.retain(|found| self.rules.reports(found.rule));
        }
        Ok(self.matches.drain(..).map(Finding::of_match).collect())
    }

    /// The kind of a record.
    pub(crate) fn kind(
        &mut self,
        scan: &Scan,
        record: RecordView<'_, '_>,
        templates: &ChunkTemplates,
        interrupt: Interrupt<'_>,
    ) -> Result<Arc<KnownKind>, Interrupted> {
        let arrays = Arrays::new(record, templates);
        if !self.write_key(record, templates, &arrays) {
            return self.new_kind(scan, record, templates, &arrays, interrupt).map(Arc::new);
        }
        if let Some(known) = self.kinds.get(&self.key) {
            return Ok(known);
        }
        let kind = Arc::new(self.new_kind(scan, record, templates, &arrays, interrupt)?);
        self.kinds.insert(&self.key, &kind, kind.bytes());
        Ok(kind)
    }

    /// Writes the key of a record. Returns false if it has parts without a template.
    fn write_key(&mut self, record: RecordView<'_, '_>, templates: &ChunkTemplates, arrays: &Arrays<'_, '_>) -> bool {
        self.key.clear();
        self.key.extend(arrays.all.len().to_le_bytes());
        for &(in_event_data, EntryId(entry), count) in &arrays.all {
            self.key.push(in_event_data.into());
            self.key.extend(entry.to_le_bytes());
            self.key.extend(count.to_le_bytes());
        }
        for part in record.parts {
            let Some(Ok(template)) = part.template().map(|at| templates.get(at)) else {
                return false;
            };
            let has = [
                template.plan.event_data(part.values).is_some(),
                template.plan.user_entries(part.values).is_some(),
                part.is_damaged(),
            ];
            self.key.extend(template.number.to_le_bytes());
            self.key.extend(has.map(u8::from));
        }
        let places = record.places(templates);
        for &place in &self.telling {
            match places.get(place) {
                None => self.key.push(0),
                Some(Resolved::Constant(_)) => self.key.push(1),
                Some(found) => {
                    let start = self.key.len();
                    found.push_text(&mut self.key);
                    let len = self.key.len() - start;
                    if len > MAX_TELLING {
                        self.key.truncate(start);
                    }
                    self.key.extend(len.min(MAX_TELLING + 1).to_le_bytes());
                    self.key.push(2);
                }
            }
        }
        true
    }

    #[cold]
    fn new_kind(
        &self,
        scan: &Scan,
        record: RecordView<'_, '_>,
        templates: &ChunkTemplates,
        arrays: &Arrays<'_, '_>,
        interrupt: Interrupt<'_>,
    ) -> Result<KnownKind, Interrupted> {
        let places = record.places(templates);
        let (mut names, mut known, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for (name, place) in &self.places {
            let text = if self.telling.contains(place) {
                let Some(found) = places.get(*place) else { continue };
                found.text().filter(|text| text.len() <= MAX_TELLING)
            } else if record
                .with_plans(templates)
                .any(|(_, plan)| plan.place(*place).is_some())
            {
                // A record of the same templates can have a value there.
                None
            } else {
                continue;
            };
            names.push(name.clone());
            known.push(text);
            slots.push(if self.time == Some(*place) {
                Slot::Time(*place)
            } else {
                Slot::Place(*place)
            });
        }
        let mut arrays = arrays.all.iter().peekable();
        let mut item = 0;
        let name_of = |entry: &Entry| {
            let key = scan.plans.keys.name(&entry.key);
            let name = key.get(..entry.name_len).filter(|name| !name.is_empty());
            name.unwrap_or(UNNAMED).replace(' ', "")
        };
        let mut add = |entries: Option<&EventData>, in_event_data: bool| {
            for (id, entry) in (0..)
                .map(EntryId)
                .zip(entries.iter().flat_map(|entries| &entries.entries))
            {
                let array = arrays.next_if(|(of, array, _)| (*of, *array) == (in_event_data, id));
                if let Some((.., count)) = array {
                    slots.extend((item..item + count).map(Slot::Item));
                    item += count;
                } else {
                    slots.push(Slot::Entry(in_event_data, id));
                }
                names.resize(slots.len(), name_of(entry));
            }
        };
        add(record.event_data(templates).map(|(entries, _)| entries), true);
        add(record.user_entries(templates).map(|(entries, _)| entries), false);
        for (part, others) in record.other_values(templates).iter().enumerate() {
            for (id, entry) in (0..).map(EntryId).zip(&others.of.entries) {
                names.push(name_of(entry));
                slots.push(Slot::Other(part, id));
            }
        }
        KnownKind::new(&self.rules, slots, names, known, interrupt)
    }
}
