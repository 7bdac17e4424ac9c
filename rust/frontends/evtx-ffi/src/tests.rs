//! The C ABI as its callers use it.

use std::ffi::c_void;

use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::arguments::*;
use crate::boundary::*;
use crate::call::*;
use crate::filter::*;
use crate::paths::*;
use crate::scan::*;
use crate::storage::*;
use crate::values::*;
use crate::vectors::*;

fn check(error: EvtxFailure) {
    assert_eq!(failure(error), None);
}

fn failure(error: EvtxFailure) -> Option<(EvtxErrorKind, String)> {
    error.map(|error| (error.kind, error.message.text().expect("UTF-8").to_owned()))
}

/// The object that a function makes.
fn made<T>(make: impl FnOnce(Option<&mut EvtxOwned<T>>) -> EvtxFailure) -> Box<T> {
    let mut object = None;
    check(make(Some(&mut object)));
    object.expect("an object")
}

/// The header that the C++ side is built with.
const HEADER: &str = include_str!(concat!(env!("OUT_DIR"), "/evtx_ffi.h"));

#[test]
fn the_header_is_generated_in_the_build_folder() {
    let out = std::path::Path::new(env!("OUT_DIR"));
    let beside = out.ancestors().nth(3).expect("a folder").join("include/evtx_ffi.h");
    assert_eq!(std::fs::read_to_string(beside).expect("the header"), HEADER);
    assert!(HEADER.contains("evtx_error_free"));
    let manifest = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    assert!(!out.starts_with(manifest), "{out:?}");
}

#[test]
fn panics_become_errors() {
    let (kind, text) = failure(entry(|| panic!("at {}", 7))).expect("an error");
    assert_eq!(kind, EvtxErrorKind::Input);
    assert!(text.contains("internal error") && text.ends_with("at 7"), "{text}");
    check(entry(|| Ok(())));
}

#[test]
fn panics_of_drops_are_caught() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    release(|| drop(Box::new(Panics)));
    release(|| std::panic::panic_any(Panics));
}

#[test]
fn null_pointers_are_errors() {
    let (_, text) = failure(evtx_call_hint(None, EvtxNode::default())).expect("an error");
    assert!(text.ends_with("a required pointer is null"), "{text}");
    let mut call = None;
    let storage = storage(&mut Vec::new());
    assert!(
        evtx_call_new(
            None,
            EvtxSlice::NONE,
            EvtxSlice::NONE,
            EvtxSlice::NONE,
            storage,
            Some(&mut call)
        )
        .is_some()
    );
    assert!(call.is_none());
    evtx_call_free(call);
    evtx_texts_push(None, EvtxText::NONE);
}

/// The code of the entries in a source, by their names, without the comments.
fn entries(source: &str) -> Vec<(&str, String)> {
    let rest = source.split("extern \"C\" fn ").skip(1);
    // Types of functions have no name, and the functions of these tests have another.
    let named = rest.filter(|rest| rest.starts_with("evtx_"));
    let code = |rest: &str| {
        let body = rest.split_once("{\n").and_then(|(_, rest)| rest.split_once("\n}\n"));
        let lines = body.unwrap_or_default().0.lines();
        let lines: Vec<_> = lines.filter(|line| !line.trim().starts_with("//")).collect();
        lines.join("\n")
    };
    let name = |rest: &str| rest.find(['(', '<']).unwrap_or_default();
    named.map(|rest| (&rest[..name(rest)], code(rest))).collect()
}

#[test]
fn every_entry_catches_panics() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder).expect("the sources") {
        let source = std::fs::read_to_string(file.expect("a file").path()).expect("a source");
        for (name, code) in entries(&source) {
            let frees = name.ends_with("_free") || name == "evtx_texts_push";
            let starts: &[&str] = if frees {
                &["    release(|| "]
            } else {
                &["    entry(|| ", "    produce(out, || "]
            };
            assert!(starts.iter().any(|start| code.starts_with(start)), "{name}:\n{code}");
            // A single statement: all others would be indented as little.
            let statements = code
                .lines()
                .filter(|line| line[4..].starts_with(|first| !" })".contains(first)));
            assert_eq!(statements.count(), 1, "{name}:\n{code}");
            names.push(name.to_owned());
        }
    }
    names.sort();
    let declared = HEADER.split("evtx_").skip(1).filter_map(|rest| {
        let name = rest.split(|next: char| !next.is_alphanumeric() && next != '_').next()?;
        rest[name.len()..].starts_with('(').then(|| format!("evtx_{name}"))
    });
    let mut declared: Vec<_> = declared.collect();
    declared.sort();
    assert_eq!(names, declared, "the header declares the functions that were checked");
}

