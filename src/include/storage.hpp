#pragma once

#include "duckdb_cpp.hpp"
#include "evtx_ffi.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace evtx {

//! DuckDB's files for a call of the core, and the question whether the query was interrupted.
//!
//! DuckDB has no function that tells a table function so. But its file systems look for an interrupt before they expand
//! a glob, and an empty one touches no file.
class Storage {
public:
	//! For a query's context. Where access to files is restricted, even the empty glob is refused, and the path of a
	//! file that is being read is expanded in place of that: the last that was opened, or `reading` before there is
	//! one.
	explicit Storage(duckdb::cxx::Context &context, std::string_view reading = {});

	//! For calls of the core in this thread, as long as this object is.
	EvtxStorage ForCore();

	//! Throws if the query was interrupted.
	//! @throws duckdb::cxx::Exception of DuckDB.
	void Check();

	//! Throws what a storage of this thread threw last.
	[[noreturn]] static void ThrowKept();

private:
	bool IsSet() noexcept;
	bool Ask(const std::string &glob) noexcept;

	static std::uint32_t Glob(void *self, const char *pattern, std::uintptr_t len, EvtxTexts *texts);
	static std::uint32_t Exists(void *self, const char *path, std::uintptr_t len, bool *exists, EvtxTexts *texts);
	static bool IsRemote(void *self, const char *path, std::uintptr_t len);
	static std::uint32_t Open(void *self, const char *path, std::uintptr_t len, void **file, std::uint64_t *size,
	                          EvtxTexts *texts);
	static std::uint32_t ReadAt(void *file, std::uint8_t *buffer, std::uintptr_t len, std::uint64_t offset,
	                            EvtxTexts *texts);
	static void Close(void *file);

	duckdb::cxx::FileSystem files;
	std::string reading;
	std::chrono::steady_clock::time_point next;
	bool interrupted = false;
};

} // namespace evtx
