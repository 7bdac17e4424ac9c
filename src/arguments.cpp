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

//! Adds the keys and values of a map. A key comes again for each value of a list.
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

std::string Setting(Context &context, const char *name) {
	return context.GetConfig().GetOption(name).value.ToText();
}

//! Adds the files that a path, a glob, a folder, or a list of them stands for.
void Expand(Storage &storage, const Value &value, const std::string &function, EvtxPaths &paths) {
	storage.Check();
	const auto type = value.GetLogicalType().GetTypeId();
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException(function + " cannot take NULL as a path");
	}
	if (type == LogicalTypeId::LIST || type == LogicalTypeId::ARRAY) {
		if (value.GetChildCount() == 0) {
			throw duckdb::cxx::InvalidInputException(function + " needs at least one path");
		}
		for (idx_t i = 0; i < value.GetChildCount(); i++) {
			Expand(storage, value[i], function, paths);
		}
		return;
	}
	if (type != LogicalTypeId::VARCHAR && type != LogicalTypeId::STRUCT) {
		throw duckdb::cxx::InvalidInputException(function + " takes a path, a glob, or a list of them, not " +
		                                         value.GetLogicalType().ToText());
	}
	const auto path = duckdb::cxx::GetFilePath(value);
	Check(evtx_paths_expand(&paths, storage.ForCore(), path.data(), path.size(), function.data(), function.size()));
}

} // namespace

std::vector<EvtxArgument> ListArguments(std::size_t of) {
	std::vector<EvtxArgument> arguments;
	for (EvtxArgument argument {}; Ask<bool>(evtx_argument, of, arguments.size(), &argument);) {
		arguments.push_back(argument);
	}
	return arguments;
}

ArgumentSetter::ArgumentSetter(std::string function_p, std::size_t of_p)
    : function(std::move(function_p)), of(of_p), arguments(Create<Arguments>(evtx_arguments_new, of_p)) {}

bool ArgumentSetter::Set(std::string_view name, const Value &value) {
	const auto known = ListArguments(of);
	const auto found = std::find_if(known.begin(), known.end(), [&](const EvtxArgument &argument) {
		return EqualNames(GetText(argument.name), name);
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
		switch (static_cast<EvtxValueKind>(argument.kind)) {
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
	std::vector<EvtxText> borrowed;
	borrowed.reserve(texts.size());
	for (const auto &text : texts) {
		borrowed.push_back({text.data(), text.size()});
	}
	taken.texts = borrowed.data();
	taken.count = borrowed.size();
	Check(evtx_arguments_set(arguments.get(), argument.name.data, argument.name.len, taken, function.data(),
	                         function.size()));
}

void ArgumentSetter::Need(std::string_view column) {
	Check(evtx_arguments_need(arguments.get(), column.data(), column.size()));
}

std::shared_ptr<const EvtxCall> ArgumentSetter::MakeCall(Context &context, const std::optional<Value> &files) const {
	Storage storage(context);
	const auto memory = Setting(context, "memory_limit"), folder = Setting(context, "temp_directory");
	const auto disk = Setting(context, "max_temp_directory_size");
	const auto paths = Create<Paths>(evtx_paths_new, arguments.get(), memory.data(), memory.size(), folder.data(),
	                                 folder.size(), disk.data(), disk.size());
	if (files) {
		Expand(storage, *files, function, *paths);
	}
	const auto threads = std::stoull(Setting(context, "threads"));
	auto call = Create<Call>(evtx_call_new, arguments.get(), paths.get(), threads, storage.ForCore());
	if (const auto warning = AskText(evtx_call_warning, call.get()); !warning.empty()) {
		context.Log(duckdb::cxx::LogLevel::LOG_WARNING, warning);
	}
	return call;
}

} // namespace evtx
