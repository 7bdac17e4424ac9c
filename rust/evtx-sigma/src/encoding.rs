//! Modifiers that make other texts of a text: `base64`, `base64offset`, `utf16` and its kin, `windash`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::Problem;
use crate::limits::Budget;
use crate::pattern::{DASHES, Piece};

/// A modifier that makes other texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Base64,
    Base64Offset,
    Utf16Le,
    Utf16Be,
    /// UTF-16LE after a byte order mark.
    Utf16,
    Windash,
}

/// A value between two modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Draft {
    Pieces(Vec<Piece>),
    /// What an encoding has made; it need not be UTF-8.
    Bytes(Vec<u8>),
}

/// How many dashes a value may have that `windash` makes texts of, of any dash for each. Plain texts are found all at once,
/// but these are five times as many with each dash.
const FEW_DASHES: usize = 3;

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Base64 => "base64",
            Encoding::Base64Offset => "base64offset",
            Encoding::Utf16Le => "utf16le",
            Encoding::Utf16Be => "utf16be",
            Encoding::Utf16 => "utf16",
            Encoding::Windash => "windash",
        }
    }

    /// What this modifier makes of a value. `is_last` is whether no other follows.
    pub(crate) fn apply(self, draft: Draft, is_last: bool, budget: &Budget) -> Result<Vec<Draft>, Problem> {
        let text = |bytes: String| Draft::Pieces(vec![Piece::Text(bytes.into())]);
        Ok(match self {
            Encoding::Windash => match draft {
                Draft::Pieces(pieces) => windash(&pieces, is_last, budget)?
                    .into_iter()
                    .map(Draft::Pieces)
                    .collect(),
                Draft::Bytes(_) => return Err(no_wildcards(self)),
            },
            Encoding::Base64 => vec![text(STANDARD.encode(self.bytes(draft)?))],
            Encoding::Base64Offset => base64_at_offsets(&self.bytes(draft)?)?.map(text).into(),
            Encoding::Utf16Le => vec![Draft::Bytes(self.utf16(draft, u16::to_le_bytes)?)],
            Encoding::Utf16Be => vec![Draft::Bytes(self.utf16(draft, u16::to_be_bytes)?)],
            Encoding::Utf16 => {
                let bytes = self.utf16(draft, u16::to_le_bytes)?;
                vec![Draft::Bytes([&[0xFF, 0xFE], bytes.as_slice()].concat())]
            }
        })
    }

    /// The bytes of a value without wildcards.
    fn bytes(self, draft: Draft) -> Result<Vec<u8>, Problem> {
        match draft {
            Draft::Bytes(bytes) => Ok(bytes),
            Draft::Pieces(pieces) => match pieces.as_slice() {
                [] => Ok(Vec::new()),
                [Piece::Text(text)] => Ok(text.as_bytes().to_vec()),
                _ => Err(no_wildcards(self)),
            },
        }
    }

    fn utf16(self, draft: Draft, order: fn(u16) -> [u8; 2]) -> Result<Vec<u8>, Problem> {
        let bytes = self.bytes(draft)?;
        let text = String::from_utf8(bytes).map_err(|_| no_wildcards(self))?;
        Ok(text.encode_utf16().flat_map(order).collect())
    }
}

impl Draft {
    /// The parts of the value. What was encoded as UTF-16 is a text only if its bytes are UTF-8.
    pub(crate) fn into_pieces(self) -> Result<Vec<Piece>, Problem> {
        match self {
            Draft::Pieces(pieces) => Ok(pieces),
            Draft::Bytes(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Ok(vec![Piece::Text(text.into())]),
                Err(_) => Err(Problem::Value(
                    "this is no text in UTF-16; base64 or base64offset has to follow".into(),
                )),
            },
        }
    }
}

fn no_wildcards(encoding: Encoding) -> Problem {
    Problem::Value(format!(
        "{} takes a text without wildcards that is not encoded yet",
        encoding.name()
    ))
}

/// What is the same in Base64 of bytes, wherever they are in the bytes that are encoded: one text for each of the three
/// offsets that they can have in a group of three bytes. Characters at both ends that other bytes share are left out.
fn base64_at_offsets(bytes: &[u8]) -> Result<[String; 3], Problem> {
    let at_offset = |offset: usize| {
        let encoded = STANDARD.encode([&[0; 2][..offset], bytes].concat());
        let start = [0, 2, 3][offset];
        let end = encoded.len() - [0, 3, 2][(bytes.len() + offset) % 3];
        encoded.get(start..end).unwrap_or_default().to_string()
    };
    let texts = [0, 1, 2].map(at_offset);
    match texts.iter().any(String::is_empty) {
        true => Err(Problem::Value(
            "base64offset takes a text of at least two bytes".to_string(),
        )),
        false => Ok(texts),
    }
}

