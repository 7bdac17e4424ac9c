#include "messages.hpp"

#include "log_file.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

namespace evtx {

namespace {

using duckdb::cxx::Context;

//! The bytes that a size stands for as DuckDB writes it, `24.9 GiB`. 0 if it is none.
std::uint64_t ParseSize(const std::string &text) {
	constexpr std::array<std::string_view, 5> UNITS = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	std::istringstream in(text);
	in.imbue(std::locale::classic());
	double number = 0;
	std::string unit;
	in >> number >> unit;
	const auto *found = std::find(UNITS.begin(), UNITS.end(), unit);
	if (!in || found == UNITS.end()) {
		return 0;
	}
	return static_cast<std::uint64_t>(number * static_cast<double>(1ULL << (10U * (found - UNITS.begin()))));
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
	// What was taken is given back with them.
	const std::shared_ptr<Messages> result(new Messages(std::move(*messages)), [left = memory](Messages *done) {
		left->fetch_add(done->Memory());
		delete done;
	});
	std::vector<std::uint8_t> bytes;
	for (std::uint64_t offset = 0; offset < file.Size(); offset += bytes.size()) {
		interrupt.Check();
		bytes.resize(std::min(file.PieceSize(), file.Size() - offset));
		file.ReadAt(bytes, offset);
		result->Push(bytes);
	}
	return result->Read(interrupt) ? result : nullptr;
}

} // namespace evtx
