//! The C ABI as its callers use it.

use std::ffi::{CString, c_char, c_void};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::arguments::*;
use crate::boundary::*;
use crate::call::*;
use crate::filter::*;
use crate::paths::*;
use crate::planned::*;
use crate::scan::*;
use crate::storage::*;

const NOTHING: EvtxValue = EvtxValue {
    kind: EvtxValueKind::Nothing as u32,
    number: 0,
    texts: std::ptr::null(),
    count: 0,
};

/// A call on the files of a path, with a value for an argument.
fn call(storage: EvtxStorage, path: &str, name: &str, value: EvtxValue) -> *mut EvtxCall {
    let (mut arguments, mut call) = (std::ptr::null_mut(), std::ptr::null_mut());
    let (start, len) = (name.as_ptr().cast(), name.len());
    let paths = paths(0, storage, path);
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        assert_eq!(take(evtx_arguments_new(0, &mut arguments)), None);
        assert_eq!(
            take(evtx_arguments_set(arguments, start, len, value, c"f".as_ptr(), 1)),
            None
        );
        assert_eq!(take(evtx_call_new(arguments, paths, 2, storage, &mut call)), None);
        evtx_arguments_free(arguments);
        evtx_paths_free(paths);
    }
    call
}

fn take(error: *mut c_char) -> Option<String> {
    if error.is_null() {
        return None;
    }
    // SAFETY: it came from `entry`.
    Some(unsafe { CString::from_raw(error) }.into_string().expect("UTF-8"))
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
    let text = take(entry(|| panic!("at {}", 7))).expect("an error");
    assert!(text.contains("internal error") && text.ends_with("at 7"), "{text}");
    assert_eq!(take(entry(|| Ok(()))), None);
}

#[test]
fn panics_of_what_is_freed_stay_here() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    let object = Box::into_raw(Box::new(Panics));
    // SAFETY: it came from a box, and is freed once.
    release(|| unsafe { free(object) });
    release(|| std::panic::panic_any(Panics));
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
    let name = |rest: &str| rest.find('(').unwrap_or_default();
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
            let start = if frees { "    release(|| " } else { "    entry(|| {" };
            // A single statement: all others would stand as far to the left.
            let statements = code
                .lines()
                .filter(|line| line[4..].starts_with(|first| !" })".contains(first)));
            assert!(code.starts_with(start) && statements.count() == 1, "{name}:\n{code}");
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
    assert_eq!(names, declared, "the header declares what was looked at");
}

/// A storage of one file named `x`, which is the state; of files named `y` it fails.
fn storage(file: &mut Vec<u8>) -> EvtxStorage {
    const DONE: u32 = EvtxStorageCode::Done as u32;
    unsafe extern "C" fn glob(_: *mut c_void, pattern: *const c_char, len: usize, texts: *mut EvtxTexts) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { evtx_texts_push(texts, pattern.cast(), len) };
        DONE
    }
    unsafe extern "C" fn exists(_: *mut c_void, _: *const c_char, _: usize, out: *mut bool, _: *mut EvtxTexts) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { out.write(true) };
        DONE
    }
    unsafe extern "C" fn is_remote(_: *mut c_void, _: *const c_char, _: usize) -> bool {
        false
    }
    unsafe extern "C" fn open(
        state: *mut c_void,
        path: *const c_char,
        len: usize,
        file: *mut *mut c_void,
        info: *mut EvtxFileInfo,
        texts: *mut EvtxTexts,
    ) -> u32 {
        // SAFETY: the state is a file, and the caller's promise.
        unsafe {
            if bytes(path.cast(), len) == b"y" {
                evtx_texts_push(texts, b"it is gone".as_ptr(), 10);
                return EvtxStorageCode::Failed as u32;
            }
            file.write(state);
            info.write(EvtxFileInfo {
                size: (*state.cast::<Vec<u8>>()).len() as u64,
                modified: 0,
                age: -1,
            });
        }
        DONE
    }
    unsafe extern "C" fn read_at(
        file: *mut c_void,
        buffer: *mut u8,
        len: usize,
        offset: u64,
        _: *mut EvtxTexts,
    ) -> u32 {
        // SAFETY: the file is one, and the caller's promise.
        unsafe {
            let file = &*file.cast::<Vec<u8>>();
            buffer.copy_from(file[offset as usize..][..len].as_ptr(), len);
        }
        DONE
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

/// The files that a path stands for, of the function with an index.
fn paths(of: usize, storage: EvtxStorage, path: &str) -> *mut EvtxPaths {
    let mut paths = std::ptr::null_mut();
    let (start, len) = (path.as_ptr().cast(), path.len());
    // SAFETY: every pointer is to a local of the right type.
    unsafe {
        let mut arguments = std::ptr::null_mut();
        assert_eq!(take(evtx_arguments_new(of, &mut arguments)), None);
        let memory = c"1.0 GiB".as_ptr();
        let none = std::ptr::null();
        let made = evtx_paths_new(arguments, memory, 7, none, 0, none, 0, &mut paths);
        assert_eq!(take(made), None);
        evtx_arguments_free(arguments);
        assert_eq!(
            take(evtx_paths_expand(paths, storage, start, len, c"f".as_ptr(), 1)),
            None
        );
    }
    paths
}

/// The index of `evtx_file_metadata` among the functions.
const FILE_METADATA: usize = 4;

/// A call of the report with an index among the functions.
fn report(of: usize, storage: EvtxStorage, path: &str) -> *mut EvtxCall {
    let (mut arguments, mut call) = (std::ptr::null_mut(), std::ptr::null_mut());
    let paths = paths(of, storage, path);
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        assert_eq!(take(evtx_arguments_new(of, &mut arguments)), None);
        assert_eq!(take(evtx_call_new(arguments, paths, 1, storage, &mut call)), None);
        evtx_arguments_free(arguments);
        evtx_paths_free(paths);
    }
    call
}

