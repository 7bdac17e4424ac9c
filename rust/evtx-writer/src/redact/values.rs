//! Rules by value: texts, and what replaces them wherever they occur.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::Range;

use evtx_format::case::fold;
use evtx_format::value::{Scalar, Value};
use uuid::Uuid;

use super::encoded::{Escapes, SHORTEST, parts};
use super::folded::{Encoding, Folded, chars};
use super::packed::{Kind, Packed};
use super::sids::Sids;
use super::spelled::{Spelled, Spelling, numbers};
use super::typed::{self, MAX_VALUE, ansi, read, short, shown, sid};
use crate::audit::{Audit, Scratch};
use crate::copy::MAX_RECORD;
use crate::error::WriteError;
use crate::source::Result;
use crate::target::Edit;
use crate::value::utf16;

/// Texts and what replaces them; `None` for NULL.
#[derive(Debug)]
pub(super) struct Values {
    pairs: Vec<(String, Option<String>)>,
    spelled: Spelled,
    /// Finds those that are addresses or GUIDs in bytes.
    packed: Option<Packed>,
    /// The index of each text by its folded form, for values that show nothing else.
    by_text: HashMap<String, usize>,
    numbers: HashMap<i128, (usize, Option<Kind>)>,
    guids: HashMap<[u8; 16], usize>,
    /// Whether a text can be a part of a SID.
    has_sids: bool,
    /// Whether a text can be the hexadecimal digits of a binary value.
    has_hex: bool,
    /// Finds those that are SIDs in bytes.
    sids: Option<Sids>,
    /// Searches what was redacted.
    audit: Audit,
}

/// The fewest bytes and characters of UTF-16 that must match in bytes that a text may encode. Any word is valid base64, so
/// there at least 8 bytes must match, unless the bytes are text.
const MIN_BYTES: usize = 5;
const MIN_UNITS: usize = 3;
const MIN_BASE64: usize = 8;

fn folded(text: &str) -> String {
    fold(text).into_owned()
}

fn refused(text: &str, what: &str, why: &str) -> WriteError {
    let text = short(text);
    WriteError::NotRedacted(format!("the value '{text}' in {what} cannot be redacted: {why}").into())
}

/// A text with other texts in some places, which ascend.
fn replaced(source: &[u8], encoding: Encoding, edits: impl Iterator<Item = (Range<usize>, String)>) -> Result<Vec<u8>> {
    let (mut out, mut copied) = (Vec::with_capacity(source.len()), 0);
    for (place, new) in edits {
        out.extend(&source[copied..place.start]);
        copied = place.end;
        match encoding {
            Encoding::Utf16 => out.extend(utf16(&new)),
            Encoding::Utf8 => out.extend(new.as_bytes()),
            Encoding::Ansi => {
                let why = || {
                    let new = short(&new);
                    let why = format!("'{new}' has characters that Windows-1252, the code page of a text, lacks");
                    WriteError::NotRedacted(format!("a value cannot be redacted: {why}").into())
                };
                out.extend(ansi(&new).ok_or_else(why)?);
            }
        }
        if out.len() > MAX_VALUE {
            let new = short(&new);
            let why = format!("a text cannot be redacted: with '{new}', it is longer than 65,535 bytes");
            return Err(WriteError::NotRedacted(why.into()));
        }
    }
    out.extend(&source[copied..]);
    Ok(out)
}

/// What replaces spellings that were found in a text.
fn edit_found<'t>(
    scratch: &Folded,
    found: impl Iterator<Item = (Range<usize>, &'t Spelling)>,
    source: &[u8],
    encoding: Encoding,
) -> Result<Option<Vec<u8>>> {
    let mut found = found.peekable();
    if found.peek().is_none() {
        return Ok(None);
    }
    let edits = found.map(|(range, spelling)| (scratch.place(range), spelling.new.clone()));
    replaced(source, encoding, edits).map(Some)
}

