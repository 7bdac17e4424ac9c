#include "log_file.hpp"

#include <algorithm>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::FileFlags;
using duckdb::cxx::FileSystem;

//! A piece of a file: the core's blocks are as large.
constexpr std::uint64_t LOCAL_PIECE = 1U << 20U;
constexpr std::uint64_t REMOTE_PIECE = 8U << 20U;
constexpr std::uint64_t FILE_HEADER = 4096;

} // namespace

bool LogFile::IsRemote(const FileSystem &files, const std::string &path) {
	return files.IsRemote(path) || (path.find("://") != std::string::npos && path.rfind("file://", 0) != 0);
}

LogFile::LogFile(const FileSystem &files, const std::string &path)
    : remote(IsRemote(files, path)), handle(files.OpenFile(path, {FileFlags::READ, FileFlags::PARALLEL_ACCESS})),
      size(handle.Size()) {
	if (remote && size > 0) {
		std::vector<std::uint8_t> first(std::min(size, FILE_HEADER + REMOTE_PIECE));
		handle.ReadAt(first.data(), first.size(), 0);
		head = std::move(first);
	}
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
