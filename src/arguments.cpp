#include "arguments.hpp"

#include <algorithm>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

bool IsList(LogicalTypeId type) {
	return type == LogicalTypeId::LIST || type == LogicalTypeId::ARRAY || type == LogicalTypeId::TUPLE;
}

//! Adds the text of a value, or those of the values in a list that are not NULL.
void AddTexts(const Value &value, const std::string &argument, std::vector<std::string> &texts, bool is_item = false) {
	const auto type = value.GetLogicalType().GetTypeId();
	const auto is_list = IsList(type);
	if (type == LogicalTypeId::STRUCT || type == LogicalTypeId::MAP || (is_list && is_item)) {
		throw duckdb::cxx::InvalidInputException(argument + " takes a value or a list of values, not " +
		                                         value.GetLogicalType().ToText());
	}
	if (is_list) {
		for (idx_t i = 0; i < value.GetChildCount(); i++) {
			AddTexts(value[i], argument, texts, true);
		}
	} else if (!value.IsNull()) {
		texts.push_back(value.ToText());
	}
}

//! Adds the keys and values of a map. A key is repeated for each value of a list.
void AddEntries(const Value &map, const std::string &argument, std::vector<std::string> &texts) {
	if (map.GetLogicalType().GetTypeId() != LogicalTypeId::MAP) {
		throw duckdb::cxx::InvalidInputException(argument + " takes a MAP, not " + map.GetLogicalType().ToText());
	}
	for (idx_t i = 0; i + 1 < map.GetChildCount(); i += 2) {
		std::vector<std::string> values;
		AddTexts(map[i + 1], argument, values);
		for (auto &value : values) {
			texts.push_back(map[i].ToText());
			texts.push_back(std::move(value));
		}
	}
}

} // namespace

//! Adds the files that a path, a glob, a folder, or a list of them names.
void ArgumentSetter::Expand(Storage &storage, const Value &value, EvtxPaths &paths) const {
	storage.Check();
	const auto type = value.GetLogicalType().GetTypeId();
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException(caller + " cannot take NULL as a path");
	}
	if (type == LogicalTypeId::LIST || type == LogicalTypeId::ARRAY) {
		if (value.GetChildCount() == 0) {
			throw duckdb::cxx::InvalidInputException(caller + " needs at least one path");
		}
		for (idx_t i = 0; i < value.GetChildCount(); i++) {
			Expand(storage, value[i], paths);
		}
		return;
	}
	if (type != LogicalTypeId::VARCHAR && type != LogicalTypeId::STRUCT) {
		throw duckdb::cxx::InvalidInputException(caller + " takes a path, a glob, or a list of them, not " +
		                                         value.GetLogicalType().ToText());
	}
	const auto path = duckdb::cxx::GetFilePath(value);
	Check(evtx_paths_expand(&paths, arguments.get(), storage.ForCore(), Lend(path)));
}

ArgumentSetter::ArgumentSetter(const EvtxScanFunction &function, std::string caller_p)
    : known(function.arguments), caller(std::move(caller_p)),
      arguments(Create<Arguments>(evtx_arguments_new, function.number, Lend(caller))) {}

bool ArgumentSetter::Set(std::string_view name, const Value &value) {
	const auto found = std::find_if(known.begin(), known.end(), [&](const EvtxArgument &argument) {
		return EqualNames(View(argument.name), name);
	});
	if (found == known.end()) {
		return false;
	}
	Set(*found, value);
	return true;
}

void ArgumentSetter::Set(const EvtxArgument &argument, const Value &value) {
	EvtxValue taken {};
	std::vector<std::string> texts;
	if (!value.IsNull()) {
		taken.kind = argument.kind;
		switch (argument.kind) {
		case EvtxValueKind::FLAG:
			taken.number = value.Get<bool>() ? 1 : 0;
			break;
		case EvtxValueKind::INTEGER:
			taken.number = value.Get<std::int64_t>();
			break;
		case EvtxValueKind::TEXT:
			texts.emplace_back(value.Get<duckdb::cxx::varchar_t>().view());
			break;
		case EvtxValueKind::MAP:
			AddEntries(value, GetText(argument.name), texts);
			break;
		default:
			AddTexts(value, GetText(argument.name), texts);
		}
	}
	const auto lent = LendAll(texts);
	taken.texts = Lend(lent);
	Check(evtx_arguments_set(arguments.get(), argument.name, taken));
}

void ArgumentSetter::RefusePositional(const std::vector<Value> &values) const {
	std::vector<std::string> texts;
	for (const auto &value : values) {
		AddTexts(value, caller, texts);
	}
	const auto lent = LendAll(texts);
	Check(evtx_arguments_too_many(arguments.get(), Lend(lent)));
}

void ArgumentSetter::Need(std::string_view column) {
	Check(evtx_arguments_need(arguments.get(), Lend(column)));
}

std::shared_ptr<const EvtxCall> ArgumentSetter::MakeCall(Context &context, const std::optional<Value> &files) const {
	const auto messages = GetSetting(context, GetText(Ask<EvtxDefinitions>(evtx_definitions).messages.name).c_str());
	Check(evtx_arguments_messages(arguments.get(), Lend(messages)));
	Storage storage(context);
	const auto memory = GetSetting(context, "memory_limit"), folder = GetSetting(context, "temp_directory");
	const auto disk = GetSetting(context, "max_temp_directory_size");
	auto paths = Create<Paths>(evtx_paths_new, arguments.get(), Lend(memory), Lend(folder), Lend(disk));
	if (files) {
		Expand(storage, *files, *paths);
	}
	const auto threads = std::stoull(GetSetting(context, "threads"));
	auto call = Create<Call>(evtx_call_new, arguments.get(), paths.release(), threads, storage.ForCore());
	if (const auto warning = View(Ask<EvtxCallInfo>(evtx_call_info, call.get()).warning); !warning.empty()) {
		context.Log(duckdb::cxx::LogLevel::LOG_WARNING, warning);
	}
	return call;
}

} // namespace evtx