/// A storage with one file named `x`, which is the state. It fails to open files named `y`.
fn storage(file: &mut Vec<u8>) -> EvtxStorage {
    use EvtxStorageCode::{Done, Failed};
    unsafe extern "C" fn glob(_: *mut c_void, pattern: EvtxText<'_>, texts: &mut EvtxTexts) -> EvtxStorageCode {
        evtx_texts_push(Some(texts), pattern);
        Done
    }
    unsafe extern "C" fn exists(
        _: *mut c_void,
        _: EvtxText<'_>,
        exists: &mut bool,
        _: &mut EvtxTexts,
    ) -> EvtxStorageCode {
        *exists = true;
        Done
    }
    unsafe extern "C" fn is_remote(_: *mut c_void, _: EvtxText<'_>) -> bool {
        false
    }
    unsafe extern "C" fn open(
        state: *mut c_void,
        path: EvtxText<'_>,
        file: &mut *mut c_void,
        size: &mut u64,
        texts: &mut EvtxTexts,
    ) -> EvtxStorageCode {
        if path.get() == b"y" {
            evtx_texts_push(Some(texts), EvtxText::of("it is gone"));
            return Failed;
        }
        *file = state;
        // SAFETY: the state is the file.
        *size = unsafe { &*state.cast::<Vec<u8>>() }.len() as u64;
        Done
    }
    unsafe extern "C" fn read_at(
        file: *mut c_void,
        buffer: *mut u8,
        len: usize,
        offset: u64,
        _: &mut EvtxTexts,
    ) -> EvtxStorageCode {
        // SAFETY: the file is the state, and the buffer has `len` bytes.
        unsafe {
            let file = &*file.cast::<Vec<u8>>();
            buffer.copy_from(file[offset as usize..][..len].as_ptr(), len);
        }
        Done
    }
    unsafe extern "C" fn close(_: *mut c_void) {}
    unsafe extern "C" fn is_set(_: *mut c_void) -> bool {
        false
    }
    EvtxStorage {
        state: std::ptr::from_mut(file).cast(),
        glob,
        exists,
        is_remote,
        open,
        read_at,
        close,
        is_set,
    }
}

/// A value without parts.
fn value<'a>(kind: EvtxValueKind, text: &'a str) -> EvtxValue<'a> {
    let (type_name, text) = (EvtxText::of("T"), EvtxText::of(text));
    EvtxValue {
        kind,
        type_name,
        text,
        parts: 0,
    }
}

fn arguments(function: usize) -> Box<EvtxArguments> {
    made(|out| evtx_arguments_new(function, EvtxText::of("f"), out))
}

/// A call on the files of a path.
fn call(arguments: Box<EvtxArguments>, storage: EvtxStorage, path: &str) -> Box<EvtxCall> {
    let settings = ["", "1.0 GiB", "", "", "2"].map(EvtxText::of);
    let (settings, files) = (EvtxSlice::borrowed(&settings), [value(EvtxValueKind::Text, path)]);
    let files = EvtxSlice::borrowed(&files);
    made(|out| evtx_call_new(Some(arguments), settings, files, EvtxSlice::NONE, storage, out))
}

fn set(arguments: &mut EvtxArguments, name: &str, values: &[EvtxValue<'_>]) -> EvtxFailure {
    evtx_arguments_set(Some(arguments), EvtxText::of(name), EvtxSlice::borrowed(values))
}

/// A call of `read_evtx` with an argument that is true.
fn call_with(storage: EvtxStorage, path: &str, name: &str) -> Box<EvtxCall> {
    let mut arguments = arguments(0);
    check(set(&mut arguments, name, &[value(EvtxValueKind::Other, "true")]));
    call(arguments, storage, path)
}

fn info(call: &EvtxCall) -> EvtxCallInfo<'_> {
    let mut info = EvtxCallInfo::default();
    check(evtx_call_info(Some(call), Some(&mut info)));
    info
}

fn scan(call: &EvtxCall, columns: &[u64]) -> Box<EvtxScan> {
    made(|out| evtx_scan_new(Some(call), EvtxSlice::borrowed(columns), EvtxText::NONE, out))
}

/// How many arrays the next batch of a worker has, and its origin, or the error.
fn next(worker: &mut EvtxWorker, storage: EvtxStorage) -> Result<(usize, EvtxPlace), (EvtxErrorKind, String)> {
    let (mut arrays, mut place, mut needs) = (None, EvtxPlace::default(), EvtxSlice::NONE);
    let error = evtx_worker_next(Some(worker), storage, false, Some(&mut arrays), Some(&mut place));
    if let Some(arrays) = &arrays {
        check(evtx_arrays_needs(Some(arrays), Some(&mut needs)));
        assert!(needs.get().iter().all(|need| need.rows == place.rows));
    }
    failure(error).map_or(Ok((needs.get().len(), place)), Err)
}

