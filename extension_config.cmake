# Read by DuckDB's build: -DDUCKDB_EXTENSION_CONFIGS=<this file>.
duckdb_extension_load(evtx
  SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR}
  EXTENSION_VERSION 0.1.0
)
