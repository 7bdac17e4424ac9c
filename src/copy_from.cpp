#include "register.hpp"

#include "arguments.hpp"
#include "scan.hpp"

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
	    : shared(context, *copy.call, copy.columns), thread(shared) {}

	SharedScan shared;
	ThreadScan thread;
	//! The rows of the scan, if they are cast.
	std::optional<DataChunk> rows;
};

void Bind(CopyFunction::CopyFromBindInput &input) {
	auto &context = input.GetContext();
	auto &factory = context.GetFactory();
	auto arguments = Create<Arguments>(evtx_arguments_of_copy);
	for (idx_t i = 0; i < input.GetOptionCount(); i++) {
		const auto name = input.GetOptionName(i);
		auto value = input.GetOptionValue(i);
		// Options come with any type. Only text is taken as text.
		for (const auto &known : Ask<EvtxDefinitions>(evtx_definitions).scan_functions.begin()->arguments) {
			if (value.IsNull() || !known.type_name.data || !EqualNames(View(known.name), name)) {
				continue;
			}
			if (View(known.type_name) == "VARCHAR") {
				value.Get<duckdb::cxx::varchar_t>();
			} else {
				value = value.Cast(factory, factory.CreateType(View(known.type_name)));
			}
		}
		SetArgument(*arguments, name, value);
	}
	std::vector<std::string> table;
	table.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		table.push_back(input.GetColumnName(i));
	}
	auto path = factory.CreateValue(duckdb::cxx::varchar_t(input.GetFilePath()));
	BoundCopy copy(MakeCall(context, std::move(arguments), std::move(path), table));
	const auto known = GetColumns(context, *copy.call);
	for (const auto index : Ask<EvtxCallInfo>(evtx_call_info, copy.call.get()).copied) {
		const auto &type = known.types[index];
		copy.casts = copy.casts || type.ToText() != input.GetColumnType(copy.columns.size()).ToText();
		copy.columns.push_back(index);
		copy.types.push_back(type.Copy());
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
