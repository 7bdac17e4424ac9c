//! Recovery: chunks of images, orphans, and logs that were never written.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::recovered::{LIVE, RECOVER, rows};
use crate::common::samples;
use evtx_arrow::Options;
use evtx_writer::{Element, Event, LogWriter, Template};

/// A file that is not a log: rubbish, and chunks at sectors, across the bounds of blocks, and one over the end of another.
#[test]
fn chunks_of_an_image_are_found_by_their_signature() {
    let log = std::fs::read(
        samples()
            .iter()
            .find(|log| log.ends_with("wrapped.evtx"))
            .expect("the sample"),
    )
    .expect("the log");
    let chunk = |number: usize| &log[4096 + number * 65_536..][..65_536];
    let mut image = vec![0xa5; 3 << 20];
    let records = [
        (512, 0),
        // Over the end of the first block.
        ((1 << 20) - 1024, 1),
        ((2 << 20) - 512, 2),
        // It ends with the image.
        ((3 << 20) - 65_536, 3),
    ];
    for (offset, number) in records {
        image[offset..offset + 65_536].copy_from_slice(chunk(number));
    }
    // Not at a sector, but beyond doubt. A magic alone is not.
    image[300_100..300_100 + 65_536].copy_from_slice(chunk(0));
    image[500_001..500_009].copy_from_slice(b"ElfChnk\0");
    let found = rows(&image, RECOVER);
    let ids: Vec<_> = found.iter().filter_map(|row| row.id).collect();
    let expected: Vec<u64> = [161..=200, 161..=200, 201..=240, 81..=120, 121..=160]
        .into_iter()
        .flatten()
        .collect();
    assert_eq!(ids, expected);
    assert_eq!(found[0].offset, Some(512 + 512));
    // What is left of a chunk that another was written over.
    let mut image = vec![0; 200_000];
    image[512..512 + 65_536].copy_from_slice(chunk(0));
    image[512 + 4608..512 + 4608 + 65_536].copy_from_slice(chunk(1));
    let found = rows(&image, RECOVER);
    let ids: BTreeSet<_> = found.iter().filter_map(|row| row.id).collect();
    assert_eq!(
        ids.len(),
        found.iter().filter(|row| row.id.is_some()).count(),
        "none twice"
    );
    assert!(ids.contains(&161) && ids.contains(&201) && ids.contains(&240) && !ids.contains(&200));
    assert!(
        found
            .iter()
            .any(|row| row.error.as_ref().is_some_and(|error| error.contains("chunk at 0x200")))
    );
}

/// Records without the header of their chunk, as in the free space of a disk, also across the bounds of blocks.
#[test]
fn orphans_are_read_as_in_their_chunks() {
    let wrapped = samples().into_iter().find(|log| log.ends_with("wrapped.evtx"));
    let log = std::fs::read(wrapped.expect("the sample")).expect("the log");
    let chunk = |number: usize| &log[4096 + number * 65_536..][..65_536];
    let in_log: BTreeMap<_, _> = rows(&log, RECOVER).into_iter().map(|row| (row.id, row.xml)).collect();
    for block in [0, 1 << 20, 2 << 20] {
        for before in
            [100_001, 65_536 - 512, 65_536, 30_000, 512, 1, 0].map(|before| (block + 131_072 - before) as usize)
        {
            let mut image = vec![0xa5; 3 << 20];
            image[before..][..65_024].copy_from_slice(&chunk(0)[512..]);
            // Those of another chunk follow at once, and then a whole chunk.
            let next = before + 65_024;
            image[next..][..65_024].copy_from_slice(&chunk(1)[512..]);
            let whole = (next + 65_024).next_multiple_of(512);
            image[whole..][..65_536].copy_from_slice(chunk(2));
            let found = rows(&image, RECOVER);
            let ids: Vec<_> = found.iter().map(|row| row.id.expect("an ID")).collect();
            assert_eq!(ids, (161..=240).chain(81..=120).collect::<Vec<_>>(), "at {before}");
            for row in &found {
                assert!(row.error.is_none(), "at {before}: {:?}", row.error);
                assert_eq!(
                    (&row.xml, row.recovered),
                    (&in_log[&row.id], Some(row.id > Some(160))),
                    "at {before}"
                );
            }
            assert_eq!(found[0].offset, Some(before as u64));
        }
    }
    // The definition of these was in the lost part. They are records nevertheless.
    let mut image = vec![0; 70_000];
    let second = (513..65_536)
        .find(|&at| chunk(0)[at..].starts_with(b"**\0\0"))
        .expect("a record");
    let rest = &chunk(0)[second..];
    image[3000..][..rest.len()].copy_from_slice(rest);
    let found = rows(&image, RECOVER);
    let ids: Vec<_> = found.iter().map(|row| row.id.expect("an ID")).collect();
    assert_eq!(ids, (162..=200).collect::<Vec<_>>());
    assert!(
        found.iter().all(|row| row.xml.is_none() && row.error.is_some()),
        "{:?}",
        found[0]
    );
}

/// A log of five service events, and the same in a log that was never written.
fn five_events(begun: Option<u64>) -> Vec<u8> {
    let template = Template::new([7; 16], Element::new("Event").child(Element::new("System")));
    let mut log = LogWriter::new(7);
    for at in 0..5 {
        let event = Event::new(&template, Vec::new());
        log.write(133_000_000_000_000_000 + at, &event)
            .expect("an event that fits");
    }
    match begun {
        None => log.finish(),
        Some(next_id) => log.finish_begun(0, next_id),
    }
}

#[test]
fn what_stands_in_a_log_that_was_never_written_is_slack() {
    let live = Options { verify: true, ..LIVE };
    let never_written = five_events(Some(1));
    assert_eq!(rows(&never_written, live), []);
    let recovered = rows(&never_written, RECOVER);
    let ids: Vec<_> = recovered
        .iter()
        .map(|row| (row.id, row.recovered, &row.error))
        .collect();
    assert_eq!(ids, [7, 8, 9, 10, 11].map(|id| (Some(id), Some(true), &None)));
    // The header promises these records: the log was copied while it was open.
    let open = five_events(Some(7));
    assert_eq!(rows(&open, live), rows(&five_events(None), live));
    assert!(rows(&open, RECOVER).iter().all(|row| row.recovered == Some(false)));
}

#[test]
fn a_log_after_other_bytes_is_found() {
    let log = five_events(None);
    for before in [1, 2, 511, 513, 70_000] {
        let moved = [vec![b'x'; before], log.clone()].concat();
        let found = rows(&moved, RECOVER);
        let ids: Vec<_> = found.iter().map(|row| (row.id, &row.error)).collect();
        assert_eq!(ids, [7, 8, 9, 10, 11].map(|id| (Some(id), &None)), "{before}");
    }
}
