#pragma once

//! A scan of logs into DuckDB's vectors, for table functions and COPY.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace evtx {

//! Names and types of columns, in order.
struct ScanColumns {
	std::vector<std::string> names;
	std::vector<duckdb::cxx::LogicalType> types;
};

//! The columns of a call.
ScanColumns GetColumns(duckdb::cxx::Context &context, const EvtxCall &call);

//! Passes the predicates of a query to a call as hints, unless the setting turns that off. DuckDB evaluates every
//! predicate itself, so the query has the same result without hints.
void PassHints(duckdb::cxx::TableFunction::FilterPushdownInput &input, const EvtxCall &call);

//! A scan, which the threads of a query share.
class SharedScan {
public:
	//! A scan of the columns with these indexes. Leaves out rows that the hints of the call exclude.
	SharedScan(duckdb::cxx::Context &context, const EvtxCall &call, const std::vector<duckdb::cxx::idx_t> &columns);

	double Progress() const {
		return Ask<double>(evtx_scan_progress, scan.get());
	}

private:
	friend class ThreadScan;

	std::size_t columns;
	Scan scan;
};

//! Sets the callbacks of a table function that every scan shares: all except those that bind and that make the shared
//! scan, which is the global state.
void SetScanCallbacks(duckdb::cxx::TableFunction &function);

//! A thread's share of a scan.
class ThreadScan {
public:
	explicit ThreadScan(const SharedScan &shared);

	//! Fills a chunk with the next rows, or with none at the end.
	//! @throws duckdb::cxx::Exception.
	void Next(duckdb::cxx::Context &context, const SharedScan &shared, const duckdb::cxx::DataChunk &output);

	//! The batch index of the last rows: the position of their run of blocks in the order of all rows. DuckDB asks for
	//! it if it needs it, which `is_required` says.
	std::uint64_t BatchIndex(bool is_required) {
		keeps_order = is_required;
		return place.index;
	}

private:
	Worker worker;
	EvtxPlace place {};
	//! Whether DuckDB restores the order of the rows.
	bool keeps_order = false;
	TextImporter texts;
};

} // namespace evtx
