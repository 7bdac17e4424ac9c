#include "register.hpp"

#include "core.hpp"

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::MacroFunction;
using duckdb::cxx::Value;

void AddParameters(const EvtxMacro &macro, duckdb::cxx::Factory &factory, duckdb::cxx::FunctionSignature &signature) {
	for (const auto &parameter : macro.parameters) {
		const auto name = GetText(parameter.name);
		const auto type = factory.CreateType(LogicalTypeId::ANY);
		if (!parameter.is_optional) {
			signature.AddParameter(name, type);
		} else if (parameter.default_text.data == nullptr) {
			signature.AddParameter(name, type, Value::CreateNull(factory, factory.CreateType(LogicalTypeId::VARCHAR)));
		} else {
			signature.AddParameter(name, type,
			                       factory.CreateValue(duckdb::cxx::varchar_t(View(parameter.default_text))));
		}
	}
}

} // namespace

void RegisterMacros(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	for (const auto &macro : Ask<EvtxDefinitions>(evtx_definitions).macros) {
		auto function = macro.is_table ? MacroFunction::CreateTable(factory) : MacroFunction::CreateScalar(factory);
		Describe(function, macro.function);
		function.SetBody(GetText(macro.body));
		function.WithSignature(
		    [&](duckdb::cxx::FunctionSignature &signature) { AddParameters(macro, factory, signature); });
		extension.Register(function);
	}
}

void RegisterSettings(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto known = Ask<EvtxDefinitions>(evtx_definitions);
	for (const auto &setting : {known.filter_pushdown, known.timestamp_offsets, known.messages}) {
		auto option = duckdb::cxx::CustomOption::Create(factory);
		option.SetName(GetText(setting.name))
		    .SetType(factory.CreateType(setting.is_flag ? LogicalTypeId::BOOLEAN : LogicalTypeId::VARCHAR))
		    .SetDefaultValue(setting.is_flag ? factory.CreateValue(true)
			                                 : factory.CreateValue(duckdb::cxx::varchar_t("")))
		    .SetDescription(View(setting.about));
		extension.Register(option);
	}
}

} // namespace evtx
