//! Any bytes, as an SQLite database of messages.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::foreign::rows;
use evtx_messages::sqlite::Database;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    if let Ok(database) = Database::open(file, Interrupt::NEVER) {
        let _ = rows(&database, "x.db", &mut |_| Ok(()));
    }
});
