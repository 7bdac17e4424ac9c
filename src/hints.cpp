#include "hints.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace evtx {

static_assert(sizeof(EvtxNode) == 32, "nodes are compared as bytes, so nothing may lie between their fields");

bool Hints::operator==(const Hints &other) const {
	return nodes.size() == other.nodes.size() && bytes == other.bytes && kept_paths == other.kept_paths &&
	       (nodes.empty() || std::memcmp(nodes.data(), other.nodes.data(), nodes.size() * sizeof(EvtxNode)) == 0);
}

//! The calls that are alive, by their arguments.
struct PlannedCall::Registry {
	static Registry &Get() {
		static Registry registry;
		return registry;
	}

	std::mutex lock;
	std::unordered_map<std::string, std::vector<PlannedCall *>> calls;
};

PlannedCall::PlannedCall(std::string arguments_p) : arguments(std::move(arguments_p)) {
	auto &registry = Registry::Get();
	const std::scoped_lock guard(registry.lock);
	registry.calls[arguments].push_back(this);
}

PlannedCall::~PlannedCall() {
	auto &registry = Registry::Get();
	const std::scoped_lock guard(registry.lock);
	const auto found = registry.calls.find(arguments);
	auto &calls = found->second;
	calls.erase(std::find(calls.begin(), calls.end(), this));
	for (auto *other : calls) {
		other->may_be_shared = other->may_be_shared || (!has_run && !other->has_run && !(other->hints == hints));
	}
	if (calls.empty()) {
		registry.calls.erase(found);
	}
}

void PlannedCall::Tell(Hints hints_p) {
	const std::scoped_lock guard(Registry::Get().lock);
	hints = std::move(hints_p);
	may_be_shared = false;
}

const Hints &PlannedCall::Run() const {
	const std::scoped_lock guard(Registry::Get().lock);
	has_run = true;
	return may_be_shared ? none : hints;
}

} // namespace evtx
