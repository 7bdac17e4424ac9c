#include "arguments.hpp"

#include "duckdb_v2.h"
#include "text.hpp"

#include <algorithm>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

constexpr idx_t MAX_EVENT_IDS = 65536;

std::string GetText(const Value &value) {
	return std::string(value.Get<duckdb::cxx::varchar_t>().view());
}

std::uint32_t GetEventId(const Value &value, const std::string &function) {
	std::optional<std::uint32_t> event_id;
	try {
		event_id = value.Get<std::uint32_t>();
		// A fraction would be rounded.
		if (value.Get<double>() != *event_id) {
			event_id.reset();
		}
	} catch (const duckdb::cxx::Exception &) {
		event_id.reset();
	}
	if (!event_id) {
		throw duckdb::cxx::InvalidInputException(function + " takes a number or a list of them as event_id, not " +
		                                         value.ToText());
	}
	return *event_id;
}

//! An event ID, or a list of them.
std::vector<std::uint32_t> GetEventIds(const Value &value, const std::string &function) {
	const auto type = value.GetLogicalType().GetTypeId();
	if (type != LogicalTypeId::LIST && type != LogicalTypeId::ARRAY && type != LogicalTypeId::STRUCT &&
	    type != LogicalTypeId::TUPLE) {
		return {GetEventId(value, function)};
	}
	if (value.GetChildCount() > MAX_EVENT_IDS) {
		throw duckdb::cxx::InvalidInputException(function + " takes at most " + std::to_string(MAX_EVENT_IDS) +
		                                         " event IDs, which is how many different ones there are");
	}
	std::vector<std::uint32_t> ids;
	for (idx_t i = 0; i < value.GetChildCount(); i++) {
		if (!value[i].IsNull()) {
			ids.push_back(GetEventId(value[i], function));
		}
	}
	return ids;
}

//! The choice for `on_error` that a name stands for.
std::uint32_t GetOnError(const std::string &name) {
	std::uint32_t on_error = 0;
	if (const auto choices = TakeError(evtx_on_error(name.data(), name.size(), &on_error))) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, choices->substr(1));
	}
	return on_error;
}

//! Adds the files that a path, a glob, a folder, or a list of them stands for. `function` is who asks.
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

std::shared_ptr<const EvtxPaths> ExpandPaths(Storage &storage, const Value &value, const std::string &function) {
	auto paths = Create<Paths>(evtx_paths_new);
	Expand(storage, value, function, *paths);
	return paths;
}

bool Arguments::Set(std::string_view name, const Value &value, const std::string &function) {
	if (EqualNames(name, "event_id")) {
		if (!value.IsNull()) {
			event_ids = GetEventIds(value, function);
		}
		return true;
	}
	if (EqualNames(name, "provider")) {
		provider = value.IsNull() ? std::nullopt : std::optional<std::string>(GetText(value));
		return true;
	}
	bool *flag = nullptr;
	for (const auto &[known, place] : {std::pair<const char *, bool *> {"verify", &options.verify},
	                                   {"recover", &options.recover},
	                                   {"xml", &options.xml},
	                                   {"json", &options.json},
	                                   {"location", &options.location},
	                                   {"hive_partitioning", &hive_partitioning}}) {
		flag = EqualNames(name, known) ? place : flag;
	}
	const auto on_error = EqualNames(name, "on_error");
	const auto is_messages = EqualNames(name, "messages");
	const auto is_sample_size = EqualNames(name, "sample_size");
	if (!flag && !on_error && !is_messages && !is_sample_size) {
		return false;
	}
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException(function + " cannot take NULL as " + std::string(name));
	}
	if (flag) {
		*flag = value.Get<bool>();
	} else if (on_error) {
		options.on_error = GetOnError(GetText(value));
	} else if (is_messages) {
		messages = GetText(value);
	} else {
		sample_size = value.Get<std::int64_t>();
		if (sample_size < -1) {
			throw duckdb::cxx::InvalidInputException(
			    function + " takes a number of files as sample_size, or -1 for all, not " + value.ToText());
		}
	}
	return true;
}

ScanCall Arguments::MakeCall(Context &context, const Value &files, const std::string &function) const {
	Storage storage(context);
	ScanCall call;
	call.paths = ExpandPaths(storage, files, function);
	if (event_ids) {
		const EvtxEvents events {event_ids->data(), event_ids->size(), provider ? provider->data() : nullptr,
		                         provider ? provider->size() : 0};
		call.table =
		    Create<Table>(evtx_table_of_events, options, &events, call.paths.get(), sample_size, storage.ForCore());
	} else if (provider) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER,
		                             function +
		                                 " takes a provider with an event_id only; to have all of a provider's events, "
		                                 "filter by the column");
	} else {
		call.table = Create<Table>(evtx_table_new, options);
	}
	if (hive_partitioning) {
		call.hive = std::make_shared<HivePartitions>(context.GetFactory(), *call.paths, storage);
	}
	call.options = options;
	call.messages = messages;
	return call;
}

} // namespace evtx
