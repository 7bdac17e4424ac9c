#pragma once

#include "core.hpp"
#include "duckdb_cpp.hpp"

namespace evtx {

//! Hands the core those of a query's predicates that it decides as DuckDB does, and accepts them.
void PushFilters(duckdb::cxx::TableFunction::FilterPushdownInput &input, Filter &filter);

//! Registers the setting `evtx_filter_pushdown`, which turns that off.
void RegisterFilterPushdownOption(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
