//! Renders events as text, for the columns `xml`, `json`, `text`, `fields` and `user_data`.
//!
//! The program of its template renders an instance, or its tree if the program does not support it. Both produce the
//! same bytes.

use std::ops::Range;

use evtx_format::binxml::Fragment;
use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::Element;
use evtx_format::bytes::Cursor;
use evtx_format::render::program::{Language, Members, OnName, Program, Streams, SystemTexts, push_tree};
use evtx_format::{Error, ErrorKind, MAX_NESTING, MAX_NODES, MAX_TEXT, Result};

use super::reader::RecordReader;
use crate::columns::Rendering;
use crate::plan::{Compiled, TreeRoot, user_data};
use crate::record::{ChunkTemplates, Outlined, Part, PartContent, RecordView};

/// The line before the XML of an event.
const XML_DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// The most parts of an event to search for an element. Real events have one or two.
const MAX_PARTS: usize = 16;

struct Renderer<'x, 'r, 'c> {
    reader: &'x RecordReader<'r, 'c>,
    templates: &'x ChunkTemplates,
    /// The cached texts of `System`; `None` while a program uses them, or if none are cached.
    system: Option<&'x mut SystemTexts>,
    parts: &'x [Part<'r>],
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
        parts: record.parts,
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
        let root = record.event().and_then(Source::of_part).unwrap_or(Source::Tree(&EMPTY));
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
        let part = record
            .with_plans(self.templates)
            .find(|(part, plan)| plan.has_user_data(part.values) && !part.is_damaged());
        let Some((part, source)) = part.and_then(|(part, _)| Some((part, Source::of_part(part)?))) else {
            return Ok(false);
        };
        let start = out.len();
        let is_written = match self.program(&source, |compiled| compiled.user_data.as_ref()) {
            Some((program, values)) => self.run(program, values, out)?,
            None => false,
        };
        if !is_written {
            out.truncate(start);
            let tree = self.tree(&source)?;
            if let Some(element) = tree.and_then(|tree| user_data(tree, part.root)) {
                push_tree(Language::Json, element, out, self.limit)?;
            }
        }
        // An empty element, which renders as `null`, has no text.
        Ok(&out[start..] != b"null" && out.len() > start)
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
            Source::Outlined(outlined) => (self.templates.get(outlined.template).ok()?, outlined.values),
        };
        let program = select(compiled)?;
        (!self.reader.scan.force_tree_path && program.supports(values)).then_some((program, values))
    }

    /// The tree of an element; `None` if a spelled-out element has none.
    fn tree(&self, source: &Source<'r>) -> Result<Option<&'r Element<'r>>> {
        match source {
            Source::Tree(tree) => Ok(Some(tree)),
            Source::Instance(instance, _) => self.reader.tree_of(instance).map(Some),
            Source::Outlined(outlined) => self.reader.tree_of_outlined(outlined.element),
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

    /// The next element of a stream, if it is a part of the event and has an outline.
    fn outlined(&self, stream: &Cursor<'_>) -> Option<Outlined<'r>> {
        // The first part is the event. The search runs for each element, so it covers few parts.
        let others = self.parts.get(1..).filter(|parts| parts.len() <= MAX_PARTS)?;
        let mut outlined = others.iter().filter_map(Part::outlined);
        outlined.find(|it| it.element.start as usize == stream.pos())
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
            let source = if let Some(outlined) = self.outlined(&fragments) {
                fragments = reader.reader.fragments(outlined.element.end as usize..end);
                Source::Outlined(outlined)
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

enum Source<'r> {
    Outlined(Outlined<'r>),
    Instance(Instance<'r>, TreeRoot),
    Tree(&'r Element<'r>),
}

impl<'r> Source<'r> {
    /// The element of a part; `None` if the part is damaged.
    fn of_part(part: &Part<'r>) -> Option<Self> {
        match part.content {
            PartContent::Instance(instance) => Some(Source::Instance(instance, part.root)),
            PartContent::Tree(tree, ..) => Some(Source::Tree(tree)),
            PartContent::Outlined(..) => part.outlined().map(Source::Outlined),
            PartContent::Damaged(..) => None,
        }
    }
}
