#pragma once

//! The arguments of `read_evtx`, which are also the options of `COPY ... FROM`. The core has the list of them.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! All arguments of the function with an index, sorted by name.
std::vector<EvtxArgument> ListArguments(std::size_t of);

//! Collects the arguments of a call, and makes the call.
class ArgumentSetter {
public:
	//! `function` is the name of the SQL function, for errors. `of` is the index of the function with these arguments,
	//! that of `read_evtx` if it is not given.
	explicit ArgumentSetter(std::string function, std::size_t of = 0);

	//! Sets an argument.
	//! @throws duckdb::cxx::Exception if the argument cannot have the value.
	void Set(const EvtxArgument &argument, const duckdb::cxx::Value &value);
	//! Sets the argument with a name. Returns false if there is no such argument.
	bool Set(std::string_view name, const duckdb::cxx::Value &value);

	//! Sets the option that adds the column with a name, if the option does no more than that.
	void Need(std::string_view column);

	//! The call with these arguments and the files that a path, a glob, a folder, or a list of them stands for, if the
	//! function takes files. Reads some of them if the columns depend on them.
	//! @throws duckdb::cxx::Exception if there are no files, if the value has another type, or if the query was
	//! interrupted.
	std::shared_ptr<const EvtxCall> MakeCall(duckdb::cxx::Context &context,
	                                         const std::optional<duckdb::cxx::Value> &files) const;

private:
	std::string function;
	std::size_t of;
	Arguments arguments;
};

} // namespace evtx
