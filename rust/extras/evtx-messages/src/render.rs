//! A message with its values filled in, as `EvtFormatMessage` of Windows does it.
//!
//! An insertion that the event lacks stays in the message as it is in the text, for example `%5`. A NULL value is empty.
//! `%%1833` in a text or in a value is replaced by the parameter message 1833, if there is one. Parameter messages may
//! contain further parameters, but no insertions.

mod printf;

use std::borrow::Cow;

use evtx_format::boundary;
use memchr::{memchr, memmem};

use crate::insertion::Insertion;
use crate::row::{Field, ValueMap};
use crate::template::{Part, Template, number};

/// Parameters inside parameters, at most. *(choice)*
const MAX_DEPTH: usize = 4;

/// Parameters that are looked up for one message, at most. Further ones stay as they are. *(choice)*
const MAX_PARAMETERS: usize = 1024;

/// The insertions of an event: the values of its template instance, in order.
pub trait Insertions {
    /// The insertion at `index`, from 0; `None` if the event has no value there.
    fn get(&self, index: usize) -> Option<Insertion<'_>>;
}

impl Insertions for [Insertion<'_>] {
    fn get(&self, index: usize) -> Option<Insertion<'_>> {
        <[Insertion<'_>]>::get(self, index).copied()
    }
}

/// The text of the parameter message with an ID; `None` if there is none.
pub type Parameters<'p> = dyn Fn(u32) -> Option<Cow<'p, str>> + 'p;

/// The bytes of a message, at most: as many as messages of `.MTA` files may have. *(choice)*
pub const MAX_RENDERED: usize = 1 << 20;

/// What a provider declares for the insertions of a message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Declared<'d> {
    /// The fields, in the order of the insertions.
    pub fields: &'d [Field],
    /// The maps that the fields name.
    pub maps: &'d [ValueMap],
}

/// Appends a message in UTF-8 of at most `limit` bytes: `text`, which `template` was parsed from, with its insertions.
///
/// Returns whether the message is complete. Otherwise it was cut at the limit.
pub fn render(
    (text, template): (&str, &Template),
    insertions: &(impl Insertions + ?Sized),
    declared: Declared<'_>,
    parameters: &Parameters<'_>,
    out: &mut Vec<u8>,
    limit: usize,
) -> bool {
    let mut renderer = Renderer {
        start: out.len(),
        out,
        limit,
        parameters,
        lookups: MAX_PARAMETERS,
    };
    renderer.message((text, template), insertions, declared, 0).is_some()
}

struct Renderer<'r, 'p> {
    out: &'r mut Vec<u8>,
    start: usize,
    limit: usize,
    parameters: &'r Parameters<'p>,
    lookups: usize,
}

impl Renderer<'_, '_> {
    /// Appends a message that is a parameter inside so many others. Returns `None` if it was cut.
    fn message(
        &mut self,
        (text, template): (&str, &Template),
        insertions: &(impl Insertions + ?Sized),
        declared: Declared<'_>,
        depth: usize,
    ) -> Option<()> {
        let mut after_percent = false;
        for part in template.parts() {
            let percent = std::mem::replace(&mut after_percent, *part == Part::Percent);
            match *part {
                Part::Literal { start, end } => self.push(template.literal(start, end))?,
                Part::Percent => self.push("%")?,
                Part::Parameter { id, start, end } => {
                    if !self.parameter(id, depth)? {
                        self.push(&text[start as usize..end as usize])?;
                    }
                }
                Part::Insertion { number, format, end } => {
                    let index = usize::from(number) - 1;
                    let Some(insertion) = insertions.get(index) else {
                        self.push(&format!("%{number}"))?;
                        continue;
                    };
                    let field = declared.fields.get(index);
                    let start = self.out.len();
                    insertion.push_text(self.out, field, field.and_then(|field| map_of(field, declared.maps)));
                    // Nearly all values are written as they are.
                    let is_plain = format == 0 && !percent && memchr(b'%', &self.out[start..]).is_none();
                    if !is_plain || self.out.len() - self.start > self.limit {
                        let value = self.out.split_off(start);
                        let end = end as usize;
                        let format = &text[end - usize::from(format)..end];
                        self.insertion(&String::from_utf8_lossy(&value), format, percent)?;
                    }
                }
            }
        }
        Some(())
    }

    /// Appends a value. If `%` is before it and a parameter is meant, replaces both.
    fn insertion(&mut self, value: &str, format: &str, after_percent: bool) -> Option<()> {
        if after_percent
            && let (Some(id), len) = number(value.as_bytes())
            && len == value.len()
        {
            self.out.pop();
            if !self.parameter(id, 0)? {
                self.push("%%")?;
                self.push(value)?;
            }
            return Some(());
        }
        match printf::formatted(value, format) {
            Some(formatted) => self.with_parameters(&formatted),
            None => self.with_parameters(value),
        }
    }

    /// Appends a value with its parameters replaced.
    fn with_parameters(&mut self, text: &str) -> Option<()> {
        let mut rest = text;
        while let Some(at) = memmem::find(rest.as_bytes(), b"%%") {
            let (before, reference) = rest.split_at(at);
            self.push(before)?;
            let (id, len) = number(&reference.as_bytes()[2..]);
            let (reference, after) = reference.split_at(2 + len);
            let replaced = match id {
                Some(id) => self.parameter(id, 0)?,
                None => false,
            };
            if !replaced {
                self.push(reference)?;
            }
            rest = after;
        }
        self.push(rest)
    }

