//! Rules by value: texts, and what replaces them wherever they occur.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, Match, MatchKind};
use evtx_format::value::{Scalar, Value};
use uuid::Uuid;

use super::folded::{Encoding, Folded, fold};
use super::remains::Remains;
use super::typed::{self, MAX_VALUE, ansi, read, short, shown, sid};
use crate::copy::MAX_RECORD;
use crate::error::WriteError;
use crate::source::Result;
use crate::target::Edit;
use crate::value::utf16;

/// Texts and what replaces them; `None` for NULL.
#[derive(Debug)]
pub(super) struct Values {
    pairs: Vec<(String, Option<String>)>,
    /// Finds the texts, folded.
    finder: AhoCorasick,
    /// By what a whole value shows, folded.
    whole: HashMap<String, usize>,
    numbers: HashMap<i128, usize>,
    guids: HashMap<[u8; 16], usize>,
    /// Whether a text can be a part of a SID, and whether one can be that of a binary value.
    has_sids: bool,
    has_hex: bool,
    /// By text, whether it is a SID. Another digit after it makes it another one.
    is_sid: Vec<bool>,
    remains: Remains,
}

fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

fn refused(text: &str, what: &str, why: &str) -> WriteError {
    let text = short(text);
    WriteError::NotRedacted(format!("the value '{text}' in {what} cannot be redacted: {why}").into())
}

