//! Names the entry point after the extension, as DuckDB expects, and the library for macOS: by default its name is the path of the build.
//! Says what the library exports on Windows on ARM.

use std::path::Path;

const CONFIG: &str = "../../../extension_config.cmake";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={CONFIG}");
    // DuckDB's community repository sets the variable.
    println!("cargo:rerun-if-env-changed=EXTENSION_NAME");
    let name = std::env::var("EXTENSION_NAME").unwrap_or_else(|_| configured());
    println!("cargo:rustc-env=EXTENSION_NAME={name}");
    let is_target =
        |part: &str, value: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).is_ok_and(|is| is == value);
    if is_target("OS", "macos") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/{name}.duckdb_extension");
    }
    if is_target("OS", "windows") && is_target("ABI", "llvm") {
        // Zig does not take the list that Rust writes. Without one, it also exports what it adds itself.
        let exports = Path::new(&std::env::var("OUT_DIR").expect("Cargo sets it")).join("exports.def");
        std::fs::write(&exports, format!("EXPORTS\n    {name}_init_c_api\n")).expect("OUT_DIR can be written");
        println!("cargo:rustc-cdylib-link-arg={}", exports.display());
    }
}

/// The name in `extension_config.cmake`.
fn configured() -> String {
    let config =
        std::fs::read_to_string(Path::new(CONFIG)).expect("extension_config.cmake is in the folder of the project");
    let line = config
        .lines()
        .find_map(|line| line.strip_prefix("set(EXTENSION_NAME ")?.strip_suffix(')'));
    line.expect("extension_config.cmake sets EXTENSION_NAME").to_owned()
}
