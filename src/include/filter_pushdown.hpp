#pragma once

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "scan.hpp"

#include <vector>

namespace evtx {

//! Hands the core those of a query's predicates that it decides as DuckDB does, and accepts them, unless the scan
//! yields: then DuckDB decides them once more. Clears in `kept`, by number, the paths that the others leave without
//! rows.
void PushFilters(duckdb::cxx::TableFunction::FilterPushdownInput &input, const ScanCall &call, Filter &filter,
                 std::vector<bool> &kept, bool yields);

//! Registers the setting `evtx_filter_pushdown`, which turns that off.
void RegisterFilterPushdownOption(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
