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
mod arguments;
mod tables;
mod rows;
mod copy_to;
mod codes;
mod redact;
mod macros;

use std::ffi::c_void;

use api::{Access, Connection, Database, ExtensionInfo, VERSION, api};
use interrupts::Probe;

/// The entry point of the extension, which DuckDB calls for each database that loads it. Returns whether it succeeded. DuckDB makes its name
/// from that of the extension's file.
///
/// # Safety
/// DuckDB passes what its C API for extensions promises.
#[unsafe(export_name = concat!(env!("EXTENSION_NAME"), "_init_c_api"))]
pub unsafe extern "C" fn init(info: *mut c_void, access: *const Access) -> bool {
    let info = ExtensionInfo(info);
    // SAFETY: by the contract of this function.
    let (access, table) = unsafe { (&*access, ((*access).get_api)(info, VERSION.as_ptr())) };
    if table.is_null() {
        // DuckDB has the error.
        return false;
    }
    let mut is_registered = false;
    call::guarded(access.set_error, info, || {
        // SAFETY: the struct is that of the version, and the database is open.
        let database = unsafe {
            api::load(table);
            *(access.get_database)(info)
        };
        register(database)?;
        is_registered = true;
        Ok(())
    });
    is_registered
}

fn register(database: Database) -> Result<(), String> {
    let mut connection = Connection(std::ptr::null_mut());
    // SAFETY: the database is open.
    if unsafe { (api().connect)(database, &mut connection) } != 0 {
        return Err("DuckDB does not let the extension connect".to_owned());
    }
    let registered = register_with(connection, database);
    // SAFETY: the connection is closed once. An open one would keep the database open.
    unsafe { (api().disconnect)(&mut connection) };
    registered
}

fn register_with(connection: Connection, database: Database) -> Result<(), String> {
    if !macros::has_settings(connection)? {
        macros::register_enums(connection)?;
        let probe = Probe::find(database)?;
        tables::register(connection, probe.as_ref())?;
        tables::register_replacement(database);
        copy_to::register(connection, probe.as_ref())?;
        codes::register(connection)?;
        redact::register(connection, probe.as_ref())?;
        macros::register_settings(connection)?;
    }
    macros::register_macros(connection)
}
