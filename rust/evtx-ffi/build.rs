//! Writes the C++ header of the C ABI, `evtx_ffi.h`: for the crate's tests, and for who links the library, in the
//! folder `include` beside it.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=cbindgen.toml");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let bindings = cbindgen::generate(&manifest).expect("the C ABI can be described in C++");
    let out = Path::new(&out);
    bindings.write_to_file(out.join("evtx_ffi.h"));
    // That folder is <profile>/build/<package>/out.
    let profile = out.ancestors().nth(3).expect("cargo builds in folders of a profile");
    bindings.write_to_file(profile.join("include").join("evtx_ffi.h"));
}
