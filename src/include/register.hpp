#pragma once

#include "duckdb_cpp.hpp"

#include <string>

namespace evtx {

//! Each function registers what its file defines: SQL functions, settings, macros, or a replacement scan.
void RegisterCasts(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
//! Sets the name of a format, and how files of it are written.
void SetCopyTo(duckdb::cxx::CopyFunction &function, const std::string &format);
void RegisterCopyFrom(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
void RegisterCopyTo(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
void RegisterMacros(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
void RegisterScanFunctions(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
void RegisterScalarFunctions(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);
void RegisterSettings(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