impl Values {
    /// # Errors
    /// A text that a replacement contains.
    pub(super) fn new(pairs: &[(&str, Option<&str>)]) -> std::result::Result<Self, String> {
        let keys: Vec<String> = pairs.iter().map(|(text, _)| folded(text)).collect();
        let spelled = Spelled::new(pairs, folded)?;
        for (text, new) in pairs {
            let new = new.unwrap_or_default();
            let again = folded(new);
            if let Some((range, _)) = spelled.find(again.as_bytes()).next() {
                let kept = &again[range];
                return Err(format!(
                    "'{text}' would become '{new}', which contains '{kept}' again: choose another text"
                ));
            }
        }
        let every = || keys.iter().enumerate().map(|(index, key)| (key.as_str(), index));
        let number = |key: &str| key.parse::<i128>().ok().filter(|number| number.to_string() == *key);
        let mut known: HashMap<i128, (usize, Option<Kind>)> = HashMap::new();
        for (key, index) in every() {
            let address = key.parse::<Ipv4Addr>().ok();
            for (number, is_swapped) in address.into_iter().flat_map(numbers) {
                let kind = if is_swapped { Kind::Swapped } else { Kind::Address };
                known.entry(number.into()).or_insert((index, Some(kind)));
            }
        }
        known.extend(every().filter_map(|(key, index)| Some((number(key)?, (index, None)))));
        let by_text: HashMap<String, usize> = every().map(|(key, index)| (key.to_owned(), index)).collect();
        Ok(Values {
            has_sids: keys
                .iter()
                .any(|key| key.bytes().all(|byte| matches!(byte, b's' | b'-' | b'0'..=b'9'))),
            has_hex: keys
                .iter()
                .any(|key| key.len().is_multiple_of(2) && key.bytes().all(|byte| byte.is_ascii_hexdigit())),
            numbers: known,
            spelled,
            packed: Packed::new(keys.iter().map(String::as_str))?,
            guids: every()
                .filter_map(|(key, index)| Some((Uuid::parse_str(key).ok()?.to_bytes_le(), index)))
                .collect(),
            by_text,
            sids: Sids::new(keys.iter().map(String::as_str))?,
            audit: Audit::new(pairs.iter().map(|(text, _)| *text))?,
            pairs: pairs
                .iter()
                .map(|(text, new)| ((*text).to_owned(), new.map(str::to_owned)))
                .collect(),
        })
    }

    /// What replaces a text in some encoding; `None` if it contains none of the values in any form.
    pub(super) fn edit_text(&self, scratch: &mut Folded, source: &[u8], encoding: Encoding) -> Result<Option<Vec<u8>>> {
        self.edit_forms(scratch, source, encoding, false)
    }

    /// What replaces a name in UTF-16, which only contains the values as they are.
    pub(super) fn edit_name(&self, scratch: &mut Folded, source: &[u8]) -> Result<Option<Vec<u8>>> {
        scratch.read(source, Encoding::Utf16);
        edit_found(scratch, self.spelled.find_keys(&scratch.text), source, Encoding::Utf16)
    }

    /// What replaces a text. `is_decoded` says whether another text encoded it, so it is not decoded once more.
    fn edit_forms(
        &self,
        scratch: &mut Folded,
        source: &[u8],
        encoding: Encoding,
        is_decoded: bool,
    ) -> Result<Option<Vec<u8>>> {
        scratch.read(source, encoding);
        let mut edited = edit_found(scratch, self.spelled.find(&scratch.text), source, encoding)?;
        if !is_decoded {
            if let Some(edited) = &edited {
                scratch.read(edited, encoding);
            }
            let now = edited.as_deref().unwrap_or(source);
            let escaped = Escapes::ALL.map(|escapes| escapes.may_be_in(&scratch.text));
            if let Some(new) = self.edit_encoded(scratch, now, encoding)? {
                edited = Some(new);
            }
            for (escapes, _) in Escapes::ALL.into_iter().zip(escaped).filter(|(_, may_be)| *may_be) {
                let now = edited.as_deref().unwrap_or(source);
                if let Some(new) = self.edit_escaped(scratch, now, encoding, escapes)? {
                    edited = Some(new);
                }
            }
        }
        let Some(out) = edited else { return Ok(None) };
        scratch.read(&out, encoding);
        match self.spelled.find(&scratch.text).next() {
            Some((_, again)) => {
                let text = &self.pairs[again.key].0;
                Err(refused(text, "a text", "what is around the new text makes it again"))
            }
            None => Ok(Some(out)),
        }
    }

