//! Modifiers that transform values: `base64`, `base64offset`, `utf16` and its variants, `windash`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evtx_format::named_enum;

use crate::error::Problem;
use crate::limits::Budget;
use crate::pattern::{DASHES, Segment, segments};

named_enum! {
    /// A modifier that transforms values.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Encoding {
        Base64 = "base64",
        Base64Offset = "base64offset",
        Utf16Le = "utf16le",
        Utf16Be = "utf16be",
        /// UTF-16LE after a byte order mark.
        Utf16 = "utf16",
        Windash = "windash",
    }
}

/// A value between two modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Draft {
    Segments(Vec<Segment>),
    /// The output of an encoding, which need not be UTF-8.
    Bytes(Vec<u8>),
}

/// With more dashes than this, `windash` uses wildcards. Each dash multiplies the number of plain texts by five.
const FEW_DASHES: usize = 3;

/// The values that encodings make of the value of a rule, in this order.
pub(crate) fn encoded(value: &str, encodings: &[Encoding], budget: &Budget) -> Result<Vec<Draft>, Problem> {
    let mut drafts = vec![Draft::Segments(segments(value))];
    for (index, encoding) in encodings.iter().enumerate() {
        budget.has_room(drafts.len(), drafts.iter().map(Draft::bytes).max().unwrap_or(0))?;
        let is_last = index + 1 == encodings.len();
        let made = drafts.into_iter().map(|draft| encoding.apply(draft, is_last, budget));
        drafts = made.collect::<Result<Vec<_>, _>>()?.concat();
    }
    Ok(drafts)
}

impl Encoding {
    /// Transforms a value. `is_last` is whether no other encoding follows.
    fn apply(self, draft: Draft, is_last: bool, budget: &Budget) -> Result<Vec<Draft>, Problem> {
        let text = |text: String| Draft::Segments(vec![Segment::Text(text.into())]);
        Ok(match self {
            Encoding::Windash => {
                let Draft::Segments(segments) = draft else {
                    return Err(self.needs_text());
                };
                let variants = windash(&segments, is_last, budget)?;
                variants.into_iter().map(Draft::Segments).collect()
            }
            Encoding::Base64 => vec![text(STANDARD.encode(self.bytes(draft)?))],
            Encoding::Base64Offset => base64_at_offsets(&self.bytes(draft)?)?.map(text).into(),
            Encoding::Utf16Le => vec![self.utf16(draft, "", u16::to_le_bytes)?],
            Encoding::Utf16Be => vec![self.utf16(draft, "", u16::to_be_bytes)?],
            Encoding::Utf16 => vec![self.utf16(draft, "\u{FEFF}", u16::to_le_bytes)?],
        })
    }

    /// The bytes of a value without wildcards.
    fn bytes(self, draft: Draft) -> Result<Vec<u8>, Problem> {
        match draft {
            Draft::Bytes(bytes) => Ok(bytes),
            Draft::Segments(segments) => match segments.as_slice() {
                [] => Ok(Vec::new()),
                [Segment::Text(text)] => Ok(text.as_bytes().to_vec()),
                _ => Err(self.needs_text()),
            },
        }
    }

    fn utf16(self, draft: Draft, mark: &str, order: fn(u16) -> [u8; 2]) -> Result<Draft, Problem> {
        let text = String::from_utf8(self.bytes(draft)?).map_err(|_| self.needs_text())?;
        let units = mark.encode_utf16().chain(text.encode_utf16());
        Ok(Draft::Bytes(units.flat_map(order).collect()))
    }

    fn needs_text(self) -> Problem {
        let name = self.name();
        Problem::text(format!("{name} takes a text without wildcards that is not encoded yet"))
    }
}

impl Draft {
    fn bytes(&self) -> usize {
        match self {
            Draft::Segments(segments) => segments.iter().filter_map(Segment::text).map(str::len).sum(),
            Draft::Bytes(bytes) => bytes.len(),
        }
    }

    /// The segments of the value. UTF-16 without Base64 after it is a text only if its bytes are UTF-8.
    pub(crate) fn into_segments(self) -> Result<Vec<Segment>, Problem> {
        match self {
            Draft::Segments(segments) => Ok(segments),
            Draft::Bytes(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(vec![Segment::Text(text.into())]),
                Err(_) => Err(Problem::text(
                    "the UTF-16 of this value is not UTF-8: base64 or base64offset must follow",
                )),
            },
        }
    }
}

