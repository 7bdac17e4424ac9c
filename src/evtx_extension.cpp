#include "register.hpp"

#include "duckdb_cpp_extension.hpp"

// The findings are in the expansion of DuckDB's macro.
// NOLINTNEXTLINE(bugprone-multi-level-implicit-pointer-conversion,misc-const-correctness)
DUCKDB_CPP_EXTENSION_ENTRYPOINT(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	evtx::RegisterSettings(extension, context);
	evtx::RegisterCasts(extension, context);
	evtx::RegisterScanFunctions(extension, context);
	evtx::RegisterCopyFrom(extension, context);
	evtx::RegisterCopyTo(extension, context);
	evtx::RegisterScalarFunctions(extension, context);
	evtx::RegisterMacros(extension, context);
}
