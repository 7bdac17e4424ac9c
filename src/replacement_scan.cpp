#include "register.hpp"
#include "text.hpp"

#include <string>
#include <string_view>

namespace evtx {

namespace {

bool IsLogPath(std::string_view name) {
	constexpr std::string_view EXTENSION = ".evtx";
	if (name.size() < EXTENSION.size()) {
		return false;
	}
	return EqualNames(name.substr(name.size() - EXTENSION.size()), EXTENSION);
}

void Replace(duckdb::cxx::ReplacementScan::Input &input) {
	const auto name = input.GetName();
	if (name.GetPartCount() != 1) {
		return;
	}
	const std::string path(name.GetPart(0));
	if (!IsLogPath(path)) {
		return;
	}
	input.SetFunctionName("read_evtx");
	input.AddArgument(input.GetContext().GetFactory().CreateValue(duckdb::cxx::varchar_t(path)));
}

} // namespace

void RegisterReplacementScan(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto scan = duckdb::cxx::ReplacementScan::Create(context.GetFactory());
	scan.SetCallback(Replace);
	extension.Register(scan);
}

} // namespace evtx
