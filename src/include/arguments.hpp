#pragma once

//! The arguments of `read_evtx` and the options of `COPY ... FROM`, which are the same.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "scan.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! How many files are read for the fields of events, if nothing else is said.
constexpr std::int64_t DEFAULT_SAMPLE_SIZE = 100;

//! The files that a path, a glob, a folder, or a list of them stands for. `function` is who asks.
//! @throws duckdb::cxx::Exception if there are none, if the value is no such thing, or if the query was interrupted.
std::shared_ptr<const EvtxPaths> ExpandPaths(Storage &storage, const duckdb::cxx::Value &value,
                                             const std::string &function);

//! What a call says beside its files.
struct Arguments {
	EvtxOptions options {};
	std::string messages = DEFAULT_MESSAGES;
	std::optional<std::vector<std::uint32_t>> event_ids;
	std::optional<std::string> provider;
	//! Most files that are read for the fields of events; below 0 for all.
	std::int64_t sample_size = DEFAULT_SAMPLE_SIZE;
	bool hive_partitioning = false;

	//! Takes an argument. Returns false if there is none of this name.
	//! @throws duckdb::cxx::Exception if it does not take the value. `function` is who asks.
	bool Set(std::string_view name, const duckdb::cxx::Value &value, const std::string &function);

	//! What a statement with these arguments reads of `files`. Reads some of them if the columns depend on them.
	//! @throws duckdb::cxx::Exception as `ExpandPaths`.
	ScanCall MakeCall(duckdb::cxx::Context &context, const duckdb::cxx::Value &files,
	                  const std::string &function) const;
};

} // namespace evtx
