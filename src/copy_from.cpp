#include "register.hpp"

#include "arguments.hpp"
#include "duckdb_v2.h"
#include "scan.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

//! `COPY table FROM file`: each column of the table gets the column of the first table function with its name.

namespace evtx {

namespace {

using duckdb::cxx::CopyFunction;
using duckdb::cxx::DataChunk;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;

//! The name of the function in errors.
std::string GetCaller() {
	return "COPY FROM (FORMAT " + GetText(Ask<EvtxDefinitions>(evtx_definitions).format) + ")";
}

struct BoundCopy {
	explicit BoundCopy(std::shared_ptr<const EvtxCall> call_p) : call(std::move(call_p)) {}

	std::shared_ptr<const EvtxCall> call;
	//! The columns of the scan, and their types.
	std::vector<idx_t> columns;
	std::vector<LogicalType> types;
	//! Whether one of them is cast to the type of the table's column.
	bool casts = false;
};

//! One thread reads the files of a COPY.
struct CopyState {
	CopyState(duckdb::cxx::Context &context, const BoundCopy &copy)
	    : shared(context, *copy.call, copy.columns, nullptr), thread(shared) {}

	SharedScan shared;
	ThreadScan thread;
	//! The rows of the scan, if they are cast.
	std::optional<DataChunk> rows;
};

[[noreturn]] void Fail(const std::string &why) {
	throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, GetCaller() + ": " + why);
}

void Bind(CopyFunction::CopyFromBindInput &input) {
	ArgumentSetter arguments(*Ask<EvtxDefinitions>(evtx_definitions).scan_functions.begin(), GetCaller());
	for (idx_t i = 0; i < input.GetOptionCount(); i++) {
		const auto name = input.GetOptionName(i);
		if (!arguments.Set(name, input.GetOptionValue(i))) {
			Fail("there is no option " + name);
		}
	}
	auto &context = input.GetContext();
	auto &factory = context.GetFactory();
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		const auto name = input.GetColumnName(i);
		arguments.Need(name);
	}
	const std::optional<duckdb::cxx::Value> path = factory.CreateValue(duckdb::cxx::varchar_t(input.GetFilePath()));
	BoundCopy copy(arguments.MakeCall(context, path));
	const auto known = GetColumns(context, *copy.call);
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		const auto name = input.GetColumnName(i);
		const auto found = std::find_if(known.names.begin(), known.names.end(),
		                                [&](const std::string &column) { return EqualNames(column, name); });
		if (found == known.names.end()) {
			Fail("the table has a column \"" + name + "\", but the log has none with that name");
		}
		const auto index = static_cast<std::size_t>(found - known.names.begin());
		copy.columns.push_back(index);
		copy.types.push_back(known.types[index].Copy());
		copy.casts = copy.casts || known.types[index].ToText() != input.GetColumnType(i).ToText();
	}
	input.SetBindData<BoundCopy>(std::move(copy));
}

void InitGlobal(CopyFunction::CopyFromInitGlobalInput &input) {
	auto &context = input.GetContext();
	input.SetGlobalState<CopyState>(context, input.GetBindData<BoundCopy>());
}

void Exec(CopyFunction::CopyFromExecInput &input) {
	const auto &copy = input.GetBindData<BoundCopy>();
	auto &state = input.GetGlobalState<CopyState>();
	auto &context = input.GetContext();
	const auto output = input.GetOutputChunk();
	if (!copy.casts) {
		state.thread.Next(context, state.shared, output);
		return;
	}
	auto &factory = context.GetFactory();
	state.rows = factory.CreateDataChunk(copy.types);
	state.thread.Next(context, state.shared, *state.rows);
	for (idx_t i = 0; i < copy.columns.size(); i++) {
		auto target = output.GetVector(i);
		state.rows->GetVector(i).Cast(factory, target);
	}
}

void Progress(CopyFunction::CopyFromProgressInput &input) {
	input.SetProgress(input.GetGlobalState<CopyState>().shared.Progress());
}

} // namespace

void RegisterCopyFrom(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto function = CopyFunction::Create(context.GetFactory());
	const auto format = GetText(Ask<EvtxDefinitions>(evtx_definitions).format);
	SetCopyTo(function, format);
	function.SetFileExtension(format)
	    .SetCopyFromBindCallback(Bind)
	    .SetCopyFromInitGlobalCallback(InitGlobal)
	    .SetCopyFromExecCallback(Exec)
	    .SetCopyFromProgressCallback(Progress);
	extension.Register(function);
}

} // namespace evtx
