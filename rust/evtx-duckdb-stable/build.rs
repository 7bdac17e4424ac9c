//! Names the entry point after the extension, as DuckDB expects, and the library for macOS: by default its name is the path of the build.

use std::path::Path;

const CONFIG: &str = "../../extension_config.cmake";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={CONFIG}");
    // DuckDB's community repository sets the variable.
    println!("cargo:rerun-if-env-changed=EXTENSION_NAME");
    let name = std::env::var("EXTENSION_NAME").unwrap_or_else(|_| configured());
    println!("cargo:rustc-env=EXTENSION_NAME={name}");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "macos") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-install_name,@rpath/{name}.duckdb_extension");
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
