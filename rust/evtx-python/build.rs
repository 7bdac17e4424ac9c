//! Links the module as Python on macOS expects it.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
