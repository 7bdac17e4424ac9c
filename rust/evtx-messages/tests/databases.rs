//! Databases that others made.
//!
//! Set `EVTX_MESSAGE_DATABASES` to a folder with databases of plaso, WELM or ts-evtx.

use evtx_format::Interrupt;
use evtx_messages::sqlite::Database;
use evtx_messages::*;

#[test]
fn real_databases_are_read() {
    let Some(folder) = std::env::var_os("EVTX_MESSAGE_DATABASES") else {
        eprintln!("skipped: EVTX_MESSAGE_DATABASES is not set");
        return;
    };
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let file = std::fs::read(&path).unwrap_or_default();
        let database = match Database::open(&file, Interrupt::NEVER) {
            Ok(database) => database,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                continue;
            }
        };
        let started = std::time::Instant::now();
        let mut writer = CatalogWriter::new();
        let mut rows = 0;
        let done = foreign::rows(&database, &path.to_string_lossy(), &mut |row| {
            rows += 1;
            writer.push(&row)
        });
        let read = started.elapsed();
        assert_eq!(done, Ok(()), "{}", path.display());
        let without_provider = writer.without_provider();
        let bytes = writer.finish().expect("a catalog");
        let catalog = Catalog::open(bytes.clone()).expect("a catalog");
        eprintln!(
            "{}: {rows} rows, {without_provider} without a provider, {} providers, {} bytes, read in {read:?}, all in {:?}",
            path.display(),
            catalog.providers().len(),
            bytes.len(),
            started.elapsed()
        );
    }
}
