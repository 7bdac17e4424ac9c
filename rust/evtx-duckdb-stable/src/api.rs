//! DuckDB's stable C API, as much of it as this door calls.
//!
//! DuckDB hands out a struct of function pointers, to whose end newer versions add. Source: `duckdb_extension.h` of
//! DuckDB 1.5.6, whose struct is the start of 2.0's. The crate `libduckdb-sys` has the same, but its build script
//! compiles an HTTP client and a TLS library.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

/// Declares objects of DuckDB, which are pointers.
macro_rules! objects {
    ($($name:ident)*) => {$(
        #[doc = concat!("A pointer to an object of DuckDB: `", stringify!($name), "`.")]
        #[repr(transparent)]
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name(pub(crate) *mut c_void);
    )*};
}

objects! {
    ExtensionInfo Database Connection DataChunk Vector LogicalTypePointer ValuePointer ErrorData ClientContext
    TableFunction BindInfo InitInfo FunctionInfo ScalarFunction ScalarFunctionSet ReplacementScanInfo ConfigOption
    CopyFunction CopyBindInfo CopyInitInfo CopySinkInfo CopyFinalizeInfo
    SelectionVector FileSystem FileOpenOptions FileHandle Expression
}

/// The result of a statement: `duckdb_result`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryResult {
    deprecated: [u64; 5],
    data: *mut c_void,
}

impl QueryResult {
    /// A place for a result.
    pub(crate) const NONE: QueryResult = QueryResult {
        deprecated: [0; 5],
        data: std::ptr::null_mut(),
    };
}

/// Frees the data of a function or a call.
pub(crate) type Delete = Option<unsafe extern "C" fn(*mut c_void)>;
/// Binds or begins a call of a table function.
pub(crate) type Callback<T> = unsafe extern "C" fn(T);
/// Fills a chunk with the next rows of a table function.
pub(crate) type Exec = unsafe extern "C-unwind" fn(FunctionInfo, DataChunk);
/// Answers for the rows of a chunk.
pub(crate) type ScalarExec = unsafe extern "C-unwind" fn(FunctionInfo, DataChunk, Vector);
/// Takes the rows of a chunk for a file.
pub(crate) type Sink = unsafe extern "C-unwind" fn(CopySinkInfo, DataChunk);
/// Replaces a table that does not exist.
pub(crate) type Replace = unsafe extern "C" fn(ReplacementScanInfo, *const c_char, *mut c_void);

/// The version of the C API that this door needs. DuckDB 1.5.6 was the first to have it.
pub(crate) const VERSION: &std::ffi::CStr = c"v1.5.6";

/// What DuckDB passes to the entry of an extension: `duckdb_extension_access`.
#[repr(C)]
#[derive(Debug)]
pub struct Access {
    pub(crate) set_error: unsafe extern "C-unwind" fn(ExtensionInfo, *const c_char),
    pub(crate) get_database: unsafe extern "C" fn(ExtensionInfo) -> *mut Database,
    pub(crate) get_api: unsafe extern "C" fn(ExtensionInfo, *const c_char) -> *const c_void,
}

