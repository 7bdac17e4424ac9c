#include "storage.hpp"

#include "core.hpp"
#include "duckdb_v2.h"

#include <condition_variable>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace evtx {

namespace {

using duckdb::cxx::FileFlags;
using duckdb::cxx::FileHandle;
using duckdb::cxx::FileSystem;

//! How often to ask DuckDB whether the query was interrupted. Asking takes some microseconds.
constexpr std::chrono::milliseconds INTERVAL(5);

//! The last exception of a storage in this thread. It must not be thrown through the core, so it is kept.
thread_local std::exception_ptr kept;

//! Runs a callback of the storage, and keeps its exception.
template <class Body>
EvtxStorageCode Guard(EvtxTexts *texts, Body body) noexcept {
	const auto failed = [&](std::string_view why) {
		// Windows' messages end with a line break.
		evtx_texts_push(texts, Lend(why.substr(0, why.find_last_not_of("\r\n ") + 1)));
		return EvtxStorageCode::FAILED;
	};
	try {
		body();
		return EvtxStorageCode::DONE;
	} catch (const duckdb::cxx::InterruptException &) {
		kept = std::current_exception();
		return EvtxStorageCode::INTERRUPTED;
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

//! How threads may use the file system of a path.
enum class Sharing {
	//! A file of this machine: any number of threads read by one handle at once.
	ONE_HANDLE,
	//! A scheme of DuckDB's, such as `s3://`: each thread has its own handle.
	OWN_HANDLES,
	//! Any other scheme: a file system that is registered in Python. All threads of the process take turns, with all of
	//! its files. Its handles seek and then read, and can share one position: all handles of a file in fsspec's memory
	//! do, and all handles of files in a tar file.
	TURNS
};

Sharing SharingOf(const FileSystem &files, const std::string &path) {
	if (files.IsRemote(path)) {
		return Sharing::OWN_HANDLES;
	}
	const bool has_scheme = path.find("://") != std::string::npos && path.rfind("file://", 0) != 0;
	return has_scheme ? Sharing::TURNS : Sharing::ONE_HANDLE;
}

//! Refuses files that cannot be read at offsets. Opening a pipe would block until a process writes to it.
void CheckKind(const FileSystem &files, const std::string &path) {
	// Fails if DuckDB's settings forbid the file. Then nobody may learn what it is.
	files.Exists(path);
	std::error_code ignored;
	const auto kind = std::filesystem::status(std::filesystem::u8path(files.Expand(path)), ignored).type();
	if (kind == std::filesystem::file_type::fifo || kind == std::filesystem::file_type::socket ||
	    kind == std::filesystem::file_type::character) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL,
		                             "Cannot read \"" + path +
		                                 "\": it is a pipe or a device, and logs are read at offsets");
	}
}

//! The storage of the call that this thread serves, if any.
thread_local Storage *of_call = nullptr;

//! The turn of a thread with the file systems that are registered in Python. A waiting thread checks for interrupts.
//!
//! A thread that closes a handle can hold Python's lock, and the thread with the turn may wait for that lock. So
//! closing never waits: it is left to the thread with the turn.
class Turn {
public:
	explicit Turn(Sharing sharing) {
		if (sharing != Sharing::TURNS) {
			return;
		}
		guard = std::unique_lock<std::timed_mutex>(turn, std::defer_lock);
		while (!guard.try_lock_for(INTERVAL)) {
			if (of_call) {
				of_call->Check();
			}
		}
	}

	~Turn() {
		if (guard.owns_lock()) {
			guard.unlock();
			CloseLeft();
		}
	}

	Turn(const Turn &) = delete;
	Turn &operator=(const Turn &) = delete;

	static void Close(FileHandle handle) {
		{
			const std::scoped_lock<std::mutex> guard(left_lock);
			left.push_back(std::move(handle));
		}
		CloseLeft();
	}

private:
	//! Closes the handles that are left, unless another thread has the turn. That thread closes them afterwards.
	static void CloseLeft() {
		while (true) {
			std::vector<FileHandle> closing;
			const std::unique_lock<std::timed_mutex> guard(turn, std::try_to_lock);
			if (!guard.owns_lock()) {
				return;
			}
			const std::scoped_lock<std::mutex> left_guard(left_lock);
			if (left.empty()) {
				return;
			}
			closing.swap(left);
		}
	}

	static inline std::timed_mutex turn;
	static inline std::mutex left_lock;
	static inline std::vector<FileHandle> left;

	std::unique_lock<std::timed_mutex> guard;
};

//! An open file.
class OpenFile {
public:
	OpenFile(const FileSystem &files, std::string name_p) : name(std::move(name_p)), sharing(SharingOf(files, name)) {
		if (sharing == Sharing::ONE_HANDLE) {
			CheckKind(files, name);
		}
		const Turn turn(sharing);
		idle.push_back(Open(files));
		size = idle.front().Size();
	}

	~OpenFile() {
		if (sharing == Sharing::TURNS) {
			Turn::Close(std::move(idle.front()));
		}
	}

