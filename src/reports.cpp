#include "register.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "storage.hpp"

#include <cstddef>
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

constexpr const char *PASSWORD = "password";

//! A call of the table function of a report.
struct BoundReport {
	std::size_t index {};
	std::shared_ptr<const EvtxPaths> paths;
};

//! The importer of a report's batches.
std::unique_ptr<ArrowImporter> MakeImporter(Context &context, std::size_t index) {
	Schema schema;
	Check(evtx_report_schema(index, &schema));
	return std::make_unique<ArrowImporter>(context, schema, VECTOR_ROWS);
}

struct ReportState {
	explicit ReportState(const BoundReport &call)
	    : report(Create<Report>(evtx_report_new, call.index, call.paths.get())) {}

	Report report;
	std::unique_ptr<ArrowImporter> importer;
	//! The last rows, to which the vectors of the output refer until the next call.
	std::optional<DataChunk> rows;
};

void Bind(TableFunction::BindInput &input) {
	const auto &report = input.GetUserData<EvtxReportFunction>();
	auto &context = input.GetContext();
	ArgumentSetter arguments(GetText(report.function.name));
	BoundReport call {report.index, nullptr};
	if (report.takes_files) {
		arguments.Set(PASSWORD, input.GetConstantArgument(1));
		Storage storage(context);
		call.paths = arguments.ExpandPaths(context, storage, input.GetConstantArgument(0));
	}
	const auto schema = MakeImporter(context, report.index)->GetSchema();
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
		state.importer = MakeImporter(context, input.GetBindData<BoundReport>().index);
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
	EvtxReportFunction report {};
	for (std::size_t index = 0; Ask<bool>(evtx_report_function, index, &report); index++) {
		auto function = TableFunction::Create(factory);
		Describe(function, report.function);
		function.SetBindCallback(Bind)
		    .SetInitGlobalCallback(InitGlobal)
		    .SetExecCallback(Exec)
		    .SetUserData<EvtxReportFunction>(report);
		if (report.takes_files) {
			const auto text = factory.CreateType(LogicalTypeId::VARCHAR);
			function.GetSignature()
			    .AddParameter("files", factory.CreateType(LogicalTypeId::ANY))
			    .AddParameter(PASSWORD, text, duckdb::cxx::Value::CreateNull(factory, text),
				              duckdb::cxx::FunctionParameterKind::NAMED_ONLY);
		}
		extension.Register(function);
	}
}

} // namespace evtx
