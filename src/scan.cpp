#include "scan.hpp"

#include "settings.hpp"

#include <algorithm>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;

LogicalTypeId GetType(const EvtxFolder &folder) {
	switch (folder.value_type) {
	case EvtxFolderType::DATE:
		return LogicalTypeId::DATE;
	case EvtxFolderType::TIMESTAMP:
		return LogicalTypeId::TIMESTAMP;
	case EvtxFolderType::INTEGER:
		return LogicalTypeId::BIGINT;
	case EvtxFolderType::TEXT:
		return LogicalTypeId::VARCHAR;
	}
	return LogicalTypeId::INVALID;
}

Scan StartScan(Context &context, const EvtxCall &call, const std::vector<idx_t> &columns, const EvtxPlanned *planned) {
	const auto memory = GetSetting(context, "memory_limit");
	return Create<Scan>(evtx_scan_new, &call, Lend(columns), planned, Lend(memory));
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
	input.SetBatchIndex(input.GetLocalState<ThreadScan>().BatchIndex(input.RequiresBatchIndex()));
}

} // namespace

void SetScanCallbacks(TableFunction &function) {
	function.SetInitLocalCallback(InitLocal)
	    .SetExecCallback(Exec)
	    .SetProgressCallback(Progress)
	    .SetPartitionDataCallback(PartitionData)
	    .SetProjectionPushdown(true);
}

ScanColumns GetColumns(Context &context, const EvtxCall &call) {
	Schema arrow;
	Check(evtx_call_schema(&call, &arrow));
	const auto schema = ArrowImporter(context, arrow).GetSchema();
	ScanColumns columns;
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		columns.names.emplace_back(schema.GetFieldName(i));
		columns.types.push_back(schema.GetFieldType(i));
	}
	for (std::size_t i = 0; i < columns.types.size(); i++) {
		if (const auto name = View(Ask<EvtxText>(evtx_call_enum, &call, i)); !name.empty()) {
			// Qualified, because a user can define another type with the same name.
			const auto own = duckdb::cxx::QualifiedName::Create({"system", "main", std::string(name)});
			columns.types[i] = context.GetFactory().CreateType(own);
		}
	}
	const auto folders = Ask<EvtxCallInfo>(evtx_call_info, &call).folders;
	for (std::size_t i = 0; i < folders; i++) {
		const auto folder = Ask<EvtxFolder>(evtx_call_folder, &call, i);
		auto name = GetText(folder.name);
		while (std::any_of(columns.names.begin(), columns.names.end(),
		                   [&](const std::string &known) { return EqualNames(known, name); })) {
			name.insert(0, "hive_");
		}
		columns.names.push_back(std::move(name));
		columns.types.push_back(context.GetFactory().CreateType(GetType(folder)));
	}
	return columns;
}

Value GetFolderValue(Context &context, const EvtxCall &call, std::size_t column, std::size_t path) {
	auto &factory = context.GetFactory();
	const auto type = factory.CreateType(GetType(Ask<EvtxFolder>(evtx_call_folder, &call, column)));
	const auto text = View(Ask<EvtxText>(evtx_call_folder_value, &call, column, path));
	return text.data() == nullptr ? Value::CreateNull(factory, type)
	                              : factory.CreateValue(duckdb::cxx::varchar_t(text)).Cast(factory, type);
}

SharedScan::SharedScan(Context &context, std::shared_ptr<const EvtxCall> call_p, const std::vector<idx_t> &columns,
                       const EvtxPlanned *planned)
    : call(std::move(call_p)), scan(StartScan(context, *call, columns, planned)) {
	const auto count = Ask<EvtxCallInfo>(evtx_call_info, call.get()).columns;
	for (const auto column : columns) {
		folder_columns.push_back(column < count ? std::nullopt : std::optional<std::size_t>(column - count));
	}
}

ThreadScan::ThreadScan(const SharedScan &shared) : worker(Create<Worker>(evtx_worker_new, shared.scan.get())) {}

void ThreadScan::Next(Context &context, const SharedScan &shared, const DataChunk &output) {
	Storage storage(context, View(Ask<EvtxText>(evtx_worker_reading, worker.get())));
	EvtxArrays *made = nullptr;
	place = Ask<EvtxPlace>(evtx_worker_next, worker.get(), storage.ForCore(), keeps_order, &made);
	const Arrays arrays(made);
	if (place.rows == 0) {
		return;
	}
	ArrayWriter writer(arrays, context, texts);
	for (idx_t i = 0; i < shared.folder_columns.size(); i++) {
		auto vector = output.GetVector(i);
		if (const auto column = shared.folder_columns[i]) {
			vector.MakeConstant(GetFolderValue(context, *shared.call, *column, place.path), place.rows);
		} else {
			writer.Add(std::move(vector));
		}
	}
	writer.Write();
	output.GetVector(0).SetSize(place.rows);
}

} // namespace evtx
