//! The C ABI as its callers use it.

use std::ffi::{CString, c_char};

use arrow_array::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;

use crate::boundary::*;
use crate::file::*;
use crate::filter::*;
use crate::interrupt::*;
use crate::options::*;
use crate::report::*;
use crate::scan::*;
use crate::table::*;

const NEVER: EvtxInterrupt = EvtxInterrupt {
    is_set: None,
    state: std::ptr::null_mut(),
};

const OPTIONS: EvtxOptions = EvtxOptions {
    on_error: 0,
    verify: false,
    xml: false,
    json: false,
    location: false,
    recover: false,
};

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
    // Types of functions have no name.
    let named = rest.filter(|rest| rest.starts_with(|first: char| first.is_alphabetic()));
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
            let frees = name.ends_with("_free");
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

#[test]
fn a_file_is_read_through_the_c_abi() {
    let mut file = vec![0; 4096 + 65_536];
    file[..8].copy_from_slice(b"ElfFile\0");
    file[4096] = b'x';
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        let options = EvtxOptions {
            on_error: EvtxOnError::Report as u32,
            ..OPTIONS
        };
        let mut survey = std::ptr::null_mut();
        assert_eq!(
            take(evtx_survey_new(file.len() as u64, false, false, &mut survey)),
            None
        );
        let (mut offset, mut len) = (0, 0);
        let mut wants = false;
        loop {
            assert_eq!(take(evtx_survey_wants(survey, &mut offset, &mut len, &mut wants)), None);
            if !wants {
                break;
            }
            assert_eq!(
                take(evtx_survey_push(survey, file[offset as usize..].as_ptr(), len)),
                None
            );
        }
        assert!(
            take(evtx_survey_verify(survey))
                .expect("no checksum")
                .contains("file header")
        );
        let mut block = EvtxBlock {
            number: 1,
            offset: 0,
            len: 0,
        };
        let mut blocks = 0;
        assert_eq!(take(evtx_survey_blocks(survey, &mut blocks)), None);
        assert_eq!(blocks, 1);
        assert_eq!(take(evtx_survey_block(survey, 0, &mut block)), None);
        let error = take(evtx_survey_block(survey, 1, &mut EvtxBlock { ..block }));
        assert_eq!(error.as_deref(), Some("this file has no block 1"));
        assert_eq!((block.number, block.offset, block.len), (0, 4096, 65_536));

        let mut table = std::ptr::null_mut();
        assert_eq!(take(evtx_table_new(options, &mut table)), None);
        let mut filter = std::ptr::null_mut();
        let node = |kind: EvtxNodeKind, children| EvtxNode {
            kind: kind as u32,
            children,
            number: 0,
            start: 0,
            len: 0,
        };
        let nodes = [node(EvtxNodeKind::Column, 0), node(EvtxNodeKind::IsNull, 1)];
        assert_eq!(
            take(evtx_filter_new(
                table,
                nodes.as_ptr(),
                nodes.len(),
                std::ptr::null(),
                0,
                &mut filter
            )),
            None
        );
        let mut drops = true;
        assert_eq!(take(evtx_filter_drops_file(filter, c"x".as_ptr(), 1, &mut drops)), None);
        assert!(!drops, "a name tells nothing of record IDs");

        let mut scan = std::ptr::null_mut();
        let columns = [0_usize, 23];
        assert_eq!(
            take(evtx_scan_new(table, columns.as_ptr(), columns.len(), filter, &mut scan)),
            None
        );
        let mut schema = FFI_ArrowSchema::empty();
        assert_eq!(take(evtx_scan_schema(scan, &mut schema)), None);
        assert_eq!(schema.child(1).name(), Some("error"));
        let mut decoder = std::ptr::null_mut();
        assert_eq!(take(evtx_decoder_new(scan, &mut decoder)), None);
        evtx_scan_free(scan);
        evtx_filter_free(filter);
        evtx_table_free(table);
        assert_eq!(
            take(evtx_decoder_start(
                decoder,
                c"x".as_ptr(),
                1,
                std::ptr::null(),
                survey,
                0
            )),
            None
        );
        evtx_survey_free(survey);
        let mut consumed = 0;
        assert_eq!(
            take(evtx_decoder_decode(
                decoder,
                file[4096..].as_ptr(),
                65_536,
                NEVER,
                &mut consumed
            )),
            None
        );
        assert_eq!(consumed, 65_536);
        let mut is_done = false;
        assert_eq!(take(evtx_decoder_is_done(decoder, &mut is_done)), None);
        assert!(is_done);
        let (mut array, mut rows) = (FFI_ArrowArray::empty(), 0);
        assert_eq!(take(evtx_decoder_flush(decoder, &mut array, &mut rows)), None);
        assert_eq!((rows, array.len()), (1, 1));
        evtx_decoder_free(decoder);
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
    check_codes::<EvtxOnError>(|code| code as u32);
    check_codes::<EvtxReportKind>(|code| code as u32);
}