/// Texts of which one is in the Base64 of any bytes that contain these: one for each offset in a group of three bytes.
/// They leave out the characters at both ends that depend on other bytes.
fn base64_at_offsets(bytes: &[u8]) -> Result<[String; 3], Problem> {
    let at_offset = |offset: usize| {
        let encoded = STANDARD.encode([&[0; 2][..offset], bytes].concat());
        let start = [0, 2, 3][offset];
        let end = encoded.len() - [0, 3, 2][(bytes.len() + offset) % 3];
        encoded.get(start..end).unwrap_or_default().to_string()
    };
    let texts = [0, 1, 2].map(at_offset);
    if texts.iter().any(String::is_empty) {
        Err(Problem::text("base64offset takes a text of at least two bytes"))
    } else {
        Ok(texts)
    }
}

/// All variants of a value, with each dash replaced by any dash; or one with wildcards, if no encoding follows.
fn windash(segments: &[Segment], is_last: bool, budget: &Budget) -> Result<Vec<Vec<Segment>>, Problem> {
    let texts = || segments.iter().filter_map(Segment::text);
    let dashes: usize = texts().map(|text| text.matches(DASHES).count()).sum();
    if is_last && dashes > FEW_DASHES {
        return Ok(vec![segments.iter().flat_map(with_wildcards).collect()]);
    }
    let variants = 5usize.saturating_pow(u32::try_from(dashes).unwrap_or(u32::MAX));
    budget.has_room(variants, texts().map(str::len).sum())?;
    // The base-five digits of `variant` choose the dashes.
    let segments_of = |mut variant: usize| {
        let mut replace = |character| {
            if DASHES.contains(&character) {
                let dash = DASHES[variant % DASHES.len()];
                variant /= DASHES.len();
                dash
            } else {
                character
            }
        };
        let segments = segments.iter().map(|segment| match segment {
            Segment::Text(text) => Segment::Text(text.chars().map(&mut replace).collect()),
            other => other.clone(),
        });
        segments.collect()
    };
    Ok((0..variants).map(segments_of).collect())
}

/// A segment with a wildcard in place of each dash. Its texts may be empty.
fn with_wildcards(segment: &Segment) -> Vec<Segment> {
    let Segment::Text(text) = segment else {
        return vec![segment.clone()];
    };
    let texts = text.split(DASHES).map(|text| Segment::Text(text.into()));
    texts.flat_map(|text| [Segment::Dash, text]).skip(1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(value: &str, encodings: &[Encoding]) -> Result<Vec<Draft>, Problem> {
        encoded(value, encodings, &Budget::default())
    }

    fn texts(value: &str, encodings: &[Encoding]) -> Vec<String> {
        let drafts = applied(value, encodings).expect("a value");
        let text = |draft: Draft| match draft.into_segments().expect("a text").as_slice() {
            [Segment::Text(text)] => text.to_string(),
            other => panic!("{other:?}"),
        };
        drafts.into_iter().map(text).collect()
    }

    /// Whatever is before and after, one of the three texts is in the Base64 of the whole.
    #[test]
    fn finds_base64_at_every_offset() {
        for value in ["ab", "foo", "http", "Invoke"] {
            let needles = texts(value, &[Encoding::Base64Offset]);
            for before in ["", "x", "xy", "xyz"] {
                for after in ["", "u", "uv", "uvw"] {
                    let encoded = STANDARD.encode(format!("{before}{value}{after}"));
                    assert!(encoded.contains(&needles[before.len() % 3]), "{before}{value}{after}");
                }
            }
        }
        assert!(applied("a", &[Encoding::Base64Offset]).is_err());
    }

    #[test]
    fn encodes_in_order() {
        assert_eq!(texts("cmd", &[Encoding::Utf16Le]), ["c\0m\0d\0"]);
        assert_eq!(texts("cmd", &[Encoding::Utf16Be]), ["\0c\0m\0d"]);
        assert_eq!(texts("cmd", &[Encoding::Utf16, Encoding::Base64]), ["//5jAG0AZAA="]);
        assert_eq!(texts("ü€", &[Encoding::Utf16Le, Encoding::Base64]), ["/ACsIA=="]);
        assert_eq!(texts("cmd", &[Encoding::Base64]), ["Y21k"]);
        assert_eq!(texts(r"a\*", &[Encoding::Base64]), ["YSo="]);
        assert!(applied("a*", &[Encoding::Base64]).is_err());
        assert!(
            applied("ü", &[Encoding::Utf16Le]).expect("bytes")[0]
                .clone()
                .into_segments()
                .is_err()
        );
        assert!(applied("ü", &[Encoding::Utf16Le, Encoding::Windash]).is_err());
    }
}
