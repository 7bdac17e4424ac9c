#include "register.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "scan.hpp"
#include "storage.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;

constexpr const char *PASSWORD = "password";

//! A call of the table function of a report.
struct BoundReport {
	std::size_t index {};
	std::shared_ptr<const EvtxPaths> paths;
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
	Schema arrow;
	Check(evtx_report_schema(report.index, &arrow));
	const auto schema = ArrowImporter(context, arrow).GetSchema();
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		input.AddResultColumn(std::string(schema.GetFieldName(i)), schema.GetFieldType(i));
	}
	input.SetBindData<BoundReport>(std::move(call));
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	const auto &call = input.GetBindData<BoundReport>();
	const auto columns = GetProjection(input);
	input.SetMaxThreads(MAX_THREADS);
	input.SetGlobalState<SharedScan>(
	    Create<Scan>(evtx_report_new, call.index, call.paths.get(), columns.data(), columns.size()), columns.size());
}

} // namespace

void RegisterReports(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	EvtxReportFunction report {};
	for (std::size_t index = 0; Ask<bool>(evtx_report_function, index, &report); index++) {
		auto function = TableFunction::Create(factory);
		Describe(function, report.function);
		function.SetBindCallback(Bind).SetInitGlobalCallback(InitGlobal).SetUserData<EvtxReportFunction>(report);
		SetScanCallbacks(function);
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
