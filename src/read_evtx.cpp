#include "register.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "scan.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

//! The table functions over files: their arguments, their columns, their projection and their hints. The core lists
//! them.

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::Factory;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;

//! A call of a function.
using BoundCall = std::shared_ptr<const EvtxCall>;

void Bind(TableFunction::BindInput &input) {
	const auto &function = input.GetUserData<EvtxScanFunction>();
	auto arguments = Create<Arguments>(evtx_arguments_new, function.number, function.function.name);
	std::optional<Value> files;
	if (const auto counts = input.GetArgumentCounts(); counts.positional_variadic > 0) {
		std::vector<Value> values;
		values.reserve(counts.NamedOffset());
		for (idx_t i = 0; i < counts.NamedOffset(); i++) {
			values.push_back(input.GetConstantArgument(i));
		}
		RefusePositional(*arguments, values);
	}
	if (function.files.data) {
		files = input.GetConstantArgument(0);
	}
	for (const auto &argument : function.arguments) {
		const auto name = GetText(argument.name);
		SetArgument(*arguments, name, input.GetConstantArgument(input.FindArg(name).value()));
	}
	auto bound = MakeCall(input.GetContext(), std::move(arguments), files);
	const auto columns = GetColumns(input.GetContext(), *bound);
	for (std::size_t i = 0; i < columns.names.size(); i++) {
		input.AddResultColumn(columns.names[i], columns.types[i]);
	}
	if (const auto records = Ask<EvtxCallInfo>(evtx_call_info, bound.get()).records) {
		input.SetCardinality(records, false);
	}
	input.SetBindData<BoundCall>(std::move(bound));
}

void PushdownFilters(TableFunction::FilterPushdownInput &input) {
	PassHints(input, *input.GetBindData<BoundCall>());
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	const auto &bound = input.GetBindData<BoundCall>();
	input.SetMaxThreads(Ask<EvtxCallInfo>(evtx_call_info, bound.get()).max_threads);
	std::vector<idx_t> columns;
	columns.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.push_back(input.GetColumnIndex(i));
	}
	input.SetGlobalState<SharedScan>(input.GetContext(), *bound, columns);
}

Value GetDefault(Factory &factory, const EvtxArgument &argument, const LogicalType &type) {
	if (!argument.default_text.data) {
		const auto is_any = type.GetTypeId() == LogicalTypeId::ANY;
		return Value::CreateNull(factory, factory.CreateType(is_any ? LogicalTypeId::UINTEGER : type.GetTypeId()));
	}
	const auto text = GetText(argument.default_text);
	return factory.CreateValue(duckdb::cxx::varchar_t(text)).Cast(factory, type);
}

//! Replaces a table whose name is the path of a log by a call of the first table function.
void Replace(duckdb::cxx::ReplacementScan::Input &input) {
	const auto name = input.GetName();
	if (name.GetPartCount() != 1) {
		return;
	}
	const std::string path(name.GetPart(0));
	const auto known = Ask<EvtxDefinitions>(evtx_definitions);
	const auto is_end = [&](const EvtxText &end) {
		return path.size() >= end.len && EqualNames(std::string_view(path).substr(path.size() - end.len), View(end));
	};
	if (std::none_of(known.path_endings.begin(), known.path_endings.end(), is_end)) {
		return;
	}
	input.SetFunctionName(GetText(known.scan_functions.begin()->function.name));
	input.AddArgument(input.GetContext().GetFactory().CreateValue(duckdb::cxx::varchar_t(path)));
}

} // namespace

void RegisterScanFunctions(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	for (const auto &known : Ask<EvtxDefinitions>(evtx_definitions).scan_functions) {
		auto function = TableFunction::Create(factory);
		Describe(function, known.function);
		function.SetBindCallback(Bind)
		    .SetInitGlobalCallback(InitGlobal)
		    .SetFilterPushdownCallback(PushdownFilters)
		    .SetUserData<EvtxScanFunction>(known);
		SetScanCallbacks(function);
		function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
			if (known.files.data) {
				signature.AddParameter(GetText(known.files), factory.CreateType(LogicalTypeId::ANY));
				// Taken only to show how to write several.
				signature.AddParameter("more", factory.CreateType(LogicalTypeId::ANY),
				                       duckdb::cxx::FunctionParameterKind::POSITIONAL_VARIADIC);
			}
			for (const auto &argument : known.arguments) {
				const auto name = View(argument.type_name);
				const auto type = name.empty() ? factory.CreateType(LogicalTypeId::ANY) : factory.CreateType(name);
				signature.AddParameter(GetText(argument.name), type, GetDefault(factory, argument, type),
				                       duckdb::cxx::FunctionParameterKind::NAMED_ONLY);
			}
		});
		extension.Register(function);
	}
	auto scan = duckdb::cxx::ReplacementScan::Create(factory);
	scan.SetCallback(Replace);
	extension.Register(scan);
}

} // namespace evtx
