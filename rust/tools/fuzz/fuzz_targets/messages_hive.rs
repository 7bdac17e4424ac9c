//! Any bytes, as a registry hive.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::registry::Registry;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let mut registry = Registry::default();
    let _ = registry.add_hive(file, None, Interrupt::NEVER);
    assert!(registry.registrations().count() <= file.len() / 8);
    // Each provider is found by its files.
    for found in registry.registrations().filter(|found| found.is_classic) {
        for file in found.message_files.iter() {
            assert!(registry.by_message_file(file.name()).any(|other| **other == *found));
        }
    }
});