#[test]
fn numbers_that_no_enum_has_are_errors() {
    let options = EvtxOptions { on_error: 3, ..OPTIONS };
    let (mut table, mut report) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the pointers are to locals, or null where they may be.
    let errors = unsafe {
        [
            take(evtx_table_new(options, &mut table)),
            take(evtx_report_new(u32::MAX, std::ptr::null(), &mut report)),
        ]
    };
    assert_eq!(
        errors.map(Option::unwrap_or_default),
        ["3 is no choice for on_error", "4294967295 is no kind of report"]
    );
    assert!(table.is_null() && report.is_null());
}

#[test]
fn unknown_choices_list_the_known_ones() {
    let mut out = 0;
    // SAFETY: the text is one, and `out` a local.
    let error = unsafe { take(evtx_on_error(c"nonsense".as_ptr(), 8, &mut out)) };
    assert_eq!(
        error.as_deref(),
        Some("on_error must be one of 'report', 'skip', 'fail', not 'nonsense'")
    );
}

#[test]
fn reports_are_read_through_the_c_abi() {
    let mut file = vec![0; 4096 + 65_536];
    file[..8].copy_from_slice(b"ElfFile\0");
    // SAFETY: every pointer is to a local of the right type, and each object is freed once.
    unsafe {
        for (kind, rows_then) in [
            (EvtxReportKind::Events, 0),
            (EvtxReportKind::Files, 1),
            (EvtxReportKind::Chunks, 1),
        ] {
            let mut report = std::ptr::null_mut();
            assert_eq!(take(evtx_report_new(kind as u32, std::ptr::null(), &mut report)), None);
            let mut schema = FFI_ArrowSchema::empty();
            assert_eq!(take(evtx_report_schema(report, &mut schema)), None);
            assert_eq!(
                take(evtx_report_start(report, c"x".as_ptr(), 1, file.len() as u64)),
                None
            );
            assert_eq!(take(evtx_report_push(report, file.as_ptr(), 4096, NEVER)), None);
            assert_eq!(
                take(evtx_report_push(report, file[4096..].as_ptr(), 65_536, NEVER)),
                None
            );
            assert_eq!(take(evtx_report_end(report, std::ptr::null(), 0)), None);
            let (mut array, mut rows) = (FFI_ArrowArray::empty(), 7);
            assert_eq!(take(evtx_report_flush(report, true, &mut array, &mut rows)), None);
            assert_eq!(rows, rows_then, "{kind:?}");
            assert_eq!(take(evtx_report_start(report, c"y".as_ptr(), 1, 0)), None);
            let why = take(evtx_report_push(report, std::ptr::null(), 0, NEVER)).expect("no log");
            assert!(why.contains("the file is empty"), "{why}");
            evtx_report_free(report);
        }
    }
}
