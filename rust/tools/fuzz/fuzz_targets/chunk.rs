//! Any bytes, as a chunk whose magic is right.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut chunk = bytes.to_vec();
    chunk.resize(65_536, 0);
    chunk[..8].copy_from_slice(b"ElfChnk\0");
    evtx_fuzz::read_every_way(&evtx_fuzz::file_of(&chunk));
});
