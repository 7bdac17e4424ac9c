#include "settings.hpp"

#include "register.hpp"

namespace evtx {

std::string GetSetting(duckdb::cxx::Context &context, const char *name) {
	const auto value = context.GetConfig().GetOption(name).value;
	return value.IsNull() ? std::string() : value.ToText();
}

bool IsOn(duckdb::cxx::Context &context, const EvtxSetting &setting) {
	return context.GetConfig().GetOption(View(setting.name)).value.Get<bool>();
}

void RegisterSettings(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto known = Ask<EvtxDefinitions>(evtx_definitions);
	using duckdb::cxx::LogicalTypeId;
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
