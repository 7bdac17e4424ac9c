//! Any bytes, as a binary of a provider.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::binary::Binary;
use evtx_messages::provider::{Known, ProviderFile, rows};
use evtx_messages::registry::Registry;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let Ok(binary) = Binary::read(file, Interrupt::NEVER) else {
        return;
    };
    let files = [ProviderFile::new("x.dll", binary)];
    let known = Known {
        registry: &Registry::default(),
        name_of: &|_| None,
        interrupt: Interrupt::NEVER,
    };
    for row in rows(&files, known).take(100_000) {
        assert!(row.text.is_none_or(|text| text.len() <= 3 * 65_536));
    }
});
