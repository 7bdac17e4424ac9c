#pragma once

#include "core.hpp"
#include "duckdb_cpp.hpp"

namespace evtx {

//! Tells a call the predicates of a query as hints, unless the setting says that there shall be none. DuckDB decides
//! every predicate itself, so a scan that does without its hints gives the same rows.
void TellHints(duckdb::cxx::TableFunction::FilterPushdownInput &input, const EvtxCall &call,
               const EvtxPlanned &planned);

} // namespace evtx
