//! Edits of a record: it is read as a tree of elements, as queries read it, and then copied with other values.

use std::ops::Range;

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::{Element, Node, push_nodes};
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::value::text::Escaping;
use uuid::Builder;

use crate::chunk::Chunk;
use crate::copy::{MAX_RECORD, STRING, copy_definition, copy_stream};
use crate::error::WriteError;
use crate::record::{CutRecord, begin, finish};
use crate::source::{Result, Source};
use crate::target::{Edit, Edits, Own, Target};

/// Bytes of the GUID of a definition.
const GUID: usize = 16;

/// Copies a record or a definition, with edits.
struct Editor<'e> {
    own: &'e mut Own,
    edits: &'e mut dyn Edits,
}

/// By what a value is known: where its bytes are.
pub(crate) fn address(bytes: &[u8]) -> usize {
    bytes.as_ptr().addr()
}

/// The text of content.
pub(crate) fn text_of(nodes: &[Node<'_>]) -> String {
    let mut text = Vec::new();
    push_nodes(&mut text, nodes, Escaping::Plain, MAX_RECORD);
    String::from_utf8(text).unwrap_or_default()
}

/// What replaces a value that no reader sees. Elements can depend on whether it is NULL.
pub(crate) fn unseen(value_type: u8, bytes: &[u8]) -> Option<Edit> {
    // Zeros tell nothing. Empty texts in an array are such.
    bytes.iter().any(|byte| *byte != 0).then(|| Edit {
        value_type: value_type.min(STRING),
        bytes: Vec::new(),
    })
}

/// Reads the events of a record, and passes their elements.
pub(crate) fn events<'a, 'c: 'a, E>(
    reader: &Reader<'a, 'c>,
    record: Range<usize>,
    damaged: impl Fn(evtx_format::Error) -> E,
    mut each: impl FnMut(&Element<'a>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    reader.begin(record.len());
    let mut fragments = reader.fragments(record);
    // Padding can follow the end token.
    while fragments.peek() != Some(0)
        && let Some(fragment) = reader.next_fragment(&mut fragments)
    {
        each(match fragment.map_err(&damaged)? {
            Fragment::Instance(instance) => reader.instance(&instance).map_err(&damaged)?,
            Fragment::Element(element) => element,
        })?;
    }
    Ok(())
}

/// Copies a record that stands alone with edits.
///
/// # Errors
/// Those of the edits, and [`WriteError`] if the record is damaged or too long.
pub(crate) fn edit(own: &mut Own, record: CutRecord<'_>, edits: &mut dyn Edits) -> Result<()> {
    // A reader takes chunks.
    let mut chunk = Chunk::new();
    if !chunk.write_cut(record.id, record)? {
        return Err(WriteError::RecordSize);
    }
    let (bytes, binxml) = chunk.last();
    let (of_names, arena) = (Bump::new(), Bump::new());
    let names = Names::new(bytes, &of_names);
    let reader = Reader::new(bytes, &names, &arena);
    let damaged = |why: evtx_format::Error| WriteError::NotEdited(format!("it cannot be read: {why}").into());
    events(&reader, binxml.clone(), damaged, |event| edits.read(event))?;
    let source = Source::chunk(bytes);
    begin(own, record.id, record.written);
    copy_stream(&mut Editor { own, edits }, source, binxml)?;
    finish(own, |at, out| {
        let [mut edited, mut plain] = [Own::default(), Own::default()];
        edited.out.extend([0; 4]);
        plain.out.extend([0; 4]);
        let own = &mut edited;
        copy_definition(&mut Editor { own, edits }, source, at)?;
        copy_definition(&mut plain, source, at)?;
        let is_changed = edited.out != plain.out;
        if is_changed {
            rename(&mut edited.out);
        }
        out.extend(&edited.out);
        Ok(is_changed)
    })
}

/// Gives a definition, which begins with the link to the next one, a GUID that follows from its bytes.
fn rename(definition: &mut [u8]) {
    let (_, named) = definition.split_at_mut(4);
    // FNV-1a with 128 bits, as RFC 9562 allows for a UUID of version 8.
    let hash = named
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, &byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
    let guid = Builder::from_custom_bytes(hash.to_be_bytes()).into_uuid().to_bytes_le();
    named[..GUID].copy_from_slice(&guid);
}

impl Target for Editor<'_> {
    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.own.out
    }

    fn name(&mut self, entry: &[u8]) {
        let renamed = self.edits.name(entry);
        self.own.name(renamed.as_deref().unwrap_or(entry));
    }

    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<()> {
        self.own.definition(source, at)
    }

    fn edits(&mut self) -> Option<&mut dyn Edits> {
        Some(self.edits)
    }
}
