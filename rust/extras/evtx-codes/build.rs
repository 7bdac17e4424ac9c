//! Lists the tables of the folder `codes`.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=codes");
    let manifest = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let mut files: Vec<PathBuf> = std::fs::read_dir(Path::new(&manifest).join("codes"))
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .expect("the folder");
    files.sort();
    let entry = |file: &PathBuf| {
        let name = file.file_stem().expect("a name");
        format!("({name:?}, include_str!({file:?})),\n")
    };
    let tables: String = files.iter().map(entry).collect();
    std::fs::write(Path::new(&out).join("codes.rs"), format!("&[{tables}]")).expect("a list of tables");
}
