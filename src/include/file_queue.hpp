#pragma once

//! The files of a scan, handed out in blocks to the threads that decode them.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "log_file.hpp"
#include "messages.hpp"
#include "paths.hpp"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace evtx {

//! A file that is open, and how it is laid out.
struct OpenFile {
	OpenFile(LogFile log_p, Survey survey_p)
	    : log(std::move(log_p)), survey(std::move(survey_p)), block_count(survey.BlockCount()) {}

	LogFile log;
	Survey survey;
	std::uint64_t block_count;
	//! The messages that stand beside it, if they are asked for and there are any.
	std::shared_ptr<const Messages> messages;
};

//! What a thread works on next: a block of a file, or what is wrong with a file.
struct Work {
	const ScanPath *path = nullptr;
	//! The number of the file among those of the scan.
	std::uint64_t file_index = 0;
	//! Position in the order of all rows: that of the file, then that of the block.
	std::uint64_t batch_index = 0;
	//! Set if the file cannot be read, or if its header is damaged.
	std::optional<std::string> damage;
	//! Null if the file cannot be read.
	std::shared_ptr<OpenFile> file;
	EvtxBlock block {};
};

//! Hands out work in the order of the rows. Threads share the blocks of a file; a thread that finds none opens the next
//! file.
class FileQueue {
public:
	//! `messages` finds the messages of a log, if they are asked for.
	FileQueue(std::vector<ScanPath> paths, const EvtxOptions &options, std::optional<MessageFinder> messages);

	//! The next work for a thread whose last was of the file with this number; none at the end. Batch indexes of a
	//! thread rise.
	//! @throws duckdb::cxx::Exception if a file that the caller named cannot be read, or if the query was interrupted.
	std::optional<Work> Claim(Interrupt &interrupt, std::uint64_t last_file);

	//! Hands out no more of a file that was opened, as it cannot be read on. Returns false if it was given up before.
	bool GiveUp(std::uint64_t index);

	//! The share of the scan that was handed out, 0 to 1: files by their number, each by its blocks.
	double Progress() const;

private:
	enum class State : std::uint8_t {
		//! Not looked at.
		WAITING,
		//! A thread is finding out how it is laid out.
		OPENING,
		//! It has blocks to hand out.
		OPEN,
		//! All of it was handed out.
		DONE
	};
	struct Entry {
		ScanPath path;
		State state = State::WAITING;
		std::shared_ptr<OpenFile> file;
		std::uint64_t next_block = 0;
		bool given_up = false;
	};

	Work ClaimBlock(std::uint64_t index);
	Work Open(Interrupt &interrupt, std::uint64_t index);

	const EvtxOptions options;
	const std::optional<MessageFinder> messages;
	mutable std::mutex lock;
	std::condition_variable opened;
	std::vector<Entry> entries;
	//! Entries before this one are done; entries from `unopened` on are waiting.
	std::uint64_t first = 0;
	std::uint64_t unopened = 0;
};

} // namespace evtx
