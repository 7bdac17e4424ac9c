#pragma once

//! The files that a call reads.

#include "duckdb_cpp.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace evtx {

//! A path that a call reads.
struct ScanPath {
	std::string path;
	//! Whether the caller named it, rather than a glob found it. What is no log is an error then, and a row otherwise.
	bool named = false;
	//! Its number among those of the call.
	std::uint64_t number = 0;
};

//! Appends the files that a path, a glob, a folder, or a list of them stands for. `function` is who asks.
//! @throws duckdb::cxx::Exception if there are none, or if the value is no such thing.
void ExpandPaths(const duckdb::cxx::FileSystem &files, const duckdb::cxx::Value &value, const std::string &function,
                 std::vector<ScanPath> &paths);

} // namespace evtx
