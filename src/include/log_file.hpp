#pragma once

//! A file that is read at offsets, with few requests if each takes long.

#include "duckdb_cpp.hpp"
#include "interrupt.hpp"
#include "paths.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace evtx {

//! What a row says of a file that cannot be read.
std::string DescribeFailure(const duckdb::cxx::Exception &error);

class LogFile {
public:
	//! Opens a file. Of a remote one, reads the first part at once: often that is all of it.
	//! @throws duckdb::cxx::Exception if it cannot be read, or not at offsets.
	LogFile(const duckdb::cxx::FileSystem &files, const ScanPath &path);

	//! About how many records some files have, by the sizes of some of them. Remote ones are not asked.
	//! @throws duckdb::cxx::Exception if the query was interrupted.
	static std::uint64_t EstimateRecords(Interrupt &interrupt, const std::vector<ScanPath> &paths);

	//! Whether a path leads to another machine, or to a file system of the client's, so that a read takes long.
	static bool IsRemote(const duckdb::cxx::FileSystem &files, const std::string &path);

	bool IsRemote() const {
		return remote;
	}
	std::uint64_t Size() const {
		return size;
	}
	//! How many bytes should be read at once by who reads all of the file from its start.
	std::uint64_t PieceSize() const;

	//! Reads bytes, which have to be there. From any thread.
	//! @throws duckdb::cxx::Exception if they cannot be read.
	void ReadAt(std::vector<std::uint8_t> &bytes, std::uint64_t offset);

private:
	bool remote;
	duckdb::cxx::FileHandle handle;
	std::uint64_t size;
	//! The first bytes of a remote file.
	std::vector<std::uint8_t> head;
};

} // namespace evtx
