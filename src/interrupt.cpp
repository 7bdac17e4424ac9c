#include "interrupt.hpp"

namespace evtx {

namespace {

//! How long an answer counts. To ask takes some microseconds.
constexpr std::chrono::milliseconds INTERVAL(5);

} // namespace

Interrupt::Interrupt(duckdb::cxx::Context &context)
    : files(context.GetFileSystem()), next(std::chrono::steady_clock::now() + INTERVAL) {}

//! Returns whether the glob could be expanded, so that there is no interrupt. If not, there may be one.
bool Interrupt::Ask(const std::string &glob) noexcept {
	try {
		files.Glob(glob);
		return true;
	} catch (const duckdb::cxx::InterruptException &) {
		interrupted = std::current_exception();
		return false;
	} catch (...) {
		return false;
	}
}

bool Interrupt::IsSet() noexcept {
	const auto now = std::chrono::steady_clock::now();
	if (!interrupted && now >= next) {
		next = now + INTERVAL;
		if (!Ask("") && !interrupted && path) {
			Ask(*path);
		}
	}
	return interrupted != nullptr;
}

void Interrupt::Check() {
	if (IsSet()) {
		std::rethrow_exception(interrupted);
	}
}

EvtxInterrupt Interrupt::ForCore() {
	return {[](void *self) { return static_cast<Interrupt *>(self)->IsSet(); }, this};
}

} // namespace evtx
