//! Any bytes, as an archive or a compressed file. All entries are listed and opened, at most 16 MiB of each. The first byte
//! says by which name.
#![no_main]

use std::sync::Arc;

use evtx_archive::{Archives, ArchiveStorage};
use evtx_format::Interrupt;
use evtx_scan::{Call, LastOpened, Storage, StorageError, StorageFile};

const NAMES: &[&str] = &[
    "x.zip", "x.7z", "x.tar", "x.tar.gz", "x.tar.zst", "x.tar.bz2", "x.tar.xz", "x.evtx.gz", "x.evtx.zst", "x.evtx.bz2",
    "x.evtx.xz", "x.tgz",
];

/// A storage of one file.
struct One(Arc<[u8]>);

struct Bytes(Arc<[u8]>);

impl StorageFile for Bytes {
    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }
}

impl Storage for One {
    fn glob(&self, pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        Ok(vec![pattern.as_bytes().to_vec()])
    }

    fn exists(&self, _path: &str) -> Result<bool, StorageError> {
        Ok(true)
    }

    fn is_remote(&self, _path: &str) -> bool {
        false
    }

    fn open(&self, _path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        Ok(Arc::new(Bytes(Arc::clone(&self.0))))
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((name, bytes)) = input.split_first() else { return };
    let name = NAMES[usize::from(*name) % NAMES.len()];
    let (file, archives) = (One(bytes.into()), Archives::new(64 << 20, 0, None));
    let storage = ArchiveStorage::new(&file, &archives);
    let looks = evtx_fuzz::Looks::default();
    let is_enough = || looks.is_enough();
    let interrupt = Interrupt::new(&is_enough);
    let Ok(listing) = storage.list(name, None, &|_| true, interrupt) else { return };
    let last = LastOpened::default();
    let call = Call { storage: &storage, interrupt, last: &last };
    for entry in listing.files.into_iter().filter_map(|listed| listed.file.ok()) {
        let Ok(opened) = entry.open(call) else { continue };
        let mut start = vec![0; opened.file.size().min(16 << 20) as usize];
        opened.file.read_at(&mut start, 0).expect("bytes that are there");
    }
});
