#include "read_evtx.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "filter_pushdown.hpp"
#include "hints.hpp"
#include "scan.hpp"

#include <array>
#include <memory>
#include <string>
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

//! A call of the function.
struct BoundCall {
	BoundCall(ScanCall scan_p, std::string arguments)
	    : scan(std::move(scan_p)), planned(std::make_shared<PlannedCall>(std::move(arguments))) {}

	ScanCall scan;
	std::shared_ptr<PlannedCall> planned;
};

void Bind(TableFunction::BindInput &input) {
	Arguments arguments;
	const auto files = input.GetConstantArgument(0);
	auto text = files.ToText();
	for (const auto *const name : ARGUMENTS) {
		const auto index = input.FindArg(name);
		if (!index) {
			throw duckdb::cxx::InvalidInputException(std::string(NAME) + " has no argument " + name);
		}
		const auto value = input.GetConstantArgument(*index);
		arguments.Set(name, value, NAME);
		text += '\n' + value.ToText();
	}
	BoundCall call(arguments.MakeCall(input.GetContext(), files, NAME), std::move(text));

	const auto columns = GetColumns(input.GetContext(), *call.scan.table, call.scan.hive.get());
	for (std::size_t i = 0; i < columns.names.size(); i++) {
		input.AddResultColumn(columns.names[i], columns.types[i]);
	}
	Storage storage(input.GetContext());
	const auto *const paths = call.scan.paths.get();
	input.SetCardinality(Ask<std::uint64_t>(evtx_paths_estimate, paths, storage.ForCore()), false);
	input.SetBindData<BoundCall>(std::move(call));
}

void PushdownFilters(TableFunction::FilterPushdownInput &input) {
	const auto &call = input.GetBindData<BoundCall>();
	call.planned->Tell(GetHints(input, call.scan));
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	std::vector<idx_t> columns;
	columns.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.push_back(input.GetColumnIndex(i));
	}
	const auto &call = input.GetBindData<BoundCall>();
	// The first damage is only known to be the first if the files are read in order. Otherwise, how many blocks they
	// have is not known before they are opened, and a thread that finds no work costs little.
	const auto fails = call.scan.options.on_error == static_cast<std::uint32_t>(EvtxOnError::FAIL);
	input.SetMaxThreads(fails ? 1 : MAX_THREADS);
	auto &context = input.GetContext();
	input.SetGlobalState<SharedScan>(context, call.scan, columns, call.planned->Run());
}

void InitLocal(TableFunction::InitLocalInput &input) {
	input.SetLocalState<ThreadScan>(input.GetGlobalState<SharedScan>());
}

void Exec(TableFunction::ExecInput &input) {
	const auto &shared = input.GetGlobalState<SharedScan>();
	input.GetLocalState<ThreadScan>().Next(input.GetContext(), shared, input.GetOutputChunk());
}

void Progress(TableFunction::ProgressInput &input) {
	input.SetProgress(input.GetGlobalState<SharedScan>().Progress());
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
	    .SetProjectionPushdown(true);
	function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
		signature.AddParameter("files", any)
		    .AddParameter("event_id", any, none, named)
		    .AddParameter("hive_partitioning", boolean, no, named)
		    .AddParameter("json", boolean, no, named)
		    .AddParameter("location", boolean, no, named)
		    .AddParameter("messages", varchar, factory.CreateValue(duckdb::cxx::varchar_t(DEFAULT_MESSAGES)), named)
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
