//! The files of a call: those of this machine by the core's own storage, others by DuckDB's file handles.

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use evtx_format::Interrupt;
use evtx_scan::{LocalStorage, Storage, StorageError, StorageFile};

use crate::api::*;
use crate::types::{Value, c_text, text_of};

/// The connection of a statement.
pub(crate) struct Context(pub(crate) duckdb_client_context);

// SAFETY: the threads of a statement share its connection.
unsafe impl Send for Context {}
// SAFETY: likewise.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is a context, which is destroyed once.
        unsafe { duckdb_destroy_client_context(&mut self.0) };
    }
}

impl Context {
    /// The connection of a bind.
    pub(crate) fn of(info: duckdb_bind_info) -> Self {
        let mut context = std::ptr::null_mut();
        // SAFETY: DuckDB passes the info of the bind.
        unsafe { duckdb_table_function_get_client_context(info, &mut context) };
        Context(context)
    }

    /// The connection of a thread that begins with a scalar function.
    pub(crate) fn of_init(info: duckdb_init_info) -> Self {
        let mut context = std::ptr::null_mut();
        // SAFETY: DuckDB passes the info of the begin.
        unsafe { duckdb_scalar_function_init_get_client_context(info, &mut context) };
        Context(context)
    }

    /// A connection of the extension's own.
    pub(crate) fn of_connection(connection: duckdb_connection) -> Self {
        let mut context = std::ptr::null_mut();
        // SAFETY: the connection is open.
        unsafe { duckdb_connection_get_client_context(connection, &mut context) };
        Context(context)
    }

    /// The text of a setting; empty if there is none.
    pub(crate) fn setting(&self, name: &CStr) -> String {
        let mut scope = 0;
        // SAFETY: it is a context.
        let value = unsafe { duckdb_client_context_get_config_option(self.0, name.as_ptr(), &mut scope) };
        let value = Value::owned(value).filter(|value| !value.is_null());
        value.map_or_else(String::new, |value| value.text())
    }
}

/// DuckDB's flag for a file that is read: `DUCKDB_FILE_FLAG_READ`.
const READ: u32 = 1;

/// The files that a call reads.
pub(crate) struct Files {
    system: duckdb_file_system,
    /// Whether DuckDB limits what may be read. Then it opens the files of this machine too.
    is_limited: bool,
    /// The folder for `~`.
    home: Option<String>,
}

// SAFETY: threads use the file system in turns.
unsafe impl Send for Files {}
// SAFETY: likewise.
unsafe impl Sync for Files {}

impl Drop for Files {
    fn drop(&mut self) {
        // SAFETY: it is a file system, which is destroyed once.
        unsafe { duckdb_destroy_file_system(&mut self.system) };
    }
}

/// Lets one thread at a time use DuckDB's files: an object of the C API keeps its last error, and the files of a file system
/// that is registered in Python can share one position.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// DuckDB's error for what its settings forbid: `DUCKDB_ERROR_PERMISSION`.
const FORBIDDEN: u32 = 34;

/// Why DuckDB failed.
pub(crate) struct Failure {
    is_forbidden: bool,
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn of(mut error: duckdb_error_data) -> Self {
        // SAFETY: the error has a kind and a message, and is destroyed once.
        unsafe {
            let (kind, why) = (
                duckdb_error_data_error_type(error),
                text_of(duckdb_error_data_message(error)),
            );
            duckdb_destroy_error_data(&mut error);
            let is_forbidden = kind == FORBIDDEN;
            Failure { is_forbidden, why }
        }
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> Self {
        StorageError::Failed(failure.why)
    }
}

fn is_remote(path: &str) -> bool {
    path.contains("://") && !path.starts_with("file://")
}

impl Files {
    /// The files of a connection.
    pub(crate) fn new(context: &Context) -> Self {
        let mut files = Files {
            // SAFETY: it is a context.
            system: unsafe { duckdb_client_context_get_file_system(context.0) },
            is_limited: context.setting(c"enable_external_access") == "false",
            home: Some(context.setting(c"home_directory"))
                .filter(|home| !home.is_empty())
                .or_else(|| Some(std::env::home_dir()?.to_str()?.to_owned())),
        };
        // Its file system of local files can be disabled, which no setting shows.
        files.is_limited |= files.open_by_duckdb(".").is_err_and(|failure| failure.is_forbidden);
        files
    }