#[test]
fn a_file_is_read_through_the_c_abi() {
    let mut file = vec![0; 4096 + 65_536];
    file[..8].copy_from_slice(b"ElfFile\0");
    file[4096] = b'x';
    let storage = storage(&mut file);
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        let flag = EvtxValue {
            kind: EvtxValueKind::Flag as u32,
            number: 1,
            ..NOTHING
        };
        let call = call(storage, "x", "verify", flag);
        let (mut info, mut records) = (EvtxCallInfo::default(), 0);
        assert_eq!(take(evtx_call_info(call, &mut info)), None);
        assert_eq!((info.columns, info.folders, info.paths, info.fails), (25, 0, 1, false));
        assert_eq!(take(evtx_call_estimate(call, storage, &mut records)), None);
        assert_eq!(records, 87);
        let mut schema = FFI_ArrowSchema::empty();
        assert_eq!(take(evtx_call_schema(call, &mut schema)), None);
        assert_eq!(schema.child(0).name(), Some("record_id"));

        let node = |kind: EvtxNodeKind, children, len| EvtxNode {
            kind: kind as u32,
            children,
            number: 0,
            start: 0,
            len,
        };
        let name = "IS NULL";
        let nodes = [
            node(EvtxNodeKind::Column, 0, 0),
            node(EvtxNodeKind::Operation, 1, name.len() as u64),
        ];
        let hints = EvtxHints {
            nodes: nodes.as_ptr(),
            node_count: nodes.len(),
            bytes: name.as_ptr(),
            len: name.len(),
        };
        let mut planned = std::ptr::null_mut();
        assert_eq!(take(evtx_planned_new(c"x".as_ptr(), 1, &mut planned)), None);
        assert_eq!(take(evtx_planned_tell(planned, hints)), None);
        let mut scan = std::ptr::null_mut();
        let columns = [0_u64, 23, 99];
        let error = evtx_scan_new(call, columns.as_ptr(), 3, planned, c"".as_ptr(), 0, &mut scan);
        assert_eq!(take(error), None);
        assert_eq!(take(evtx_scan_schema(scan, &mut schema)), None);
        assert_eq!(schema.child(1).name(), Some("error"));
        let mut worker = std::ptr::null_mut();
        assert_eq!(take(evtx_worker_new(scan, &mut worker)), None);
        evtx_planned_free(planned);
        evtx_call_free(call);
        // What is wrong with the file and with its chunk, then the end.
        for rows in [2, 0] {
            let (mut array, mut place) = (FFI_ArrowArray::empty(), EvtxPlace::default());
            assert_eq!(take(evtx_worker_next(worker, storage, &mut array, &mut place)), None);
            assert_eq!((place.rows, array.len()), (rows, rows));
            assert_eq!((place.path, place.index), (0, 0));
        }
        let mut progress = 0.0;
        assert_eq!(take(evtx_scan_progress(scan, &mut progress)), None);
        assert_eq!(progress, 1.0);
        evtx_scan_free(scan);
        evtx_worker_free(worker);
    }
}

