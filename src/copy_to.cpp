#include "register.hpp"

#include "core.hpp"
#include "duckdb_v2.h"
#include "storage.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

//! `COPY ... TO file (FORMAT evtx)` and `(FORMAT evtx_messages)`: the core makes a log or a catalog of messages of the
//! rows, and DuckDB writes its parts.

namespace evtx {

namespace {

using duckdb::cxx::ColumnDataCollection;
using duckdb::cxx::CopyFunction;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;

//! How many rows the core gets at once. An interrupt waits for them.
constexpr idx_t BATCH_ROWS = 2048;

using Export = std::unique_ptr<EvtxExport, Freed<evtx_export_free>>;

//! What a statement says: the format, the columns of the rows, and options, as names and values in turn.
struct Statement {
	std::string format;
	std::vector<std::string> names;
	std::vector<LogicalType> types;
	std::vector<std::string> options;
};

//! A file that is being written.
class File {
public:
	File(duckdb::cxx::Context &context, const Statement &statement, std::string path_p)
	    : path(std::move(path_p)), exporter(context, statement.types, statement.names, BATCH_ROWS) {
		Schema schema;
		exporter.GetSchema(schema);
		const auto options = LendAll(statement.options);
		file =
		    Create<Export>(evtx_export_new, Lend(statement.format), Lend(options), static_cast<ArrowSchema *>(&schema));
	}

	File(const File &) = delete;
	File &operator=(const File &) = delete;

	//! Removes what was written of a file that did not become whole.
	~File() {
		if (!written || is_whole) {
			return;
		}
		written.reset();
		std::error_code ignored;
		// Not a device, a pipe or a link: they were there before.
		const auto name = std::filesystem::u8path(path);
		if (std::filesystem::is_regular_file(std::filesystem::symlink_status(name, ignored))) {
			std::filesystem::remove(name, ignored);
		}
	}

	void Append(duckdb::cxx::Context &context, const duckdb::cxx::DataChunk &rows) {
		exporter.Append(rows);
		Pass(context);
	}

	void Finish(duckdb::cxx::Context &context) {
		exporter.Flush();
		Pass(context);
		Storage storage(context);
		Check(evtx_export_finish(file.get(), storage.ForCore()));
		Write(context);
		written->Close();
		is_whole = true;
	}

private:
	//! Gives the core the arrays that are complete, and writes what it makes of them.
	void Pass(duckdb::cxx::Context &context) {
		for (Array array; exporter.NextArray(array);) {
			Check(evtx_export_push(file.get(), &array));
			Write(context);
		}
	}

	void Write(duckdb::cxx::Context &context) {
		using duckdb::cxx::FileFlags;
		for (;;) {
			const auto part = Ask<EvtxPart>(evtx_export_take, file.get());
			if (part.bytes.len == 0) {
				return;
			}
			if (!written) {
				written.emplace(context.GetFileSystem().OpenFile(path, {FileFlags::WRITE, FileFlags::FILE_CREATE_NEW}));
			}
			written->WriteAt(part.bytes.data, part.bytes.len, part.offset);
		}
	}

	std::string path;
	duckdb::cxx::ArrowExporter exporter;
	Export file;
	std::optional<duckdb::cxx::FileHandle> written;
	bool is_whole = false;
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
	Check(evtx_export_check(Lend(statement.format), Lend(input.GetFilePath()), Lend(names), Lend(options)));
	input.SetBindData<Statement>(std::move(statement));
}

void Init(CopyFunction::CopyToInitInput &input) {
	input.SetInitData<File>(input.GetContext(), input.GetBindData<Statement>(), input.GetFilePath());
}

void Batch(CopyFunction::CopyToBatchInput &input) {
	input.SetBatchData<ColumnDataCollection>(input.TakeBatch());
}

void Flush(CopyFunction::CopyToFlushInput &input) {
	auto &file = input.GetInitData<File>();
	const auto &rows = input.GetBatchData<ColumnDataCollection>();
	auto shared = rows.CreateSharedScanState();
	auto thread = rows.CreateWorkerScanState();
	auto chunk = input.GetContext().GetFactory().CreateDataChunk(input.GetBindData<Statement>().types);
	Storage storage(input.GetContext());
	while (rows.Scan(shared, thread, chunk)) {
		storage.Check();
		file.Append(input.GetContext(), chunk);
	}
}

void Finalize(CopyFunction::CopyToFinalizeInput &input) {
	input.GetInitData<File>().Finish(input.GetContext());
}

} // namespace

void SetCopyTo(duckdb::cxx::CopyFunction &function, const std::string &format) {
	function.SetName(format)
	    .SetUserData<std::string>(format)
	    .SetCopyToBindCallback(Bind)
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
