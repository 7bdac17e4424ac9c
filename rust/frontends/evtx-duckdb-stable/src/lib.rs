//! The extension on DuckDB's stable C API: one file for DuckDB 1.5.6 and every newer version.
//!
//! It has the functions of the other extension, and the same core. The stable API passes no predicates to a scan, and
//! does not restore the order of rows that threads read; DuckDB's C++ API does. `docs/install.md` lists what differs.

mod api;
mod types;
mod call;
mod vectors;
mod storage;
mod interrupts;
mod tables;
mod rows;
mod copy_to;
mod scalars;
mod macros;

use api::{duckdb_database, duckdb_extension_access, duckdb_extension_info, load};
use call::{caught, with_connection};
use interrupts::Probe;

/// The entry point of the extension, which DuckDB calls for each database that loads it. Returns whether it succeeded. DuckDB makes its name
/// from that of the extension's file.
///
/// # Safety
/// DuckDB passes what its C API for extensions promises.
#[unsafe(export_name = concat!(env!("EXTENSION_NAME"), "_init_c_api"))]
pub unsafe extern "C" fn init(info: duckdb_extension_info, access: *const duckdb_extension_access) -> bool {
    // SAFETY: by the contract of this function.
    let access = unsafe { &*access };
    let registered = caught(|| {
        // SAFETY: as above.
        let Some(database) = (unsafe { load(info, access) }) else {
            return Ok(false);
        };
        register(database)?;
        Ok(true)
    });
    registered.unwrap_or_else(|why| {
        // SAFETY: as above.
        access
            .set_error
            .inspect(|set_error| unsafe { set_error(info, why.as_ptr()) });
        false
    })
}

fn register(database: duckdb_database) -> Result<(), String> {
    with_connection(database, |connection| {
        if !macros::has_settings(connection)? {
            macros::register_enums(connection)?;
            let probe = Probe::find(database)?;
            tables::register(connection, probe.as_ref())?;
            tables::register_replacement(database);
            copy_to::register(connection, probe.as_ref())?;
            scalars::register(connection, probe.as_ref())?;
            macros::register_settings(connection)?;
        }
        macros::register_macros(connection)
    })
}
