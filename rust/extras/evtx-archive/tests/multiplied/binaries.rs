//! PE files: languages times events, events that share large templates and maps, and manifests whose parts overlap.

use super::provider::{Pe, message_table};
use super::{Kind, Made, Shape, list_messages};

fn name(out: &mut Vec<u8>, text: &str) -> u32 {
    let at = out.len() as u32;
    let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    numbers(out, &[text.len() as u32 + 4]);
    out.extend(text);
    at
}

fn numbers(out: &mut Vec<u8>, numbers: &[u32]) {
    out.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
}

/// A manifest of one provider with `events`, which are listed `lists` times. They share a template of `fields`, whose last
/// one has a map of `fields` texts.
fn manifest(events: usize, lists: usize, fields: usize) -> Vec<u8> {
    let mut out = b"CRIM\0\0\0\0\x03\0\x01\0\x01\0\0\0".to_vec();
    out.extend([7; 16]);
    numbers(&mut out, &[36]);
    out.extend(b"WEVT\0\0\0\0");
    numbers(&mut out, &[u32::MAX, lists as u32, 0]);
    let list = out.len();
    numbers(&mut out, &vec![0; 2 * lists]);
    let field = name(&mut out, &"Field".repeat(20));
    let map = out.len() as u32;
    out.extend(b"VMAP\0\0\0\0");
    numbers(&mut out, &[field, 0, fields as u32]);
    for value in 0..fields {
        numbers(&mut out, &[value as u32, 1]);
    }
    let template = out.len() as u32;
    out.extend(b"TEMP\0\0\0\0");
    numbers(&mut out, &[fields as u32, fields as u32, template + 40, 1, 0, 0, 0, 0]);
    for _ in 0..fields {
        numbers(&mut out, &[0, 0x0101, map, 0, field]);
    }
    let element = (out.len() as u32).to_le_bytes();
    for nth in 0..lists {
        out[list + 8 * nth..][..4].copy_from_slice(&element);
    }
    out.extend(b"EVNT\0\0\0\0");
    numbers(&mut out, &[events as u32, 0]);
    for nth in 0..events {
        out.extend([nth as u8, (nth >> 8) as u8, 0, 16, 4, 0, 1, 0]);
        numbers(&mut out, &[1, 0x8000_0000, 1, template, 0, 0, 0, 0, 0, 0]);
    }
    out
}

fn binary([languages, events, lists, fields]: Shape) -> Made {
    let text = "text ".repeat(if fields > 100 { 6000 } else { 10 });
    let table = message_table(&[(1, &text), (2, ""), (3, "other")]);
    let tables: Vec<_> = (0..languages.clamp(1, 1000))
        .map(|language| (language as u16, &table[..]))
        .collect();
    let pe = Pe {
        is_64_bit: true,
        manifest: Some(&manifest(events, lists.max(1), fields)),
        tables: &tables,
    };
    vec![("x.dll", pe.bytes())]
}

pub(crate) const KIND: Kind = Kind {
    name: "a binary",
    files: binary,
    fixed: &[
        [3, 10, 1, 2],
        [256, 100_000, 1, 1],
        [256, 1000, 1, 1000],
        [2, 100, 50_000, 1],
        [2, 10, 1, 200_000],
        [1, 100_000, 1, 3],
        [859, 259_500, 995, 40_545],
    ],
    most: [1000, 300_000, 100_000, 100_000],
    read: list_messages,
};
