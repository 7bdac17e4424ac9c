#include "log_file.hpp"

#include "duckdb_v2.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::FileFlags;
using duckdb::cxx::FileSystem;

//! A piece of a file: the core's blocks are as large.
constexpr std::uint64_t LOCAL_PIECE = 1U << 20U;
constexpr std::uint64_t REMOTE_PIECE = 8U << 20U;
constexpr std::uint64_t FILE_HEADER = 4096;

//! What an estimate takes for the size of a file that it does not ask for, for that of a record, and how many files it
//! asks at most.
constexpr std::uint64_t USUAL_SIZE = 20U << 20U;
constexpr std::uint64_t USUAL_RECORD = 800;
constexpr std::size_t MAX_ASKED = 64;

//! Refuses what has no offsets. To open a pipe would wait for someone who writes to it.
void CheckKind(const FileSystem &files, const std::string &path) {
	std::error_code ignored;
	const auto kind = std::filesystem::status(files.Expand(path), ignored).type();
	if (kind == std::filesystem::file_type::fifo || kind == std::filesystem::file_type::socket ||
	    kind == std::filesystem::file_type::character) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL,
		                             "Cannot read \"" + path +
		                                 "\": it is a pipe or a device, and logs are read at offsets");
	}
}

duckdb::cxx::FileHandle Open(const FileSystem &files, const ScanPath &path, bool remote) {
	if (!path.is_text) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL, "its name is not UTF-8");
	}
	if (!remote) {
		CheckKind(files, path.path);
	}
	return files.OpenFile(path.path, {FileFlags::READ, FileFlags::PARALLEL_ACCESS});
}

} // namespace

std::string DescribeFailure(const duckdb::cxx::Exception &error) {
	return "cannot be read: " + (error.GetRawMessage().empty() ? error.what() : error.GetRawMessage());
}

bool LogFile::IsRemote(const FileSystem &files, const std::string &path) {
	return files.IsRemote(path) || (path.find("://") != std::string::npos && path.rfind("file://", 0) != 0);
}

LogFile::LogFile(const FileSystem &files, const ScanPath &path)
    : remote(IsRemote(files, path.path)), handle(Open(files, path, remote)), size(handle.Size()) {
	if (remote && size > 0) {
		std::vector<std::uint8_t> first(std::min(size, FILE_HEADER + REMOTE_PIECE));
		handle.ReadAt(first.data(), first.size(), 0);
		head = std::move(first);
	}
}

std::uint64_t LogFile::EstimateRecords(Interrupt &interrupt, const std::vector<ScanPath> &paths) {
	const auto asked = std::min(paths.size(), MAX_ASKED);
	std::uint64_t size = 0;
	for (std::size_t i = 0; i < asked; i++) {
		interrupt.Check();
		const auto &path = paths[i * paths.size() / asked];
		if (IsRemote(interrupt.Files(), path.path)) {
			size += USUAL_SIZE;
			continue;
		}
		try {
			size += Open(interrupt.Files(), path, false).Size();
		} catch (const duckdb::cxx::Exception &) {
			// The scan tells of it.
			continue;
		}
	}
	return asked == 0 ? 0 : size / asked * paths.size() / USUAL_RECORD;
}

std::uint64_t LogFile::PieceSize() const {
	return remote ? REMOTE_PIECE : LOCAL_PIECE;
}

void LogFile::ReadAt(std::vector<std::uint8_t> &bytes, std::uint64_t offset) {
	if (bytes.empty()) {
		return;
	}
	if (offset + bytes.size() <= head.size()) {
		std::copy_n(head.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), bytes.begin());
		return;
	}
	handle.ReadAt(bytes.data(), bytes.size(), offset);
}

} // namespace evtx
