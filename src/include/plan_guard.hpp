#pragma once

#include <atomic>
#include <memory>
#include <string>

namespace evtx {

//! Tells whether a call of a table function may take predicates over, so that they hold for that call alone.
//!
//! DuckDB forgets predicates that a function has accepted: a plan that it copies binds the call anew, and two calls
//! with the same arguments count as the same scan, whatever each has accepted. Both would give wrong rows. So a call
//! accepts nothing while another with the same arguments is part of the statement being planned, and a copy of a call
//! that has accepted predicates is refused, upon which DuckDB leaves the plan as it is.
//!
//! The engine does not say that a bind is for a copy. But a call's default arguments are the signature's own constants,
//! and those of a copy are read back from the plan, so they stand elsewhere in memory.
class PlanGuard {
public:
	//! Tells the calls of a registered function from copies of them.
	class Defaults {
	public:
		//! Whether a call is no copy, by where the constant of a default argument stands; null if the caller has given
		//! that argument. No call can be copied before the first, which so tells where the signature's own constant is.
		bool IsOriginal(const void *default_argument);

	private:
		std::atomic<const void *> first {nullptr};
	};

	//! Of a call that is being bound, with its arguments as text.
	//! @throws duckdb::cxx::Exception if the call is a copy of one that has accepted predicates.
	PlanGuard(std::string arguments, bool is_original);

	//! Whether the call may accept predicates now. If so, it has.
	bool MayAccept();

	//! Tells that the call is run: its plan is made, and not part of what is planned next.
	void Run() const;

private:
	struct Call;
	struct Registry;
	std::shared_ptr<Call> call;
};

} // namespace evtx
