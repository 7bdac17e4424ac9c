//! Any bytes, as the BinXML of two records at the start of a chunk: the second can refer to what the first defines.
#![no_main]

libfuzzer_sys::fuzz_target!(|binxml: &[u8]| {
    let mut chunk = vec![0; 512];
    chunk[..8].copy_from_slice(b"ElfChnk\0");
    let (first, second) = binxml.split_at(binxml.len() / 2);
    for (id, binxml) in [(1_u64, binxml), (2, first), (3, second)] {
        let size = (binxml.len() + 28) as u32;
        chunk.extend_from_slice(b"**\0\0");
        chunk.extend_from_slice(&size.to_le_bytes());
        chunk.extend_from_slice(&id.to_le_bytes());
        chunk.extend_from_slice(&[0; 8]);
        chunk.extend_from_slice(binxml);
        chunk.extend_from_slice(&size.to_le_bytes());
    }
    let end = chunk.len() as u32;
    chunk[24..32].copy_from_slice(&1_u64.to_le_bytes());
    chunk[32..40].copy_from_slice(&3_u64.to_le_bytes());
    chunk[44..48].copy_from_slice(&(end - 1).to_le_bytes());
    chunk[48..52].copy_from_slice(&end.to_le_bytes());
    chunk.resize(65_536.max(chunk.len()), 0);
    chunk.truncate(65_536);
    evtx_fuzz::read_every_way(&evtx_fuzz::file_of(&chunk));
});
