#pragma once

//! Folders named `key=value` as columns.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace evtx {

//! What the folders of some files say.
class HivePartitions {
public:
	//! Reads the keys and values of the paths.
	//! @throws duckdb::cxx::Exception if not all paths have the same keys, or if the query was interrupted.
	HivePartitions(duckdb::cxx::Factory &factory, const EvtxPaths &paths, Storage &storage);

	std::size_t ColumnCount() const {
		return names.size();
	}
	const std::string &GetName(std::size_t column) const {
		return names[column];
	}
	const duckdb::cxx::LogicalType &GetType(std::size_t column) const {
		return types[column];
	}
	//! What the path with this number says.
	const duckdb::cxx::Value &GetValue(std::uint64_t path, std::size_t column) const {
		return values[path][column];
	}

private:
	std::vector<std::string> names;
	//! As for DuckDB's own readers: DATE, TIMESTAMP or BIGINT if all values are such, else VARCHAR.
	std::vector<duckdb::cxx::LogicalType> types;
	//! By path and column.
	std::vector<std::vector<duckdb::cxx::Value>> values;
};

} // namespace evtx