    /// The path of a file of this machine for the core's storage.
    fn local<'p>(&self, path: &'p str) -> Option<Cow<'p, str>> {
        if is_remote(path) {
            return None;
        }
        // The URL of a file can have a host.
        let path = ["file://localhost/", "file:///", "file:/"]
            .iter()
            .find_map(|start| path.strip_prefix(start).map(|_| &path[start.len() - 1..]))
            .unwrap_or(path);
        let home = self.home.as_ref().filter(|_| path == "~" || path.starts_with("~/"));
        Some(home.map_or(path.into(), |home| format!("{home}{}", &path[1..]).into()))
    }

    fn open_by_duckdb(&self, path: &str) -> Result<OpenFile, Failure> {
        let (mut handle, _turn) = (std::ptr::null_mut(), turn());
        // SAFETY: the options are destroyed once, and the size is that of an open file.
        unsafe {
            let mut options = duckdb_create_file_open_options();
            duckdb_file_open_options_set_flag(options, READ, true);
            let state = duckdb_file_system_open(self.system, c_text(path).as_ptr(), options, &mut handle);
            duckdb_destroy_file_open_options(&mut options);
            if state != 0 {
                return Err(Failure::of(duckdb_file_system_error_data(self.system)));
            }
            let mut file = OpenFile { handle, size: 0 };
            match u64::try_from(duckdb_file_handle_size(handle)) {
                Ok(size) => file.size = size,
                Err(_) => return Err(Failure::of(duckdb_file_handle_error_data(handle))),
            }
            Ok(file)
        }
    }
}

impl Files {
    /// The path of a file to write, which is on this machine.
    pub(crate) fn to_write(&self, path: &str) -> Result<String, String> {
        let local = self.local(path).filter(|_| !self.is_limited);
        let local = local.map(Cow::into_owned);
        local.ok_or_else(|| format!("Cannot write \"{path}\": only files of this machine, without limits"))
    }
}

impl Storage for Files {
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        if let Some(local) = self.local(pattern) {
            let files = LocalStorage.glob(&local, interrupt)?;
            for file in files.iter().filter(|_| self.is_limited) {
                self.exists(&String::from_utf8_lossy(file))?;
            }
            return Ok(files);
        }
        if pattern.contains(['*', '?', '[']) {
            return Err(StorageError::Failed(format!(
                "Cannot list \"{pattern}\": DuckDB's stable C API has no wildcards. Ask for the files first: SET VARIABLE \
                 logs = (SELECT list(file) FROM glob('{pattern}')), then read_evtx(getvariable('logs'))"
            )));
        }
        self.open(pattern).map(|_| vec![pattern.into()])
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        match self.local(path) {
            Some(local) if !self.is_limited => LocalStorage.exists(&local),
            _ => match self.open_by_duckdb(path) {
                Err(failure) if failure.is_forbidden => Err(failure.into()),
                opened => Ok(opened.is_ok()),
            },
        }
    }

    fn is_remote(&self, path: &str) -> bool {
        is_remote(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        if let Some(local) = self.local(path).filter(|_| !self.is_limited) {
            return LocalStorage.open(&local);
        }
        Ok(Arc::new(self.open_by_duckdb(path)?))
    }

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        match self.local(path) {
            Some(local) if !self.is_limited => LocalStorage.size(&local),
            _ => self.open(path).map(|file| file.size()),
        }
    }
}

/// An open file of DuckDB.
struct OpenFile {
    handle: duckdb_file_handle,
    size: u64,
}

// SAFETY: threads use the handle in turns.
unsafe impl Send for OpenFile {}
// SAFETY: likewise.
unsafe impl Sync for OpenFile {}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: it is a file, which is closed once.
        unsafe { duckdb_destroy_file_handle(&mut self.handle) };
    }
}

impl StorageFile for OpenFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let _turn = turn();
        let mut rest = buffer;
        // SAFETY: the file is open, and the rest of the buffer has `len` bytes.
        unsafe {
            if duckdb_file_handle_seek(self.handle, offset.cast_signed()) != 0 {
                return Err(Failure::of(duckdb_file_handle_error_data(self.handle)).into());
            }
            while !rest.is_empty() {
                match duckdb_file_handle_read(self.handle, rest.as_mut_ptr().cast(), rest.len() as i64) {
                    ..0 => return Err(Failure::of(duckdb_file_handle_error_data(self.handle)).into()),
                    0 => return Err(StorageError::Failed("the file ends before its size".to_owned())),
                    read => rest = &mut rest[read as usize..],
                }
            }
        }
        Ok(())
    }
}
