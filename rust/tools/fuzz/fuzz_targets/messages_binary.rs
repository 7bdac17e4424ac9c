//! Any bytes, as a binary of a provider.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::binary::Binary;
use evtx_messages::provider::{Known, ProviderFile, Rows};
use evtx_messages::registry::Registry;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let Ok(binary) = Binary::read(file.to_vec(), Interrupt::NEVER) else {
        return;
    };
    assert!(
        binary.bytes() <= 3 * file.len() + (32 << 20),
        "{} bytes",
        binary.bytes()
    );
    let (registry, looks) = (Registry::default(), evtx_fuzz::Looks::default());
    let is_enough = || looks.is_enough();
    let known = Known {
        registry: &registry,
        interrupt: Interrupt::new(&is_enough),
    };
    let Ok(mut rows) = Rows::new(vec![ProviderFile::new("x.dll", binary)], known) else {
        return;
    };
    while let Ok(Some(row)) = rows.next(known) {
        assert!(row.bytes() <= 4 << 20);
    }
});
