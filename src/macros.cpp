#include "register.hpp"

#include "core.hpp"

#include <cstddef>

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::MacroFunction;
using duckdb::cxx::Value;

void AddParameters(const EvtxMacro &macro, duckdb::cxx::Factory &factory, duckdb::cxx::FunctionSignature &signature) {
	for (std::size_t i = 0; i < macro.parameter_count; i++) {
		const auto &parameter = macro.parameters[i];
		const auto name = GetText(parameter.name);
		const auto type = factory.CreateType(LogicalTypeId::ANY);
		if (!parameter.is_optional) {
			signature.AddParameter(name, type);
		} else if (parameter.default_text.data == nullptr) {
			const auto null = factory.CreateType(LogicalTypeId::VARCHAR);
			signature.AddParameter(name, type, Value::CreateNull(factory, null));
		} else {
			const auto text = GetText(parameter.default_text);
			signature.AddParameter(name, type, factory.CreateValue(duckdb::cxx::varchar_t(text)));
		}
	}
}

} // namespace

void RegisterMacros(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	EvtxMacro macro {};
	for (std::size_t index = 0; Ask<bool>(evtx_macro, index, &macro); index++) {
		auto function = macro.is_table ? MacroFunction::CreateTable(factory) : MacroFunction::CreateScalar(factory);
		Describe(function, macro.function);
		function.SetBody(GetText(macro.body));
		function.WithSignature(
		    [&](duckdb::cxx::FunctionSignature &signature) { AddParameters(macro, factory, signature); });
		extension.Register(function);
	}
}

} // namespace evtx
