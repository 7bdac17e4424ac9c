//! Names the library for macOS. By default its name is the path of the build.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/evtx.duckdb_extension");
    }
}
