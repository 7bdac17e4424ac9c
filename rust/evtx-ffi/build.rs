//! Writes the C++ header of the C ABI, `include/evtx_ffi.h`.

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=cbindgen.toml");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let bindings = cbindgen::generate(&manifest).expect("the C ABI can be described in C++");
    bindings.write_to_file(format!("{manifest}/include/evtx_ffi.h"));
}
