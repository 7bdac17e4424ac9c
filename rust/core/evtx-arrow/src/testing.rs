//! What the unit tests share: chunks of a few events, and what is read of them.

use bumpalo::Bump;
use evtx_format::binxml::instance::Instance;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_writer::{Element, Event, LogWriter, Substitution};

/// When the first record of a [`chunk`] was written; each other is a tick later.
pub(crate) const WRITTEN: u64 = 132_223_104_000_000_000;

/// A chunk that has these events, with IDs from 1 on.
pub(crate) fn chunk(events: &[Event]) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    for (written, event) in (WRITTEN..).zip(events) {
        log.write(written, event).expect("an event that fits");
    }
    let chunk = log.finish().split_off(4096);
    assert_eq!(chunk.len(), 65_536, "one chunk");
    chunk
}

/// Hands on the instances that the records of a chunk are, and what reads more of them.
pub(crate) fn with_instances<R>(chunk: &[u8], with: impl FnOnce(&Reader<'_, '_>, &[Instance<'_>]) -> R) -> R {
    let (of_names, arena) = (Bump::new(), Bump::new());
    let names = Names::new(chunk, &of_names);
    let reader = Reader::new(chunk, &names, &arena);
    let (mut walk, damage) = RecordWalk::new(chunk, PromisedIds::default(), false);
    assert_eq!(damage, None);
    let records = std::iter::from_fn(|| walk.next(chunk));
    let instances: Vec<_> = records
        .map(|found| {
            let mut fragments = reader.fragments(found.expect("a record").record.binxml());
            match reader.next_fragment(&mut fragments) {
                Some(Ok(Fragment::Instance(instance))) => instance,
                other => panic!("no instance: {other:?}"),
            }
        })
        .collect();
    with(&reader, &instances)
}

/// An element whose content is the value at an index, of its own type.
pub(crate) fn leaf(name: &str, index: u16) -> Element {
    Element::new(name).substitution(Substitution::new(index, 0))
}

/// A `Data` element with a name.
pub(crate) fn data(name: &str, index: u16) -> Element {
    leaf("Data", index).attribute("Name", name)
}
