#pragma once

//! The arguments of `read_evtx`, which are also the options of `COPY ... FROM`. The core has the list of them.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! All arguments, sorted by name.
std::vector<EvtxArgument> ListArguments();

//! Collects the arguments of a call, and makes the call.
class ArgumentSetter {
public:
	//! `function` is the name of the SQL function, for errors.
	explicit ArgumentSetter(std::string function);

	//! Sets an argument.
	//! @throws duckdb::cxx::Exception if the argument cannot have the value.
	void Set(const EvtxArgument &argument, const duckdb::cxx::Value &value);
	//! Sets the argument with a name. Returns false if there is no such argument.
	bool Set(std::string_view name, const duckdb::cxx::Value &value);

	//! Sets the option that adds the column with a name, if the option does no more than that.
	void Need(std::string_view column);

	//! The files that a path, a glob, a folder, or a list of them stands for.
	//! @throws duckdb::cxx::Exception if there are none, if the value has another type, or if the query was
	//! interrupted.
	Paths ExpandPaths(duckdb::cxx::Context &context, Storage &storage, const duckdb::cxx::Value &files) const;

	//! The call with these arguments and files. Reads a sample of the files if the columns depend on them.
	//! @throws duckdb::cxx::Exception as `ExpandPaths`.
	std::shared_ptr<const EvtxCall> MakeCall(duckdb::cxx::Context &context, const duckdb::cxx::Value &files) const;

private:
	std::string function;
	Arguments arguments;
};

} // namespace evtx