    /// What replaces a text in which hexadecimal digits or base64 encode some of the values.
    fn edit_encoded(&self, scratch: &mut Folded, source: &[u8], encoding: Encoding) -> Result<Option<Vec<u8>>> {
        if source.len() < SHORTEST {
            return Ok(None);
        }
        let ascii = |byte: u8, high: u8| if high == 0 && byte < 0x80 { byte } else { 0xff };
        let (text, width): (Vec<u8>, usize) = match encoding {
            Encoding::Utf16 => (
                source
                    .as_chunks::<2>()
                    .0
                    .iter()
                    .map(|&[low, high]| ascii(low, high))
                    .collect(),
                2,
            ),
            Encoding::Utf8 | Encoding::Ansi => (source.iter().map(|&byte| ascii(byte, 0)).collect(), 1),
        };
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        for part in parts(&text) {
            let range = width * part.range.start..width * part.range.end;
            if edits
                .iter()
                .any(|(other, _)| other.start < range.end && range.start < other.end)
            {
                continue;
            }
            let address = self.packed.as_ref().filter(|_| part.is_short);
            let new = match address.and_then(|packed| packed.address_in(&part.bytes)) {
                Some((at, (index, kind))) => {
                    let new = self.pairs[index].1.as_deref();
                    let encode =
                        |address: Vec<u8>| part.encode(&[&part.bytes[..at], &address, &part.bytes[at + 4..]].concat());
                    kind.read(new)
                        .map_or_else(|| new.unwrap_or_default().to_owned(), encode)
                }
                None if self.is_not_chance(scratch, &part.bytes, part.is_base64()) => {
                    match self.edit_bytes(scratch, &part.bytes, true)? {
                        Some(new) => part.encode(&new),
                        None => continue,
                    }
                }
                None => continue,
            };
            edits.push((range, new));
        }
        if edits.is_empty() {
            return Ok(None);
        }
        edits.sort_by_key(|(range, _)| range.start);
        replaced(source, encoding, edits.into_iter()).map(Some)
    }

