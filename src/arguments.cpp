#include "arguments.hpp"

#include "storage.hpp"

#include <deque>

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

//! Values for the core: each with its parts after it.
class CoreValues {
public:
	//! Adds a value. A struct in place of a path is a file of DuckDB's.
	void Add(const Value &value, bool is_path = false) {
		const auto type = value.GetLogicalType();
		auto kind = KindOf(value, type.GetTypeId());
		const auto is_file = is_path && kind == EvtxValueKind::STRUCT;
		kind = is_file ? EvtxValueKind::TEXT : kind;
		const auto has_parts =
		    kind == EvtxValueKind::LIST || kind == EvtxValueKind::TUPLE || kind == EvtxValueKind::MAP;
		const auto parts = has_parts ? value.GetChildCount() : 0;
		texts.push_back(type.ToText());
		const auto type_name = Lend(texts.back());
		texts.push_back(is_file ? duckdb::cxx::GetFilePath(value) : value.ToText());
		values.push_back({kind, type_name, Lend(texts.back()), parts});
		for (idx_t i = 0; i < parts; i++) {
			Add(value[i], is_path);
		}
	}

	EvtxSlice<EvtxValue> ForCore() const {
		return Lend(values);
	}

private:
	static EvtxValueKind KindOf(const Value &value, LogicalTypeId type) {
		if (value.IsNull()) {
			return EvtxValueKind::NOTHING;
		}
		switch (type) {
		case LogicalTypeId::VARCHAR:
			return EvtxValueKind::TEXT;
		case LogicalTypeId::LIST:
		case LogicalTypeId::ARRAY:
			return EvtxValueKind::LIST;
		case LogicalTypeId::TUPLE:
			return EvtxValueKind::TUPLE;
		case LogicalTypeId::MAP:
			return EvtxValueKind::MAP;
		case LogicalTypeId::STRUCT:
			return EvtxValueKind::STRUCT;
		default:
			return EvtxValueKind::OTHER;
		}
	}

	//! They keep their addresses.
	std::deque<std::string> texts;
	std::vector<EvtxValue> values;
};

} // namespace

void SetArgument(EvtxArguments &arguments, std::string_view name, const Value &value) {
	CoreValues lent;
	lent.Add(value);
	Check(evtx_arguments_set(&arguments, Lend(name), lent.ForCore()));
}

void RefusePositional(const EvtxArguments &arguments, const std::vector<Value> &values) {
	CoreValues lent;
	for (const auto &value : values) {
		lent.Add(value);
	}
	Check(evtx_arguments_too_many(&arguments, lent.ForCore()));
}

std::shared_ptr<const EvtxCall> MakeCall(Context &context, Arguments arguments, const std::optional<Value> &files,
                                         const std::vector<std::string> &table) {
	std::vector<std::string> settings;
	for (const auto &name : Ask<EvtxDefinitions>(evtx_definitions).call_settings) {
		settings.push_back(GetSetting(context, GetText(name).c_str()));
	}
	CoreValues paths;
	if (files) {
		paths.Add(*files, true);
	}
	Storage storage(context);
	const auto values = LendAll(settings), columns = LendAll(table);
	auto call = Create<Call>(evtx_call_new, arguments.release(), Lend(values), paths.ForCore(), Lend(columns),
	                         storage.ForCore());
	if (const auto warning = View(Ask<EvtxCallInfo>(evtx_call_info, call.get()).warning); !warning.empty()) {
		context.Log(duckdb::cxx::LogLevel::LOG_WARNING, warning);
	}
	return call;
}

} // namespace evtx
