#pragma once

#include "duckdb_cpp.hpp"

namespace evtx {

//! Registers the table function `read_evtx`.
void RegisterReadEvtx(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

//! Registers the replacement scan that makes `FROM 'x.evtx'` a call of it.
void RegisterReplacementScan(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
