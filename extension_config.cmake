# Read by DuckDB's build: -DDUCKDB_EXTENSION_CONFIGS=<this file>.

# The name of the extension's file and entry point. Nothing else repeats it, so that it can be published under another name.
set(EXTENSION_NAME evtx)
duckdb_extension_load(${EXTENSION_NAME}
  SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR}
  EXTENSION_VERSION 0.1.0
)
