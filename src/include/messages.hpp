#pragma once

//! The messages that stand beside logs.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "interrupt.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace evtx {

//! Finds the messages of a scan's logs, and reads them as far as there is memory for them.
class MessageFinder {
public:
	//! `place` is where the messages of a log stand, as the argument `messages` says it. They take a quarter of the
	//! context's `memory_limit` at most.
	MessageFinder(duckdb::cxx::Context &context, std::string place);

	//! The messages that stand beside a log. None if they cannot be read: they are no part of the log.
	//! @throws duckdb::cxx::Exception if the query was interrupted.
	std::shared_ptr<const Messages> Find(Interrupt &interrupt, const std::string &log) const;

private:
	std::shared_ptr<const Messages> Read(Interrupt &interrupt, const std::string &path) const;

	std::string place;
	//! Bytes that are left for the messages of files to come.
	std::shared_ptr<std::atomic<std::uint64_t>> memory;
};

} // namespace evtx
