#pragma once

//! The arguments of a table function over files. Those of the first function are also the options of `COPY ... FROM`.

#include "core.hpp"
#include "duckdb_cpp.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! Sets the argument with a name.
//! @throws duckdb::cxx::Exception if there is no such argument, or if it cannot have the value.
void SetArgument(EvtxArguments &arguments, std::string_view name, const duckdb::cxx::Value &value);

//! Refuses the values of a call with more than one argument by position.
//! @throws duckdb::cxx::Exception always. It shows the list to write instead.
void RefusePositional(const EvtxArguments &arguments, const std::vector<duckdb::cxx::Value> &values);

//! The call with these arguments and with the files that a path, a glob, a folder, or a list of them names, if the
//! function takes files. If the columns depend on the files, it reads some of them. `table` has the names of the
//! columns of a COPY.
//! @throws duckdb::cxx::Exception if there are no files, if the value has another type, if the table has other columns,
//! or if the query was interrupted.
std::shared_ptr<const EvtxCall> MakeCall(duckdb::cxx::Context &context, Arguments arguments,
                                         const std::optional<duckdb::cxx::Value> &files,
                                         const std::vector<std::string> &table = {});

} // namespace evtx
