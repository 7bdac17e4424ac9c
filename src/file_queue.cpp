#include "file_queue.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace evtx {

namespace {

//! How long a thread waits for others before it looks for an interrupt.
constexpr std::chrono::milliseconds WAIT(20);

//! Reads what a survey wants of a file, to its end. Returns why the file is not a log, if it is none.
std::optional<std::string> Run(Survey &survey, LogFile &log, Interrupt &interrupt) {
	std::vector<std::uint8_t> bytes;
	while (auto range = survey.Wants()) {
		interrupt.Check();
		bytes.resize(range->len);
		log.ReadAt(bytes, range->offset);
		if (auto why_not = survey.Push(bytes)) {
			return why_not;
		}
	}
	return std::nullopt;
}

} // namespace

FileQueue::FileQueue(std::vector<ScanPath> paths, const EvtxOptions &options_p, std::optional<MessageFinder> messages_p)
    : options(options_p), messages(std::move(messages_p)) {
	entries.reserve(paths.size());
	for (auto &path : paths) {
		Entry entry;
		entry.path = std::move(path);
		entries.push_back(std::move(entry));
	}
}

std::optional<Work> FileQueue::Claim(Interrupt &interrupt, std::uint64_t last_file) {
	std::unique_lock<std::mutex> guard(lock);
	while (true) {
		while (first < unopened && entries[first].state == State::DONE) {
			first++;
		}
		bool opening = false;
		for (auto index = std::max(first, last_file); index < unopened; index++) {
			if (entries[index].state == State::OPEN) {
				return ClaimBlock(index);
			}
			opening = opening || entries[index].state == State::OPENING;
		}
		if (unopened < entries.size()) {
			const auto index = unopened++;
			entries[index].state = State::OPENING;
			guard.unlock();
			return Open(interrupt, index);
		}
		if (!opening) {
			return std::nullopt;
		}
		// The file that another thread is opening may have blocks for this one.
		opened.wait_for(guard, WAIT);
		guard.unlock();
		interrupt.Check();
		guard.lock();
	}
}

//! Hands out the next block of an open file. Called under the lock.
Work FileQueue::ClaimBlock(std::uint64_t index) {
	auto &entry = entries[index];
	Work work;
	work.path = &entry.path;
	work.file_index = index;
	work.batch_index = GetBatchIndex(entries.size(), index, entry.next_block);
	work.file = entry.file;
	work.block = entry.file->survey.GetBlock(entry.next_block);
	entry.next_block++;
	if (entry.next_block == entry.file->block_count) {
		// The threads that decode its blocks keep it open.
		entry.state = State::DONE;
		entry.file.reset();
	}
	return work;
}

//! Opens a file, outside of the lock, and hands out its first block or what is wrong with it.
Work FileQueue::Open(Interrupt &interrupt, std::uint64_t index) {
	const auto &files = interrupt.Files();
	auto &entry = entries[index];
	const auto finish = [&](State state) {
		const std::scoped_lock guard(lock);
		entry.state = state;
		opened.notify_all();
	};
	Work work;
	work.path = &entry.path;
	work.file_index = index;
	work.batch_index = GetBatchIndex(entries.size(), index, 0);
	try {
		LogFile log(files, entry.path);
		Survey survey(log.Size(), log.IsRemote(), options.recover);
		if (auto why_not = Run(survey, log, interrupt)) {
			if (entry.path.named) {
				throw duckdb::cxx::InvalidInputException(entry.path.path + ": " + *why_not);
			}
			work.damage = std::move(why_not);
		} else {
			if (options.verify) {
				work.damage = survey.Verify();
			}
			entry.file = std::make_shared<OpenFile>(std::move(log), std::move(survey));
			if (messages && !entry.file->log.IsRemote()) {
				entry.file->messages = messages->Find(interrupt, entry.path.path);
			}
		}
	} catch (const duckdb::cxx::InterruptException &) {
		finish(State::DONE);
		throw;
	} catch (const duckdb::cxx::Exception &error) {
		finish(State::DONE);
		if (entry.path.named) {
			throw;
		}
		work.damage = DescribeFailure(error);
		return work;
	} catch (...) {
		finish(State::DONE);
		throw;
	}
	if (!entry.file || entry.file->block_count == 0) {
		entry.file.reset();
		finish(State::DONE);
		return work;
	}
	const std::scoped_lock guard(lock);
	entry.state = State::OPEN;
	auto block = ClaimBlock(index);
	block.damage = std::move(work.damage);
	opened.notify_all();
	return block;
}

bool FileQueue::GiveUp(std::uint64_t index) {
	const std::scoped_lock guard(lock);
	auto &entry = entries[index];
	entry.state = State::DONE;
	entry.file.reset();
	return !std::exchange(entry.given_up, true);
}

double FileQueue::Progress() const {
	const std::scoped_lock guard(lock);
	auto done = static_cast<double>(first);
	for (auto index = first; index < unopened; index++) {
		const auto &entry = entries[index];
		if (entry.state == State::DONE) {
			done += 1;
		} else if (entry.state == State::OPEN) {
			done += static_cast<double>(entry.next_block) / static_cast<double>(entry.file->block_count);
		}
	}
	return entries.empty() ? 1 : done / static_cast<double>(entries.size());
}

} // namespace evtx
