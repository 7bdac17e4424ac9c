#pragma once

#include "duckdb_cpp.hpp"
#include "evtx_ffi.h"

#include <chrono>
#include <exception>
#include <string>

namespace evtx {

//! Asks DuckDB now and then whether the query was interrupted, during work that takes long.
//!
//! DuckDB has no function that tells a table function so. But its file systems look for an interrupt before they expand
//! a glob, and an empty one touches no file.
class Interrupt {
public:
	//! For a query's context.
	explicit Interrupt(duckdb::cxx::Context &context);

	//! Tells of a file that is being read. Where access to files is restricted, even the empty glob is refused, and its
	//! path is expanded in place of that.
	void SetReading(const std::string &path_p) {
		path = &path_p;
	}

	const duckdb::cxx::FileSystem &Files() const {
		return files;
	}
	//! Throws if the query was interrupted.
	//! @throws duckdb::cxx::Exception of DuckDB.
	void Check();
	//! For a call of the core, after which `Check` has to be called.
	EvtxInterrupt ForCore();

private:
	bool IsSet() noexcept;
	bool Ask(const std::string &glob) noexcept;

	duckdb::cxx::FileSystem files;
	const std::string *path = nullptr;
	std::chrono::steady_clock::time_point next;
	std::exception_ptr interrupted;
};

} // namespace evtx
