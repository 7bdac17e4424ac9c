//! Any bytes, as a catalog of messages. All that opens is read.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::catalog::Rows;
use evtx_messages::{Catalog, EventKey, Insertion};

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let (Ok(catalog), Ok(listed)) = (Catalog::open(file), Catalog::open(file)) else {
        return;
    };
    let looks = evtx_fuzz::Looks::default();
    let is_enough = || looks.is_enough();
    let mut rows = Rows::new(listed);
    while let Ok(Some((row, _))) = rows.next(Interrupt::new(&is_enough)) {
        assert!(row.bytes() <= 4 << 20);
        let key = EventKey {
            provider: row.provider.as_deref().unwrap_or_default(),
            guid: row.guid,
            event_id: row.event_id.unwrap_or(1),
            version: 0,
            qualifiers: row.qualifiers,
            insertions: 2,
            names: &["a", "b"],
        };
        if let Ok(Some(message)) = catalog.find(&key) {
            let values = [Insertion::Text("1"), Insertion::Text("%%1")];
            message.render(&values[..], &|_| None, &mut Vec::new());
        }
    }
});
