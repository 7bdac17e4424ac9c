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
use crate::plan::{TreeRoot, user_data};
use crate::record::{ChunkTemplates, Outlined, Part, PartContent, RecordView, SpelledOut};

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
        self.parts = record.parts;
        let event = record.event();
        let root = match event.map(|part| part.content) {
            Some(PartContent::Instance(instance, _)) => Rendered::Instance(instance, TreeRoot::Event),
            Some(PartContent::Tree(tree, ..)) => Rendered::Tree(tree),
            // A record without an event is an empty `Event` element.
            Some(PartContent::Outlined(..) | PartContent::Damaged(..)) | None => Rendered::Tree(&EMPTY),
        };
        let root = event.and_then(Part::outlined).map_or(root, Rendered::Outlined);
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
            Language::Lines => {
                let start = out.len();
                self.push_source(language, root, out, |_, _| {})?;
                // Line breaks stand between lines.
                out.truncate(out.len().saturating_sub(1).max(start));
                Ok(())
            }
            Language::Fields => self.push_source(language, root, out, |_, _| {}),
        }
    }

    fn push_user_data(&mut self, record: RecordView<'_, 'r>, out: &mut Vec<u8>) -> Result<bool> {
        let mut parts = record
            .with_plans(self.templates)
            .filter(|(part, plan)| plan.has_user_data(part.values) && !part.is_damaged());
        let Some((part, _)) = parts.next() else {
            return Ok(false);
        };
        drop(parts);
        let (start, limit) = (out.len(), self.limit);
        match part.content {
            PartContent::Damaged(..) => return Ok(false),
            PartContent::Tree(tree, root, _) => self.push_value(user_data(tree, root), out)?,
            PartContent::Instance(instance, root) => {
                let compiled = self.templates.find(instance.definition, root);
                let program = self.covering(compiled.and_then(|compiled| compiled.user_data.as_ref()), &instance);
                let covered = match program {
                    Some(program) => program.run(instance.values, self, out, limit)?,
                    None => false,
                };
                if !covered {
                    out.truncate(start);
                    self.push_value(user_data(self.reader.tree_of(&instance)?, root), out)?;
                }
            }
            PartContent::Outlined(element, root) => {
                let compiled = part.template().and_then(|at| self.templates.get(at).ok());
                let program = compiled.and_then(|compiled| compiled.user_data.as_ref());
                let covered = match program.filter(|program| program.supports(part.values)) {
                    Some(program) => program.run(part.values, self, out, limit)?,
                    None => root == TreeRoot::Child && self.push_json(element, out),
                };
                if !covered {
                    out.truncate(start);
                    let tree = self.reader.tree_of_outlined(element)?;
                    self.push_value(tree.and_then(|tree| user_data(tree, root)), out)?;
                }
            }
        }
        // An empty element renders as `null`, and has no text.
        Ok(&out[start..] != b"null" && out.len() > start)
    }

    /// Appends the JSON value of an element, if there is one.
    fn push_value(&self, element: Option<&Element<'_>>, out: &mut Vec<u8>) -> Result<()> {
        match element {
            Some(element) => push_tree(Language::Json, element, out, self.limit),
            None => Ok(()),
        }
    }

    /// Appends the JSON value of an element that the record spells out. Returns false if that needs a tree, or
    /// is too long.
    fn push_json(&self, element: SpelledOut, out: &mut Vec<u8>) -> bool {
        let reader = self.reader;
        let mut part = reader.outlined_part(element);
        let memo = reader.json_memo.borrow();
        memo.push(&reader.reader, &mut part, out, self.limit)
    }

    /// A program, if it supports an instance.
    fn covering<'p>(&self, program: Option<&'p Program>, instance: &Instance<'_>) -> Option<&'p Program> {
        program.filter(|program| !self.reader.scan.force_tree_path && program.supports(instance.values))
    }

    /// Runs the program of an event, or of an element in it.
    fn run(&mut self, program: &Program, values: ValueTable<'_>, out: &mut Vec<u8>, limit: usize) -> Result<bool> {
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
        source: Rendered<'r>,
        out: &mut Vec<u8>,
        mut name: impl FnMut(&str, &mut Vec<u8>),
    ) -> Result<()> {
        let limit = self.limit;
        let tree = match source {
            Rendered::Tree(tree) => tree,
            Rendered::Instance(instance, root) => {
                let program = self.templates.find(instance.definition, root);
                let program = program.and_then(|compiled| compiled.program(language));
                if let Some(program) = self.covering(program, &instance) {
                    name(program.root(), out);
                    let start = out.len();
                    if self.run(program, instance.values, out, limit)? {
                        return Ok(());
                    }
                    out.truncate(start);
                    return push_tree(language, self.reader.tree_of(&instance)?, out, limit);
                }
                self.reader.tree_of(&instance)?
            }
            Rendered::Outlined(outlined) => {
                let compiled = self.templates.get(outlined.template)?;
                if let Some(program) = compiled.program(language) {
                    name(program.root(), out);
                    let start = out.len();
                    if program.supports(outlined.values) && self.run(program, outlined.values, out, limit)? {
                        return Ok(());
                    }
                    out.truncate(start);
                    if language == Language::Json && self.push_json(outlined.element, out) {
                        return Ok(());
                    }
                    return match self.reader.tree_of_outlined(outlined.element)? {
                        Some(tree) => push_tree(language, tree, out, limit),
                        None => Ok(()),
                    };
                }
                match self.reader.tree_of_outlined(outlined.element)? {
                    Some(tree) => tree,
                    None => return Ok(()),
                }
            }
        };
        name(tree.name, out);
        push_tree(language, tree, out, limit)
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
            if let Some(outlined) = self.outlined(&parts) {
                parts = reader.reader.parts(outlined.element.end as usize..end);
                self.push_source(language, Rendered::Outlined(outlined), out, &mut name)?;
                continue;
            }
            if language == Language::Json
                && !reader.scan.force_tree_path
                && let Some(next) = reader.reader.next_name(&parts)
            {
                name(next, out);
                if reader
                    .json_memo
                    .borrow()
                    .push(&reader.reader, &mut parts, out, self.limit)
                {
                    continue;
                }
                // `name` was already called for this element.
                if let Some(TopLevel::Element(element)) = reader.next_part(&mut parts).transpose()? {
                    push_tree(language, element, out, self.limit)?;
                }
                continue;
            }
            let source = match reader.next_part(&mut parts).transpose()? {
                Some(TopLevel::Instance(instance)) => Rendered::Instance(instance, TreeRoot::Child),
                Some(TopLevel::Element(element)) => Rendered::Tree(element),
                None => break,
            };
            self.push_source(language, source, out, &mut name)?;
        }
        self.depth -= 1;
        Ok(())
    }
}

/// An element to render.
enum Rendered<'r> {
    Outlined(Outlined<'r>),
    Instance(Instance<'r>, TreeRoot),
    Tree(&'r Element<'r>),
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
