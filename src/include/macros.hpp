#pragma once

#include "duckdb_cpp.hpp"

namespace evtx {

//! Registers what names the numbers of events: `evtx_level_name`, `evtx_keyword_names`.
void RegisterMacros(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
