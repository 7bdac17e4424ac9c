#pragma once

#include "duckdb_cpp.hpp"

namespace evtx {

//! Registers `COPY table FROM 'log.evtx' (FORMAT evtx)`.
void RegisterCopyFrom(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
