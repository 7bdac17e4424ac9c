#include "paths.hpp"

#include "core.hpp"
#include "duckdb_v2.h"

#include <algorithm>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::FileSystem;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

bool HasGlob(const std::string &path) {
	return path.find_first_of("*?[") != std::string::npos;
}

//! Appends the files that a path, glob or folder stands for.
void ExpandPath(const FileSystem &files, const std::string &path, const std::string &function,
                std::vector<ScanPath> &paths) {
	if (path.empty()) {
		throw duckdb::cxx::InvalidInputException(function + " cannot take an empty path");
	}
	bool named = !HasGlob(path) || files.Exists(path);
	auto found = files.Glob(path);
	if (found.empty() && !HasGlob(path)) {
		// A folder stands for the logs in it, as for DuckDB's own readers.
		found = files.Glob(path + "/**/*.[eE][vV][tT][xX]");
		named = false;
		if (found.empty()) {
			// Fails with the reason why it cannot be read, if it cannot.
			files.OpenFile(path, {duckdb::cxx::FileFlags::READ});
		}
	}
	if (found.empty()) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL,
		                             "No files found that match the pattern \"" + path + "\"");
	}
	std::sort(found.begin(), found.end());
	for (const auto &file : found) {
		auto text = GetPathText(file);
		// No query can name what is no text.
		const bool is_text = text == file;
		paths.push_back({std::move(text), named && is_text, paths.size(), is_text});
	}
}

} // namespace

void ExpandPaths(Interrupt &interrupt, const Value &value, const std::string &function, std::vector<ScanPath> &paths) {
	interrupt.Check();
	const auto type = value.GetLogicalType().GetTypeId();
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException(function + " cannot take NULL as a path");
	}
	if (type == LogicalTypeId::LIST || type == LogicalTypeId::ARRAY) {
		if (value.GetChildCount() == 0) {
			throw duckdb::cxx::InvalidInputException(function + " needs at least one path");
		}
		for (idx_t i = 0; i < value.GetChildCount(); i++) {
			ExpandPaths(interrupt, value[i], function, paths);
		}
		return;
	}
	if (type != LogicalTypeId::VARCHAR && type != LogicalTypeId::STRUCT) {
		throw duckdb::cxx::InvalidInputException(function + " takes a path, a glob, or a list of them, not " +
		                                         value.GetLogicalType().ToText());
	}
	ExpandPath(interrupt.Files(), duckdb::cxx::GetFilePath(value), function, paths);
}

} // namespace evtx
