#include "register.hpp"

#include <array>

namespace evtx {

namespace {

using duckdb::cxx::MacroFunction;

struct Macro {
	const char *name;
	const char *parameter;
	const char *body;
	const char *description;
	const char *example;
};

//! The names are those that Event Viewer shows, from winmeta.xml of the Windows SDK. The keywords are bits of the upper
//! sixteen that Windows has taken for itself; the others are a provider's own.
constexpr std::array<Macro, 2> MACROS = {{
    {"evtx_level_name", "level",
	 "CASE level WHEN 0 THEN 'LogAlways' WHEN 1 THEN 'Critical' WHEN 2 THEN 'Error' WHEN 3 THEN 'Warning' "
	 "WHEN 4 THEN 'Information' WHEN 5 THEN 'Verbose' END",
	 "The name of an event's level: LogAlways, Critical, Error, Warning, Information or Verbose; NULL for another.",
	 "SELECT evtx_level_name(level), count(*) FROM 'System.evtx' GROUP BY ALL"},
    {"evtx_keyword_names", "keywords",
	 "CASE WHEN keywords IS NULL THEN NULL ELSE list_filter([CASE WHEN (keywords >> 48) & 1 = 1 THEN 'Response Time' "
	 "END, "
	 "CASE WHEN (keywords >> 49) & 1 = 1 THEN 'WDI Context' END, "
	 "CASE WHEN (keywords >> 50) & 1 = 1 THEN 'WDI Diagnostic' END, "
	 "CASE WHEN (keywords >> 51) & 1 = 1 THEN 'SQM' END, "
	 "CASE WHEN (keywords >> 52) & 1 = 1 THEN 'Audit Failure' END, "
	 "CASE WHEN (keywords >> 53) & 1 = 1 THEN 'Audit Success' END, "
	 "CASE WHEN (keywords >> 54) & 1 = 1 THEN 'Correlation Hint' END, "
	 "CASE WHEN (keywords >> 55) & 1 = 1 THEN 'Classic' END], lambda name: name IS NOT NULL) END",
	 "The names of the keywords that Windows itself has given an event, such as Audit Failure; empty for none.",
	 "SELECT * FROM 'Security.evtx' WHERE list_contains(evtx_keyword_names(keywords), 'Audit Failure')"},
}};

} // namespace

void RegisterMacros(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	for (const auto &macro : MACROS) {
		auto function = MacroFunction::CreateScalar(factory);
		function.SetName(macro.name).SetBody(macro.body);
		function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
			signature.AddParameter(macro.parameter, factory.CreateType(duckdb::cxx::LogicalTypeId::ANY));
		});
		function.WithDocs([&](duckdb::cxx::FunctionDocs &docs) {
			docs.SetDescription(macro.description).AddExample("", macro.example).AddCategory("evtx");
		});
		extension.Register(function);
	}
}

} // namespace evtx