	OpenFile(const OpenFile &) = delete;
	OpenFile &operator=(const OpenFile &) = delete;

	std::uint64_t Size() const {
		return size;
	}

	void ReadAt(std::uint8_t *buffer, std::uintptr_t len, std::uint64_t offset) {
		if (sharing != Sharing::OWN_HANDLES) {
			const Turn turn(sharing);
			idle.front().ReadAt(buffer, len, offset);
			return;
		}
		auto handle = Take();
		try {
			handle.ReadAt(buffer, len, offset);
		} catch (...) {
			GiveBack(std::move(handle));
			throw;
		}
		GiveBack(std::move(handle));
	}

private:
	FileHandle Open(const FileSystem &files) const {
		try {
			return files.OpenFile(name, {FileFlags::READ, FileFlags::PARALLEL_ACCESS});
		} catch (const duckdb::cxx::InterruptException &) {
			throw;
		} catch (const duckdb::cxx::Exception &error) {
			// On Windows, DuckDB names the absolute path. Name the file as the caller wrote it.
			auto text = error.GetRawMessage();
			const auto start = text.find('"') + 1;
			const auto end = text.find("\": ", start);
			if (start == 0 || end == std::string::npos || text.find(name) != std::string::npos) {
				throw;
			}
			throw duckdb::cxx::Exception(error.GetCode(), text.replace(start, end - start, name));
		}
	}

	//! A handle that no thread uses. Threads of the core have no file system to open another, and wait.
	FileHandle Take() {
		std::unique_lock<std::mutex> guard(lock);
		if (idle.empty() && of_call) {
			guard.unlock();
			return Open(of_call->Files());
		}
		given_back.wait(guard, [&] { return !idle.empty(); });
		auto handle = std::move(idle.back());
		idle.pop_back();
		return handle;
	}

	void GiveBack(FileHandle handle) {
		const std::scoped_lock<std::mutex> guard(lock);
		idle.push_back(std::move(handle));
		given_back.notify_one();
	}

	std::string name;
	Sharing sharing;
	std::uint64_t size;
	std::mutex lock;
	std::condition_variable given_back;
	//! The handles that no thread uses, or the only one, which all threads share.
	std::vector<FileHandle> idle;
};

} // namespace

Storage::Storage(duckdb::cxx::Context &context, std::string_view reading_p)
    : files(context.GetFileSystem()), before(std::exchange(of_call, this)), reading(reading_p),
      next(std::chrono::steady_clock::now() + INTERVAL) {}

Storage::~Storage() {
	of_call = before;
}

//! Expands a glob, which throws if the query was interrupted. Returns whether the glob could be expanded.
bool Storage::Ask(const std::string &glob) noexcept {
	try {
		// Without a turn: another thread could have it for long, and an open file was listed before.
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

EvtxStorage Storage::ForCore() {
	EvtxStorage callbacks {};
	callbacks.state = this;
	callbacks.glob = [](void *self, EvtxText pattern, EvtxTexts *texts) {
		return Guard(texts, [&] {
			const auto &files = static_cast<Storage *>(self)->files;
			const auto glob = GetText(pattern);
			const Turn turn(SharingOf(files, glob));
			for (const auto &path : files.Glob(glob)) {
				evtx_texts_push(texts, Lend(path));
			}
		});
	};
	callbacks.exists = [](void *self, EvtxText path, bool *exists, EvtxTexts *texts) {
		return Guard(texts, [&] {
			const auto &files = static_cast<Storage *>(self)->files;
			const auto name = GetText(path);
			const Turn turn(SharingOf(files, name));
			*exists = files.Exists(name);
		});
	};
	callbacks.is_remote = [](void *self, EvtxText path) {
		auto sharing = Sharing::ONE_HANDLE;
		Guard(nullptr, [&] { sharing = SharingOf(static_cast<Storage *>(self)->files, GetText(path)); });
		return sharing != Sharing::ONE_HANDLE;
	};
	callbacks.open = [](void *self, EvtxText path, void **file, std::uint64_t *size, EvtxTexts *texts) {
		return Guard(texts, [&] {
			auto &storage = *static_cast<Storage *>(self);
			auto name = GetText(path);
			auto opened = std::make_unique<OpenFile>(storage.files, name);
			*size = opened->Size();
			storage.reading = std::move(name);
			*file = opened.release();
		});
	};
	callbacks.read_at = [](void *file, std::uint8_t *buffer, std::uintptr_t len, std::uint64_t offset,
	                       EvtxTexts *texts) {
		return Guard(texts, [&] { static_cast<OpenFile *>(file)->ReadAt(buffer, len, offset); });
	};
	callbacks.close = [](void *file) { const std::unique_ptr<OpenFile> owned(static_cast<OpenFile *>(file)); };
	callbacks.is_set = [](void *self) { return static_cast<Storage *>(self)->IsSet(); };
	return callbacks;
}

} // namespace evtx
