//! Any bytes, as a registry hive.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::registry::Registry;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let mut registry = Registry::default();
    if registry.add_hive(file, Interrupt::NEVER).is_ok() {
        assert!(registry.registrations().count() <= file.len() / 8);
    }
});
