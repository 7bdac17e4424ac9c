#include "arguments.hpp"

#include "duckdb_v2.h"
#include "reports.hpp"
#include "text.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

//! The header of a file, and the first piece behind it.
constexpr int REMOTE_PIECES = 2;

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

//! Most bytes that are read for the fields of events, unless all files are asked for, and fewest of each file. A
//! template comes back in every chunk that uses it, so evenly spread pieces of a file have nearly all that it has.
constexpr std::uint64_t SAMPLE_BYTES = 512U << 20U;
constexpr std::uint64_t LEAST_BYTES = 8U << 20U;

//! Reads the fields of events from some of the files, evenly spread. Of a remote file, only the first part is read,
//! which the scan mostly needs too.
void ReadSample(Interrupt &interrupt, const std::vector<ScanPath> &paths, std::int64_t sample_size, Report &report) {
	const auto count = paths.size();
	const auto wanted = sample_size < 0 ? count : std::min<std::size_t>(count, sample_size);
	const auto &files = interrupt.Files();
	ReportReader reader(report);
	for (std::size_t i = 0; i < wanted; i++) {
		interrupt.Check();
		interrupt.SetReading(paths[i * count / wanted].path);
		// A file that cannot be read is the scan's to tell of.
		auto path = paths[i * count / wanted];
		path.named = false;
		reader.Start(files, path);
		const auto share = std::max<std::uint64_t>(LEAST_BYTES, SAMPLE_BYTES / wanted);
		const auto stride = sample_size < 0 ? 1 : (reader.Size() + share - 1) / share;
		const auto pieces = LogFile::IsRemote(files, path.path) ? REMOTE_PIECES : std::numeric_limits<int>::max();
		for (int piece = 0; piece < pieces && reader.Next(interrupt); piece++) {
			if (piece > 0 && stride > 1) {
				reader.Skip(stride - 1);
			}
		}
	}
}

} // namespace

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
		options.on_error = static_cast<std::uint32_t>(ParseOnError(GetText(value)));
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
	Interrupt interrupt(context);
	ScanCall call;
	ExpandPaths(interrupt, files, function, call.paths);
	if (event_ids) {
		const Events events {*event_ids, provider};
		Report report(EvtxReportKind::EVENTS, &events);
		ReadSample(interrupt, call.paths, sample_size, report);
		call.table = std::make_shared<Table>(options, events, report);
	} else if (provider) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER,
		                             function +
		                                 " takes a provider with an event_id only; to have all of a provider's events, "
		                                 "filter by the column");
	} else {
		call.table = std::make_shared<Table>(options);
	}
	if (hive_partitioning) {
		call.hive = std::make_shared<HivePartitions>(context.GetFactory(), call.paths, interrupt);
	}
	call.options = options;
	call.messages = messages;
	return call;
}

} // namespace evtx
