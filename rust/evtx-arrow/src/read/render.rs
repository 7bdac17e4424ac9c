//! Renders events as text, for the columns `xml`, `json`, `text`, `fields` and `user_data`.
//!
//! An instance is rendered by the program of its template, or from its tree if the program does not support it. Both
//! ways give the same bytes.

use std::ops::Range;

use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::Element;
use evtx_format::binxml::{StreamCursor, TopLevel};
use evtx_format::render::program::{Language, Members, Program, Streams, SystemTexts, push_tree};
use evtx_format::{Error, ErrorKind, MAX_NESTING, MAX_NODES, MAX_TEXT, Result};

use super::reader::RecordReader;
use crate::columns::Rendering;
use crate::plan::{Compiled, TreeRoot, user_data};
use crate::record::{ChunkTemplates, Outlined, Part, PartContent, RecordView};

/// The line before the XML of an event.
const XML_DECLARATION: &[u8] = b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

/// The most parts of an event that are searched for an element. Real events have one or two.
const MAX_PARTS: usize = 16;

/// Renders the texts of a record.
pub(crate) struct Renderer<'x, 'r, 'c> {
    pub(crate) reader: &'x RecordReader<'r, 'c>,
    pub(crate) templates: &'x ChunkTemplates,
    /// The texts of `System`, unless the event's program runs with them, or none are kept.
    system: Option<&'x mut SystemTexts>,
    /// The parts of the event that is rendered.
    parts: &'x [Part<'r>],
    /// How many streams are around the current one.
    depth: usize,
    /// The most bytes that the output may have.
    limit: usize,
    /// How many more parts of streams may be rendered. Several substitutions can name one value, so that a crafted
    /// record can have more parts than it has room for.
    parts_left: usize,
}

