#include "scan.hpp"

#include "text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::idx_t;
using duckdb::cxx::list_entry_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Vector;

//! Makes a vector of the output refer to an imported one.
//! Maps are imported as the lists of entries that they are: importing a map, DuckDB looks for keys that come twice,
//! which takes longer than all else in a scan. The core's maps have none.
void HandOut(const Vector &imported, Vector output) {
	if (output.GetLogicalType().GetTypeId() != LogicalTypeId::MAP) {
		output.Reference(imported);
		return;
	}
	const auto rows = imported.GetSize();
	output.SetSize(rows);
	const auto lists = imported.GetView();
	std::copy_n(lists.Data<list_entry_t>(), rows, output.GetDataMutable<list_entry_t>());
	if (lists.validity) {
		std::copy_n(lists.validity, (rows + 63) / 64, output.GetValidityMutable().words);
	}
	output.GetChild(0).Reference(imported.GetChild(0));
}

//! Those of the columns that are the table's.
std::vector<std::uintptr_t> TableColumns(const ScanCall &call, const std::vector<idx_t> &columns) {
	const auto count = call.table->ColumnCount();
	std::vector<std::uintptr_t> result;
	std::copy_if(columns.begin(), columns.end(), std::back_inserter(result),
	             [&](idx_t column) { return column < count; });
	if (result.empty()) {
		// Something has to say how many rows there are.
		result.push_back(0);
	}
	return result;
}

} // namespace

ScanColumns GetColumns(Context &context, const Table &table, const HivePartitions *hive) {
	Schema arrow;
	table.GetSchema(arrow);
	const auto schema = ArrowImporter(context, arrow).GetSchema();
	ScanColumns columns;
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		columns.names.emplace_back(schema.GetFieldName(i));
		columns.types.push_back(schema.GetFieldType(i));
	}
	for (std::size_t i = 0; hive && i < hive->ColumnCount(); i++) {
		auto name = hive->GetName(i);
		while (std::any_of(columns.names.begin(), columns.names.end(),
		                   [&](const std::string &known) { return EqualNames(known, name); })) {
			name.insert(0, "hive_");
		}
		columns.names.push_back(std::move(name));
		columns.types.push_back(context.GetFactory().CreateType(hive->GetType(i).GetTypeId()));
	}
	return columns;
}

SharedScan::SharedScan(Context &context, const ScanCall &call, const std::vector<idx_t> &columns, const Filter &filter,
                       std::vector<ScanPath> paths)
    : hive(call.hive), scan(*call.table, TableColumns(call, columns), filter),
      queue(std::move(paths), call.options,
	        scan.ReadsMessages() ? std::optional<MessageFinder>({context, call.messages}) : std::nullopt) {
	const auto count = call.table->ColumnCount();
	for (const auto column : columns) {
		hive_columns.push_back(column < count ? std::nullopt : std::optional<std::size_t>(column - count));
	}
}

ThreadScan::ThreadScan(const SharedScan &shared) : decoder(shared.scan) {}

//! Claims the thread's next work and reads it. A file that a glob found ends where it cannot be read. Returns false at
//! the end of the scan.
bool ThreadScan::NextWork(Interrupt &interrupt, FileQueue &queue) {
	work = queue.Claim(interrupt, file_index);
	if (!work) {
		return false;
	}
	file_index = work->file_index;
	batch_index = work->batch_index;
	path = work->path;
	interrupt.SetReading(path->path);
	if (work->damage) {
		decoder.ReportFile(work->path->path, *work->damage);
	}
	if (work->file) {
		block.resize(work->block.len);
		try {
			work->file->log.ReadAt(block, work->block.offset);
		} catch (const duckdb::cxx::InterruptException &) {
			throw;
		} catch (const duckdb::cxx::Exception &error) {
			if (path->named) {
				throw;
			}
			// Other threads can be at other blocks of it, and fail too. A row of the file is enough.
			if (queue.GiveUp(file_index)) {
				decoder.ReportFile(path->path, DescribeFailure(error));
			}
			return true;
		}
		decoded = 0;
		started = false;
	}
	return true;
}

//! Decodes the next rows into the importer. Returns false at the end of the scan.
bool ThreadScan::NextBatch(Interrupt &interrupt, FileQueue &queue) {
	Array array;
	while (true) {
		interrupt.Check();
		if (!decoder.IsDone()) {
			decoded += decoder.Decode(block.data() + decoded, block.size() - decoded, interrupt);
		}
		if (decoder.Flush(array)) {
			importer->Append(array, true, true);
			return true;
		}
		if (!decoder.IsDone()) {
			continue;
		}
		if (!started) {
			// What is wrong with the file, if anything, was handed out.
			decoder.Start(work->path->path, work->file->messages.get(), work->file->survey, work->block.number);
			started = true;
			continue;
		}
		if (!NextWork(interrupt, queue)) {
			return false;
		}
	}
}

void ThreadScan::Next(Context &context, SharedScan &shared, const DataChunk &output) {
	if (!importer) {
		Schema schema;
		shared.scan.GetSchema(schema);
		importer = std::make_unique<ArrowImporter>(context, schema, VECTOR_ROWS);
	}
	Interrupt interrupt(context);
	if (path) {
		interrupt.SetReading(path->path);
	}
	while (true) {
		auto next = importer->NextChunk();
		if (!next) {
			if (!NextBatch(interrupt, shared.queue)) {
				return;
			}
			continue;
		}
		const auto count = next.GetRowCount();
		idx_t imported = 0;
		for (idx_t i = 0; i < shared.hive_columns.size(); i++) {
			if (const auto column = shared.hive_columns[i]) {
				output.GetVector(i).MakeConstant(shared.hive->GetValue(path->number, *column), count);
			} else {
				HandOut(next.GetVector(imported++), output.GetVector(i));
			}
		}
		output.GetVector(0).SetSize(count);
		rows = std::move(next);
		return;
	}
}

} // namespace evtx
