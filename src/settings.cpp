#include "settings.hpp"

#include "register.hpp"

namespace evtx {

std::string GetSetting(duckdb::cxx::Context &context, const char *name) {
	return context.GetConfig().GetOption(name).value.ToText();
}

bool IsOn(duckdb::cxx::Context &context, const EvtxSetting &setting) {
	return context.GetConfig().GetOption(View(setting.name)).value.Get<bool>();
}

void RegisterSettings(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto known = Ask<EvtxDefinitions>(evtx_definitions);
	for (const auto &setting : {known.filter_pushdown, known.template_cache}) {
		auto option = duckdb::cxx::CustomOption::Create(factory);
		option.SetName(GetText(setting.name))
		    .SetType(factory.CreateType(duckdb::cxx::LogicalTypeId::BOOLEAN))
		    .SetDefaultValue(factory.CreateValue(true))
		    .SetDescription(View(setting.about));
		extension.Register(option);
	}
}

} // namespace evtx