#[test]
fn a_folder_is_listed_by_the_core_with_checks_for_an_interrupt() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);
    unsafe extern "C" fn is_set(_: *mut c_void) -> bool {
        LEFT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
    }
    unsafe extern "C" fn glob(_: *mut c_void, _: EvtxText<'_>, _: &mut EvtxTexts) -> EvtxStorageCode {
        EvtxStorageCode::Done
    }
    // No file is called like the pattern.
    unsafe extern "C" fn exists(
        _: *mut c_void,
        path: EvtxText<'_>,
        exists: &mut bool,
        _: &mut EvtxTexts,
    ) -> EvtxStorageCode {
        *exists = !path.get().contains(&b'*');
        EvtxStorageCode::Done
    }
    let (mut file, arguments) = (Vec::new(), arguments(0));
    let storage = EvtxStorage {
        glob,
        exists,
        is_set,
        ..storage(&mut file)
    };
    let pattern = concat!(env!("CARGO_MANIFEST_DIR"), "/sql/*.sql");
    let expanded = |left: usize| {
        LEFT.store(left, Ordering::Relaxed);
        let mut paths = EvtxPaths::new(&arguments, "", "", "");
        let done = storage.during(|storage, interrupt| paths.expand(&arguments, pattern, storage, interrupt));
        (
            done.err().map(|error| EvtxError::from(error).kind),
            paths.paths.len(),
            left - LEFT.load(Ordering::Relaxed),
        )
    };
    let (error, found, asked) = expanded(usize::MAX);
    assert_eq!((error, found), (None, crate::macros().len()));
    assert!(
        asked > 4 * found,
        "{asked}: a check for each file of the list, of those that may be read, and so on"
    );
    for left in 0..4 * found {
        assert_eq!(expanded(left).0, Some(EvtxErrorKind::Interrupted), "{left}");
    }
}

/// A log with a chunk that is damaged.
fn damaged() -> Vec<u8> {
    let mut file = vec![0; 4096 + 65_536];
    file[..8].copy_from_slice(b"ElfFile\0");
    file[4096] = b'x';
    file
}

/// The number of `evtx_file_metadata`.
const FILE_METADATA: usize = 4;

#[test]
fn a_file_is_read_through_the_c_abi() {
    let mut file = damaged();
    let storage = storage(&mut file);
    let call = call_with(storage, "x", "verify");
    let info = info(&call);
    assert_eq!(
        (info.records, info.max_threads, info.warning.get()),
        (87, 1024, &b""[..])
    );
    let mut schema = FFI_ArrowSchema::empty();
    check(evtx_call_schema(Some(&call), Some(&mut schema)));
    let names: Vec<_> = schema.children().map(|column| column.name()).collect();
    assert_eq!((names[0], names.len()), (Some("record_id"), call.schema.fields().len()));
    let error = names.iter().position(|name| *name == Some("error")).expect("a column");

    check(evtx_call_clear_hints(Some(&call)));
    for (kind, operands) in [(EvtxNodeKind::Column, 0), (EvtxNodeKind::IsNull, 1)] {
        let node = EvtxNode {
            kind,
            operands,
            ..EvtxNode::default()
        };
        check(evtx_call_hint(Some(&call), node));
    }
    let scan = scan(&call, &[0, error as u64, 99]);
    let mut worker = made(|out| evtx_worker_new(Some(&scan), out));
    evtx_call_free(Some(call));
    // The damage of the file and of its chunk, then the end.
    for rows in [2, 0] {
        let (arrays, place) = next(&mut worker, storage).expect("a batch");
        assert_eq!((arrays, place), (rows, EvtxPlace { rows, index: 0 }));
    }
    let mut progress = 0.0;
    check(evtx_scan_progress(Some(&scan), Some(&mut progress)));
    assert_eq!(progress, 1.0);
    evtx_scan_free(Some(scan));
    evtx_worker_free(Some(worker));
}

