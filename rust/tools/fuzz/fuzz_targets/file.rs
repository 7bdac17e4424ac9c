//! Any bytes, as a file.
#![no_main]

libfuzzer_sys::fuzz_target!(|file: &[u8]| evtx_fuzz::read_every_way(file));
