//! Writes the C++ header of the C ABI, `evtx_ffi.h`: into `OUT_DIR` for the crate's tests, and into the folder
//! `include` beside the library for the extension. Lists the SQL macros and their pages.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=cbindgen.toml");
    println!("cargo:rerun-if-changed=sql");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new(&manifest).join("sql"))
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .expect("the folder");
    files.sort_by_key(|file| file.file_stem().map(OsStr::to_owned));
    let entry = |file: &PathBuf| format!("({:?}, include_str!({file:?})),\n", file.file_name().expect("a file"));
    let macros: String = files.iter().map(entry).collect();
    std::fs::write(out.join("macros.rs"), format!("&[{macros}]")).expect("a list of macros");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        // The page in the browser has no C++.
        return;
    }
    let bindings = cbindgen::generate(&manifest).expect("the C ABI can be described in C++");
    bindings.write_to_file(out.join("evtx_ffi.h"));
    // That folder is <profile>/build/<package>/out.
    let profile = out.ancestors().nth(3).expect("cargo builds in folders of a profile");
    bindings.write_to_file(profile.join("include").join("evtx_ffi.h"));
}
