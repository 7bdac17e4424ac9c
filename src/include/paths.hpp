#pragma once

//! The files that a call reads.

#include "interrupt.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace evtx {

//! A path that a call reads.
struct ScanPath {
	//! As text.
	std::string path;
	//! Whether the caller named it, rather than a glob found it. What is no log is an error then, and a row otherwise.
	bool named = false;
	//! Its number among those of the call.
	std::uint64_t number = 0;
	//! Whether its bytes are that text. If they are not UTF-8, there is nothing to open it by.
	bool is_text = true;
};

//! Appends the files that a path, a glob, a folder, or a list of them stands for. `function` is who asks.
//! @throws duckdb::cxx::Exception if there are none, if the value is no such thing, or if the query was interrupted.
void ExpandPaths(Interrupt &interrupt, const duckdb::cxx::Value &value, const std::string &function,
                 std::vector<ScanPath> &paths);

} // namespace evtx
