//! Renders events as text, for the columns `xml`, `json`, `text`, `fields` and `user_data`.
//!
//! The program of its template renders an instance, or its tree if the program does not support it. Both produce the
//! same bytes.

use std::ops::Range;

use evtx_format::binxml::Fragment;
use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::{Attribute, Element};
use evtx_format::bytes::Cursor;
use evtx_format::render::program::{Language, Members, OnName, Program, Streams, SystemTexts, push_tree};
use evtx_format::{Error, ErrorKind, MAX_NESTING, MAX_NODES, MAX_TEXT, Numbering, Result};

use super::reader::RecordReader;
use crate::columns::Rendering;
use crate::plan::{Compiled, Plan, TreeRoot, user_data};
use crate::record::{ChunkTemplates, ImplicitInstance, RecordSection, RecordView, SectionContent};

/// The line before the XML of an event.
const XML_DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// The most sections of an event to search for an element. Real events have one or two.
const MAX_SECTIONS: usize = 16;

struct Renderer<'x, 'r, 'c> {
    reader: &'x RecordReader<'r, 'c>,
    templates: &'x ChunkTemplates,
    /// The cached texts of `System`; `None` while a program uses them, or if none are cached.
    system: Option<&'x mut SystemTexts>,
    sections: &'x [RecordSection<'r>],
    /// How many streams are around the current one.
    depth: usize,
    /// The most bytes that the output may have.
    limit: usize,
    /// How many more elements of streams may be rendered. In a crafted record, many substitutions have one value.
    elements_left: usize,
}

/// Appends the text of a column of a record. Returns false if the record has none, or is too damaged. `system` caches
/// texts of earlier events.
pub(crate) fn render<'r, 'c: 'r>(
    reader: &RecordReader<'r, 'c>,
    templates: &ChunkTemplates,
    system: Option<&mut SystemTexts>,
    record: RecordView<'_, 'r>,
    rendering: Rendering,
    out: &mut Vec<u8>,
) -> Result<bool> {
    let mut renderer = Renderer {
        reader,
        templates,
        system,
        sections: record.sections,
        depth: 0,
        limit: out.len() + MAX_TEXT,
        elements_left: MAX_NODES,
    };
    match rendering {
        Rendering::Event(language) if !record.is_damaged => renderer.push_event(record, language, out).map(|()| true),
        Rendering::Event(_) => Ok(false),
        Rendering::UserData => renderer.push_user_data(record, out),
    }
}