impl Values {
    /// # Errors
    /// A text that a replacement contains.
    pub(super) fn new(pairs: &[(&str, Option<&str>)]) -> std::result::Result<Self, String> {
        let keys: Vec<String> = pairs.iter().map(|(text, _)| folded(text)).collect();
        let finder = AhoCorasickBuilder::new()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&keys)
            .map_err(|error| error.to_string())?;
        for (text, new) in pairs {
            let found = new.and_then(|new| finder.find(&folded(new)));
            if let (Some(found), Some(new)) = (found, new) {
                let kept = pairs[found.pattern()].0;
                return Err(format!(
                    "'{text}' would become '{new}', which contains '{kept}' again: choose another text"
                ));
            }
        }
        let every = || keys.iter().enumerate().map(|(index, key)| (key.as_str(), index));
        let number = |key: &str| key.parse::<i128>().ok().filter(|number| number.to_string() == *key);
        Ok(Values {
            has_sids: keys
                .iter()
                .any(|key| key.bytes().all(|byte| matches!(byte, b's' | b'-' | b'0'..=b'9'))),
            has_hex: keys
                .iter()
                .any(|key| key.len().is_multiple_of(2) && key.bytes().all(|byte| byte.is_ascii_hexdigit())),
            is_sid: keys.iter().map(|key| sid(key).is_some()).collect(),
            numbers: every().filter_map(|(key, index)| Some((number(key)?, index))).collect(),
            guids: every()
                .filter_map(|(key, index)| Some((Uuid::parse_str(key).ok()?.to_bytes_le(), index)))
                .collect(),
            whole: every().map(|(key, index)| (key.to_owned(), index)).collect(),
            remains: Remains::new(pairs.iter().map(|(text, _)| *text))?,
            finder,
            pairs: pairs
                .iter()
                .map(|(text, new)| ((*text).to_owned(), new.map(str::to_owned)))
                .collect(),
        })
    }

    /// What replaces a text in some encoding; `None` if it contains none of the values.
    pub(super) fn edit_text(&self, scratch: &mut Folded, source: &[u8], encoding: Encoding) -> Result<Option<Vec<u8>>> {
        scratch.read(source, encoding);
        let mut found = self.matches(&scratch.text).peekable();
        if found.peek().is_none() {
            return Ok(None);
        }
        let (mut out, mut copied) = (Vec::with_capacity(source.len()), 0);
        for found in found {
            let place = scratch.place(found.range());
            out.extend(&source[copied..place.start]);
            copied = place.end;
            let (text, new) = &self.pairs[found.pattern()];
            let new = new.as_deref().unwrap_or_default();
            match encoding {
                Encoding::Utf16 => out.extend(utf16(new)),
                Encoding::Utf8 => out.extend(new.as_bytes()),
                Encoding::Ansi => {
                    let why = || refused(text, "ANSI text", "the new text has characters that Windows-1252 lacks");
                    out.extend(ansi(new).ok_or_else(why)?);
                }
            }
            if out.len() > MAX_VALUE {
                return Err(refused(
                    text,
                    "a text",
                    "with the new text, it is longer than 65,535 bytes",
                ));
            }
        }
        out.extend(&source[copied..]);
        scratch.read(&out, encoding);
        let again = self.matches(&scratch.text).next();
        match again {
            Some(again) => {
                let text = &self.pairs[again.pattern()].0;
                Err(refused(text, "a text", "what is around the new text makes it again"))
            }
            None => Ok(Some(out)),
        }
    }

    /// The texts in a folded one.
    fn matches<'t>(&'t self, folded: &'t [u8]) -> impl Iterator<Item = Match> + 't {
        let follows = |found: &Match| folded.get(found.end()).is_some_and(u8::is_ascii_digit);
        let found = self.finder.find_iter(folded);
        found.filter(move |found| !self.is_sid[found.pattern()] || !follows(found))
    }

    /// What replaces bytes that may contain texts and SIDs.
    pub(super) fn edit_binary(&self, scratch: &mut Folded, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
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
            if let Some(text) = self.edit_text(scratch, text, encoding)? {
                edited = Some([before, &text].concat());
            }
        }
        let now = edited.as_deref().unwrap_or(bytes);
        let mut out = Vec::new();
        let mut copied = 0;
        while let Some(found) = self.remains.sid(now, copied) {
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
            return Ok(Some(out));
        }
        Ok(edited)
    }

    /// What replaces one SID.
    fn edit_sid(&self, scratch: &mut Folded, bytes: &[u8]) -> Result<Option<Edit>> {
        let text = shown(Value::new(Scalar::Sid, bytes));
        if let Some(&index) = self.whole.get(&folded(&text)) {
            return self.edit_whole(index, Scalar::Sid, bytes.len()).map(Some);
        }
        let Some(new) = self.edit_text(scratch, text.as_bytes(), Encoding::Utf8)? else {
            return Ok(None);
        };
        let new = String::from_utf8(new).unwrap_or_default();
        let value_type = Scalar::Sid as u8;
        let bytes = sid(&new).ok_or_else(|| refused(&text, "a SID", &format!("'{}' is not a SID", short(&new))))?;
        Ok(Some(Edit { value_type, bytes }))
    }

    /// What replaces a whole value of a type.
    fn edit_whole(&self, index: usize, scalar: Scalar, size: usize) -> Result<Edit> {
        let (text, new) = &self.pairs[index];
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

    /// Which text a whole number, GUID or time shows.
    fn whole(&self, value: Value<'_>) -> Option<usize> {
        match value.scalar()? {
            Scalar::Guid => self.guids.get(value.bytes).copied(),
            Scalar::Bool | Scalar::Real32 | Scalar::Real64 | Scalar::FileTime | Scalar::SystemTime => {
                self.whole.get(&folded(&shown(value))).copied()
            }
            Scalar::HexInt32 | Scalar::HexInt64 | Scalar::SizeT => self.whole.get(&shown(value)).copied(),
            _ => self.numbers.get(&value.to_i128()?).copied(),
        }
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
                let second = match now.is_ascii() {
                    true => None,
                    false => self.edit_text(scratch, now, Encoding::Utf8)?,
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
            _ => {
                let hex = value.filter(|_| self.has_hex && scalar == Scalar::Binary);
                match hex.and_then(|value| self.whole.get(&folded(&shown(value)))) {
                    Some(&index) => self.edit_whole(index, scalar, bytes.len()).map(Some),
                    None => self.edit_binary(scratch, bytes).map(edit),
                }
            }
        }
    }

    /// What replaces a value of fixed size, or an array of them.
    fn edit_items(&self, value_type: u8, bytes: &[u8], size: usize) -> Result<Option<Edit>> {
        let scalar = typed::value(value_type, bytes).map_or(Scalar::Null, |value| value.value_type.scalar);
        let found = |item| self.whole(Value::new(scalar, item));
        if !bytes.chunks(size).any(|item| found(item).is_some()) {
            return Ok(None);
        }
        if bytes.len() == size && value_type == scalar as u8 {
            return found(bytes)
                .map(|index| self.edit_whole(index, scalar, size))
                .transpose();
        }
        let mut out = Vec::with_capacity(bytes.len());
        for item in bytes.chunks(size) {
            match found(item).map(|index| (index, self.edit_whole(index, scalar, size))) {
                Some((_, Ok(edit))) if edit.bytes.len() == size => out.extend(edit.bytes),
                Some((index, Ok(_))) => {
                    let text = &self.pairs[index].0;
                    return Err(refused(text, "an array", "an item of an array cannot be NULL"));
                }
                Some((_, Err(error))) => return Err(error),
                None => out.extend(item),
            }
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
            let edit = match self.has_sids {
                true => self.edit_sid(scratch, item)?,
                false => None,
            };
            is_edited |= edit.is_some();
            match edit {
                Some(edit) if edit.value_type == 0 && item.len() < bytes.len() => {
                    let text = shown(Value::new(Scalar::Sid, item));
                    return Err(refused(&text, "an array of SIDs", "an item of an array cannot be NULL"));
                }
                Some(edit) if edit.value_type == 0 => return Ok(Some(edit)),
                Some(edit) => out.extend(edit.bytes),
                None => out.extend(item),
            }
            rest = after;
        }
        let edited = match rest.is_empty() {
            true => None,
            false => self.edit_binary(scratch, rest)?,
        };
        is_edited |= edited.is_some();
        out.extend(edited.as_deref().unwrap_or(rest));
        let bytes = out;
        Ok(is_edited.then_some(Edit { value_type, bytes }))
    }

    /// Checks that the bytes of a record or a definition contain none of the values any more, in texts or SIDs of any place.
    ///
    /// # Errors
    /// What they contain, and where.
    pub(super) fn check(&self, redacted: &[u8]) -> Result<()> {
        match self.remains.find(redacted) {
            None => Ok(()),
            Some((index, offset, what)) => {
                let text = &self.pairs[index].0;
                let place = format!("the bytes at {offset} of the redacted record");
                let why = format!(
                    "it remains there as {what}, perhaps because values that follow each other spell it. Replace one of \
                     these by evtx_redact"
                );
                Err(refused(text, &place, &why))
            }
        }
    }
}
