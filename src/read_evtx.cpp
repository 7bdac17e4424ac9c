#include "read_evtx.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "filter_pushdown.hpp"
#include "paths.hpp"
#include "plan_guard.hpp"
#include "scan.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

//! The table function `read_evtx`: its arguments, its columns, and what of a query it takes over.

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;

constexpr const char *NAME = "read_evtx";

//! The arguments beside the files, in the order in which DuckDB lists them.
constexpr std::array<const char *, 11> ARGUMENTS = {
    "event_id", "hive_partitioning", "json",        "location", "messages", "on_error",
    "provider", "recover",           "sample_size", "verify",   "xml"};

//! The argument whose default tells copies of a call from the call.
constexpr const char *MESSAGES = "messages";

//! A call of the function.
struct BoundCall {
	explicit BoundCall(ScanCall scan_p) : scan(std::move(scan_p)), filter(*scan.table), kept(scan.paths.size(), true) {}

	ScanCall scan;
	//! The predicates that were taken over while the query was planned.
	Filter filter;
	//! Whether the scan is long, so that DuckDB decides the predicates again and rows can come that they drop. Else a
	//! scan that keeps no rows could not be interrupted: DuckDB looks for interrupts between the rows that it gets.
	std::optional<bool> yields;
	//! By number: whether a path's folders leave it among those that can have rows.
	std::vector<bool> kept;
	std::optional<PlanGuard> guard;
};

//! The paths of the files that may have rows which the query keeps.
std::vector<ScanPath> KeptPaths(const BoundCall &call) {
	std::vector<ScanPath> kept;
	std::copy_if(call.scan.paths.begin(), call.scan.paths.end(), std::back_inserter(kept),
	             [&](const ScanPath &path) { return call.kept[path.number] && !call.filter.DropsFile(path.path); });
	return kept;
}

//! What the threads of a scan share.
struct SharedState {
	SharedState(const BoundCall &call, const std::vector<idx_t> &columns)
	    : scan(call.scan, columns, call.filter, call.yields.value_or(false), KeptPaths(call)) {}

	SharedScan scan;
};

//! Whether a scan can take longer than a tenth of a second, by the size of its files, or by their number where looking
//! at each would itself take long.
bool IsLong(const duckdb::cxx::FileSystem &files, const std::vector<ScanPath> &paths) {
	constexpr std::size_t MANY = 1000;
	constexpr std::uint64_t LARGE = 256U << 20U;
	if (paths.size() > MANY) {
		return true;
	}
	std::uint64_t size = 0;
	for (const auto &path : paths) {
		if (LogFile::IsRemote(files, path.path)) {
			return true;
		}
		try {
			size += files.OpenFile(path.path, {duckdb::cxx::FileFlags::READ}).Size();
		} catch (const duckdb::cxx::Exception &) {
			// The scan tells of it.
			continue;
		}
		if (size > LARGE) {
			return true;
		}
	}
	return false;
}

//! Where a constant text stands in memory. Longer ones than twelve bytes are shared by the values that hold them.
const void *DataOf(const Value &text) {
	return text.Get<duckdb::cxx::varchar_t>().view().data();
}

//! All that a call reads from, so that two calls with the same have the same rows.
std::string Describe(const ScanCall &call, const Arguments &arguments) {
	const auto &options = call.options;
	std::string text = call.messages;
	for (const auto flag :
	     {options.verify, options.recover, options.xml, options.json, options.location, arguments.hive_partitioning}) {
		text += flag ? '1' : '0';
	}
	text += std::to_string(static_cast<int>(options.on_error));
	for (const auto id : arguments.event_ids.value_or(std::vector<std::uint32_t>())) {
		text += ',' + std::to_string(id);
	}
	text += arguments.provider.value_or(std::string());
	for (const auto &path : call.paths) {
		text += '\0' + path.path;
	}
	return text;
}

void Bind(TableFunction::BindInput &input) {
	Arguments arguments;
	const void *default_argument = nullptr;
	for (const auto *const name : ARGUMENTS) {
		const auto index = input.FindArg(name);
		if (!index) {
			throw duckdb::cxx::InvalidInputException(std::string(NAME) + " has no argument " + name);
		}
		const auto value = input.GetConstantArgument(*index);
		arguments.Set(name, value, NAME);
		if (std::string_view(name) == MESSAGES && arguments.messages == DEFAULT_MESSAGES) {
			default_argument = DataOf(value);
		}
	}
	std::vector<ScanPath> paths;
	ExpandPaths(input.GetContext().GetFileSystem(), input.GetConstantArgument(0), NAME, paths);
	BoundCall call(arguments.MakeCall(input.GetContext(), std::move(paths), NAME));

	const auto columns = GetColumns(input.GetContext(), *call.scan.table, call.scan.hive.get());
	for (std::size_t i = 0; i < columns.names.size(); i++) {
		input.AddResultColumn(columns.names[i], columns.types[i]);
	}
	const auto is_original = input.GetUserData<PlanGuard::Defaults>().IsOriginal(default_argument);
	call.guard.emplace(Describe(call.scan, arguments), is_original);
	input.SetBindData<BoundCall>(std::move(call));
}

