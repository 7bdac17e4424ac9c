#include "plan_guard.hpp"

#include "duckdb_cpp.hpp"
#include "duckdb_v2.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace evtx {

//! What others have to know of a call. A statement is bound and planned by one thread.
struct PlanGuard::Call {
	std::string arguments;
	std::thread::id thread = std::this_thread::get_id();
	//! Whether it is known to be no copy.
	bool is_original = false;
	std::atomic<bool> accepted {false};
	std::atomic<bool> run {false};

	//! Whether both may be part of the statement that the thread is planning, and read the same.
	bool IsTwin(const Call &other) const {
		return this != &other && !other.run && thread == other.thread && arguments == other.arguments;
	}
};

//! The calls that are alive.
struct PlanGuard::Registry {
	static Registry &Get() {
		static Registry registry;
		return registry;
	}

	void Add(const std::shared_ptr<Call> &call) {
		const std::scoped_lock guard(lock);
		const auto is_gone = [](const std::weak_ptr<Call> &other) { return other.expired(); };
		calls.erase(std::remove_if(calls.begin(), calls.end(), is_gone), calls.end());
		calls.push_back(call);
	}

	template <class F>
	bool Any(F is) {
		const std::scoped_lock guard(lock);
		return std::any_of(calls.begin(), calls.end(), [&](const std::weak_ptr<Call> &other) {
			const auto alive = other.lock();
			return alive && is(*alive);
		});
	}

private:
	std::mutex lock;
	std::vector<std::weak_ptr<Call>> calls;
};

bool PlanGuard::Defaults::IsOriginal(const void *default_argument) {
	const void *none = nullptr;
	first.compare_exchange_strong(none, default_argument);
	return default_argument && default_argument == first;
}

PlanGuard::PlanGuard(std::string arguments, bool is_original) : call(std::make_shared<Call>()) {
	call->arguments = std::move(arguments);
	call->is_original = is_original;
	auto &registry = Registry::Get();
	if (!call->is_original && registry.Any([&](const Call &other) { return call->IsTwin(other) && other.accepted; })) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_NOT_IMPLEMENTED,
		                             "a plan whose predicates read_evtx decides cannot be copied");
	}
	registry.Add(call);
}

bool PlanGuard::MayAccept() {
	if (!call->is_original || Registry::Get().Any([&](const Call &other) { return call->IsTwin(other); })) {
		return false;
	}
	call->accepted = true;
	return true;
}

void PlanGuard::Run() const {
	call->run = true;
}

} // namespace evtx
