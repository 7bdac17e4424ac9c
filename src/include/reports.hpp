#pragma once

#include "duckdb_cpp.hpp"

namespace evtx {

//! Registers evtx_schema, evtx_file_metadata and evtx_chunk_metadata, which tell of whole files.
void RegisterReports(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
