//! Reads the records of a chunk into sections, and checks them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use bumpalo::Bump;
use evtx_format::binxml::instance::{Definition, Instance, SubstitutionSet, ValueTable};
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::binxml::{Fragment, ImplicitTemplate, Reader};
use evtx_format::bytes::Cursor;
use evtx_format::value::{Scalar, Value};
use evtx_format::{Error, ErrorKind, Interrupt, MAX_NESTING, Result};

use crate::plan::{Compiled, Plan, TreeRoot};
use crate::record::{ChunkTemplates, RecordGroup, RecordSection, SectionContent, SpelledOut, TemplateId};
use crate::scan::Scan;

/// The most trees of a record that are kept. Real records have one.
const MAX_TREES: usize = 8;

/// Adds the values that are texts, and those that are SIDs.
fn push_texts<'r>(values: ValueTable<'r>, texts: &mut Vec<Value<'r>>) {
    let all = (0..=u16::MAX).map_while(|substitution| values.get(substitution));
    let is_text = |value: &Value<'_>| {
        matches!(
            value.value_type.scalar,
            Scalar::String | Scalar::AnsiString | Scalar::Sid
        )
    };
    texts.extend(all.filter(|value| is_text(value) && !value.is_empty()));
}

/// How many bytes of the arena end a group of records. Groups of real logs take some ten thousand.
const GROUP_BYTES: usize = 1 << 20;

pub(crate) struct RecordReader<'r, 'c> {
    pub(crate) scan: &'r Scan,
    pub(crate) chunk: &'r [u8],
    names: &'r Names<'c>,
    pub(crate) arena: &'r Bump,
    pub(crate) reader: Reader<'r, 'c>,
    pub(crate) interrupt: Interrupt<'r>,
    /// Chunk offsets of the end of the current record's event, and of its BinXML.
    event_end: Cell<usize>,
    binxml_end: Cell<usize>,
    /// Whether a tree was built in the arena, or begun before an error.
    builds_trees: Cell<bool>,
    /// Elements in streams of the current record, by their range in the chunk. The check and the columns share them.
    trees: RefCell<Vec<(Range<usize>, &'r Element<'r>)>>,
}

