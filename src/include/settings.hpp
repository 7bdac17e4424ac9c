#pragma once

#include "core.hpp"
#include "duckdb_cpp.hpp"

#include <string>

namespace evtx {

//! The value of a setting of DuckDB.
std::string GetSetting(duckdb::cxx::Context &context, const char *name);

//! Whether a setting of the extension is on.
bool IsOn(duckdb::cxx::Context &context, const EvtxSetting &setting);

} // namespace evtx
