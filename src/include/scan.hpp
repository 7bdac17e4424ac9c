#pragma once

//! A scan of logs as DuckDB's vectors: what read_evtx and COPY share.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace evtx {

//! DuckDB starts no more threads than it has.
constexpr duckdb::cxx::idx_t MAX_THREADS = 1024;

//! Names and types of columns, in order.
struct ScanColumns {
	std::vector<std::string> names;
	std::vector<duckdb::cxx::LogicalType> types;
};

//! The columns of a call: those of the logs, then those of the folders.
ScanColumns GetColumns(duckdb::cxx::Context &context, const EvtxCall &call);

//! What the folders of a file say in one of their columns.
duckdb::cxx::Value GetFolderValue(duckdb::cxx::Context &context, const EvtxCall &call, std::size_t column,
                                  std::size_t path);

//! Tells a call the predicates of a query as hints, unless the setting says that there shall be none. DuckDB decides
//! every predicate itself, so a scan that does without its hints gives the same rows.
void TellHints(duckdb::cxx::TableFunction::FilterPushdownInput &input, const EvtxCall &call,
               const EvtxPlanned &planned);

//! What the threads of a scan share.
class SharedScan {
public:
	//! A scan of the columns with these numbers, without what a query does not want, if `planned` was told of that.
	SharedScan(duckdb::cxx::Context &context, std::shared_ptr<const EvtxCall> call,
	           const std::vector<duckdb::cxx::idx_t> &columns, const EvtxPlanned *planned);

	double Progress() const {
		return Ask<double>(evtx_scan_progress, scan.get());
	}

private:
	friend class ThreadScan;

	std::shared_ptr<const EvtxCall> call;
	//! By column of the output: the number of it among the folders' columns, if it is one of these.
	std::vector<std::optional<std::size_t>> folder_columns;
	Scan scan;
};

//! A thread's part of a scan.
class ThreadScan {
public:
	explicit ThreadScan(const SharedScan &shared);

	//! Fills a chunk with the next rows; it stays empty at the end.
	//! @throws duckdb::cxx::Exception.
	void Next(duckdb::cxx::Context &context, const SharedScan &shared, const duckdb::cxx::DataChunk &output);

	//! The position of the rows last handed out, in the order of all rows.
	std::uint64_t BatchIndex() const {
		return place.index;
	}

private:
	Worker worker;
	EvtxPlace place {};
	std::unique_ptr<duckdb::cxx::ArrowImporter> importer;
	//! The rows last handed out: vectors refer to them until the next call.
	std::optional<duckdb::cxx::DataChunk> rows;
};

} // namespace evtx