impl<'r, 'c: 'r> RecordReader<'r, 'c> {
    /// A reader for records whose sections live in `arena`.
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
            event_end: Cell::new(0),
            binxml_end: Cell::new(0),
            builds_trees: Cell::new(false),
            trees: RefCell::default(),
        }
    }

    /// Whether the records so far have to end their group: they take much memory, or have trees, which may take much.
    #[inline]
    pub(crate) fn takes_much(&self) -> bool {
        let used = self.arena.allocated_bytes() - self.arena.chunk_capacity();
        self.builds_trees.get() || used > GROUP_BYTES
    }

    pub(crate) fn tree_of(&self, instance: &Instance<'r>) -> Result<&'r Element<'r>> {
        self.builds_trees.set(true);
        self.reader.instance(instance)
    }

    /// The next fragment of a stream; `None` at its end.
    #[inline]
    pub(crate) fn next_fragment(&self, fragments: &mut Cursor<'r>) -> Option<Result<Fragment<'r>>> {
        let start = fragments.pos();
        let mut trees = self.trees.borrow_mut();
        let until = fragments.end();
        if let Some((range, tree)) = trees
            .iter()
            .find(|(range, _)| range.start == start && range.end <= until)
        {
            *fragments = self.reader.fragments(range.end..until);
            return Some(Ok(Fragment::Element(tree)));
        }
        let fragment = self.reader.next_fragment(fragments);
        if !matches!(fragment, None | Some(Ok(Fragment::Instance(_)))) {
            self.builds_trees.set(true);
        }
        if let Some(Ok(Fragment::Element(tree))) = fragment
            && trees.len() < MAX_TREES
        {
            trees.push((start..fragments.pos(), tree));
        }
        fragment
    }

    /// Reads the event in a range of the chunk into the current record, without the streams in its substitutions.
    pub(crate) fn read_event(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        binxml: Range<usize>,
    ) {
        self.reader.begin(binxml.len());
        self.trees.borrow_mut().clear();
        self.binxml_end.set(binxml.end);
        self.event_end.set(binxml.end);
        record.begin();
        // Writing only errors saves time.
        if let Err(error) = self.stream(templates, record, binxml, TreeRoot::Event) {
            record.error = Some(error);
        }
    }

    /// Reads the streams in the event's substitutions. Then checks the whole record, if the
    /// scan validates all. The check comes last, so that it does not affect the columns.
    pub(crate) fn read_children(&self, templates: &mut ChunkTemplates, record: &mut RecordGroup<'r>) {
        self.read_children_if(templates, record, |_, _| true);
    }

    /// As [`read_children`](Self::read_children), but ends early if a valid record is not wanted.
    #[inline]
    pub(crate) fn read_children_if(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        is_wanted: impl FnOnce(&ChunkTemplates, &RecordGroup<'r>) -> bool,
    ) {
        if record.error.is_none() {
            if let Err(error) = self.children(templates, record) {
                record.error = Some(error);
            } else if record.foreign_definition.is_none() && !is_wanted(templates, record) {
                return;
            }
            if self.scan.validates_all
                && let Err(error) = self.check_sections(templates, record)
            {
                record.error = Some(error);
            }
            if record.repeat_values
                && record.error.is_none()
                && self.scan.validates_all
                && record.current().text_exceeds(templates)
            {
                record.error = Some(Error::new(0, ErrorKind::Text));
            }
        } else if record.current().event().is_some_and(RecordSection::is_damaged) {
            // The record keeps the error of the event.
            let _ = self.children(templates, record);
        }
        if self.scan.validates_all && record.foreign_definition.is_none() {
            record.foreign_definition = self.reader.invalid_name();
        }
        if record.foreign_definition.is_some() {
            record.error = record.foreign_definition;
        }
        if self.scan.validates_all && record.error.is_none() {
            record.error = record.misplaced.or_else(|| self.reader.misplaced());
        }
    }

    /// The error of bytes after the event of the current record, which is valid, if the scan validates all.
    pub(crate) fn unread(&self) -> Option<Error> {
        let (end, until) = (self.event_end.get(), self.binxml_end.get());
        self.scan
            .validates_all
            .then(|| self.reader.check_event_end(end, until).err())?
    }

    fn stream(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        stream: Range<usize>,
        root: TreeRoot,
    ) -> Result<()> {
        if let Some((instance, end)) = self.reader.leading_instance(stream.clone()) {
            // A record is one event: anything after its instance is damage.
            if root == TreeRoot::Event {
                self.event_end.set(end);
                return self.instance(templates, record, instance, root);
            }
            if self.reader.is_stream_end(end, stream.end) {
                return self.instance(templates, record, instance, root);
            }
        }
        self.fragments(templates, record, stream, root)
    }

    // Out of line, so that the caller stays small.
    #[inline(never)]
    fn fragments(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        stream: Range<usize>,
        root: TreeRoot,
    ) -> Result<()> {
        let mut fragments = self.reader.fragments(stream);
        loop {
            if !self.implicit_instance(templates, record, &mut fragments, root) {
                match self.next_fragment(&mut fragments).transpose()? {
                    Some(Fragment::Instance(instance)) => self.instance(templates, record, instance, root)?,
                    Some(Fragment::Element(element)) => self.tree(record, element, root, None),
                    None => break,
                }
            }
            if root == TreeRoot::Event {
                self.event_end.set(fragments.pos());
                break;
            }
        }
        Ok(())
    }

    /// Adds the next element of a stream as an instance of its implicit template, if it needs no tree.
    #[inline(never)]
    fn implicit_instance(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        fragments: &mut Cursor<'r>,
        root: TreeRoot,
    ) -> bool {
        if !self.scan.uses_implicit_templates || !self.reader.is_at_element(fragments) {
            return false;
        }
        let (before, left) = (*fragments, self.reader.left());
        let mut implicit = std::mem::take(&mut templates.scratch);
        let section = self.reader.read_implicit(fragments, &mut implicit).then(|| {
            let find = || self.compile_implicit(&before, &implicit, root);
            let at = templates.implicit_template(implicit.tokens(), root, find)?;
            Some((at, implicit.values(self.chunk, self.arena)))
        });
        templates.scratch = implicit;
        if let Some((at, values)) = section.flatten()
            && let Ok(compiled) = templates.get(at)
            && compiled.plan.supports(values)
        {
            record.observe_plan(&compiled.plan);
            let element = SpelledOut {
                start: before.pos() as u32,
                end: fragments.pos() as u32,
            };
            record.push(RecordSection::of_template(
                at,
                values,
                root,
                SectionContent::ImplicitInstance(element),
            ));
            return true;
        }
        *fragments = before;
        self.reader.restore(left);
        false
    }

    /// An element's implicit template, from the cache of the scan or newly compiled, and whether it is new.
    #[cold]
    fn compile_implicit(
        &self,
        element: &Cursor<'r>,
        implicit: &ImplicitTemplate,
        root: TreeRoot,
    ) -> Option<(Arc<Compiled>, bool)> {
        let scan = self.scan;
        let reader = Reader::new(self.chunk, self.names, self.arena);
        let content = reader.content_of(implicit).ok()?;
        if let Some(compiled) = scan.plans.implicit(&content, root) {
            return Some((compiled, false));
        }
        let reader = Reader::new(self.chunk, self.names, self.arena);
        let tree = reader.open_texts(element).ok()??;
        let compiled = Arc::new(Compiled::implicit(&scan.projection, &scan.plans.keys, tree, root));
        scan.plans.insert_implicit(content, root, &compiled);
        Some((compiled, true))
    }

    /// The tree of a section that has an implicit template.
    pub(crate) fn tree_of_element(&self, element: SpelledOut) -> Result<Option<&'r Element<'r>>> {
        // It was already counted towards the limits.
        let left = self.reader.left();
        self.reader.begin_again();
        let mut fragments = self.reader.fragments(element.start as usize..element.end as usize);
        let fragment = self.next_fragment(&mut fragments);
        self.reader.restore(left);
        match fragment.transpose()? {
            Some(Fragment::Element(tree)) => Ok(Some(tree)),
            _ => Ok(None),
        }
    }

    // Inlined: it takes few instructions for most records.
    #[inline(always)]
    fn instance(
        &self,
        templates: &mut ChunkTemplates,
        record: &mut RecordGroup<'r>,
        instance: Instance<'r>,
        root: TreeRoot,
    ) -> Result<()> {
        let at = self.template(templates, instance.definition, root);
        let compiled = templates.get(at)?;
        if self.scan.validates_all
            && let Some(fault) = compiled.fault(&instance)
        {
            record.foreign_definition = Some(fault);
        }
        if let Some(error) = compiled.misplaced {
            record.misplaced.get_or_insert(error);
        }
        record.observe_plan(&compiled.plan);
        if !compiled.plan.supports(instance.values) || self.scan.force_tree_path {
            return self.instance_tree(record, at, &instance, root);
        }
        record.push(RecordSection::of_template(
            at,
            instance.values,
            root,
            SectionContent::Instance(instance),
        ));
        Ok(())
    }

    /// Adds an instance as a tree, because the plan of its template, `at`, does not support it.
    #[inline(never)]
    fn instance_tree(
        &self,
        record: &mut RecordGroup<'r>,
        at: TemplateId,
        instance: &Instance<'r>,
        root: TreeRoot,
    ) -> Result<()> {
        match self.tree_of(instance) {
            Ok(tree) => {
                self.tree(record, tree, root, Some((at, instance.values)));
                Ok(())
            }
            Err(error) => {
                let content = SectionContent::Damaged(*instance);
                record.push(RecordSection::of_template(at, instance.values, root, content));
                Err(error)
            }
        }
    }

    /// Reads the streams in the substitutions of the event's instance.
    #[inline(always)]
    fn children(&self, templates: &mut ChunkTemplates, record: &mut RecordGroup<'r>) -> Result<()> {
        let Some((at, values)) = record.current().event().and_then(RecordSection::with_streams) else {
            return Ok(());
        };
        // Damage to one stream does not affect others, because the columns determine which are read.
        let mut outcome = Ok(());
        let plan = &templates.get(at)?.plan;
        if let Some(stream) = plan.user_stream(values) {
            let is_read = self.stream(templates, record, stream, TreeRoot::InUserData).is_ok();
            // The names of leaves depend on all elements in `UserData`.
            if !is_read || record.current().sections.len() != 2 {
                outcome = self.event_as_tree(record);
                if outcome.is_ok() {
                    return Ok(());
                }
            }
        }
        let plan = &templates.get(at)?.plan;
        let others = usize::from(!plan.may_have_entries());
        for child in 0..plan.children.len() {
            let substitution = templates.get(at)?.plan.children[child];
            if let Some(stream) = values.stream(substitution) {
                outcome = outcome.and(self.stream(templates, record, stream, TreeRoot::Child));
            }
        }
        if record.current().sections.len() > 1 + others {
            self.merge_entries(templates, record);
        }
        outcome
    }

    /// Adds the texts in the values of a record to its sections, as the unnamed `Data` of an `EventData`: the
    /// definition that names them is lost. `with_event` is whether the values of the event count, or only those in its
    /// streams.
    #[cold]
    pub(crate) fn add_texts(
        &self,
        templates: &ChunkTemplates,
        record: &mut RecordGroup<'r>,
        binxml: Range<usize>,
        with_event: bool,
    ) {
        let mut texts = Vec::new();
        if let Some((instance, _)) = self.reader.leading_instance(binxml) {
            if with_event {
                push_texts(instance.values, &mut texts);
            }
            let streams = instance.values.compound().filter_map(|(_, slot)| slot.stream());
            let inner = streams.filter_map(|stream| self.reader.leading_instance(stream));
            inner.for_each(|(inner, _)| push_texts(inner.values, &mut texts));
        }
        if texts.is_empty() {
            return;
        }
        self.builds_trees.set(true);
        let node = |text| {
            let content = self.arena.alloc([Node::Value(text)]);
            Node::Element(self.arena.alloc(Element::new("Data", &[], content)))
        };
        let content = self.arena.alloc_slice_fill_iter(texts.into_iter().map(node));
        let tree = self.arena.alloc(Element::new("EventData", &[], content));
        self.tree(record, tree, TreeRoot::Child, None);
        self.merge_entries(templates, record);
    }

    /// Merges the entries of the sections, which can take much memory.
    #[cold]
    fn merge_entries(&self, templates: &ChunkTemplates, record: &mut RecordGroup<'r>) {
        record.merge_entries(templates, &self.scan.plans.keys);
        self.builds_trees.set(true);
    }

    /// Replaces the sections of the current record by the tree of its event. If that is damaged, the event stays.
    #[cold]
    fn event_as_tree(&self, record: &mut RecordGroup<'r>) -> Result<()> {
        let event = record.current().event().map(|event| (event.template(), event.content));
        let Some((Some(at), content @ (SectionContent::Instance(instance) | SectionContent::Damaged(instance)))) =
            event
        else {
            return Ok(());
        };
        record.keep_sections(0);
        let left = self.reader.left();
        self.reader.begin_again();
        match self.tree_of(&instance) {
            Ok(tree) => self.tree(record, tree, TreeRoot::Event, Some((at, instance.values))),
            Err(error) => {
                self.reader.restore(left);
                record.push(RecordSection::of_template(
                    at,
                    instance.values,
                    TreeRoot::Event,
                    content,
                ));
                return Err(error);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn check_sections(&self, templates: &mut ChunkTemplates, record: &RecordGroup<'r>) -> Result<()> {
        self.reader.begin_again();
        for (depth, section) in record.current().sections.iter().enumerate() {
            let depth = depth.min(1);
            match section.content {
                SectionContent::Instance(_) => {
                    let with_sections = section.template().filter(|_| section.root == TreeRoot::Event);
                    self.check(templates, section.values, with_sections, depth)?;
                }
                SectionContent::Tree(_, Some((_, values))) => self.check(templates, values, None, depth)?,
                SectionContent::Tree(_, None)
                | SectionContent::ImplicitInstance(..)
                | SectionContent::Damaged(..)
                | SectionContent::Merged => {}
            }
        }
        Ok(())
    }

    /// Checks the values of an instance, and the streams in them. The sections of the template `with_sections` were
    /// read before.
    #[inline(always)]
    fn check(
        &self,
        templates: &mut ChunkTemplates,
        values: ValueTable<'r>,
        with_sections: Option<TemplateId>,
        depth: usize,
    ) -> Result<()> {
        values.check()?;
        let sections = match with_sections {
            Some(at) => templates.get(at)?.plan.section_substitutions,
            None => SubstitutionSet::default(),
        };
        if values.may_be_compound_beyond(sections) {
            for (substitution, slot) in values.compound() {
                let is_section =
                    with_sections.is_some_and(|at| templates.get(at).is_ok_and(|it| it.plan.is_section(substitution)));
                if let Some(stream) = slot.stream().filter(|_| !is_section) {
                    self.check_stream(templates, stream, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// Checks a stream that is not a section. An instance that the programs of its template support is valid. Others
    /// need a tree, and so do elements that will be rendered.
    #[inline(never)]
    fn check_stream(&self, templates: &mut ChunkTemplates, stream: Range<usize>, depth: usize) -> Result<()> {
        if depth > MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        let projection = &self.scan.projection;
        let needs_trees = self.scan.force_tree_path || projection.user_data || !projection.languages.is_empty();
        let mut fragments = self.reader.fragments(stream.clone());
        loop {
            if !needs_trees && self.reader.pass_element(&mut fragments) {
                continue;
            }
            let instance = match self.next_fragment(&mut fragments).transpose()? {
                Some(Fragment::Instance(instance)) => instance,
                Some(Fragment::Element(_)) => continue,
                None => return Ok(()),
            };
            let at = self.template(templates, instance.definition, TreeRoot::Child);
            let compiled = templates.get(at)?;
            if let Some(fault) = compiled.fault(&instance).or(compiled.misplaced) {
                return Err(fault);
            }
            if !compiled.supports_text(instance.values) || self.scan.force_tree_path {
                self.builds_trees.set(true);
                let reader = Reader::new(self.chunk, self.names, self.arena);
                reader.nodes(stream)?;
                return reader.invalid_name().or_else(|| reader.misplaced()).map_or(Ok(()), Err);
            }
            self.check(templates, instance.values, None, depth)?;
        }
    }

    #[inline(never)]
    fn tree(
        &self,
        record: &mut RecordGroup<'r>,
        tree: &'r Element<'r>,
        root: TreeRoot,
        filled: Option<(TemplateId, ValueTable<'r>)>,
    ) {
        let plan = Plan::new(&self.scan.projection, &self.scan.plans.keys, tree, root);
        record.push_tree(root, SectionContent::Tree(tree, filled), plan);
    }

    /// The template of the definition at a chunk offset. Compiles it at its first use.
    #[inline]
    pub(crate) fn template(&self, templates: &mut ChunkTemplates, definition: u32, root: TreeRoot) -> TemplateId {
        templates.get_or_add(definition, root, || self.compile(definition, root))
    }

    /// Compiles a definition, or finds it in the cache of the scan. Returns whether the cache keeps it.
    #[cold]
    fn compile(&self, definition: u32, root: TreeRoot) -> Result<(Arc<Compiled>, bool)> {
        let definition = Definition::read(self.chunk, definition)?;
        let scan = self.scan;
        if let Some(compiled) = scan.plans.get(self.chunk, &definition, root) {
            return Ok((compiled, true));
        }
        let reader = Reader::new(self.chunk, self.names, self.arena);
        let template = reader.template(&definition)?;
        let compiled = Arc::new(Compiled {
            invalid_name: reader.invalid_name(),
            misplaced: reader.misplaced(),
            ..Compiled::new(&scan.projection, &scan.plans.keys, &definition, template.root, root)
        });
        let is_kept = scan.plans.insert(self.chunk, &definition, &template, root, &compiled);
        Ok((compiled, is_kept))
    }
}
