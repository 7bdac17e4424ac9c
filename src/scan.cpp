#include "scan.hpp"

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::idx_t;
using duckdb::cxx::TableFunction;

Scan StartScan(Context &context, const EvtxCall &call, const std::vector<idx_t> &columns) {
	const auto memory = GetSetting(context, "memory_limit");
	return Create<Scan>(evtx_scan_new, &call, Lend(columns), Lend(memory));
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
	return columns;
}

SharedScan::SharedScan(Context &context, const EvtxCall &call, const std::vector<idx_t> &columns_p)
    : columns(columns_p.size()), scan(StartScan(context, call, columns_p)) {}

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
	for (idx_t i = 0; i < shared.columns; i++) {
		writer.Add(output.GetVector(i));
	}
	writer.Write();
	output.GetVector(0).SetSize(place.rows);
}

} // namespace evtx
