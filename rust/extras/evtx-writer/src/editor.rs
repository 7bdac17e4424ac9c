//! The target of a copy that replaces parts of a record.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use uuid::Builder;

use crate::copy::{MAX_RECORD, copy_definition, copy_stream};
use crate::error::WriteError;
use crate::record::{CutRecord, begin, finish};
use crate::source::{Result, Source};
use crate::target::{Content, Edit, Named, Own, Target};

/// The most bytes of definitions that are known before another record is edited.
const MAX_KNOWN: usize = 4 << 20;
/// Bytes of the GUID of a definition, and of its ID, which are the first of the GUID.
const GUID: usize = 16;
const ID: usize = 4;

/// What is replaced in a record, or in one of its definitions. It is told each part in order.
pub(crate) trait Edits: Sized {
    /// What is known of a definition.
    type Plan;
    /// The edits of a definition that the record has at this place.
    fn of_definition(&self) -> Self;
    /// Where the record has the next definition, if that makes a difference.
    fn context(&self) -> u8 {
        0
    }
    /// The plan of a definition that was copied.
    fn into_plan(self) -> Self::Plan;
    /// An instance of a definition begins.
    fn instance(&mut self, plan: &Self::Plan) -> Result<()>;
    /// What replaces the entry of a name.
    fn name(&mut self, named: Named, entry: &[u8]) -> Result<Option<Vec<u8>>>;
    /// As [`Target::depend`].
    fn depend(&mut self, index: u16);
    /// As [`Target::end_start`].
    fn end_start(&mut self);
    /// As [`Target::end`].
    fn end(&mut self) -> Result<()>;
    /// As [`Target::edit_run`].
    fn run(&mut self, _text: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
    /// As [`Target::edit_content`].
    fn content(&mut self, content: Content<'_>) -> Result<Option<Edit>>;
    /// As [`Target::edit_values`].
    fn values(&mut self, plan: &Self::Plan, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>>;
    /// As [`Target::edit_rest`].
    fn rest(&mut self, _rest: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// The offset of a definition, and its context.
type Place = (usize, u8);

/// A definition as edited records have it.
#[derive(Debug)]
pub(crate) struct Definition<P> {
    source: Box<[u8]>,
    bytes: Box<[u8]>,
    plan: P,
    /// The ID, if the definition is another one than the original.
    id: Option<[u8; ID]>,
}

/// The definitions that were edited last, by their contexts and GUIDs.
#[derive(Debug)]
pub(crate) struct Definitions<P> {
    known: HashMap<(u8, [u8; GUID]), Arc<Definition<P>>>,
    bytes: usize,
}

/// Copies a record or a definition, with edits.
struct Editor<'e, E: Edits> {
    own: &'e mut Own,
    edits: E,
    is_changed: bool,
    /// Those of earlier records; none in a definition.
    definitions: Option<&'e mut Definitions<E::Plan>>,
    /// Those of the record, by their places.
    found: Vec<(Place, Arc<Definition<E::Plan>>)>,
    /// How many bytes they take. Those of a crafted record can overlap.
    found_bytes: usize,
}

impl<P> Default for Definitions<P> {
    fn default() -> Self {
        Definitions {
            known: HashMap::new(),
            bytes: 0,
        }
    }
}

impl<P> Definitions<P> {
    fn get<E: Edits<Plan = P>>(&mut self, edits: &E, source: Source<'_>, at: usize) -> Result<Arc<Definition<P>>> {
        let (bytes, _) = source.definition(at)?;
        if self.bytes > MAX_KNOWN {
            self.known.clear();
            self.bytes = 0;
        }
        let guid = *bytes.first_chunk().unwrap_or(&[0; GUID]);
        let entry = self.known.entry((edits.context(), guid));
        if let Entry::Occupied(known) = &entry
            && *known.get().source == *bytes
        {
            return Ok(Arc::clone(known.get()));
        }
        let mut own = Own::default();
        own.out.extend([0; 4]);
        let mut editor = Editor::new(&mut own, edits.of_definition(), None);
        copy_definition(&mut editor, source, at)?;
        let (plan, is_changed) = (editor.edits.into_plan(), editor.is_changed);
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

/// Copies a record that stands alone with edits, which are returned. `definitions` are those of earlier records with the
/// same edits.
///
/// # Errors
/// Those of the edits, and [`WriteError`] if the record is damaged or too long.
pub(crate) fn edit<E: Edits>(
    own: &mut Own,
    record: CutRecord<'_>,
    edits: E,
    definitions: &mut Definitions<E::Plan>,
) -> Result<E> {
    begin(own, record.id, record.written);
    let mut editor = Editor::new(own, edits, Some(definitions));
    copy_stream(&mut editor, Source::record(record.bytes), record.binxml())?;
    let Editor { edits, found, .. } = editor;
    finish(own, |at, out| {
        let definition = found.iter().find(|((known, _), _)| *known == at);
        out.extend(definition.map(|(_, definition)| &*definition.bytes).unwrap_or_default());
        Ok(())
    })?;
    Ok(edits)
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

impl<'e, E: Edits> Editor<'e, E> {
    fn new(own: &'e mut Own, edits: E, definitions: Option<&'e mut Definitions<E::Plan>>) -> Self {
        Editor {
            own,
            edits,
            is_changed: false,
            definitions,
            found: Vec::new(),
            found_bytes: 0,
        }
    }
}

impl<E: Edits> Target for Editor<'_, E> {
    const EDITS: bool = true;
    type Plan = Arc<Definition<E::Plan>>;

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.own.out
    }

    fn name(&mut self, entry: &[u8]) {
        self.own.name(entry);
    }

    fn definition(&mut self, source: Source<'_>, at: usize) -> Result<Self::Plan> {
        let what = "a template instance in a definition";
        let definitions = self.definitions.as_mut().ok_or_else(|| Source::damaged(at, what))?;
        let place = (at, self.edits.context());
        let known = self.found.iter().find(|(known, _)| *known == place);
        let definition = match known {
            Some((_, definition)) => Arc::clone(definition),
            None => {
                let definition = definitions.get(&self.edits, source, at)?;
                self.found_bytes += definition.source.len() + definition.bytes.len();
                if self.found_bytes > 2 * MAX_RECORD {
                    return Err(WriteError::RecordSize);
                }
                self.found.push((place, Arc::clone(&definition)));
                definition
            }
        };
        self.edits.instance(&definition.plan)?;
        if let Some(id) = definition.id
            && let Some(place) = self.own.out.last_chunk_mut()
        {
            *place = id;
        }
        self.own.definition(source, at)?;
        Ok(definition)
    }

    fn edit_name(&mut self, named: Named, entry: &[u8]) -> Result<()> {
        let renamed = self.edits.name(named, entry)?;
        self.is_changed |= renamed.is_some();
        self.own.name(renamed.as_deref().unwrap_or(entry));
        Ok(())
    }

    fn depend(&mut self, index: u16) {
        self.edits.depend(index);
    }

    fn end_start(&mut self) {
        self.edits.end_start();
    }

    fn end(&mut self) -> Result<()> {
        self.edits.end()
    }

    fn edit_run(&mut self, text: &[u8]) -> Result<Option<Vec<u8>>> {
        let edited = self.edits.run(text)?;
        self.is_changed |= edited.is_some();
        Ok(edited)
    }

    fn edit_content(&mut self, content: Content<'_>) -> Result<Option<Edit>> {
        let edit = self.edits.content(content)?;
        // A text that is the new one already does not make another definition.
        let is_same = |edit: &Edit| matches!(content, Content::Value(value_type, bytes) if edit.value_type == value_type && *edit.bytes == *bytes);
        let edit = edit.filter(|edit| !is_same(edit));
        self.is_changed |= edit.is_some();
        Ok(edit)
    }

    fn edit_values(&mut self, plan: &Self::Plan, values: &[(u8, &[u8])]) -> Result<Vec<(usize, Edit)>> {
        self.edits.values(&plan.plan, values)
    }

    fn edit_rest(&mut self, rest: &[u8]) -> Result<Option<Vec<u8>>> {
        let edited = self.edits.rest(rest)?;
        self.is_changed |= edited.is_some();
        Ok(edited)
    }
}
