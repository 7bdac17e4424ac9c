#include "register.hpp"

#include "core.hpp"
#include "duckdb_v2.h"
#include "storage.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

//! `COPY ... TO file (FORMAT evtx)` and `(FORMAT evtx_messages)`: the core makes a log or a catalog of messages of the
//! rows, and DuckDB writes its parts.

namespace evtx {

namespace {

using duckdb::cxx::CopyFunction;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;

//! How many rows a thread makes ready at once. For a log of usual events, they fill 100 chunks, and leave one in part.
constexpr idx_t BATCH_ROWS = 8192;

using Rows = std::unique_ptr<EvtxRows, Freed<evtx_rows_free>>;
using Copy = std::unique_ptr<EvtxCopy, Freed<evtx_copy_free>>;
using Export = std::unique_ptr<EvtxExport, Freed<evtx_export_free>>;

//! What a statement says: the format, the columns of the rows, and options, as names and values in turn.
struct Statement {
	std::string format;
	std::vector<std::string> names;
	std::vector<LogicalType> types;
	std::vector<std::string> options;
	//! What its files share.
	std::shared_ptr<Copy> copy;
};

//! A file that is being written.
class File {
public:
	File(duckdb::cxx::Context &context, const Statement &statement, const std::string &path) {
		const auto options = LendAll(statement.options);
		const auto memory = GetSetting(context, "memory_limit");
		file = Create<Export>(evtx_export_new, statement.copy->get(), Lend(statement.format), Lend(options), Lend(path),
		                      Lend(memory));
	}

	void Append(duckdb::cxx::Context &context, Rows rows) {
		Storage storage(context);
		Check(evtx_export_append(file.get(), rows.release(), storage.ForCore()));
		Write(context);
	}

	void Finish(duckdb::cxx::Context &context) {
		Storage storage(context);
		Check(evtx_export_finish(file.get(), storage.ForCore()));
		Write(context);
		written->Close();
		Check(evtx_export_keep(file.get(), storage.ForCore()));
	}

private:
	void Write(duckdb::cxx::Context &context) {
		using duckdb::cxx::FileFlags;
		for (;;) {
			const auto part = Ask<EvtxPart>(evtx_export_take, file.get());
			if (part.bytes.len == 0) {
				return;
			}
			if (!written) {
				const auto path = GetText(Ask<EvtxText>(evtx_export_path, file.get()));
				written.emplace(context.GetFileSystem().OpenFile(path, {FileFlags::WRITE, FileFlags::FILE_CREATE_NEW}));
			}
			written->WriteAt(part.bytes.data, part.bytes.len, part.offset);
		}
	}

	Export file;
	//! It is closed before the core removes what was written of a file that did not become whole.
	std::optional<duckdb::cxx::FileHandle> written;
};

void Bind(CopyFunction::CopyToBindInput &input) {
	Statement statement;
	statement.format = input.GetUserData<std::string>();
	for (idx_t i = 0; i < input.GetOptionCount(); i++) {
		const auto value = input.GetOptionValue(i);
		statement.options.push_back(input.GetOptionName(i));
		statement.options.push_back(value.IsNull() ? "" : value.ToText());
	}
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		statement.names.push_back(input.GetColumnName(i));
		statement.types.push_back(input.GetColumnType(i));
	}
	const auto names = LendAll(statement.names), options = LendAll(statement.options);
	const std::string path = input.GetFilePath();
	statement.copy = std::make_shared<Copy>(
	    Create<Copy>(evtx_export_check, Lend(statement.format), Lend(path), Lend(names), Lend(options)));
	input.SetBindData<Statement>(std::move(statement));
}

void Init(CopyFunction::CopyToInitInput &input) {
	input.SetInitData<File>(input.GetContext(), input.GetBindData<Statement>(), input.GetFilePath());
}

void BatchSize(CopyFunction::CopyToBatchSizeInput &input) {
	input.SetTarget(BATCH_ROWS);
}

//! Makes rows ready. Threads do this at once.
void Batch(CopyFunction::CopyToBatchInput &input) {
	auto &context = input.GetContext();
	const auto &statement = input.GetBindData<Statement>();
	auto chunk = context.GetFactory().CreateDataChunk(statement.types);
	duckdb::cxx::ArrowExporter exporter(context, statement.types, statement.names, chunk.GetCapacity());
	Schema schema;
	exporter.GetSchema(schema);
	const auto options = LendAll(statement.options);
	auto rows = Create<Rows>(evtx_rows_new, Lend(statement.format), Lend(options), static_cast<ArrowSchema *>(&schema));
	const auto push = [&] {
		for (Array array; exporter.NextArray(array);) {
			Check(evtx_rows_push(rows.get(), &array));
		}
	};
	const auto batch = input.TakeBatch();
	auto shared = batch.CreateSharedScanState();
	auto thread = batch.CreateWorkerScanState();
	Storage storage(context);
	while (batch.Scan(shared, thread, chunk)) {
		storage.Check();
		exporter.Append(chunk);
		push();
	}
	exporter.Flush();
	push();
	input.SetBatchData<Rows>(std::move(rows));
}

void Flush(CopyFunction::CopyToFlushInput &input) {
	input.GetInitData<File>().Append(input.GetContext(), std::move(input.GetBatchData<Rows>()));
}

void Finalize(CopyFunction::CopyToFinalizeInput &input) {
	input.GetInitData<File>().Finish(input.GetContext());
}

} // namespace

void SetCopyTo(duckdb::cxx::CopyFunction &function, const std::string &format) {
	function.SetName(format)
	    .SetUserData<std::string>(format)
	    .SetCopyToBindCallback(Bind)
	    .SetCopyToBatchSizeCallback(BatchSize)
	    .SetCopyToInitCallback(Init)
	    .SetCopyToBatchCallback(Batch)
	    .SetCopyToFlushCallback(Flush)
	    .SetCopyToFinalizeCallback(Finalize);
}

void RegisterCopyTo(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto function = CopyFunction::Create(context.GetFactory());
	SetCopyTo(function, GetText(Ask<EvtxDefinitions>(evtx_definitions).catalog_format));
	function.SetFileExtension("messages");
	extension.Register(function);
}

} // namespace evtx