#[test]
fn errors_have_a_kind() {
    let mut file = b"no log".to_vec();
    let storage = storage(&mut file);
    for (path, kind, message) in [
        (
            "x",
            EvtxErrorKind::Input,
            "x: not an EVTX log: it starts with \"no log\" in place of \"ElfFile\\0\"",
        ),
        ("y", EvtxErrorKind::Storage, "it is gone"),
    ] {
        let call = call(arguments(FILE_METADATA), storage, path);
        let scan = scan(&call, &[]);
        let mut worker = made(|out| evtx_worker_new(Some(&scan), out));
        let error = next(&mut worker, storage).expect_err("an error");
        assert_eq!(error, (kind, message.to_owned()));
    }
}

#[test]
fn values_that_an_argument_does_not_take_are_errors() {
    let mut made = None;
    let error = evtx_arguments_new(usize::MAX, EvtxText::of("f"), Some(&mut made));
    assert_eq!(failure(error).expect("an error").1, "there is no such function");
    assert!(made.is_none());
    let mut arguments = arguments(0);
    use EvtxValueKind::{List, Map, Nothing, Other, Struct, Text};
    let list = [EvtxValue {
        parts: 1,
        ..value(List, "[[]]")
    }; 2];
    for (name, values, message) in [
        ("xml", &[value(Nothing, "")][..], "f cannot take NULL as xml"),
        ("xml", &[value(Text, "yes")], "xml is true or false, not yes"),
        (
            "sample_size",
            &[value(Other, "1.5")],
            "sample_size is a whole number, not 1.5",
        ),
        (
            "event_id",
            &[value(Struct, "")],
            "event_id takes a value or a list of values, not T",
        ),
        (
            "event_id",
            &[value(Map, "")],
            "event_id takes a value or a list of values, not T",
        ),
        ("provider", &list, "provider takes a value or a list of values, not T"),
        ("nothing", &list, "f: there is no option nothing"),
        (
            "on_error",
            &[value(Text, "x")],
            "f: on_error must be one of 'report', 'skip', 'fail', not 'x'",
        ),
    ] {
        let error = set(&mut arguments, name, values);
        assert_eq!(failure(error).expect("an error").1, message);
    }
    for (name, kind, text) in [
        ("xml", Other, "FALSE"),
        ("XML", Text, "1"),
        ("sample_size", Nothing, ""),
    ] {
        check(set(&mut arguments, name, &[value(kind, text)]));
    }
}

#[test]
fn folders_are_columns_of_a_call() {
    let mut file = damaged();
    let path = "day=2024-03-05/host=__HIVE_DEFAULT_PARTITION__/x";
    let storage = storage(&mut file);
    let call = call_with(storage, path, "hive_partitioning");
    let plain = call_with(storage, "x", "verify").schema.fields().len();
    let folders = call.schema.fields()[plain..].iter();
    let types: Vec<_> = folders
        .map(|field| (field.name().as_str(), field.data_type()))
        .collect();
    assert_eq!(types, [("day", &DataType::Date32), ("host", &DataType::Date32)]);
    let scan = scan(&call, &[plain as u64 + 1, 1, plain as u64]);
    let mut worker = made(|out| evtx_worker_new(Some(&scan), out));
    let (mut arrays, mut place, mut needs) = (None, EvtxPlace::default(), EvtxSlice::NONE);
    check(evtx_worker_next(
        Some(&mut worker),
        storage,
        false,
        Some(&mut arrays),
        Some(&mut place),
    ));
    check(evtx_arrays_needs(arrays.as_deref(), Some(&mut needs)));
    let found: Vec<_> = needs.get().iter().map(|need| (need.rows, need.has_nulls)).collect();
    assert_eq!(found, [(place.rows, true), (place.rows, true), (place.rows, false)]);
}

#[test]
fn reports_are_read_through_the_c_abi() {
    let mut file = damaged();
    file[4096] = 0;
    let storage = storage(&mut file);
    let functions = scan_functions().get();
    // By report: how many rows it has of a log without records.
    for (number, (name, rows)) in (FILE_METADATA - 1..).zip([
        ("evtx_schema", 0),
        ("evtx_file_metadata", 1),
        ("evtx_chunk_metadata", 1),
    ]) {
        assert_eq!(functions[number].function.name.text(), Ok(name));
        let call = call(arguments(number), storage, "x");
        assert_eq!(info(&call).records, 0, "rows are not records");
        // The second column, and one that does not exist.
        let scan = scan(&call, &[1, u64::MAX]);
        let mut worker = made(|out| evtx_worker_new(Some(&scan), out));
        let (arrays, place) = next(&mut worker, storage).expect("a batch");
        assert_eq!((arrays, place.rows), (rows, rows), "{name}");
        let mut path = EvtxText::NONE;
        check(evtx_worker_reading(Some(&worker), Some(&mut path)));
        assert_eq!(path.get(), b"x");
    }
}
