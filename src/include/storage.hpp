#pragma once

#include "duckdb_cpp.hpp"
#include "evtx_ffi.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace evtx {

//! DuckDB's file system as a storage for one call of the core, with the query's interrupt.
//!
//! A table function cannot ask DuckDB whether its query was interrupted. But DuckDB's file system checks for an
//! interrupt before it expands a glob, and the empty glob touches no file.
class Storage {
public:
	//! A storage for the context of a query. If access to files is restricted, DuckDB refuses even the empty glob. Then
	//! the path of the file that is read is expanded: the last that was opened, or `reading` before the first.
	explicit Storage(duckdb::cxx::Context &context, std::string_view reading = {});
	~Storage();

	Storage(const Storage &) = delete;
	Storage &operator=(const Storage &) = delete;

	//! The callbacks for calls of the core. They are valid in this thread, during the lifetime of this object.
	EvtxStorage ForCore();

	//! Throws if the query was interrupted.
	//! @throws duckdb::cxx::Exception of DuckDB.
	void Check();

	//! DuckDB's file system, for this thread.
	const duckdb::cxx::FileSystem &Files() const {
		return files;
	}

	//! Throws the last exception that a storage of this thread has kept.
	[[noreturn]] static void ThrowKept();

private:
	bool IsSet() noexcept;
	bool Ask(const std::string &glob) noexcept;

	duckdb::cxx::FileSystem files;
	//! The storage that this thread served before.
	Storage *before;
	std::string reading;
	std::chrono::steady_clock::time_point next;
	bool interrupted = false;
};

} // namespace evtx
