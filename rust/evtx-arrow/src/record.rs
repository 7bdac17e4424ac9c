//! A record as the parts that its columns are read from.
//!
//! A part is a template instance with its plan, or a tree with a plan of its own: for elements that a record
//! spells out, and for instances that no plan of their template covers. The first part is the event; the
//! others are the streams that its holes hold (usually one: `EventData`).

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use bumpalo::Bump;
use evtx_format::binxml::instance::{Definition, HoleSet, Instance, Values};
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::Element;
use evtx_format::binxml::{Part as StreamPart, Parts, Reader};
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::{Error, ErrorKind, Interrupt, MAX_NESTING, MAX_TEXT, Result};

use crate::cache::Compiled;
use crate::plan::{Entry, EventData, Found, Plan, Root};
use crate::records::Records;
use crate::scan::Scan;
use crate::spelled::Spelled;
use crate::system::SystemHoles;

/// The templates that a chunk has used so far, by where their definitions stand.
#[derive(Debug)]
pub(crate) struct ChunkTemplates {
    /// By chunk offset and root: one more than the place in `compiled`, or 0.
    index: Box<[u16]>,
    /// The entries of `index` that are set.
    used: Vec<usize>,
    compiled: Vec<Result<Arc<Compiled>>>,
    /// About how many bytes those take that the scan does not keep.
    bytes: usize,
}

/// Bytes of templates at which a chunk forgets those that it has used. Those of real chunks take some hundred KiB, but crafted
/// definitions can overlap.
const MAX_BYTES: usize = 16 << 20;

impl Default for ChunkTemplates {
    fn default() -> Self {
        ChunkTemplates {
            index: vec![0; 2 * CHUNK_SIZE].into(),
            used: Vec::new(),
            compiled: Vec::new(),
            bytes: 0,
        }
    }
}

impl ChunkTemplates {
    /// What the template at a place compiled to.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Result<&Compiled> {
        match &self.compiled[at] {
            Ok(compiled) => Ok(compiled),
            Err(error) => Err(*error),
        }
    }

    /// What the template that is defined at an offset compiled to, if a record was read that uses it.
    #[inline]
    pub(crate) fn find(&self, definition: u32, root: Root) -> Option<&Compiled> {
        let known = *self.index.get(index(definition, root))?;
        self.get(usize::from(known).checked_sub(1)?).ok()
    }

    /// Whether they take so much room that they should be forgotten, once no record is at hand that needs them.
    #[inline]
    pub(crate) fn are_many(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Forgets them, for the next chunk, or for the next records of this.
    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        for used in self.used.drain(..) {
            self.index[used] = 0;
        }
        self.compiled.clear();
    }
}

/// The entry of [`ChunkTemplates::index`] for a definition.
#[inline]
fn index(definition: u32, root: Root) -> usize {
    2 * definition as usize + usize::from(root == Root::Child)
}

/// The parts of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordParts<'p, 'r> {
    pub(crate) records: &'p Records<'r>,
    pub(crate) parts: &'p [Part<'r>],
    /// Whether some of the record is damaged. Parts that come before it are there.
    pub(crate) is_damaged: bool,
}

pub(crate) struct Part<'r> {
    plan: PlanAt,
    pub(crate) values: Values<'r>,
    pub(crate) content: PartContent<'r>,
}

