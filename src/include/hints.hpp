#pragma once

#include "evtx_ffi.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace evtx {

//! What of a call's rows a query does not want, as far as a scan can save work by that. DuckDB decides every predicate
//! itself, so a scan that does without its hints gives the same result.
struct Hints {
	//! The query's predicates, each in postfix order, and the bytes that they refer to.
	std::vector<EvtxNode> nodes;
	std::string bytes;
	//! By number: whether a path may have such rows, as far as its folders tell. Empty if none tells anything.
	std::vector<std::uint8_t> kept_paths;

	bool operator==(const Hints &other) const;
};

//! A call as a part of plans: whether what it was told of a query's predicates still holds when it is run.
//!
//! After the predicates were told, DuckDB can make one scan of two with the same arguments, whatever each was told: the
//! rows of the one that stays are then the other's too. Nothing is said to either, and nothing that a call can see
//! names the statement that it is part of. But the scan that goes is destroyed before anything of the statement is run.
//! So a call does without its hints if another with the same arguments was destroyed unrun, with other hints, since
//! they were told. That can be another statement's too, which costs time and no rows.
class PlannedCall {
public:
	//! A call that was bound, with its arguments as text: all that makes it another one.
	explicit PlannedCall(std::string arguments);
	~PlannedCall();
	PlannedCall(const PlannedCall &) = delete;
	PlannedCall &operator=(const PlannedCall &) = delete;

	//! Takes the hints of a query, in the place of those before.
	void Tell(Hints hints);

	//! Tells that the call is run. Returns the hints that hold.
	const Hints &Run() const;

private:
	struct Registry;

	const std::string arguments;
	Hints hints;
	//! What no query has told anything.
	const Hints none;
	//! Guarded by the registry's lock.
	mutable bool has_run = false;
	bool may_be_shared = false;
};

} // namespace evtx
