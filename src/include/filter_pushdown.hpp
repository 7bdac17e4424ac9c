#pragma once

#include "duckdb_cpp.hpp"
#include "hints.hpp"
#include "scan.hpp"

namespace evtx {

//! The predicates of a query as hints for a scan, unless the setting says that there shall be none.
Hints GetHints(duckdb::cxx::TableFunction::FilterPushdownInput &input, const EvtxCall &call);

//! Registers the setting `evtx_filter_pushdown`, which turns that off.
void RegisterFilterPushdownOption(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
