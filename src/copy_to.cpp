#include "register.hpp"

#include "core.hpp"
#include "duckdb_v2.h"
#include "storage.hpp"

#include <string>
#include <utility>
#include <vector>

//! `COPY ... TO file (FORMAT evtx_messages)`: the core makes a catalog of messages of the rows, and DuckDB writes it.

namespace evtx {

namespace {

using duckdb::cxx::ColumnDataCollection;
using duckdb::cxx::CopyFunction;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;

//! How many rows the core gets at once. An interrupt waits for them.
constexpr idx_t BATCH_ROWS = 2048;

using Catalog = std::unique_ptr<EvtxCatalog, Freed<evtx_catalog_free>>;

//! The columns of the rows.
struct Columns {
	std::vector<std::string> names;
	std::vector<LogicalType> types;
};

//! A file that is being written.
struct File {
	File(duckdb::cxx::Context &context, const Columns &columns, std::string path_p)
	    : path(std::move(path_p)), exporter(context, columns.types, columns.names, BATCH_ROWS) {
		Schema schema;
		exporter.GetSchema(schema);
		catalog = Create<Catalog>(evtx_catalog_new, static_cast<ArrowSchema *>(&schema));
	}

	//! Gives the core the arrays that are complete.
	void Pass() {
		for (Array array; exporter.NextArray(array);) {
			Check(evtx_catalog_push(catalog.get(), &array));
		}
	}

	std::string path;
	duckdb::cxx::ArrowExporter exporter;
	Catalog catalog;
};

void Bind(CopyFunction::CopyToBindInput &input) {
	if (input.GetOptionCount() > 0) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER,
		                             "COPY TO (FORMAT " +
		                                 GetText(Ask<EvtxDefinitions>(evtx_definitions).catalog_format) +
		                                 "): there is no option " + input.GetOptionName(0));
	}
	Columns columns;
	std::vector<EvtxText> lent;
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.names.push_back(input.GetColumnName(i));
		columns.types.push_back(input.GetColumnType(i));
	}
	lent.reserve(columns.names.size());
	for (const auto &name : columns.names) {
		lent.push_back(Lend(name));
	}
	Check(evtx_catalog_check(Lend(lent)));
	input.SetBindData<Columns>(std::move(columns));
}

void Init(CopyFunction::CopyToInitInput &input) {
	input.SetInitData<File>(input.GetContext(), input.GetBindData<Columns>(), input.GetFilePath());
}

void Batch(CopyFunction::CopyToBatchInput &input) {
	input.SetBatchData<ColumnDataCollection>(input.TakeBatch());
}

void Flush(CopyFunction::CopyToFlushInput &input) {
	auto &file = input.GetInitData<File>();
	const auto &rows = input.GetBatchData<ColumnDataCollection>();
	auto shared = rows.CreateSharedScanState();
	auto thread = rows.CreateWorkerScanState();
	auto chunk = input.GetContext().GetFactory().CreateDataChunk(input.GetBindData<Columns>().types);
	Storage storage(input.GetContext());
	while (rows.Scan(shared, thread, chunk)) {
		storage.Check();
		file.exporter.Append(chunk);
		file.Pass();
	}
}

void Finalize(CopyFunction::CopyToFinalizeInput &input) {
	using duckdb::cxx::FileFlags;
	auto &file = input.GetInitData<File>();
	file.exporter.Flush();
	file.Pass();
	Storage storage(input.GetContext());
	const auto bytes = Ask<EvtxSlice<std::uint8_t>>(evtx_catalog_finish, file.catalog.get(), storage.ForCore());
	auto written =
	    input.GetContext().GetFileSystem().OpenFile(file.path, {FileFlags::WRITE, FileFlags::FILE_CREATE_NEW});
	written.WriteAt(bytes.data, bytes.len, 0);
	written.Close();
}

} // namespace

void RegisterCopyTo(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto function = CopyFunction::Create(context.GetFactory());
	const auto format = GetText(Ask<EvtxDefinitions>(evtx_definitions).catalog_format);
	function.SetName(format)
	    .SetFileExtension("messages")
	    .SetCopyToBindCallback(Bind)
	    .SetCopyToInitCallback(Init)
	    .SetCopyToBatchCallback(Batch)
	    .SetCopyToFlushCallback(Flush)
	    .SetCopyToFinalizeCallback(Finalize);
	extension.Register(function);
}

} // namespace evtx
