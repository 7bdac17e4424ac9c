#pragma once

//! The arguments of a table function over files. Those of the first function are also the options of `COPY ... FROM`.

#include "core.hpp"
#include "duckdb_cpp.hpp"
#include "storage.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! Collects the arguments of a call, and makes the call.
class ArgumentSetter {
public:
	//! `caller` is the name of the function in errors.
	ArgumentSetter(const EvtxScanFunction &function, std::string caller);

	//! Sets an argument.
	//! @throws duckdb::cxx::Exception if the argument cannot have the value.
	void Set(const EvtxArgument &argument, const duckdb::cxx::Value &value);
	//! Sets the argument with a name. Returns false if there is no such argument.
	bool Set(std::string_view name, const duckdb::cxx::Value &value);

	//! Refuses the values of a call with more than one argument by position.
	//! @throws duckdb::cxx::Exception always. It shows the list to write instead.
	void RefusePositional(const std::vector<duckdb::cxx::Value> &values) const;

	//! Sets the option that adds the column with a name, if the option does no more than that.
	void Need(std::string_view column);

	//! The call with these arguments and with the files that a path, a glob, a folder, or a list of them names, if the
	//! function takes files. If the columns depend on the files, it reads some of them.
	//! @throws duckdb::cxx::Exception if there are no files, if the value has another type, or if the query was
	//! interrupted.
	std::shared_ptr<const EvtxCall> MakeCall(duckdb::cxx::Context &context,
	                                         const std::optional<duckdb::cxx::Value> &files) const;

private:
	void Expand(Storage &storage, const duckdb::cxx::Value &files, EvtxPaths &paths) const;

	EvtxSlice<EvtxArgument> known;
	std::string caller;
	Arguments arguments;
};

} // namespace evtx