void PushdownFilters(TableFunction::FilterPushdownInput &input) {
	auto &call = input.GetBindData<BoundCall>();
	if (!call.guard->MayAccept()) {
		return;
	}
	if (!call.yields) {
		call.yields = IsLong(input.GetContext().GetFileSystem(), call.scan.paths);
	}
	PushFilters(input, call.scan, call.filter, call.kept, *call.yields);
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	std::vector<idx_t> columns;
	columns.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.push_back(input.GetColumnIndex(i));
	}
	const auto &call = input.GetBindData<BoundCall>();
	call.guard->Run();
	// The first damage is only known to be the first if the files are read in order. Otherwise, how many blocks they
	// have is not known before they are opened, and a thread that finds no work costs little.
	input.SetMaxThreads(call.scan.options.on_error == EvtxOnError::FAIL ? 1 : MAX_THREADS);
	input.SetGlobalState<SharedState>(call, columns);
}

void InitLocal(TableFunction::InitLocalInput &input) {
	input.SetLocalState<ThreadScan>(input.GetGlobalState<SharedState>().scan);
}

void Exec(TableFunction::ExecInput &input) {
	auto &shared = input.GetGlobalState<SharedState>();
	input.GetLocalState<ThreadScan>().Next(input.GetContext(), shared.scan, input.GetOutputChunk());
}

void Progress(TableFunction::ProgressInput &input) {
	input.SetProgress(input.GetGlobalState<SharedState>().scan.Progress());
}

void PartitionData(TableFunction::PartitionDataInput &input) {
	input.SetBatchIndex(input.GetLocalState<ThreadScan>().BatchIndex());
}

} // namespace

void RegisterReadEvtx(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	const auto any = factory.CreateType(LogicalTypeId::ANY);
	const auto boolean = factory.CreateType(LogicalTypeId::BOOLEAN);
	const auto bigint = factory.CreateType(LogicalTypeId::BIGINT);
	const auto varchar = factory.CreateType(LogicalTypeId::VARCHAR);
	const auto no = factory.CreateValue(false);
	const auto none = Value::CreateNull(factory, factory.CreateType(LogicalTypeId::UINTEGER));
	const auto anyone = Value::CreateNull(factory, varchar);
	const auto named = duckdb::cxx::FunctionParameterKind::NAMED_ONLY;

	auto function = TableFunction::Create(factory);
	function.SetName(NAME)
	    .SetBindCallback(Bind)
	    .SetInitGlobalCallback(InitGlobal)
	    .SetInitLocalCallback(InitLocal)
	    .SetExecCallback(Exec)
	    .SetProgressCallback(Progress)
	    .SetPartitionDataCallback(PartitionData)
	    .SetFilterPushdownCallback(PushdownFilters)
	    .SetProjectionPushdown(true)
	    .SetUserData<PlanGuard::Defaults>();
	function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
		signature.AddParameter("files", any)
		    .AddParameter("event_id", any, none, named)
		    .AddParameter("hive_partitioning", boolean, no, named)
		    .AddParameter("json", boolean, no, named)
		    .AddParameter("location", boolean, no, named)
		    .AddParameter(MESSAGES, varchar, factory.CreateValue(duckdb::cxx::varchar_t(DEFAULT_MESSAGES)), named)
		    .AddParameter("on_error", varchar, factory.CreateValue(duckdb::cxx::varchar_t("report")), named)
		    .AddParameter("provider", varchar, anyone, named)
		    .AddParameter("recover", boolean, no, named)
		    .AddParameter("sample_size", bigint, factory.CreateValue(DEFAULT_SAMPLE_SIZE), named)
		    .AddParameter("verify", boolean, no, named)
		    .AddParameter("xml", boolean, no, named);
	});
	function.WithDocs([](duckdb::cxx::FunctionDocs &docs) {
		docs.SetDescription(
		        "Reads Windows event logs (EVTX), a row per record. Takes a path, a glob, a folder, or a list of them. "
		        "With event_id, the records of these events only, and a column for each of their fields.")
		    .AddExample("", "SELECT event_id, count(*) FROM read_evtx('logs/**/*.evtx') GROUP BY ALL ORDER BY 2 DESC")
		    .AddExample(
		        "", "SELECT time_created, TargetUserName, IpAddress FROM read_evtx('Security.evtx', event_id := 4625)")
		    .AddCategory("evtx");
	});
	extension.Register(function);
}

} // namespace evtx