/// Declares the functions: the place of each in DuckDB's struct, its name without `duckdb_`, and its type. A state
/// (`duckdb_state`) is 0 for success. Those that reserve memory of vectors throw C++ exceptions if there is none.
macro_rules! functions {
    ($($index:literal $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of DuckDB that this door calls.
        #[derive(Debug)]
        pub(crate) struct Api {$(
            pub(crate) $name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,
        )*}

        impl Api {
            /// # Safety
            /// `table` is DuckDB's struct, of [`VERSION`] or newer.
            unsafe fn of(table: *const *const c_void) -> Self {
                // SAFETY: the struct has function pointers of these types at these places.
                unsafe { Api {$(
                    $name: std::mem::transmute::<*const c_void, unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?>(
                        *table.add($index),
                    ),
                )*} }
            }
        }

        #[cfg(test)]
        const PLACES: &[(usize, &str)] = &[$(($index, stringify!($name))),*];
    };
}

functions! {
    3 connect(Database, *mut Connection) -> u32;
    4 interrupt(Connection);
    6 disconnect(*mut Connection);
    13 query(Connection, *const c_char, *mut QueryResult) -> u32;
    14 destroy_result(*mut QueryResult);
    21 result_error(*mut QueryResult) -> *const c_char;
    25 free(*mut c_void);
    92 destroy_value(*mut ValuePointer);
    94 create_varchar_length(*const c_char, u64) -> ValuePointer;
    95 create_bool(bool) -> ValuePointer;
    103 create_int64(i64) -> ValuePointer;
    108 create_date(i32) -> ValuePointer;
    111 create_timestamp(i64) -> ValuePointer;
    136 get_value_type(ValuePointer) -> LogicalTypePointer;
    142 get_varchar(ValuePointer) -> *mut c_char;
    146 get_map_size(ValuePointer) -> u64;
    147 get_map_key(ValuePointer, u64) -> ValuePointer;
    148 get_map_value(ValuePointer, u64) -> ValuePointer;
    149 is_null_value(ValuePointer) -> bool;
    151 get_list_size(ValuePointer) -> u64;
    152 get_list_child(ValuePointer, u64) -> ValuePointer;
    155 get_struct_child(ValuePointer, u64) -> ValuePointer;
    156 create_logical_type(u32) -> LogicalTypePointer;
    157 logical_type_get_alias(LogicalTypePointer) -> *mut c_char;
    158 logical_type_set_alias(LogicalTypePointer, *const c_char);
    159 create_list_type(LogicalTypePointer) -> LogicalTypePointer;
    161 create_map_type(LogicalTypePointer, LogicalTypePointer) -> LogicalTypePointer;
    163 create_struct_type(*mut LogicalTypePointer, *mut *const c_char, u64) -> LogicalTypePointer;
    164 create_enum_type(*mut *const c_char, u64) -> LogicalTypePointer;
    166 get_type_id(LogicalTypePointer) -> u32;
    173 list_type_child_type(LogicalTypePointer) -> LogicalTypePointer;
    176 map_type_key_type(LogicalTypePointer) -> LogicalTypePointer;
    177 map_type_value_type(LogicalTypePointer) -> LogicalTypePointer;
    178 struct_type_child_count(LogicalTypePointer) -> u64;
    179 struct_type_child_name(LogicalTypePointer, u64) -> *mut c_char;
    180 struct_type_child_type(LogicalTypePointer, u64) -> LogicalTypePointer;
    184 destroy_logical_type(*mut LogicalTypePointer);
    185 register_logical_type(Connection, LogicalTypePointer, *mut c_void) -> u32;
    186 create_data_chunk(*mut LogicalTypePointer, u64) -> DataChunk;
    187 destroy_data_chunk(*mut DataChunk);
    190 data_chunk_get_vector(DataChunk, u64) -> Vector;
    191 data_chunk_get_size(DataChunk) -> u64;
    192 data_chunk_set_size(DataChunk, u64);
    194 vector_get_data(Vector) -> *mut c_void;
    195 vector_get_validity(Vector) -> *mut u64;
    196 vector_ensure_validity_writable(Vector);
    199 list_vector_get_child(Vector) -> Vector;
    200 list_vector_get_size(Vector) -> u64;
    201 list_vector_set_size(Vector, u64) -> u32;
    202 list_vector_reserve(Vector, u64) -> u32;
    203 struct_vector_get_child(Vector, u64) -> Vector;
    209 create_scalar_function() -> ScalarFunction;
    210 destroy_scalar_function(*mut ScalarFunction);
    211 scalar_function_set_name(ScalarFunction, *const c_char);
    213 scalar_function_set_special_handling(ScalarFunction);
    215 scalar_function_add_parameter(ScalarFunction, LogicalTypePointer);
    216 scalar_function_set_return_type(ScalarFunction, LogicalTypePointer);
    217 scalar_function_set_extra_info(ScalarFunction, *mut c_void, Delete);
    218 scalar_function_set_function(ScalarFunction, ScalarExec);
    219 register_scalar_function(Connection, ScalarFunction) -> u32;
    220 scalar_function_get_extra_info(FunctionInfo) -> *mut c_void;
    221 scalar_function_set_error(FunctionInfo, *const c_char);
    222 create_scalar_function_set(*const c_char) -> ScalarFunctionSet;
    223 destroy_scalar_function_set(*mut ScalarFunctionSet);
    224 add_scalar_function_to_set(ScalarFunctionSet, ScalarFunction) -> u32;
    225 register_scalar_function_set(Connection, ScalarFunctionSet) -> u32;
    242 create_table_function() -> TableFunction;
    243 destroy_table_function(*mut TableFunction);
    244 table_function_set_name(TableFunction, *const c_char);
    245 table_function_add_parameter(TableFunction, LogicalTypePointer);
    246 table_function_add_named_parameter(TableFunction, *const c_char, LogicalTypePointer);
    247 table_function_set_extra_info(TableFunction, *mut c_void, Delete);
    248 table_function_set_bind(TableFunction, Callback<BindInfo>);
    249 table_function_set_init(TableFunction, Callback<InitInfo>);
    250 table_function_set_local_init(TableFunction, Callback<InitInfo>);
    251 table_function_set_function(TableFunction, Exec);
    252 table_function_supports_projection_pushdown(TableFunction, bool);
    253 register_table_function(Connection, TableFunction) -> u32;
    254 bind_get_extra_info(BindInfo) -> *mut c_void;
    255 bind_add_result_column(BindInfo, *const c_char, LogicalTypePointer);
    257 bind_get_parameter(BindInfo, u64) -> ValuePointer;
    258 bind_get_named_parameter(BindInfo, *const c_char) -> ValuePointer;
    259 bind_set_bind_data(BindInfo, *mut c_void, Delete);
    260 bind_set_cardinality(BindInfo, u64, bool);
    261 bind_set_error(BindInfo, *const c_char);
    263 init_get_bind_data(InitInfo) -> *mut c_void;
    264 init_set_init_data(InitInfo, *mut c_void, Delete);
    265 init_get_column_count(InitInfo) -> u64;
    266 init_get_column_index(InitInfo, u64) -> u64;
    267 init_set_max_threads(InitInfo, u64);
    268 init_set_error(InitInfo, *const c_char);
    270 function_get_bind_data(FunctionInfo) -> *mut c_void;
    271 function_get_init_data(FunctionInfo) -> *mut c_void;
    272 function_get_local_init_data(FunctionInfo) -> *mut c_void;
    273 function_set_error(FunctionInfo, *const c_char);
    274 add_replacement_scan(Database, Replace, *mut c_void, Delete);
    275 replacement_scan_set_function_name(ReplacementScanInfo, *const c_char);
    276 replacement_scan_add_parameter(ReplacementScanInfo, ValuePointer);
    381 value_varchar(*mut QueryResult, u64, u64) -> *mut c_char;
    423 create_config_option() -> ConfigOption;
    424 destroy_config_option(*mut ConfigOption);
    425 config_option_set_name(ConfigOption, *const c_char);
    426 config_option_set_type(ConfigOption, LogicalTypePointer);
    427 config_option_set_default_value(ConfigOption, ValuePointer);
    429 config_option_set_description(ConfigOption, *const c_char);
    430 register_config_option(Connection, ConfigOption) -> u32;
    431 client_context_get_config_option(ClientContext, *const c_char, *mut u32) -> ValuePointer;
    432 create_copy_function() -> CopyFunction;
    433 copy_function_set_name(CopyFunction, *const c_char);
    434 copy_function_set_extra_info(CopyFunction, *mut c_void, Delete);
    435 register_copy_function(Connection, CopyFunction) -> u32;
    436 destroy_copy_function(*mut CopyFunction);
    437 copy_function_set_bind(CopyFunction, Callback<CopyBindInfo>);
    438 copy_function_bind_set_error(CopyBindInfo, *const c_char);
    439 copy_function_bind_get_extra_info(CopyBindInfo) -> *mut c_void;
    441 copy_function_bind_get_column_count(CopyBindInfo) -> u64;
    442 copy_function_bind_get_column_type(CopyBindInfo, u64) -> LogicalTypePointer;
    443 copy_function_bind_get_options(CopyBindInfo) -> ValuePointer;
    444 copy_function_bind_set_bind_data(CopyBindInfo, *mut c_void, Delete);
    445 copy_function_set_global_init(CopyFunction, Callback<CopyInitInfo>);
    446 copy_function_global_init_set_error(CopyInitInfo, *const c_char);
    448 copy_function_global_init_get_client_context(CopyInitInfo) -> ClientContext;
    449 copy_function_global_init_get_bind_data(CopyInitInfo) -> *mut c_void;
    450 copy_function_global_init_set_global_state(CopyInitInfo, *mut c_void, Delete);
    451 copy_function_global_init_get_file_path(CopyInitInfo) -> *const c_char;
    452 copy_function_set_sink(CopyFunction, Sink);
    453 copy_function_sink_set_error(CopySinkInfo, *const c_char);
    456 copy_function_sink_get_bind_data(CopySinkInfo) -> *mut c_void;
    457 copy_function_sink_get_global_state(CopySinkInfo) -> *mut c_void;
    458 copy_function_set_finalize(CopyFunction, Callback<CopyFinalizeInfo>);
    459 copy_function_finalize_set_error(CopyFinalizeInfo, *const c_char);
    461 copy_function_finalize_get_client_context(CopyFinalizeInfo) -> ClientContext;
    462 copy_function_finalize_get_bind_data(CopyFinalizeInfo) -> *mut c_void;
    463 copy_function_finalize_get_global_state(CopyFinalizeInfo) -> *mut c_void;
    464 copy_function_set_copy_from_function(CopyFunction, TableFunction);
    465 table_function_bind_get_result_column_count(BindInfo) -> u64;
    466 table_function_bind_get_result_column_name(BindInfo, u64) -> *const c_char;
    467 table_function_bind_get_result_column_type(BindInfo, u64) -> LogicalTypePointer;
    469 destroy_error_data(*mut ErrorData);
    470 error_data_error_type(ErrorData) -> u32;
    471 error_data_message(ErrorData) -> *const c_char;
    473 destroy_expression(*mut Expression);
    476 expression_fold(ClientContext, Expression, *mut ValuePointer) -> ErrorData;
    477 client_context_get_file_system(ClientContext) -> FileSystem;
    478 destroy_file_system(*mut FileSystem);
    479 file_system_open(FileSystem, *const c_char, FileOpenOptions, *mut FileHandle) -> u32;
    480 file_system_error_data(FileSystem) -> ErrorData;
    481 create_file_open_options() -> FileOpenOptions;
    482 file_open_options_set_flag(FileOpenOptions, u32, bool) -> u32;
    483 destroy_file_open_options(*mut FileOpenOptions);
    484 destroy_file_handle(*mut FileHandle);
    485 file_handle_error_data(FileHandle) -> ErrorData;
    487 file_handle_read(FileHandle, *mut c_void, i64) -> i64;
    489 file_handle_seek(FileHandle, i64) -> u32;
    492 file_handle_size(FileHandle) -> i64;
    501 destroy_client_context(*mut ClientContext);
    502 connection_get_client_context(Connection, *mut ClientContext);
    511 scalar_function_set_bind(ScalarFunction, Callback<BindInfo>);
    512 scalar_function_bind_set_error(BindInfo, *const c_char);
    518 scalar_function_bind_get_argument(BindInfo, u64) -> Expression;
    520 scalar_function_get_state(FunctionInfo) -> *mut c_void;
    521 scalar_function_set_init(ScalarFunction, Callback<InitInfo>);
    522 scalar_function_init_set_error(InitInfo, *const c_char);
    523 scalar_function_init_set_state(InitInfo, *mut c_void, Delete);
    524 scalar_function_init_get_client_context(InitInfo, *mut ClientContext);
    526 scalar_function_init_get_extra_info(InitInfo) -> *mut c_void;
    531 table_function_get_client_context(BindInfo, *mut ClientContext);
    539 vector_reference_value(Vector, ValuePointer);
    541 create_selection_vector(u64) -> SelectionVector;
    542 destroy_selection_vector(SelectionVector);
    543 selection_vector_get_data_ptr(SelectionVector) -> *mut u32;
    544 vector_copy_sel(Vector, Vector, SelectionVector, u64, u64, u64);
    545 unsafe_vector_assign_string_element_len(Vector, u64, *const c_char, u64);
}

static API: OnceLock<Api> = OnceLock::new();

/// Takes DuckDB's functions.
///
/// # Safety
/// As for [`Api::of`].
pub(crate) unsafe fn load(table: *const c_void) {
    // SAFETY: by the contract of this function.
    API.get_or_init(|| unsafe { Api::of(table.cast()) });
}

/// DuckDB's functions.
pub(crate) fn api() -> &'static Api {
    API.get().expect("the entry of the extension takes them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_header() {
        let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../duckdb/source");
        for version in std::fs::read_dir(sources).into_iter().flatten() {
            let path = version.expect("a folder").path().join("src/include/duckdb_extension.h");
            let header = std::fs::read_to_string(&path).expect("DuckDB's header");
            println!("compared with {}", path.display());
            let start = header.find("typedef struct {").expect("the struct");
            let end = header.find("} duckdb_ext_api_v1;").expect("its end");
            let members = header[start..end].split("(*duckdb_").skip(1);
            let names: Vec<&str> = members.filter_map(|member| member.split(')').next()).collect();
            for &(place, name) in PLACES {
                assert_eq!(names.get(place), Some(&name));
            }
        }
    }
}
