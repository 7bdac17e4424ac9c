//! The target of a copy that redacts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use evtx_format::value::Scalar;
use uuid::Builder;

use super::fields::{Fields, Plan, Walk};
use super::typed;
use crate::copy::{MAX_RECORD, copy_definition};
use crate::error::WriteError;
use crate::source::{Result, Source};
use crate::target::{Content, Edit, Named, Own, Target};

/// The most bytes of definitions that are known before another record is redacted.
const MAX_KNOWN: usize = 4 << 20;
/// Bytes of the GUID of a definition, and of its ID, which are the first of the GUID.
const GUID: usize = 16;
const ID: usize = 4;

/// A definition as redacted records have it.
#[derive(Debug)]
pub(super) struct Definition {
    source: Box<[u8]>,
    pub(super) bytes: Box<[u8]>,
    plan: Plan,
    /// The ID, if the definition is another one than the original.
    id: Option<[u8; ID]>,
}

/// The definitions that were redacted last, by their GUIDs.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    known: HashMap<[u8; GUID], Arc<Definition>>,
    bytes: usize,
}

/// Copies a record or a definition, and replaces what some rules say.
pub(super) struct Editor<'e> {
    pub(super) own: &'e mut Own,
    fields: &'e Fields,
    pub(super) walk: Walk,
    is_changed: bool,
    /// Those of earlier records; none in a definition.
    definitions: Option<&'e mut Definitions>,
    /// Those of the record, by their offsets.
    pub(super) found: Vec<(usize, Arc<Definition>)>,
    /// How many bytes they take. Those of a crafted record can overlap.
    found_bytes: usize,
}

impl Definitions {
    fn get(&mut self, fields: &Fields, source: Source<'_>, at: usize) -> Result<Arc<Definition>> {
        let (bytes, _) = source.definition(at)?;
        if self.bytes > MAX_KNOWN {
            self.known.clear();
            self.bytes = 0;
        }
        let entry = self.known.entry(*bytes.first_chunk().unwrap_or(&[0; GUID]));
        if let Entry::Occupied(known) = &entry
            && *known.get().source == *bytes
        {
            return Ok(Arc::clone(known.get()));
        }
        let mut own = Own::default();
        own.out.extend([0; 4]);
        let mut editor = Editor::new(&mut own, fields, None);
        copy_definition(&mut editor, source, at)?;
        let (plan, is_changed) = (editor.walk.plan, editor.is_changed);
        let id = is_changed.then(|| rename(&mut own.out));
        self.bytes += bytes.len() + own.out.len();
        let (source, bytes) = (bytes.into(), own.out.into());
        let definition = Arc::new(Definition {
            source,
            bytes,
            plan,
            id,
        });
        _ = entry.insert_entry(Arc::clone(&definition));
        Ok(definition)
    }
}

/// Gives a definition, which begins with the link to the next one, a GUID that follows from its bytes. Returns its ID.
fn rename(definition: &mut [u8]) -> [u8; ID] {
    let (_, named) = definition.split_at_mut(4);
    // FNV-1a with 128 bits, as RFC 9562 allows for a UUID of version 8.
    let hash = named
        .iter()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash: u128, &byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
    let guid = Builder::from_custom_bytes(hash.to_be_bytes()).into_uuid().to_bytes_le();
    named[..GUID].copy_from_slice(&guid);
    [guid[0], guid[1], guid[2], guid[3]]
}

impl<'e> Editor<'e> {
    pub(super) fn new(own: &'e mut Own, fields: &'e Fields, definitions: Option<&'e mut Definitions>) -> Self {
        Editor {
            own,
            fields,
            walk: Walk::default(),
            is_changed: false,
            definitions,
            found: Vec::new(),
            found_bytes: 0,
        }
    }
}

impl Target for Editor<'_> {
    const EDITS: bool = true;
    type Plan = Arc<Definition>;

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.own.out
    }

    fn name(&mut self, entry: &[u8]) {
        self.own.name(entry);
    }

    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<Arc<Definition>> {
        let what = "a template instance in a definition";
        let definitions = self.definitions.as_mut().ok_or_else(|| Source::damaged(at, what))?;
        self.walk.begin_stream(self.fields)?;
        let known = self.found.iter().find(|(known, _)| *known == at);
        let definition = match known {
            Some((_, definition)) => Arc::clone(definition),
            None => {
                let definition = definitions.get(self.fields, source, at)?;
                self.found_bytes += definition.source.len() + definition.bytes.len();
                if self.found_bytes > 2 * MAX_RECORD {
                    return Err(WriteError::RecordSize);
                }
                self.found.push((at, Arc::clone(&definition)));
                definition
            }
        };
        for (count, more) in self.walk.plan.counted.iter_mut().zip(definition.plan.counted) {
            *count += more;
        }
        if let Some(id) = definition.id
            && let Some(place) = self.own.out.last_chunk_mut()
        {
            *place = id;
        }
        self.own.definition(source, at)?;
        Ok(definition)
    }

    fn edit_name(&mut self, named: Named, entry: &[u8]) -> Result<()> {
        self.walk.begin(self.fields, named, entry)?;
        self.own.name(entry);
        Ok(())
    }

    fn depend(&mut self, index: u16) {
        self.walk.plan.used.insert(index);
    }

    fn end_start(&mut self) {
        self.walk.end_start(self.fields);
    }

    fn end(&mut self) -> Result<()> {
        self.walk.end(self.fields)
    }

    fn edit_content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        if let Content::Substitution(index, false) = content {
            self.walk.plan.needed.push(index);
        }
        let edit = self.walk.edit(self.fields, content)?;
        // A text that is the new one already does not make another definition.
        let is_same = |edit: &Edit| matches!(content, Content::Value(value_type, bytes) if edit.value_type == value_type && *edit.bytes == *bytes);
        let edit = edit.filter(|edit| !is_same(edit));
        self.is_changed |= edit.is_some();
        Ok(edit)
    }

    fn edit_values(&mut self, plan: &Arc<Definition>, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        let mut edits = self.fields.edit_values(&plan.plan, values)?;
        for (index, edit) in edits.iter_mut().filter(|(_, edit)| edit.value_type == 0) {
            let (value_type, _) = values[*index];
            match typed::value(value_type, &[]).map(|value| value.value_type.scalar) {
                // Readers fail on a NULL where the template needs a value. A text can be empty.
                Some(scalar @ (Scalar::String | Scalar::AnsiString)) => edit.value_type = scalar as u8,
                _ if plan.plan.needed.contains(&(*index as u16)) => {
                    let known = typed::type_name(value_type);
                    let what = typed::short(self.fields.name_of(&plan.plan, *index as u16));
                    let why = format!("{what} cannot be NULL here: replace it by another value of its type, {known}");
                    return Err(WriteError::NotRedacted(why.into()));
                }
                _ => {}
            }
        }
        Ok(edits)
    }
}