impl<'x, 'r, 'c: 'r> Renderer<'x, 'r, 'c> {
    /// `system` has the texts of earlier events, if they are kept.
    pub(crate) fn new(
        reader: &'x RecordReader<'r, 'c>,
        templates: &'x ChunkTemplates,
        system: Option<&'x mut SystemTexts>,
    ) -> Self {
        Renderer {
            reader,
            templates,
            system,
            parts: &[],
            depth: 0,
            limit: 0,
            parts_left: 0,
        }
    }

    /// Appends the text of a column. Returns false if the record has no such text, or is too damaged for it.
    ///
    /// # Errors
    /// If the text is too long, or what it is rendered from is damaged.
    pub(crate) fn push(&mut self, record: RecordView<'x, 'r>, rendering: Rendering, out: &mut Vec<u8>) -> Result<bool> {
        self.limit = out.len() + MAX_TEXT;
        self.parts_left = MAX_NODES;
        self.parts = record.parts;
        match rendering {
            Rendering::Event(language) if !record.is_damaged => self.push_event(record, language, out).map(|()| true),
            Rendering::Event(_) => Ok(false),
            Rendering::UserData => self.push_user_data(record, out),
        }
    }

    fn push_event(&mut self, record: RecordView<'x, 'r>, language: Language, out: &mut Vec<u8>) -> Result<()> {
        const EMPTY: Element<'_> = Element {
            name: "Event",
            attributes: &[],
            content: &[],
            dependency: None,
            self_closing: false,
        };
        // A record without an event renders as an empty `Event` element.
        let root = record.event().and_then(Source::of_part).unwrap_or(Source::Tree(&EMPTY));
        match language {
            Language::Xml => {
                out.extend_from_slice(XML_DECLARATION);
                self.push_source(language, root, out, |_, _| {})
            }
            Language::Json => {
                out.push(b'{');
                let mut members = Members::default();
                self.push_source(language, root, out, |name, out| members.push_key(name, out))?;
                out.push(b'}');
                Ok(())
            }
            Language::Text => {
                let start = out.len();
                self.push_source(language, root, out, |_, _| {})?;
                // The last line has no line break.
                out.truncate(out.len().saturating_sub(1).max(start));
                Ok(())
            }
            Language::Fields => self.push_source(language, root, out, |_, _| {}),
        }
    }

    fn push_user_data(&mut self, record: RecordView<'x, 'r>, out: &mut Vec<u8>) -> Result<bool> {
        let mut parts = record.with_plans(self.templates);
        let part = parts.find(|(part, plan)| plan.has_user_data(part.values) && !part.is_damaged());
        let Some((part, source)) = part.and_then(|(part, _)| Some((part, Source::of_part(part)?))) else {
            return Ok(false);
        };
        drop(parts);
        let (start, limit) = (out.len(), self.limit);
        let program = self.program(&source, |compiled| compiled.user_data.as_ref());
        let is_written = match program {
            Some((program, values)) => program.run(values, self, out, limit)?,
            None => false,
        };
        if !is_written {
            out.truncate(start);
            if let Some(element) = self
                .tree(&source)?
                .and_then(|tree| user_data(tree, part.content.root()))
            {
                push_tree(Language::Json, element, out, limit)?;
            }
        }
        // An empty element renders as `null`, and has no text.
        Ok(&out[start..] != b"null" && out.len() > start)
    }

    /// The program of an element that `select` selects from its compiled template, if it supports the element's values.
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

    /// Runs the program of an event, or of an element in it.
    fn run(&mut self, program: &Program, values: ValueTable<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let limit = self.limit;
        let Some(system) = self.system.take() else {
            return program.run(values, self, out, limit);
        };
        let outcome = program.run_event(values, system, self, out, limit);
        self.system = Some(system);
        outcome
    }

    /// Appends an element. Calls `name` with its name first.
    fn push_source(
        &mut self,
        language: Language,
        source: Source<'r>,
        out: &mut Vec<u8>,
        mut name: impl FnMut(&str, &mut Vec<u8>),
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

    /// The next element of a stream, if it is a part of the event whose outline has a template.
    fn outlined(&self, stream: &StreamCursor<'_>) -> Option<Outlined<'r>> {
        // The first part is the event. All others are searched for each element, so they have to be few.
        let others = self.parts.get(1..).filter(|parts| parts.len() <= MAX_PARTS)?;
        let mut parts = others.iter().filter_map(Part::outlined);
        parts.find(|part| part.element.start as usize == stream.offset())
    }

    /// Appends the elements of a stream. Calls `name` with the name of each first.
    fn push_stream(
        &mut self,
        language: Language,
        stream: Range<usize>,
        out: &mut Vec<u8>,
        mut name: impl FnMut(&str, &mut Vec<u8>),
    ) -> Result<()> {
        if self.depth >= MAX_NESTING {
            return Err(Error::new(stream.start, ErrorKind::Nesting));
        }
        self.depth += 1;
        let reader = self.reader;
        let end = stream.end;
        let mut parts = reader.reader.parts(stream);
        loop {
            if out.len() > self.limit {
                return Err(Error::new(0, ErrorKind::Text));
            }
            let left = self.parts_left.checked_sub(1);
            self.parts_left = left.ok_or(Error::new(0, ErrorKind::Nodes))?;
            let source = if let Some(outlined) = self.outlined(&parts) {
                parts = reader.reader.parts(outlined.element.end as usize..end);
                Source::Outlined(outlined)
            } else {
                match reader.next_part(&mut parts).transpose()? {
                    Some(TopLevel::Instance(instance)) => Source::Instance(instance, TreeRoot::Child),
                    Some(TopLevel::Element(element)) => Source::Tree(element),
                    None => break,
                }
            };
            self.push_source(language, source, out, &mut name)?;
        }
        self.depth -= 1;
        Ok(())
    }
}

/// An element to render.
enum Source<'r> {
    Outlined(Outlined<'r>),
    Instance(Instance<'r>, TreeRoot),
    Tree(&'r Element<'r>),
}

impl<'r> Source<'r> {
    /// The element of a part; `None` if the part is damaged.
    fn of_part(part: &Part<'r>) -> Option<Self> {
        match part.content {
            PartContent::Instance(instance, root) => Some(Source::Instance(instance, root)),
            PartContent::Tree(tree, ..) => Some(Source::Tree(tree)),
            PartContent::Outlined(..) => part.outlined().map(Source::Outlined),
            PartContent::Damaged(..) => None,
        }
    }
}

impl<'r, 'c: 'r> Streams for Renderer<'_, 'r, 'c> {
    fn push_xml(&mut self, stream: Range<usize>, out: &mut Vec<u8>) -> Result<()> {
        self.push_stream(Language::Xml, stream, out, |_, _| {})
    }

    fn push_members(&mut self, stream: Range<usize>, members: &mut Members<'_>, out: &mut Vec<u8>) -> Result<()> {
        self.push_stream(Language::Json, stream, out, |name, out| members.push_key(name, out))
    }

    fn push_lines(&mut self, language: Language, stream: Range<usize>, out: &mut Vec<u8>) -> Result<bool> {
        let mut has_data = false;
        self.push_stream(language, stream, out, |name, _| has_data |= name == "Data")?;
        Ok(!has_data)
    }
}
