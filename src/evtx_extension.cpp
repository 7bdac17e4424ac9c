#include "read_evtx.hpp"

#include "duckdb_cpp_extension.hpp"

DUCKDB_CPP_EXTENSION_ENTRYPOINT(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	evtx::RegisterReadEvtx(extension, context);
	evtx::RegisterReplacementScan(extension, context);
}