impl<'r> Part<'r> {
    /// The number of its template and its values, if it is an instance that a plan covers.
    #[inline]
    fn instance(&self) -> Option<(usize, Values<'r>)> {
        match self.content {
            PartContent::Instance(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// The number of its template among those of the chunk, if it has its plan from one.
    #[inline]
    pub(crate) fn template(&self) -> Option<usize> {
        match self.plan {
            PlanAt::Template(at) => Some(at),
            PlanAt::Own(_) => None,
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.content, PartContent::Damaged)
    }
}

/// Where a part's plan is.
#[derive(Clone, Copy)]
enum PlanAt {
    /// With the chunk's templates.
    Template(usize),
    /// With the record.
    Own(usize),
}

/// What a part was read from.
#[derive(Clone, Copy)]
pub(crate) enum PartContent<'r> {
    Instance(Instance<'r>, Root),
    /// With what its holes were filled from, if it is that of an instance.
    Tree(&'r Element<'r>, Root, Option<Values<'r>>),
    /// An instance whose tree cannot be read: only what its plan has of the fields counts.
    Damaged,
}

/// Bytes that a group of records may leave in the arena before it ends. One of usual records leaves some ten thousand.
const MUCH: usize = 1 << 20;

/// Reads the records of a chunk.
pub(crate) struct RecordReader<'r, 'c> {
    pub(crate) scan: &'r Scan,
    pub(crate) chunk: &'r [u8],
    names: &'r Names<'c>,
    pub(crate) arena: &'r Bump,
    pub(crate) reader: Reader<'r, 'c>,
    pub(crate) interrupt: Interrupt<'r>,
    /// Whether a tree was built in the arena, also one of which only an error is left.
    builds_trees: Cell<bool>,
    /// What was written of the record at hand when it was checked.
    pub(crate) spelled: RefCell<Spelled<'r>>,
}

impl<'r, 'c: 'r> RecordReader<'r, 'c> {
    /// A reader for records whose parts live in `arena`.
    #[inline(always)]
    pub(crate) fn new(
        scan: &'r Scan,
        chunk: &'r [u8],
        names: &'r Names<'c>,
        arena: &'r Bump,
        interrupt: Interrupt<'r>,
    ) -> Self {
        RecordReader {
            scan,
            chunk,
            names,
            arena,
            reader: Reader::new(chunk, names, arena),
            interrupt,
            builds_trees: Cell::new(false),
            spelled: RefCell::default(),
        }
    }

    /// Whether records were read that have left much in the arena, or may have.
    #[inline]
    pub(crate) fn takes_much(&self) -> bool {
        let used = self.arena.allocated_bytes() - self.arena.chunk_capacity();
        self.builds_trees.get() || used > MUCH
    }

    /// The tree of an instance.
    ///
    /// # Errors
    /// Those of the walk.
    pub(crate) fn tree_of(&self, instance: &Instance<'r>) -> Result<&'r Element<'r>> {
        self.builds_trees.set(true);
        self.reader.instance(instance)
    }

    /// The next part of a stream; `None` at its end.
    #[inline]
    pub(crate) fn next_part(&self, parts: &mut Parts<'r>) -> Option<Result<StreamPart<'r>>> {
        let part = self.reader.next_part(parts);
        if !matches!(part, None | Some(Ok(StreamPart::Instance(_)))) {
            self.builds_trees.set(true);
        }
        part
    }

    /// Reads the event whose BinXML is at a range of the chunk, without what its holes hold.
    pub(crate) fn read_event(&self, templates: &mut ChunkTemplates, record: &mut Records<'r>, binxml: Range<usize>) {
        self.reader.begin(binxml.len());
        self.spelled.borrow_mut().begin();
        record.begin();
        // To write an error that is none would cost as much as to write one.
        if let Err(error) = self.stream(templates, record, binxml, Root::Event) {
            record.error = Some(error);
        }
    }

    /// Reads what the event's holes hold, as far as the scan asks for it, and then checks all of the record, if the scan
    /// does. So what is read does not depend on whether it is checked.
    pub(crate) fn read_children(&self, templates: &mut ChunkTemplates, record: &mut Records<'r>) {
        if record.error.is_none() {
            if let Err(error) = self.children(templates, record) {
                record.error = Some(error);
            }
            if self.scan.checks
                && let Err(error) = self.check_parts(templates, record)
            {
                record.error = Some(error);
            }
            if record.repeat_values
                && record.error.is_none()
                && self.scan.checks
                && record.at_hand().text_exceeds(templates)
            {
                record.error = Some(Error::new(0, ErrorKind::Text));
            }
        }
        if self.scan.checks && record.not_its_own.is_none() {
            record.not_its_own = self.reader.unsound_name();
        }
        if record.not_its_own.is_some() {
            record.error = record.not_its_own;
        }
    }

    fn stream(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut Records<'r>,
        stream: Range<usize>,
        root: Root,
    ) -> Result<()> {
        // A record is one event.
        if let Some((instance, is_all)) = self.reader.leading_instance(stream.clone())
            && (is_all || root == Root::Event)
        {
            return self.instance(templates, record, instance, root);
        }
        let mut parts = self.reader.parts(stream);
        while let Some(part) = self.next_part(&mut parts) {
            match part? {
                StreamPart::Instance(instance) => self.instance(templates, record, instance, root)?,
                StreamPart::Element(element) => self.tree(record, element, root, None),
            }
            if root == Root::Event {
                break;
            }
        }
        Ok(())
    }

    // Inlined with what it calls, as they are few instructions for most records.
    #[inline(always)]
    fn instance(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut Records<'r>,
        instance: Instance<'r>,
        root: Root,
    ) -> Result<()> {
        let at = self.template(templates, instance.definition, root);
        let compiled = templates.get(at)?;
        if self.scan.checks
            && let Some(fault) = compiled.fault(&instance)
        {
            record.not_its_own = Some(fault);
        }
        record.note(&compiled.plan);
        let values = instance.values;
        let part = |content| Part {
            plan: PlanAt::Template(at),
            values,
            content,
        };
        if !compiled.plan.covers(values) || self.scan.only_trees {
            return match self.tree_of(&instance) {
                Ok(tree) => {
                    self.tree(record, tree, root, Some(values));
                    Ok(())
                }
                Err(error) => {
                    record.push(part(PartContent::Damaged));
                    Err(error)
                }
            };
        }
        record.push(part(PartContent::Instance(instance, root)));
        Ok(())
    }

    /// Reads what the holes of the event's own instance hold.
    #[inline(always)]
    fn children(&self, templates: &mut ChunkTemplates, record: &mut Records<'r>) -> Result<()> {
        let Some((at, values)) = record.at_hand().event().and_then(Part::instance) else {
            return Ok(());
        };
        let plan = &templates.get(at)?.plan;
        // A scan that only checks does not look for columns in them.
        if plan.system && !self.scan.reads_children {
            return Ok(());
        }
        for child in 0..plan.children.len() {
            let hole = templates.get(at)?.plan.children[child];
            if let Some(stream) = values.stream(hole) {
                self.stream(templates, record, stream, Root::Child)?;
            }
        }
        Ok(())
    }

    /// Checks the parts of a record.
    #[inline(always)]
    fn check_parts(&self, templates: &mut ChunkTemplates, record: &Records<'r>) -> Result<()> {
        self.reader.begin_again();
        for (depth, part) in record.at_hand().parts.iter().enumerate() {
            let depth = depth.min(1);
            match part.content {
                PartContent::Instance(_, root) => {
                    let read = part.template().filter(|_| root == Root::Event);
                    self.check(templates, part.values, read, depth)?;
                }
                PartContent::Tree(_, _, Some(values)) => self.check(templates, values, None, depth)?,
                PartContent::Tree(_, _, None) | PartContent::Damaged => {}
            }
        }
        Ok(())
    }

    /// Checks the values of an instance, and the streams that they hold but for those that are parts themselves, as the
    /// children of the template `read`.
    #[inline(always)]
    fn check(
        &self,
        templates: &mut ChunkTemplates,
        values: Values<'r>,
        read: Option<usize>,
        depth: usize,
    ) -> Result<()> {
        values.check()?;
        let of_read = match read {
            Some(at) => templates.get(at)?.plan.child_holes,
            None => HoleSet::default(),
        };
        if values.may_be_compound_beyond(of_read) {
            for (hole, slot) in values.compound_slots() {
                let is_read = read.is_some_and(|at| templates.get(at).is_ok_and(|it| it.plan.is_child(hole)));
                if let Some(stream) = slot.stream().filter(|_| !is_read) {
                    self.check_stream(templates, stream, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Checks a stream that no column is read from. Its templates are compiled for those who render it: what their
    /// programs cover is sound, the rest is read.
    #[inline(never)]
    fn check_stream(&self, templates: &mut ChunkTemplates, stream: Range<usize>, depth: usize) -> Result<()> {
        if depth > MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        let mut parts = self.reader.parts(stream.clone());
        loop {
            if self.pass_element(&mut parts) {
                continue;
            }
            let instance = match self.next_part(&mut parts).transpose()? {
                Some(StreamPart::Instance(instance)) => instance,
                Some(StreamPart::Element(_)) => continue,
                None => return Ok(()),
            };
            let at = self.template(templates, instance.definition, Root::Child);
            if let Some(fault) = templates.get(at)?.fault(&instance) {
                return Err(fault);
            }
            if !templates.get(at)?.covers_text(instance.values) || self.scan.only_trees {
                self.builds_trees.set(true);
                let reader = Reader::new(self.chunk, self.names, self.arena);
                reader.fragment(stream)?;
                return reader.unsound_name().map_or(Ok(()), Err);
            }
            self.check(templates, instance.values, None, depth)?;
        }
    }

    /// Passes the element that comes next in a stream, if it is sound and that can be told without its tree.
    fn pass_element(&self, parts: &mut Parts<'r>) -> bool {
        let target = &self.scan.target;
        if self.scan.only_trees {
            false
        } else if target.user_data || target.json {
            self.spelled.borrow_mut().pass(&self.reader, parts)
        } else {
            self.reader.pass_element(parts)
        }
    }

    #[inline(never)]
    fn tree(&self, record: &mut Records<'r>, tree: &'r Element<'r>, root: Root, filled: Option<Values<'r>>) {
        let plan = Plan::of_record(&self.scan.target, &self.scan.keys, tree, root);
        let part = Part {
            plan: PlanAt::Own(record.next_own_plan()),
            values: Values::none(),
            content: PartContent::Tree(tree, root, filled),
        };
        record.push_tree(part, plan);
    }

    /// The place among the chunk's templates of the one that is defined at an offset.
    pub(crate) fn template(&self, templates: &mut ChunkTemplates, definition: u32, root: Root) -> usize {
        let entry = index(definition, root);
        match templates.index.get(entry) {
            Some(&known) if known > 0 => usize::from(known) - 1,
            _ => self.new_template(templates, definition, root, entry),
        }
    }

    #[cold]
    fn new_template(&self, templates: &mut ChunkTemplates, definition: u32, root: Root, entry: usize) -> usize {
        let at = templates.compiled.len();
        let compiled = match templates.bytes > 2 * MAX_BYTES {
            true => Err(Error::new(definition as usize, ErrorKind::Templates)),
            false => self.compile(definition, root),
        };
        let compiled = compiled.map(|(compiled, is_kept)| {
            templates.bytes += if is_kept { 0 } else { compiled.bytes() };
            compiled
        });
        templates.compiled.push(compiled);
        // A definition takes more bytes than one, so a chunk has fewer than the index can tell apart.
        if let (Some(index), Ok(known)) = (templates.index.get_mut(entry), u16::try_from(at + 1)) {
            *index = known;
            templates.used.push(entry);
        }
        at
    }

    /// What a definition compiles to, and whether the scan keeps that.
    #[cold]
    fn compile(&self, definition: u32, root: Root) -> Result<(Arc<Compiled>, bool)> {
        let definition = Definition::read(self.chunk, definition)?;
        let scan = self.scan;
        if let Some(compiled) = scan.plans.get(self.chunk, &definition, root) {
            return Ok((compiled, true));
        }
        let reader = Reader::new(self.chunk, self.names, self.arena);
        let template = reader.template(&definition)?;
        let compiled = Arc::new(Compiled {
            unsound_name: reader.unsound_name(),
            ..Compiled::new(&scan.target, &scan.keys, &definition, template.root, root)
        });
        let is_kept = scan.plans.insert(self.chunk, &definition, &template, root, &compiled);
        Ok((compiled, is_kept))
    }
}

impl<'p, 'r> RecordParts<'p, 'r> {
    /// Whether nothing of the record could be read, as it is damaged.
    #[inline]
    pub(crate) fn is_unread(self) -> bool {
        self.parts.is_empty() && self.is_damaged
    }

    /// Whether the event's own instance has the `System` element.
    pub(crate) fn has_system(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates).next().is_some_and(|(_, plan)| plan.system)
    }

    /// The holes of the event's own template that its `System` is read from, and what fills them.
    #[inline]
    pub(crate) fn system(self, templates: &'p ChunkTemplates) -> Option<(&'p SystemHoles, Values<'r>)> {
        let event = self.event()?;
        let compiled = templates.get(event.template()?).ok()?;
        Some((compiled.system.as_ref()?, event.values))
    }

    /// The first part, which is the event.
    pub(crate) fn event(self) -> Option<&'p Part<'r>> {
        self.parts.first()
    }

    /// The parts with their plans.
    pub(crate) fn with_plans(self, templates: &'p ChunkTemplates) -> impl Iterator<Item = (&'p Part<'r>, &'p Plan)> {
        self.parts.iter().filter_map(move |part| match part.plan {
            PlanAt::Own(at) => Some((part, self.records.own_plan(at))),
            PlanAt::Template(at) => Some((part, &templates.compiled[at].as_ref().ok()?.plan)),
        })
    }

    /// What the record has at a place.
    pub(crate) fn field(self, templates: &'p ChunkTemplates, place: usize) -> Option<Found<'p, 'r>> {
        self.fields(templates).get(place)
    }

    /// What the record has at each place.
    #[inline]
    pub(crate) fn fields(self, templates: &'p ChunkTemplates) -> Fields<'p, 'r> {
        let event = self.with_plans(templates).next();
        Fields {
            record: self,
            templates,
            system: event.and_then(|(part, plan)| plan.system.then_some((plan, part.values))),
        }
    }

    /// The entries of `event_data`, to be looked for by their keys.
    #[inline(never)]
    pub(crate) fn keyed_entries(self, templates: &'p ChunkTemplates) -> Option<KeyedEntries<'p, 'r>> {
        let mut parts = self.with_plans(templates).filter(|(part, _)| !part.is_damaged());
        parts.find_map(|(part, plan)| {
            Some(KeyedEntries {
                numbers: &plan.keyed,
                event_data: plan.event_data(part.values)?,
                values: part.values,
            })
        })
    }

    /// The entries of `event_data`, and the part whose values fill them.
    #[inline]
    pub(crate) fn event_data(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p Part<'r>)> {
        self.with_plans(templates)
            .filter(|(part, _)| !part.is_damaged())
            .find_map(|(part, plan)| Some((plan.event_data(part.values)?, part)))
    }

    /// Whether the text of `event_data` is longer than the limit.
    fn text_exceeds(self, templates: &ChunkTemplates) -> bool {
        if self.with_plans(templates).any(|(_, plan)| plan.overflows()) {
            return true;
        }
        let Some((event_data, part)) = self.event_data(templates) else {
            return false;
        };
        event_data.may_exceed && text_of(&event_data.entries, part.values).any(|bytes| bytes > MAX_TEXT)
    }
}

/// The entries of a record's `event_data`, to be looked for by their keys.
#[derive(Clone, Copy)]
pub(crate) struct KeyedEntries<'p, 'r> {
    /// By the number of the key in the plan's target.
    numbers: &'p [Option<usize>],
    event_data: &'p EventData,
    values: Values<'r>,
}

impl<'p, 'r> KeyedEntries<'p, 'r> {
    /// How many entries there are at most: a map ends where its text becomes too long.
    pub(crate) fn limit(&self) -> usize {
        if !self.event_data.may_exceed {
            return usize::MAX;
        }
        let last = text_of(&self.event_data.entries, self.values).position(|bytes| bytes > MAX_TEXT);
        last.map_or(usize::MAX, |last| last + 1)
    }

    /// What the record has for a key, if its entry is before the limit.
    pub(crate) fn get(&self, key: usize, limit: usize) -> Option<Found<'p, 'r>> {
        let number = (*self.numbers.get(key)?)?;
        let entry = self.event_data.entries.get(number).filter(|_| number < limit)?;
        entry.source.find(self.values)
    }
}

/// The fields of a record.
pub(crate) struct Fields<'p, 'r> {
    pub(crate) record: RecordParts<'p, 'r>,
    templates: &'p ChunkTemplates,
    /// The event's own instance, if that has the `System` element.
    system: Option<(&'p Plan, Values<'r>)>,
}

impl<'p, 'r> Fields<'p, 'r> {
    /// What the record has at a place.
    pub(crate) fn get(&self, place: usize) -> Option<Found<'p, 'r>> {
        self.get_at(place, self.record.records.scan.target.places[place].in_system)
    }

    /// The hole of which a number, a time or a GUID in the `System` element is the value, and what fills it, if that is so simple.
    #[inline(always)]
    pub(crate) fn hole(&self, place: usize) -> Option<(u16, Values<'r>)> {
        let (plan, values) = self.system?;
        Some((plan.direct[place]?, values))
    }

    /// What the record has at a place, of which it is known whether it is in the `System` element.
    #[inline(always)]
    pub(crate) fn get_at(&self, place: usize, in_system: bool) -> Option<Found<'p, 'r>> {
        // What an event's holes hold is no part of its System, whether or not it is read.
        if let Some((plan, values)) = self.system
            && in_system
        {
            return plan.fields[place].as_ref()?.find(values);
        }
        let mut parts = self.record.with_plans(self.templates);
        parts.find_map(|(part, plan)| plan.fields.get(place)?.as_ref()?.find(part.values))
    }
}

/// The bytes of text that a map has after each of its entries.
fn text_of(entries: &[Entry], values: Values<'_>) -> impl Iterator<Item = usize> {
    let mut text = Vec::new();
    entries.iter().scan(0, move |bytes, entry| {
        text.clear();
        if let Some(found) = entry.source.find(values) {
            found.push_entry(&mut text);
        }
        *bytes += text.len();
        Some(*bytes)
    })
}