    /// Appends a parameter message. Returns whether there is one.
    fn parameter(&mut self, id: u32, depth: usize) -> Option<bool> {
        if depth == MAX_DEPTH || self.lookups == 0 {
            return Some(false);
        }
        self.lookups -= 1;
        let Some(text) = (self.parameters)(id) else {
            return Some(false);
        };
        let template = Template::parse(&text);
        let none: &[Insertion<'_>] = &[];
        self.message((&text, &template), none, Declared::default(), depth + 1)?;
        Some(true)
    }

    /// Appends text. Returns `None` if it had to be cut.
    fn push(&mut self, text: &str) -> Option<()> {
        let room = self.limit.saturating_sub(self.out.len() - self.start);
        if text.len() <= room {
            self.out.extend_from_slice(text.as_bytes());
            return Some(());
        }
        self.out.extend_from_slice(&text.as_bytes()[..boundary(text, room)]);
        None
    }
}

fn map_of<'m>(field: &Field, maps: &'m [ValueMap]) -> Option<&'m ValueMap> {
    let name = field.map.as_ref()?;
    maps.iter().find(|map| map.name == *name)
}

#[cfg(test)]
mod tests {
    use evtx_format::value::{Scalar, Value};

    use super::*;

    fn parameter(id: u32) -> Option<Cow<'static, str>> {
        Some(match id {
            1833 => "Impersonation\r\n".into(),
            7 => "seven %1 %n%0 not shown".into(),
            8 => "<%%7>".into(),
            9 => "%%9%%9".into(),
            10 => "x".repeat(1000).into(),
            _ => return None,
        })
    }

    fn rendered_to(text: &str, values: &[&str], bytes: usize) -> (String, bool) {
        let insertions: Vec<_> = values.iter().map(|&value| Insertion::Text(value)).collect();
        let mut out = b"before".to_vec();
        let template = Template::parse(text);
        let complete = render(
            (text, &template),
            &insertions[..],
            Declared::default(),
            &parameter,
            &mut out,
            bytes,
        );
        let out = String::from_utf8(out).expect("UTF-8");
        (out.strip_prefix("before").expect("what was there").to_owned(), complete)
    }

    fn rendered(text: &str, values: &[&str]) -> String {
        rendered_to(text, values, 1 << 20).0
    }

    #[test]
    fn insertions_and_escapes_are_filled_in() {
        for (text, values, expected) in [
            (
                "Logon of %1 from %2.%n%tType: %3\r\n",
                &["a", "b", "3"][..],
                "Logon of a from b.\r\n\tType: 3",
            ),
            ("%1 %5 %2!s!", &["a"], "a %5 %2"),
            ("%1!08x!", &["255"], "000000ff"),
            (
                "%%1833 and %1",
                &["x %%1833 y %%5 %%"],
                "Impersonation and x Impersonation y %%5 %%",
            ),
            ("%%%1", &["1833"], "Impersonation"),
            ("%%%1", &["5"], "%%5"),
            ("%%%1", &["a"], "%a"),
            ("100%% of %%8", &[], "100% of <seven %1 \r\n>"),
            ("%1%n%n", &["a\r\n"], "a\r\n\r\n\r\n"),
            ("a %0 b", &[], "a "),
            ("%1", &["%2 stays"], "%2 stays"),
        ] {
            assert_eq!(rendered(text, values), expected, "{text}");
        }
    }

    #[test]
    fn values_null_and_maps() {
        let map = ValueMap {
            name: "m".into(),
            is_bit_map: false,
            entries: vec![(5, "five".into())],
        };
        let field = |map: Option<&str>| Field {
            map: map.map(Into::into),
            ..Field::default()
        };
        let fields = [field(None), field(Some("m")), field(Some("other"))];
        let bytes = 5_u32.to_le_bytes();
        let five = Insertion::Value(Value::new(Scalar::UInt32, &bytes));
        let insertions = [Insertion::Value(Value::new(Scalar::Null, &[])), five, five];
        let text = "[%1][%2][%3][%4]";
        let mut out = Vec::new();
        let declared = Declared {
            fields: &fields,
            maps: &[map],
        };
        assert!(render(
            (text, &Template::parse(text)),
            &insertions[..],
            declared,
            &|_| None,
            &mut out,
            MAX_RENDERED
        ));
        assert_eq!(String::from_utf8(out).as_deref(), Ok("[][five][5][%4]"));
    }

    #[test]
    fn chains_and_sizes_are_bounded() {
        // Each doubles, and ends at the depth.
        assert_eq!(rendered("%%9", &[]), "%%9".repeat(1 << MAX_DEPTH));
        let many = rendered(&"%1".repeat(2000), &["%%1833"]);
        assert_eq!(many.matches("Impersonation").count(), MAX_PARAMETERS);
        assert_eq!(rendered_to("aé%1", &["bcd"], 4), ("aéb".to_owned(), false));
        assert_eq!(rendered_to("aé", &[], 2), ("a".to_owned(), false));
        let (long, complete) = rendered_to(&"%%10".repeat(9000), &[], 1 << 20);
        assert_eq!((long.len(), complete), (1 << 20, false));
    }

    proptest::proptest! {
        #[test]
        fn no_text_breaks_rendering(text in "[%!0-9xsnt a\r\né]{0,60}", value in "[%0-9a]{0,9}", limit in 0_usize..99) {
            let (out, complete) = rendered_to(&text, &[&value, "b"], limit);
            proptest::prop_assert!(out.len() <= limit);
            proptest::prop_assert!(complete || out.len() + 4 > limit);
        }
    }
}
