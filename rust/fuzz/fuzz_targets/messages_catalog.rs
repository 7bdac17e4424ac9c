//! Any bytes, as a catalog of messages. All that opens is read.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::{Catalog, EventKey, Insertion, Limits};

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let Ok(catalog) = Catalog::open(file) else {
        return;
    };
    for (index, provider) in catalog.providers().enumerate().take(10) {
        let Ok(rows) = catalog.rows(index, Interrupt::NEVER) else {
            continue;
        };
        for (row, _) in rows.take(100) {
            let key = EventKey {
                provider,
                guid: row.guid,
                event_id: row.event_id.unwrap_or(1),
                version: 0,
                qualifiers: row.qualifiers,
                insertions: 2,
                names: &["a", "b"],
            };
            if let Ok(Some(message)) = catalog.find(&key) {
                let values = [Insertion::Text("1"), Insertion::Text("%%1")];
                message.render(&values[..], &|_| None, &mut Vec::new(), Limits::default());
            }
        }
    }
});
