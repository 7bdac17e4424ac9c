//! Everything that the extension registers with DuckDB.

use std::iter;
use std::sync::{LazyLock, OnceLock};

use evtx_archive::NESTING;

use crate::arguments::{EvtxScanFunction, FORMAT, scan_functions};
use crate::boundary::{EvtxFailure, EvtxSlice, EvtxText, produce};
use crate::call::{EvtxCall, MESSAGES, Setting};
use crate::casts::{EvtxEnum, enums};
use crate::macros::{EvtxMacro, macros};
use crate::scalars::EvtxScalarFunction;

/// The format of `COPY ... TO` a catalog of messages.
pub const CATALOG_FORMAT: &str = "evtx_messages";
/// What the path of a table ends with, in any case, if it means a call of the first table function.
pub static PATH_ENDINGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let compressed = NESTING.files.iter().map(|end| format!(".evtx{end}"));
    iter::once(".evtx".to_owned()).chain(compressed).collect()
});

/// The setting that turns filter pushdown off.
pub const FILTER_PUSHDOWN: Setting = (
    "evtx_filter_pushdown",
    "Whether read_evtx uses a query's predicates to read less; the rows are the same",
    true,
);
/// A setting.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxSetting {
    /// Its name.
    pub name: EvtxText<'static>,
    /// Its description.
    pub about: EvtxText<'static>,
    /// Whether it is true or false, and true by default. Otherwise it is a text, and empty by default.
    pub is_flag: bool,
}

/// Everything that the extension registers.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxDefinitions {
    /// The table functions over files. The first is what a path in place of a table means, and `COPY ... FROM`.
    pub scan_functions: EvtxSlice<'static, EvtxScanFunction>,
    /// The scalar functions, by number.
    pub scalar_functions: EvtxSlice<'static, EvtxScalarFunction>,
    /// The macros.
    pub macros: EvtxSlice<'static, EvtxMacro>,
    /// The types that are enums.
    pub enums: EvtxSlice<'static, EvtxEnum>,
    /// The format of `COPY ... FROM`, which is also the extension of its files.
    pub format: EvtxText<'static>,
    /// The format of `COPY ... TO` a catalog of messages.
    pub catalog_format: EvtxText<'static>,
    /// The setting that turns filter pushdown off.
    pub filter_pushdown: EvtxSetting,
    /// The setting that turns off that the cast from text to TIMESTAMP_NS applies offsets.
    pub timestamp_offsets: EvtxSetting,
    /// The setting that names a catalog of messages for calls that name none.
    pub messages: EvtxSetting,
    /// The settings whose values a call takes, in this order.
    pub call_settings: EvtxSlice<'static, EvtxText<'static>>,
    /// What the path of a table ends with, in any case, if it means a call of the first table function.
    pub path_endings: EvtxSlice<'static, EvtxText<'static>>,
}

fn setting((name, about, is_flag): Setting) -> EvtxSetting {
    EvtxSetting {
        name: EvtxText::of(name),
        about: EvtxText::of(about),
        is_flag,
    }
}

fn definitions() -> &'static EvtxDefinitions {
    static DEFINITIONS: OnceLock<EvtxDefinitions> = OnceLock::new();
    DEFINITIONS.get_or_init(|| EvtxDefinitions {
        scan_functions: scan_functions(),
        scalar_functions: EvtxScalarFunction::all(),
        macros: EvtxSlice::leaked(macros().iter().map(EvtxMacro::leaked).collect::<Vec<_>>()),
        enums: enums(),
        format: EvtxText::of(FORMAT),
        catalog_format: EvtxText::of(CATALOG_FORMAT),
        filter_pushdown: setting(FILTER_PUSHDOWN),
        timestamp_offsets: setting((
            "evtx_timestamp_offsets",
            "Whether a cast from text to TIMESTAMP_NS applies an offset; DuckDB 2 alone ignores it",
            true,
        )),
        messages: setting(MESSAGES),
        call_settings: EvtxSlice::leaked(EvtxCall::SETTINGS.map(EvtxText::of)),
        path_endings: EvtxSlice::leaked(PATH_ENDINGS.iter().map(|end| EvtxText::of(end)).collect::<Vec<_>>()),
    })
}

/// Returns everything that the extension registers.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_definitions(out: Option<&mut EvtxDefinitions>) -> EvtxFailure {
    produce(out, || Ok(*definitions()))
}
