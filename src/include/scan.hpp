#pragma once

//! A scan of logs, for `read_evtx` and `COPY ... FROM`: who reads what, and Arrow batches to vectors.

#include "core.hpp"
#include "file_queue.hpp"
#include "hive.hpp"
#include "paths.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace evtx {

//! Most threads of a scan; DuckDB's own limit is lower.
constexpr duckdb::cxx::idx_t MAX_THREADS = 1024;

//! Where the messages of a log stand if nothing else is said.
constexpr const char *DEFAULT_MESSAGES = "LocaleMetaData/{log}_*.[Mm][Tt][Aa]";

//! What a statement reads.
struct ScanCall {
	std::vector<ScanPath> paths;
	EvtxOptions options {};
	std::shared_ptr<const Table> table;
	//! Where the messages of a log stand beside it.
	std::string messages = DEFAULT_MESSAGES;
	//! What the folders say, if that is asked for. Its columns follow the table's.
	std::shared_ptr<const HivePartitions> hive;
};

//! The columns that a statement can read, in order.
struct ScanColumns {
	std::vector<std::string> names;
	std::vector<duckdb::cxx::LogicalType> types;
};

//! The columns of a table, and behind them those of the folders.
ScanColumns GetColumns(duckdb::cxx::Context &context, const Table &table, const HivePartitions *hive);

//! What the threads of a scan share.
class SharedScan {
public:
	//! A scan of the columns with these numbers, and of the files in `paths`.
	SharedScan(duckdb::cxx::Context &context, const ScanCall &call, const std::vector<duckdb::cxx::idx_t> &columns,
	           const Filter &filter, std::vector<ScanPath> paths);

	double Progress() const {
		return queue.Progress();
	}

private:
	friend class ThreadScan;

	//! By column of the output: the number of it among the folders' columns, if it is one of these.
	std::vector<std::optional<std::size_t>> hive_columns;
	std::shared_ptr<const HivePartitions> hive;
	Scan scan;
	FileQueue queue;
};

//! What a thread of a scan keeps.
class ThreadScan {
public:
	explicit ThreadScan(const SharedScan &shared);

	//! Fills the output with the next rows. At the end of the scan it stays empty. Its vectors refer to the rows until
	//! the next call.
	void Next(duckdb::cxx::Context &context, SharedScan &shared, const duckdb::cxx::DataChunk &output);

	//! Position of the last rows in the order of all.
	std::uint64_t BatchIndex() const {
		return batch_index;
	}

private:
	bool NextBatch(Interrupt &interrupt, FileQueue &queue);
	bool NextWork(Interrupt &interrupt, FileQueue &queue);

	Decoder decoder;
	//! Made in the thread's first call, as it needs a context.
	std::unique_ptr<duckdb::cxx::ArrowImporter> importer;
	//! The rows last handed out.
	std::optional<duckdb::cxx::DataChunk> rows;
	//! What the thread works on, and the file that the rows are of.
	std::optional<Work> work;
	const ScanPath *path = nullptr;
	std::vector<std::uint8_t> block;
	//! Whether the decoder has begun the block.
	bool started = true;
	//! Bytes of the block that were decoded.
	std::uintptr_t decoded = 0;
	std::uint64_t file_index = 0;
	std::uint64_t batch_index = 0;
};

} // namespace evtx
