//! Runs `test/sql/*.test` against DuckDB with the extension loaded. All of it is in `tests/sql.rs`.