/// Every text that has any dash in place of each dash. If no other modifier follows, one that has many dashes has a
/// wildcard in place of each.
fn windash(pieces: &[Piece], is_last: bool, budget: &Budget) -> Result<Vec<Vec<Piece>>, Problem> {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text(text) => &**text,
        Piece::One | Piece::Many | Piece::Dash => "",
    });
    let (bytes, dashes) = texts.fold((0, 0), |(bytes, dashes), text| {
        (
            bytes + text.len(),
            dashes + text.chars().filter(|character| DASHES.contains(character)).count(),
        )
    });
    if is_last && dashes > FEW_DASHES {
        return Ok(vec![pieces.iter().flat_map(with_wildcards).collect()]);
    }
    let variants = 5usize.saturating_pow(u32::try_from(dashes).unwrap_or(u32::MAX));
    budget.has_room(variants, bytes)?;
    // The digits of `variant` to the base of five say which dash stands where.
    let pieces_of = |mut variant: usize| {
        let mut replace = |character| match DASHES.contains(&character) {
            true => {
                let dash = DASHES[variant % DASHES.len()];
                variant /= DASHES.len();
                dash
            }
            false => character,
        };
        let pieces = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => Piece::Text(text.chars().map(&mut replace).collect()),
            other => other.clone(),
        });
        pieces.collect()
    };
    Ok((0..variants).map(pieces_of).collect())
}

/// A piece in parts, with a wildcard in place of each dash.
fn with_wildcards(piece: &Piece) -> Vec<Piece> {
    let Piece::Text(text) = piece else {
        return vec![piece.clone()];
    };
    let texts = text
        .split(DASHES)
        .map(|text| Some(text).filter(|text| !text.is_empty()));
    let texts = texts.map(|text| text.map(|text| Piece::Text(text.into())));
    let parts = texts.flat_map(|text| [Some(Piece::Dash), text]).skip(1);
    parts.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::pieces;

    fn applied(value: &str, encodings: &[Encoding]) -> Result<Vec<Draft>, Problem> {
        let mut drafts = vec![Draft::Pieces(pieces(value))];
        for (index, encoding) in encodings.iter().enumerate() {
            let is_last = index + 1 == encodings.len();
            let applied = drafts
                .into_iter()
                .map(|draft| encoding.apply(draft, is_last, &Budget::default()));
            drafts = applied.collect::<Result<Vec<_>, _>>()?.concat();
        }
        Ok(drafts)
    }

    fn texts(value: &str, encodings: &[Encoding]) -> Vec<String> {
        let drafts = applied(value, encodings).expect("a value");
        let pieces = drafts.into_iter().map(|draft| draft.into_pieces().expect("a text"));
        let text = |piece: &Piece| match piece {
            Piece::Text(text) => text.to_string(),
            Piece::One => "<?>".to_string(),
            Piece::Many => "<*>".to_string(),
            Piece::Dash => "<->".to_string(),
        };
        pieces.map(|pieces| pieces.iter().map(text).collect()).collect()
    }

    #[test]
    fn takes_each_dash_for_each() {
        assert_eq!(
            texts(" -a*", &[Encoding::Windash]),
            [" -a<*>", " /a<*>", " –a<*>", " —a<*>", " ―a<*>"]
        );
        assert_eq!(texts("–a/b", &[Encoding::Windash]).len(), 25);
        assert_eq!(texts("ab", &[Encoding::Windash]), ["ab"]);
        assert_eq!(texts("-a-b?/", &[Encoding::Windash]).len(), 125);
        assert_eq!(
            texts("-a--b?x/\u{2014}", &[Encoding::Windash]),
            ["<->a<-><->b<?>x<-><->"]
        );
        assert_eq!(texts(&"-".repeat(1000), &[Encoding::Windash]), ["<->".repeat(1000)]);
        let followed = [Encoding::Windash, Encoding::Base64];
        assert_eq!(texts("-a-b-c-", &followed).len(), 625);
        assert!(applied("-------", &followed).is_err());
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
                .into_pieces()
                .is_err()
        );
        assert!(applied("ü", &[Encoding::Utf16Le, Encoding::Windash]).is_err());
    }
}