#[test]
fn errors_have_a_kind() {
    let mut file = b"no log".to_vec();
    let storage = storage(&mut file);
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        for (path, told) in [
            (
                "x",
                "0x: not an EVTX log: it starts with \"no log\" in place of \"ElfFile\\0\"",
            ),
            ("y", "2it is gone"),
        ] {
            let call = report(FILE_METADATA, storage, path);
            let (mut scan, mut worker) = (std::ptr::null_mut(), std::ptr::null_mut());
            let none = std::ptr::null();
            assert_eq!(
                take(evtx_scan_new(
                    call,
                    none,
                    0,
                    std::ptr::null(),
                    none.cast(),
                    0,
                    &mut scan
                )),
                None
            );
            assert_eq!(take(evtx_worker_new(scan, &mut worker)), None);
            let (mut array, mut place) = (FFI_ArrowArray::empty(), EvtxPlace::default());
            let error = take(evtx_worker_next(worker, storage, &mut array, &mut place));
            assert_eq!(error.as_deref(), Some(told));
            evtx_worker_free(worker);
            evtx_scan_free(scan);
            evtx_call_free(call);
        }
    }
}

fn check_codes<T: Code + std::fmt::Debug>(number: fn(T) -> u32) {
    for (place, code) in T::ALL.iter().enumerate() {
        assert_eq!(number(*code), place as u32, "{code:?}");
    }
    assert!(T::decode(T::ALL.len() as u32).is_err());
}

#[test]
fn codes_are_the_numbers_of_their_variants() {
    check_codes::<EvtxNodeKind>(|code| code as u32);
    check_codes::<EvtxValueKind>(|code| code as u32);
    check_codes::<EvtxFolderType>(|code| code as u32);
    check_codes::<EvtxErrorKind>(|code| code as u32);
    check_codes::<EvtxStorageCode>(|code| code as u32);
}

#[test]
fn values_that_an_argument_does_not_take_are_errors() {
    let mut arguments = std::ptr::null_mut();
    let text = |text: &'static EvtxText| EvtxValue {
        kind: EvtxValueKind::Text as u32,
        texts: text,
        count: 1,
        ..NOTHING
    };
    let leaked = |text| &*Box::leak(Box::new(EvtxText::borrowed(text)));
    // SAFETY: the pointers are to locals or static, or null where they may be, and the arguments are freed once.
    unsafe {
        let error = take(evtx_arguments_new(usize::MAX, &mut arguments));
        assert_eq!(error.as_deref(), Some("0there is no such function"));
        assert!(arguments.is_null());
        assert_eq!(take(evtx_arguments_new(0, &mut arguments)), None);
        let set = |name: &str, value| {
            let (start, len) = (name.as_ptr().cast(), name.len());
            take(evtx_arguments_set(arguments, start, len, value, c"f".as_ptr(), 1))
        };
        let unknown = EvtxValue { kind: 9, ..NOTHING };
        for (name, value, told) in [
            ("xml", unknown, "09 is no kind of value"),
            ("xml", NOTHING, "0f cannot take NULL as xml"),
            ("xml", text(leaked("yes")), "0f cannot take this as xml"),
            ("nothing", NOTHING, "0f has no argument nothing"),
            (
                "on_error",
                text(leaked("x")),
                "0f: on_error must be one of 'report', 'skip', 'fail', not 'x'",
            ),
        ] {
            assert_eq!(set(name, value).as_deref(), Some(told));
        }
        evtx_arguments_free(arguments);
    }
}

#[test]
fn all_arguments_are_listed() {
    let mut names = Vec::new();
    let (mut argument, mut known) = (
        EvtxArgument {
            name: EvtxText::NONE,
            default_text: EvtxText::NONE,
            kind: 0,
        },
        true,
    );
    while known {
        // SAFETY: the pointers are to locals, and the texts are as long as is said.
        unsafe {
            assert_eq!(take(evtx_argument(0, names.len(), &mut argument, &mut known)), None);
            names.push(text(argument.name.data, argument.name.len).expect("UTF-8").to_owned());
        }
    }
    names.pop();
    let listed: Vec<_> = evtx_scan::Function::ReadEvtx
        .arguments()
        .map(|argument| argument.name)
        .collect();
    assert_eq!(names, listed);
}