    /// Whether bytes that a text may encode contain a form of a value that is not there by chance.
    fn is_not_chance(&self, scratch: &mut Folded, bytes: &[u8], is_base64: bool) -> bool {
        let text = std::str::from_utf8(bytes.strip_suffix(&[0]).unwrap_or(bytes));
        let is_text = text.is_ok_and(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace()));
        let least = if is_text {
            MIN_UNITS
        } else if is_base64 {
            MIN_BASE64
        } else {
            MIN_BYTES
        };
        scratch.read(bytes, Encoding::Utf8);
        if self.has_long(scratch, 1, least) {
            return true;
        }
        let units = if is_base64 { MIN_BASE64 / 2 } else { MIN_UNITS };
        for skipped in 0..2.min(bytes.len()) {
            scratch.read(&bytes[skipped..], Encoding::Utf16);
            if self.has_long(scratch, 2, 2 * units) {
                return true;
            }
        }
        self.sids.as_ref().is_some_and(|sids| sids.find(bytes, 0).is_some())
            || self
                .packed
                .as_ref()
                .is_some_and(|packed| packed.find(bytes, 0).is_some())
    }

    /// Whether a text that was read has a value of at least so many bytes. `width` is that of its characters.
    fn has_long(&self, scratch: &Folded, width: usize, least: usize) -> bool {
        let is_long = |range: Range<usize>| {
            let place = scratch.place(range);
            place.len() >= least.max(width)
        };
        self.spelled.find(&scratch.text).any(|(range, _)| is_long(range))
    }

    /// What replaces a text in which some of the values have escapes.
    fn edit_escaped(
        &self,
        scratch: &mut Folded,
        source: &[u8],
        encoding: Encoding,
        escapes: Escapes,
    ) -> Result<Option<Vec<u8>>> {
        let Some(chars) = escapes.resolve(&chars(source, encoding)) else {
            return Ok(None);
        };
        scratch.read_chars(&chars, source.len());
        let found = self.spelled.find(&scratch.text);
        let edits: Vec<_> = found
            .map(|(range, spelling)| (scratch.place(range), escapes.escape(&spelling.new)))
            .collect();
        if edits.is_empty() {
            return Ok(None);
        }
        replaced(source, encoding, edits.into_iter()).map(Some)
    }

    /// What replaces bytes that may contain texts, SIDs, addresses and GUIDs.
    pub(super) fn edit_binary(&self, scratch: &mut Folded, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        self.edit_bytes(scratch, bytes, false)
    }

    /// What replaces bytes that may contain texts, SIDs, addresses and GUIDs. `is_decoded` says whether a text encoded them.
    fn edit_bytes(&self, scratch: &mut Folded, bytes: &[u8], is_decoded: bool) -> Result<Option<Vec<u8>>> {
        let mut edited: Option<Vec<u8>> = None;
        let passes = [
            (0, Encoding::Utf16),
            (1, Encoding::Utf16),
            (0, Encoding::Utf8),
            (0, Encoding::Ansi),
        ];
        for (skipped, encoding) in passes {
            let now = edited.as_deref().unwrap_or(bytes);
            if encoding == Encoding::Ansi && now.is_ascii() {
                continue;
            }
            let Some((before, text)) = now.split_at_checked(skipped) else {
                continue;
            };
            if let Some(text) = self.edit_forms(scratch, text, encoding, is_decoded)? {
                edited = Some([before, &text].concat());
            }
        }
        let now = edited.as_deref().unwrap_or(bytes);
        let mut out = Vec::new();
        let mut copied = 0;
        while let Some(found) = self.sids.as_ref().and_then(|sids| sids.find(now, copied)) {
            if let Some(edit) = self.edit_sid(scratch, &now[found.clone()])? {
                out.extend(&now[copied..found.start]);
                out.extend(edit.bytes);
            } else {
                out.extend(&now[copied..found.end]);
            }
            copied = found.end;
            if out.len() > MAX_RECORD {
                return Err(WriteError::RecordSize);
            }
        }
        if copied > 0 {
            out.extend(&now[copied..]);
            edited = Some(out);
        }
        let Some(packed) = &self.packed else { return Ok(edited) };
        let mut at = 0;
        while let Some((range, index, kind)) = packed.find(edited.as_deref().unwrap_or(bytes), at) {
            let new = self.new_packed(index, kind)?;
            at = range.end;
            edited.get_or_insert_with(|| bytes.to_vec())[range].copy_from_slice(&new);
        }
        Ok(edited)
    }

    /// The bytes that replace those of an address or a GUID.
    fn new_packed(&self, index: usize, kind: Kind) -> Result<Vec<u8>> {
        let (text, new) = &self.pairs[index];
        let why = || {
            let (new, what) = (short(new.as_deref().unwrap_or_default()), kind.name());
            let why =
                format!("'{new}' is not {what}, and the bytes must stay as many. Replace it by {what}, or by NULL");
            refused(text, "bytes", &why)
        };
        kind.read(new.as_deref()).ok_or_else(why)
    }

    /// What replaces one SID.
    fn edit_sid(&self, scratch: &mut Folded, bytes: &[u8]) -> Result<Option<Edit>> {
        let text = shown(Value::new(Scalar::Sid, bytes));
        if let Some(&index) = self.by_text.get(&folded(&text)) {
            return self.edit_whole((index, None), Scalar::Sid, bytes.len()).map(Some);
        }
        let Some(new) = self.edit_text(scratch, text.as_bytes(), Encoding::Utf8)? else {
            return Ok(None);
        };
        let new = String::from_utf8(new).unwrap_or_default();
        let value_type = Scalar::Sid as u8;
        let why = || WriteError::NotRedacted("a SID with a value cannot be redacted: the result is not a SID".into());
        let bytes = sid(&new).ok_or_else(why)?;
        Ok(Some(Edit { value_type, bytes }))
    }

    /// What replaces a whole value of a type, or a number that is an address.
    fn edit_whole(&self, (index, kind): (usize, Option<Kind>), scalar: Scalar, size: usize) -> Result<Edit> {
        let (text, new) = &self.pairs[index];
        let of_address = match (new, kind) {
            (Some(_), Some(kind)) => {
                let bytes = self.new_packed(index, kind)?;
                let number = bytes.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
                // A signed number is shown as such.
                Some(if scalar == Scalar::Int32 {
                    number.cast_signed().to_string()
                } else {
                    number.to_string()
                })
            }
            _ => None,
        };
        let new = of_address.as_ref().or(new.as_ref());
        let Some(new) = new else {
            return Ok(Edit {
                value_type: 0,
                bytes: Vec::new(),
            });
        };
        let value_type = scalar as u8;
        let why = || {
            refused(
                text,
                &format!("a value of type {scalar:?}"),
                &format!("'{}' is not of this type", short(new)),
            )
        };
        let bytes = read(scalar, new, size).ok_or_else(why)?;
        Ok(Edit { value_type, bytes })
    }

    /// Finds the text that a whole number, GUID or time shows.
    fn find_whole(&self, value: Value<'_>) -> Option<(usize, Option<Kind>)> {
        let find_text = |text: &str| self.by_text.get(text).map(|index| (*index, None));
        match value.scalar()? {
            Scalar::Guid => self.guids.get(value.bytes).map(|index| (*index, None)),
            Scalar::Bool | Scalar::Real32 | Scalar::Real64 | Scalar::FileTime | Scalar::SystemTime => {
                find_text(&folded(&shown(value)))
            }
            Scalar::HexInt32 | Scalar::HexInt64 | Scalar::SizeT => {
                let address = || self.address_of(value.to_i128()?);
                find_text(&shown(value)).or_else(address)
            }
            scalar => {
                let number = value.to_i128()?;
                let known = self.numbers.get(&number).copied().filter(|(_, kind)| kind.is_none());
                let can_be_address = scalar.fixed_size().is_some_and(|size| size >= 4);
                known.or_else(|| self.address_of(number).filter(|_| can_be_address))
            }
        }
    }

    /// The address that a number is, also a negative one of 32 bits.
    fn address_of(&self, number: i128) -> Option<(usize, Option<Kind>)> {
        let unsigned = || {
            i32::try_from(number)
                .ok()
                .map(|number| i128::from(number.cast_unsigned()))
        };
        let known = self.numbers.get(&number).or_else(|| self.numbers.get(&unsigned()?));
        known.copied().filter(|(_, kind)| kind.is_some())
    }

    /// What replaces a value that is not BinXML.
    pub(super) fn edit(&self, scratch: &mut Folded, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let edit = |edited: Option<Vec<u8>>| edited.map(|bytes| Edit { value_type, bytes });
        let value = typed::value(value_type, bytes);
        let scalar = value.map_or(Scalar::Binary, |value| value.value_type.scalar);
        let is_array = value.is_some_and(|value| value.value_type.array);
        match (scalar, scalar.fixed_size()) {
            (Scalar::String, _) => self.edit_text(scratch, bytes, Encoding::Utf16).map(edit),
            (Scalar::AnsiString, _) => {
                let first = self.edit_text(scratch, bytes, Encoding::Ansi)?;
                let now = first.as_deref().unwrap_or(bytes);
                let second = if now.is_ascii() {
                    None
                } else {
                    self.edit_text(scratch, now, Encoding::Utf8)?
                };
                Ok(edit(second.or(first)))
            }
            (Scalar::Sid, _) => self.edit_sids(scratch, value_type, bytes),
            (Scalar::SizeT, _) if !is_array && matches!(bytes.len(), 4 | 8) => {
                self.edit_items(value_type, bytes, bytes.len())
            }
            (_, Some(size)) if bytes.len() == size || is_array && bytes.len().is_multiple_of(size) => {
                self.edit_items(value_type, bytes, size)
            }
            // Readers show the first bytes of a number that is too long.
            (_, Some(size)) if !is_array && bytes.len() > size => {
                let (first, rest) = bytes.split_at(size);
                let first = self.edit_items(value_type, first, size)?;
                if first.as_ref().is_some_and(|edit| edit.value_type == 0) {
                    return Ok(first);
                }
                let new_rest = self.edit_binary(scratch, rest)?;
                if first.is_none() && new_rest.is_none() {
                    return Ok(None);
                }
                let first = first.map_or_else(|| bytes[..size].to_vec(), |edit| edit.bytes);
                Ok(edit(Some([&first, new_rest.as_deref().unwrap_or(rest)].concat())))
            }
            (Scalar::Binary, _) if bytes.len() == 4 && self.packed.is_some() => {
                match self.packed.as_ref().and_then(|packed| packed.address(bytes)) {
                    Some((index, kind)) => self.new_packed(index, kind).map(|new| edit(Some(new))),
                    None => self.edit_binary(scratch, bytes).map(edit),
                }
            }
            _ => {
                let hex = value.filter(|_| self.has_hex && scalar == Scalar::Binary);
                match hex.and_then(|value| self.by_text.get(&folded(&shown(value)))) {
                    Some(&index) => self.edit_whole((index, None), scalar, bytes.len()).map(Some),
                    None => self.edit_binary(scratch, bytes).map(edit),
                }
            }
        }
    }

    /// What replaces a value of fixed size, or an array of them.
    fn edit_items(&self, value_type: u8, bytes: &[u8], size: usize) -> Result<Option<Edit>> {
        let scalar = typed::value(value_type, bytes).map_or(Scalar::Null, |value| value.value_type.scalar);
        let find = |item| self.find_whole(Value::new(scalar, item));
        if !bytes.chunks(size).any(|item| find(item).is_some()) {
            return Ok(None);
        }
        if bytes.len() == size && value_type == scalar as u8 {
            let edit = find(bytes).map(|found| self.edit_whole(found, scalar, size));
            return edit.transpose();
        }
        let mut out = Vec::with_capacity(bytes.len());
        for item in bytes.chunks(size) {
            let Some((index, kind)) = find(item) else {
                out.extend(item);
                continue;
            };
            let edit = self.edit_whole((index, kind), scalar, size)?;
            if edit.bytes.len() != size {
                let text = &self.pairs[index].0;
                return Err(refused(text, "an array", "an item of an array cannot be NULL"));
            }
            out.extend(edit.bytes);
        }
        let bytes = out;
        Ok(Some(Edit { value_type, bytes }))
    }

    /// What replaces a SID, or an array of SIDs, and bytes after them.
    fn edit_sids(&self, scratch: &mut Folded, value_type: u8, bytes: &[u8]) -> Result<Option<Edit>> {
        let is_array = value_type != Scalar::Sid as u8;
        let (mut rest, mut out, mut is_edited) = (bytes, Vec::new(), false);
        while let [_, count, ..] = rest
            && let Some((item, after)) = rest.split_at_checked(8 + 4 * usize::from(*count))
            && (is_array || out.is_empty())
        {
            let edit = if self.has_sids {
                self.edit_sid(scratch, item)?
            } else {
                None
            };
            is_edited |= edit.is_some();
            match edit {
                Some(edit) if edit.value_type == 0 && item.len() < bytes.len() => {
                    let why = "a value in an array of SIDs cannot be redacted: an item of an array cannot be NULL";
                    return Err(WriteError::NotRedacted(why.into()));
                }
                Some(edit) if edit.value_type == 0 => return Ok(Some(edit)),
                Some(edit) => out.extend(edit.bytes),
                None => out.extend(item),
            }
            rest = after;
        }
        let edited = if rest.is_empty() {
            None
        } else {
            self.edit_binary(scratch, rest)?
        };
        is_edited |= edited.is_some();
        out.extend(edited.as_deref().unwrap_or(rest));
        let bytes = out;
        Ok(is_edited.then_some(Edit { value_type, bytes }))
    }

    /// Checks that the bytes of a record or a definition contain no form of a value any more that counts at any offset.
    ///
    /// # Errors
    /// What they contain, and where.
    pub(super) fn check(&self, scratch: &mut Scratch, redacted: &[u8]) -> Result<()> {
        let Some(found) = self.audit.search_bytes(redacted, scratch) else {
            return Ok(());
        };
        let place = format!(
            "the bytes at {} of the redacted record",
            found.offset.unwrap_or_default()
        );
        let why = format!(
            "it remains there as {}, perhaps because values that follow each other spell it. Replace one of these by \
             evtx_redact",
            found.form
        );
        Err(refused(&found.key, &place, &why))
    }
}
