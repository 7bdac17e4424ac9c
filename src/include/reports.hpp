#pragma once

//! Reports on whole files: the table functions `evtx_schema`, `evtx_file_metadata` and `evtx_chunk_metadata`, and the
//! fields of events.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "log_file.hpp"
#include "paths.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace evtx {

//! Reads files into a report, piece by piece.
class ReportReader {
public:
	explicit ReportReader(Report &report_p) : report(report_p) {}

	//! Begins a file, or ends it if it cannot be read.
	//! @throws duckdb::cxx::Exception if that is so and the caller named it.
	void Start(const duckdb::cxx::FileSystem &files, const ScanPath &path);
	//! Reads a piece of the file. Returns false if there was none left.
	//! @throws duckdb::cxx::Exception as `Start`, and if the query was interrupted.
	bool Next(Interrupt &interrupt);
	//! Passes so many pieces. The report takes what is behind them as if it followed.
	void Skip(std::uint64_t pieces);
	//! The size of the file, in bytes; 0 if it cannot be read.
	std::uint64_t Size() const {
		return log ? log->Size() : 0;
	}

private:
	void Fail(const std::string &why);

	Report &report;
	const ScanPath *path = nullptr;
	std::optional<LogFile> log;
	std::vector<std::uint8_t> bytes;
	std::uint64_t offset = 0;
};

void RegisterReports(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context);

} // namespace evtx