#[test]
fn folders_are_columns_of_a_call() {
    let mut file = vec![0; 4096];
    file[..8].copy_from_slice(b"ElfFile\0");
    let storage = storage(&mut file);
    let flag = EvtxValue {
        kind: EvtxValueKind::Flag as u32,
        number: 1,
        ..NOTHING
    };
    let call = call(
        storage,
        "day=2024-03-05/host=__HIVE_DEFAULT_PARTITION__/x",
        "hive_partitioning",
        flag,
    );
    // SAFETY: every pointer is to a local of the right type, and the call is freed once.
    unsafe {
        let (mut data, mut len, mut kind) = (std::ptr::null(), 0, 0);
        assert_eq!(take(evtx_call_folder_type(call, 0, &mut kind)), None);
        assert_eq!(kind, EvtxFolderType::Date as u32);
        assert_eq!(take(evtx_call_folder_name(call, 0, &mut data, &mut len)), None);
        assert_eq!(text(data, len), Ok("day"));
        assert_eq!(take(evtx_call_folder_value(call, 0, 0, &mut data, &mut len)), None);
        assert_eq!(text(data, len), Ok("2024-03-05"));
        assert_eq!(take(evtx_call_folder_value(call, 1, 0, &mut data, &mut len)), None);
        assert!(data.is_null());
        for error in [
            take(evtx_call_folder_value(call, 0, 1, &mut data, &mut len)),
            take(evtx_call_folder_name(call, 2, &mut data, &mut len)),
        ] {
            assert!(error.expect("an error").starts_with("0there is no such"));
        }
        evtx_call_free(call);
    }
}

#[test]
fn reports_are_read_through_the_c_abi() {
    let mut file = vec![0; 4096 + 65_536];
    file[..8].copy_from_slice(b"ElfFile\0");
    let storage = storage(&mut file);
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        let (mut function, mut known) = (std::mem::MaybeUninit::<EvtxScanFunction>::uninit(), true);
        // By report: how many rows it has of a log without records.
        for (index, (expected, rows_then)) in (FILE_METADATA - 1..).zip([
            ("evtx_schema", 0),
            ("evtx_file_metadata", 1),
            ("evtx_chunk_metadata", 1),
        ]) {
            assert_eq!(take(evtx_scan_function(index, function.as_mut_ptr(), &mut known)), None);
            assert!(known);
            let name = function.assume_init_ref().function.name;
            assert_eq!(text(name.data, name.len), Ok(expected));
            let call = report(index, storage, "x");
            let mut records = 1;
            assert_eq!(take(evtx_call_estimate(call, storage, &mut records)), None);
            assert_eq!(records, 0, "rows are no records");
            let (mut scan, mut worker) = (std::ptr::null_mut(), std::ptr::null_mut());
            // The second column, and one that is none.
            let columns = [1, u64::MAX];
            let none = std::ptr::null();
            assert_eq!(
                take(evtx_scan_new(
                    call,
                    columns.as_ptr(),
                    2,
                    none,
                    none.cast(),
                    0,
                    &mut scan
                )),
                None
            );
            let (mut schema, mut projected) = (FFI_ArrowSchema::empty(), FFI_ArrowSchema::empty());
            assert_eq!(take(evtx_call_schema(call, &mut schema)), None);
            assert_eq!(take(evtx_scan_schema(scan, &mut projected)), None);
            assert_eq!(projected.children().count(), 1);
            assert_eq!(projected.child(0).name(), schema.child(1).name());
            assert_eq!(take(evtx_worker_new(scan, &mut worker)), None);
            let (mut array, mut place) = (FFI_ArrowArray::empty(), EvtxPlace::default());
            assert_eq!(take(evtx_worker_next(worker, storage, &mut array, &mut place)), None);
            assert_eq!(place.rows, rows_then, "{expected}");
            let (mut name, mut len) = (std::ptr::null(), 0);
            assert_eq!(take(evtx_worker_reading(worker, &mut name, &mut len)), None);
            assert_eq!(bytes(name.cast(), len), b"x");
            evtx_worker_free(worker);
            evtx_scan_free(scan);
            evtx_call_free(call);
        }
        assert_eq!(take(evtx_scan_function(99, function.as_mut_ptr(), &mut known)), None);
        assert!(!known);
    }
}
