#pragma once

//! The arguments of `read_evtx` and the options of `COPY ... FROM`, which are the same: the core has the list of them.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! The files that a path, a glob, a folder, or a list of them stands for. `function` is who asks.
//! @throws duckdb::cxx::Exception if there are none, if the value is no such thing, or if the query was interrupted.
Paths ExpandPaths(Storage &storage, const duckdb::cxx::Value &value, const std::string &function);

//! All arguments, in the order of their names.
std::vector<EvtxArgument> ListArguments();

inline std::string_view GetName(const EvtxArgument &argument) {
	return {argument.name, argument.name_len};
}

//! What a call says beside its files.
class ArgumentSetter {
public:
	//! For `function`, which errors name.
	explicit ArgumentSetter(std::string function);

	//! Takes an argument.
	//! @throws duckdb::cxx::Exception if it does not take the value.
	void Set(const EvtxArgument &argument, const duckdb::cxx::Value &value);
	//! Takes the argument of a name. Returns false if there is none.
	bool Set(std::string_view name, const duckdb::cxx::Value &value);

	//! What a statement with these arguments reads of `files`. Reads some of them if the columns depend on them.
	//! @throws duckdb::cxx::Exception as `ExpandPaths`.
	std::shared_ptr<const EvtxCall> MakeCall(duckdb::cxx::Context &context, const duckdb::cxx::Value &files) const;

private:
	std::string function;
	Arguments arguments;
};

} // namespace evtx