impl<'x, 'r, 'c: 'r> Renderer<'x, 'r, 'c> {
    fn push_event(&mut self, record: RecordView<'x, 'r>, language: Language, out: &mut Vec<u8>) -> Result<()> {
        const EMPTY: Element<'_> = Element::new("Event", &[], &[]);
        // A record without an event renders as an empty `Event` element.
        let mut root = record
            .event()
            .and_then(Source::of_section)
            .unwrap_or(Source::Tree(&EMPTY));
        let is_list = matches!(language, Language::Text | Language::Fields);
        let has_fields = |(_, plan): &(_, &Plan)| plan.has_fields;
        // The numbers of values without a name continue from one section to the next, which no program can write.
        if is_list && record.with_plans(self.templates).filter(has_fields).count() > 1 {
            root = self.tree(&root)?.map_or(root, Source::Tree);
        }
        match language {
            Language::Xml => {
                out.extend_from_slice(XML_DECLARATION);
                self.push_source(language, root, out, &mut |_, _| {})
            }
            Language::Json => {
                out.push(b'{');
                let mut members = Members::default();
                self.push_source(language, root, out, &mut |name, out| members.push_key(name, out))?;
                out.push(b'}');
                Ok(())
            }
            Language::Text => {
                let start = out.len();
                self.push_source(language, root, out, &mut |_, _| {})?;
                // The last line has no line break.
                out.truncate(out.len().saturating_sub(1).max(start));
                Ok(())
            }
            Language::Fields => self.push_source(language, root, out, &mut |_, _| {}),
        }
    }

    fn push_user_data(&mut self, record: RecordView<'x, 'r>, out: &mut Vec<u8>) -> Result<bool> {
        let sections = record.with_plans(self.templates);
        let has_it = sections.filter(|(section, plan)| plan.has_user_data(section.values) && !section.is_damaged());
        let mut sources = has_it.filter_map(|(section, _)| Some((Source::of_section(section)?, section.root)));
        let Some(first) = sources.next() else { return Ok(false) };
        let others: Vec<_> = sources.collect();
        let start = out.len();
        if !others.is_empty()
            && let Some(elements) = self.every_user_data(record, &[&[first][..], &others].concat())
        {
            push_tree(Language::Json, self.merged(&elements), out, self.limit)?;
            return Ok(&out[start..] != b"null");
        }
        let is_written = match self.program(&first.0, |compiled| compiled.user_data.as_ref()) {
            Some((program, values)) => self.run(program, values, out)?,
            None => false,
        };
        if !is_written {
            out.truncate(start);
            let tree = self.tree(&first.0)?;
            let elements: Vec<_> = tree.into_iter().flat_map(|tree| user_data(tree, first.1)).collect();
            push_tree(Language::Json, self.merged(&elements), out, self.limit)?;
        }
        // An empty element, which renders as `null`, has no text.
        Ok(&out[start..] != b"null" && out.len() > start)
    }

    /// The `UserData` elements in several sections of a record; `None` if the trees cannot be read.
    #[cold]
    fn every_user_data(
        &self,
        record: RecordView<'x, 'r>,
        sources: &[(Source<'r>, TreeRoot)],
    ) -> Option<Vec<&'r Element<'r>>> {
        let of =
            |source: &Source<'r>, root| -> Option<Vec<_>> { Some(user_data(self.tree(source).ok()??, root).collect()) };
        // The tree of the event has those in its streams.
        let event = record.event().and_then(Source::of_section);
        event.and_then(|event| of(&event, TreeRoot::Event)).or_else(|| {
            let all: Option<Vec<_>> = sources.iter().map(|(source, root)| of(source, *root)).collect();
            Some(all?.concat())
        })
    }

    /// Several elements as one, with the attributes and the content of all. The later ones of attributes with the same name
    /// get a number, as children do.
    fn merged(&self, elements: &[&'r Element<'r>]) -> &'r Element<'r> {
        if let [element] = elements {
            return element;
        }
        let arena = self.reader.arena;
        let mut names = Numbering::new(str::to_owned);
        let mut attributes: Vec<Attribute<'r>> = Vec::new();
        for attribute in elements.iter().flat_map(|element| element.attributes) {
            let is_there = |other: &Attribute<'_>| other.name == attribute.name;
            if !(attribute.is_namespace() && attributes.iter().any(is_there)) {
                let (name, _) = names.take(attribute.name.to_owned());
                attributes.push(Attribute {
                    name: arena.alloc_str(&name),
                    ..*attribute
                });
            }
        }
        let content = elements.iter().flat_map(|element| element.content.iter().copied());
        let content: Vec<_> = content.collect();
        let name = elements.first().map_or("UserData", |element| element.name);
        arena.alloc(Element::new(
            name,
            arena.alloc_slice_copy(&attributes),
            arena.alloc_slice_copy(&content),
        ))
    }

    /// The program that `select` takes from the compiled template of an element, if it supports the element's values.
    fn program(
        &self,
        source: &Source<'r>,
        select: impl FnOnce(&'x Compiled) -> Option<&'x Program>,
    ) -> Option<(&'x Program, ValueTable<'r>)> {
        let (compiled, values) = match source {
            Source::Tree(_) => return None,
            Source::Instance(instance, root) => (self.templates.find(instance.definition, *root)?, instance.values),
            Source::ImplicitInstance(instance) => (self.templates.get(instance.template).ok()?, instance.values),
        };
        let program = select(compiled)?;
        (!self.reader.scan.force_tree_path && program.supports(values)).then_some((program, values))
    }

    /// The tree of an element; `None` if a spelled-out element has none.
    fn tree(&self, source: &Source<'r>) -> Result<Option<&'r Element<'r>>> {
        match source {
            Source::Tree(tree) => Ok(Some(tree)),
            Source::Instance(instance, _) => self.reader.tree_of(instance).map(Some),
            Source::ImplicitInstance(instance) => self.reader.tree_of_element(instance.element),
        }
    }

    /// Runs a program of an event, or of an element in it.
    fn run(&mut self, program: &Program, values: ValueTable<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let (mut system, limit) = (self.system.take(), self.limit);
        let outcome = program.run(values, system.as_deref_mut(), self, out, limit);
        self.system = system;
        outcome
    }

    /// Appends an element. Calls `name` with its name first.
    fn push_source(
        &mut self,
        language: Language,
        source: Source<'r>,
        out: &mut Vec<u8>,
        name: &mut OnName<'_>,
    ) -> Result<()> {
        let program = self.program(&source, |compiled| compiled.program(language));
        if let Some((program, values)) = program {
            name(program.root(), out);
            let start = out.len();
            if self.run(program, values, out)? {
                return Ok(());
            }
            out.truncate(start);
        }
        let Some(tree) = self.tree(&source)? else { return Ok(()) };
        if program.is_none() {
            name(tree.name, out);
        }
        push_tree(language, tree, out, self.limit)
    }

    /// The next element of a stream, if it is a section of the event and has an implicit template.
    fn implicit_instance(&self, stream: &Cursor<'_>) -> Option<ImplicitInstance<'r>> {
        // The first section is the event. The search runs for each element, so it covers few sections.
        let others = self
            .sections
            .get(1..)
            .filter(|sections| sections.len() <= MAX_SECTIONS)?;
        let mut instances = others.iter().filter_map(RecordSection::implicit_instance);
        instances.find(|it| it.element.start as usize == stream.pos())
    }
}

impl<'r, 'c: 'r> Streams for Renderer<'_, 'r, 'c> {
    fn push_stream(
        &mut self,
        language: Language,
        stream: Range<usize>,
        out: &mut Vec<u8>,
        name: &mut OnName<'_>,
    ) -> Result<()> {
        if self.depth >= MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        self.depth += 1;
        let reader = self.reader;
        let end = stream.end;
        let mut fragments = reader.reader.fragments(stream);
        loop {
            if out.len() > self.limit {
                return Err(Error::new(0, ErrorKind::Text));
            }
            let left = self.elements_left.checked_sub(1);
            self.elements_left = left.ok_or(Error::new(0, ErrorKind::Nodes))?;
            let source = if let Some(instance) = self.implicit_instance(&fragments) {
                fragments = reader.reader.fragments(instance.element.end as usize..end);
                Source::ImplicitInstance(instance)
            } else {
                match reader.next_fragment(&mut fragments).transpose()? {
                    Some(Fragment::Instance(instance)) => Source::Instance(instance, TreeRoot::Child),
                    Some(Fragment::Element(element)) => Source::Tree(element),
                    None => break,
                }
            };
            self.push_source(language, source, out, name)?;
        }
        self.depth -= 1;
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Source<'r> {
    ImplicitInstance(ImplicitInstance<'r>),
    Instance(Instance<'r>, TreeRoot),
    Tree(&'r Element<'r>),
}

impl<'r> Source<'r> {
    /// The element of a section; `None` if the section is damaged.
    fn of_section(section: &RecordSection<'r>) -> Option<Self> {
        match section.content {
            SectionContent::Instance(instance) => Some(Source::Instance(instance, section.root)),
            SectionContent::Tree(tree, ..) => Some(Source::Tree(tree)),
            SectionContent::ImplicitInstance(..) => section.implicit_instance().map(Source::ImplicitInstance),
            SectionContent::Damaged(..) | SectionContent::Merged => None,
        }
    }
}
