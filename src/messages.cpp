#include "messages.hpp"

#include "log_file.hpp"

#include <algorithm>
#include <locale>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace evtx {

namespace {

using duckdb::cxx::Context;

//! The bytes that a size stands for as DuckDB writes it, `24.9 GiB`. 0 if it is none.
std::uint64_t ParseSize(const std::string &text) {
	std::istringstream in(text);
	in.imbue(std::locale::classic());
	double bytes = 0;
	std::string unit;
	in >> bytes >> unit;
	for (const auto *known : {"bytes", "KiB", "MiB", "GiB", "TiB"}) {
		if (unit == known) {
			return static_cast<std::uint64_t>(bytes);
		}
		bytes *= 1024;
	}
	return 0;
}

//! Takes bytes from those that are left, if there are as many.
bool Take(std::atomic<std::uint64_t> &left, std::uint64_t bytes) {
	auto known = left.load();
	while (known >= bytes) {
		if (left.compare_exchange_weak(known, known - bytes)) {
			return true;
		}
	}
	return false;
}

//! Messages, and the memory that they take of what is left for others.
struct HeldMessages {
	HeldMessages(Messages messages_p, std::shared_ptr<std::atomic<std::uint64_t>> memory_p)
	    : messages(std::move(messages_p)), memory(std::move(memory_p)) {}
	HeldMessages(const HeldMessages &) = delete;
	HeldMessages(HeldMessages &&) = delete;
	HeldMessages &operator=(const HeldMessages &) = delete;
	HeldMessages &operator=(HeldMessages &&) = delete;
	~HeldMessages() {
		memory->fetch_add(messages.Memory());
	}

	Messages messages;
	std::shared_ptr<std::atomic<std::uint64_t>> memory;
};

} // namespace

MessageFinder::MessageFinder(Context &context, std::string place_p) : place(std::move(place_p)) {
	const auto limit = context.GetConfig().GetOption("memory_limit").value.ToText();
	memory = std::make_shared<std::atomic<std::uint64_t>>(ParseSize(limit) / 4);
}

std::shared_ptr<const Messages> MessageFinder::Find(Interrupt &interrupt, const std::string &log) const {
	try {
		const auto pattern = Messages::GetPattern(log, place);
		const auto found = pattern ? interrupt.Files().Glob(*pattern) : std::vector<std::string>();
		if (found.empty()) {
			return nullptr;
		}
		// There is one for each language that the log was saved with.
		return Read(interrupt, *std::min_element(found.begin(), found.end()));
	} catch (const duckdb::cxx::InterruptException &) {
		throw;
	} catch (const duckdb::cxx::Exception &) {
		return nullptr;
	}
}

std::shared_ptr<const Messages> MessageFinder::Read(Interrupt &interrupt, const std::string &path) const {
	ScanPath named;
	named.path = path;
	LogFile file(interrupt.Files(), named);
	auto messages = Messages::Create(file.Size(), memory->load());
	if (!messages || !Take(*memory, messages->Memory())) {
		return nullptr;
	}
	const auto held = std::make_shared<HeldMessages>(std::move(*messages), memory);
	std::vector<std::uint8_t> bytes;
	for (std::uint64_t offset = 0; offset < file.Size(); offset += bytes.size()) {
		interrupt.Check();
		bytes.resize(std::min(file.PieceSize(), file.Size() - offset));
		file.ReadAt(bytes, offset);
		held->messages.Push(bytes);
	}
	if (!held->messages.Read(interrupt)) {
		return nullptr;
	}
	return {held, &held->messages};
}

} // namespace evtx
