#include "register.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "storage.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;

//! The table function of a report.
struct Kind {
	const char *name;
	EvtxReportKind kind;
	const char *description;
	const char *example;

	bool HasFiles() const {
		return kind != EvtxReportKind::DECLARED_EVENTS;
	}
};

constexpr std::array<Kind, 4> KINDS = {{
    {"evtx_schema", EvtxReportKind::EVENTS,
	 "Tells which events Windows event logs (EVTX) hold: a row per field of each provider, event ID, version and "
	 "channel, with the type that its template declares, the type of its column in read_evtx(..., event_id := ...), "
	 "and how many records there are. Takes what read_evtx takes.",
	 "SELECT provider, event_id, any_value(records), list(field_name ORDER BY field_position) FROM "
	 "evtx_schema('logs/**/*.evtx') GROUP BY ALL"},
    {"evtx_file_metadata", EvtxReportKind::FILES,
	 "Tells of each Windows event log (EVTX) what its header says and what is in it: flags, checksums as stored and as "
	 "computed, chunks, records, the span of record IDs and what is missing in it, the span of time, what is damaged.",
	 "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')"},
    {"evtx_chunk_metadata", EvtxReportKind::CHUNKS,
	 "Tells of each chunk of Windows event logs (EVTX) what its header says and what is in it: record numbers and IDs, "
	 "free space, checksums as stored and as computed, templates, the span of time, what is damaged.",
	 "SELECT chunk_index, first_record_id, last_record_id, records, error FROM evtx_chunk_metadata('Security.evtx')"},
    {"evtx_event_catalog", EvtxReportKind::DECLARED_EVENTS,
	 "Tells what Windows' providers and Sysmon declare for their events, whether a log has them or not: a row per "
	 "field "
	 "of each provider, event ID and version, with its type in templates and that of its column in read_evtx(..., "
	 "event_id := ...).",
	 "SELECT version, list(field_name ORDER BY field_position) FROM evtx_event_catalog() WHERE provider = "
	 "'Microsoft-Windows-Security-Auditing' AND event_id = 4624 GROUP BY ALL"},
}};

//! A call of the table function of a report.
struct BoundReport {
	EvtxReportKind kind {};
	std::shared_ptr<const EvtxPaths> paths;
};

//! The importer of a report's batches.
std::unique_ptr<ArrowImporter> MakeImporter(Context &context, EvtxReportKind kind) {
	Schema schema;
	Check(evtx_report_schema(static_cast<std::uint32_t>(kind), &schema));
	return std::make_unique<ArrowImporter>(context, schema, VECTOR_ROWS);
}

struct ReportState {
	explicit ReportState(const BoundReport &call)
	    : report(Create<Report>(evtx_report_new, static_cast<std::uint32_t>(call.kind), call.paths.get())) {}

	Report report;
	std::unique_ptr<ArrowImporter> importer;
	//! The last rows, to which the vectors of the output refer until the next call.
	std::optional<DataChunk> rows;
};

void Bind(TableFunction::BindInput &input) {
	const auto &kind = input.GetUserData<Kind>();
	Storage storage(input.GetContext());
	BoundReport call {kind.kind, kind.HasFiles() ? ExpandPaths(storage, input.GetConstantArgument(0), kind.name)
	                                             : Create<Paths>(evtx_paths_new)};
	const auto schema = MakeImporter(input.GetContext(), kind.kind)->GetSchema();
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		input.AddResultColumn(std::string(schema.GetFieldName(i)), schema.GetFieldType(i));
	}
	input.SetBindData<BoundReport>(std::move(call));
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	input.SetGlobalState<ReportState>(input.GetBindData<BoundReport>());
}

void Exec(TableFunction::ExecInput &input) {
	auto &state = input.GetGlobalState<ReportState>();
	auto &context = input.GetContext();
	if (!state.importer) {
		state.importer = MakeImporter(context, input.GetBindData<BoundReport>().kind);
	}
	auto rows = state.importer->NextChunk();
	if (!rows) {
		Storage storage(context, AskText(evtx_report_reading, state.report.get()));
		Array array;
		std::uintptr_t count = 0;
		Check(evtx_report_next(state.report.get(), storage.ForCore(), &array, &count));
		if (count == 0) {
			return;
		}
		state.importer->Append(array, true, true);
		rows = state.importer->NextChunk();
	}
	const auto output = input.GetOutputChunk();
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		output.GetVector(i).Reference(rows.GetVector(i));
	}
	output.GetVector(0).SetSize(rows.GetRowCount());
	state.rows = std::move(rows);
}

} // namespace

void RegisterReports(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	for (const auto &kind : KINDS) {
		auto function = TableFunction::Create(factory);
		function.SetName(kind.name)
		    .SetBindCallback(Bind)
		    .SetInitGlobalCallback(InitGlobal)
		    .SetExecCallback(Exec)
		    .SetUserData<Kind>(kind);
		function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
			if (kind.HasFiles()) {
				signature.AddParameter("files", factory.CreateType(LogicalTypeId::ANY));
			}
		});
		function.WithDocs([&](duckdb::cxx::FunctionDocs &docs) {
			docs.SetDescription(kind.description).AddExample("", kind.example).AddCategory("evtx");
		});
		extension.Register(function);
	}
}

} // namespace evtx
