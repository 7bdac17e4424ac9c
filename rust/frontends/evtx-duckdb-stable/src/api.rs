//! DuckDB's stable C API: the functions of the crate `libduckdb-sys`, in the struct that DuckDB passes.
//!
//! The crate's header is that of DuckDB 2.0, which has added functions at the end of the struct since 1.5.6. So the crate
//! gets a copy that ends where that of 1.5.6 does. Calls of the functions that it lacks panic.

use std::ffi::{c_char, c_void};
use std::mem::{offset_of, transmute, zeroed};
use std::sync::OnceLock;

pub(crate) use libduckdb_sys::*;

/// The version of the C API that this front end needs. DuckDB 1.5.6 was the first to have it.
const VERSION: &std::ffi::CStr = c"v1.5.6";

/// Where the struct of [`VERSION`] ends: at the first function that it lacks.
const SIZE: usize = offset_of!(duckdb_ext_api_v1, duckdb_create_timestamp_tz_ns);
const _: () = assert!(
    SIZE == 546 * size_of::<fn()>(),
    "the header of DuckDB 1.5.6 has 546 functions"
);

static API: OnceLock<duckdb_ext_api_v1> = OnceLock::new();

/// Takes DuckDB's functions, at the first call, and returns the database. `None` if DuckDB lacks the version; then it has
/// the error.
///
/// # Safety
/// DuckDB passes both to the entry of the extension.
pub(crate) unsafe fn load(info: duckdb_extension_info, access: &duckdb_extension_access) -> Option<duckdb_database> {
    /// The copy, in place of DuckDB's struct.
    unsafe extern "C" fn copied(_: duckdb_extension_info, _: *const c_char) -> *const c_void {
        API.get().map_or(std::ptr::null(), |api| std::ptr::from_ref(api).cast())
    }
    // SAFETY: DuckDB's struct has `SIZE` bytes or more. A function that is missing is null, which its type allows.
    unsafe {
        let table = access.get_api?(info, VERSION.as_ptr());
        if table.is_null() {
            return None;
        }
        API.get_or_init(|| {
            let mut api: duckdb_ext_api_v1 = zeroed();
            let copy = std::ptr::from_mut(&mut api).cast::<u8>();
            copy.copy_from_nonoverlapping(table.cast(), SIZE);
            api
        });
        let get_api = Some(copied as _);
        duckdb_rs_extension_api_init(info, &duckdb_extension_access { get_api, ..*access }, "").ok()?;
        Some(*access.get_database?(info))
    }
}

/// Declares functions that C++ exceptions may leave, in place of those of the crate, through which none may pass.
macro_rules! throwing_functions {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {$(
        pub(crate) unsafe fn $name($($argument: $type),*) $(-> $result)? {
            type Declared = unsafe extern "C" fn($($type),*) $(-> $result)?;
            type Throwing = unsafe extern "C-unwind" fn($($type),*) $(-> $result)?;
            let function = API.get().and_then(|api| api.$name).expect("the entry of the extension takes it");
            // SAFETY: only unwinding differs. The caller keeps the contract of the function.
            unsafe { transmute::<Declared, Throwing>(function)($($argument),*) }
        }
    )*};
}

// Those that reserve memory of vectors throw if there is none.
throwing_functions! {
    duckdb_create_data_chunk(types: *mut duckdb_logical_type, columns: idx_t) -> duckdb_data_chunk;
    duckdb_create_selection_vector(size: idx_t) -> duckdb_selection_vector;
    duckdb_list_vector_reserve(vector: duckdb_vector, size: idx_t) -> duckdb_state;
    duckdb_list_vector_set_size(vector: duckdb_vector, size: idx_t) -> duckdb_state;
    duckdb_unsafe_vector_assign_string_element_len(vector: duckdb_vector, row: idx_t, text: *const c_char, len: idx_t);
    duckdb_vector_copy_sel(
        from: duckdb_vector, to: duckdb_vector, rows: duckdb_selection_vector, count: idx_t, first: idx_t, place: idx_t
    );
    duckdb_vector_ensure_validity_writable(vector: duckdb_vector);
}

/// Declares conversions of callbacks that C++ exceptions may leave into the types of the header.
macro_rules! throwing_callbacks {
    ($($name:ident($($type:ty),*) -> $result:ty;)*) => {$(
        pub(crate) fn $name(callback: unsafe extern "C-unwind" fn($($type),*)) -> $result {
            type Declared = unsafe extern "C" fn($($type),*);
            // SAFETY: only unwinding differs.
            Some(unsafe { transmute::<unsafe extern "C-unwind" fn($($type),*), Declared>(callback) })
        }
    )*};
}

throwing_callbacks! {
    scalar_callback(duckdb_function_info, duckdb_data_chunk, duckdb_vector) -> duckdb_scalar_function_t;
    sink_callback(duckdb_copy_function_sink_info, duckdb_data_chunk) -> duckdb_copy_function_sink_t;
    table_callback(duckdb_function_info, duckdb_data_chunk) -> duckdb_table_function_t;
}

/// A place for a result.
pub(crate) fn no_result() -> duckdb_result {
    // SAFETY: it has numbers and pointers only.
    unsafe { zeroed() }
}
