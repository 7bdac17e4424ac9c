//! Any bytes, as an SQLite database of messages.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::foreign::Rows;
use evtx_messages::sqlite::Database;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let looks = evtx_fuzz::Looks::default();
    let is_enough = || looks.is_enough();
    let interrupt = Interrupt::new(&is_enough);
    let rows = Database::open(file.to_vec(), interrupt).and_then(|database| Rows::new(database, "x.db", interrupt));
    let Ok(mut rows) = rows else { return };
    while let Ok(Some(row)) = rows.next(interrupt) {
        assert!(row.bytes() <= 16 << 20);
    }
});
