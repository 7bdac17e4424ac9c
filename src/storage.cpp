#include "storage.hpp"

#include "duckdb_v2.h"

#include <exception>
#include <filesystem>
#include <memory>
#include <system_error>

namespace evtx {

namespace {

using duckdb::cxx::FileFlags;
using duckdb::cxx::FileHandle;
using duckdb::cxx::FileSystem;

//! How often DuckDB is asked whether the query was interrupted. Each time takes some microseconds.
constexpr std::chrono::milliseconds INTERVAL(5);

//! The last exception of a storage in this thread. It cannot be thrown through the core, so it is kept.
thread_local std::exception_ptr kept;

//! Runs a callback of the storage, and keeps its exception.
template <class Body>
std::uint32_t Guard(EvtxTexts *texts, Body body) noexcept {
	const auto failed = [&](std::string_view why) {
		if (texts) {
			evtx_texts_push(texts, reinterpret_cast<const std::uint8_t *>(why.data()), why.size());
		}
		return static_cast<std::uint32_t>(EvtxStorageCode::FAILED);
	};
	try {
		body();
		return static_cast<std::uint32_t>(EvtxStorageCode::DONE);
	} catch (const duckdb::cxx::InterruptException &) {
		kept = std::current_exception();
		return static_cast<std::uint32_t>(EvtxStorageCode::INTERRUPTED);
	} catch (const duckdb::cxx::Exception &error) {
		kept = std::current_exception();
		const auto &raw = error.GetRawMessage();
		return failed(raw.empty() ? error.what() : raw);
	} catch (const std::exception &error) {
		kept = std::current_exception();
		return failed(error.what());
	} catch (...) {
		kept = std::current_exception();
		return failed("for an unknown reason");
	}
}

bool IsRemotePath(const FileSystem &files, const std::string &path) {
	return files.IsRemote(path) || (path.find("://") != std::string::npos && path.rfind("file://", 0) != 0);
}

//! Refuses files that cannot be read at offsets. To open a pipe would block until a process writes to it.
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

} // namespace

Storage::Storage(duckdb::cxx::Context &context, std::string_view reading_p)
    : files(context.GetFileSystem()), reading(reading_p), next(std::chrono::steady_clock::now() + INTERVAL) {}

EvtxStorage Storage::ForCore() {
	return {this, Glob,   Exists, IsRemote,
	        Open, ReadAt, Close,  [](void *self) { return static_cast<Storage *>(self)->IsSet(); }};
}

//! Expands a glob, which throws if the query was interrupted. Returns whether the glob could be expanded.
bool Storage::Ask(const std::string &glob) noexcept {
	try {
		files.Glob(glob);
		return true;
	} catch (const duckdb::cxx::InterruptException &) {
		kept = std::current_exception();
		interrupted = true;
		return false;
	} catch (...) {
		return false;
	}
}

bool Storage::IsSet() noexcept {
	const auto now = std::chrono::steady_clock::now();
	if (!interrupted && now >= next) {
		next = now + INTERVAL;
		if (!Ask("") && !interrupted && !reading.empty()) {
			Ask(reading);
		}
	}
	return interrupted;
}

void Storage::Check() {
	if (IsSet()) {
		ThrowKept();
	}
}

void Storage::ThrowKept() {
	std::rethrow_exception(kept ? kept : std::make_exception_ptr(duckdb::cxx::InterruptException("interrupted")));
}

std::uint32_t Storage::Glob(void *self, const char *pattern, std::uintptr_t len, EvtxTexts *texts) {
	return Guard(texts, [&] {
		for (const auto &path : static_cast<Storage *>(self)->files.Glob(std::string(pattern, len))) {
			evtx_texts_push(texts, reinterpret_cast<const std::uint8_t *>(path.data()), path.size());
		}
	});
}

std::uint32_t Storage::Exists(void *self, const char *path, std::uintptr_t len, bool *exists, EvtxTexts *texts) {
	return Guard(texts, [&] { *exists = static_cast<Storage *>(self)->files.Exists(std::string(path, len)); });
}

bool Storage::IsRemote(void *self, const char *path, std::uintptr_t len) {
	bool remote = false;
	Guard(nullptr, [&] { remote = IsRemotePath(static_cast<Storage *>(self)->files, std::string(path, len)); });
	return remote;
}

std::uint32_t Storage::Open(void *self, const char *path, std::uintptr_t len, void **file, EvtxFileInfo *info,
                            EvtxTexts *texts) {
	return Guard(texts, [&] {
		auto &storage = *static_cast<Storage *>(self);
		std::string name(path, len);
		std::error_code ignored;
		if (!IsRemotePath(storage.files, name)) {
			CheckKind(storage.files, name);
			const auto modified = std::filesystem::last_write_time(storage.files.Expand(name), ignored);
			if (!ignored) {
				info->modified = modified.time_since_epoch().count();
				info->age = std::chrono::nanoseconds(decltype(modified)::clock::now() - modified).count();
			}
		}
		auto handle =
		    std::make_unique<FileHandle>(storage.files.OpenFile(name, {FileFlags::READ, FileFlags::PARALLEL_ACCESS}));
		info->size = handle->Size();
		storage.reading = std::move(name);
		*file = handle.release();
	});
}

std::uint32_t Storage::ReadAt(void *file, std::uint8_t *buffer, std::uintptr_t len, std::uint64_t offset,
                              EvtxTexts *texts) {
	return Guard(texts, [&] { static_cast<FileHandle *>(file)->ReadAt(buffer, len, offset); });
}

void Storage::Close(void *file) {
	const std::unique_ptr<FileHandle> owned(static_cast<FileHandle *>(file));
}

} // namespace evtx
