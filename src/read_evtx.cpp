#include "read_evtx.hpp"

#include "core.hpp"
#include "file_queue.hpp"
#include "filter_pushdown.hpp"
#include "plan_guard.hpp"

#include "duckdb_v2.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

//! The table function `read_evtx`: which files and columns, which thread reads what, Arrow batches to vectors.

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::FileSystem;
using duckdb::cxx::list_entry_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;
using duckdb::cxx::Vector;

//! Most rows that DuckDB takes in a chunk.
constexpr idx_t VECTOR_ROWS = 2048;

//! Most threads of a scan; DuckDB's own limit is lower.
constexpr idx_t MAX_THREADS = 1024;

//! The argument that says where the messages of a log stand, and what it is if it is not given.
constexpr const char *MESSAGES = "messages";
constexpr const char *DEFAULT_MESSAGES = "LocaleMetaData/{log}_*.[Mm][Tt][Aa]";

//! A call of the function.
struct BoundCall {
	explicit BoundCall(const EvtxOptions &options_p) : options(options_p), filter(options_p) {}

	std::vector<ScanPath> paths;
	EvtxOptions options;
	//! Where the messages of a log stand beside it.
	std::string messages;
	//! The predicates that were accepted while the query was planned.
	Filter filter;
	std::optional<PlanGuard> guard;
};

//! The paths of the files that may have rows which the query keeps.
std::vector<ScanPath> KeptPaths(const BoundCall &call) {
	std::vector<ScanPath> kept;
	std::copy_if(call.paths.begin(), call.paths.end(), std::back_inserter(kept),
	             [&](const ScanPath &path) { return !call.filter.DropsFile(path.path); });
	return kept;
}

//! What the threads of a scan share.
struct SharedState {
	SharedState(const BoundCall &call, const std::vector<std::uintptr_t> &columns)
	    : scan(call.options, columns, call.filter),
	      queue(KeptPaths(call), call.options,
		        scan.ReadsMessages() ? std::optional<std::string>(call.messages) : std::nullopt) {}

	Scan scan;
	FileQueue queue;
};

//! What a thread of a scan keeps.
struct ThreadState {
	explicit ThreadState(const Scan &scan) : decoder(scan) {}

	Decoder decoder;
	//! Made in the thread's first call, as it needs a context.
	std::unique_ptr<ArrowImporter> importer;
	//! The rows last handed out: vectors refer to them until the next call.
	std::optional<DataChunk> rows;
	//! What the thread works on.
	std::optional<Work> work;
	std::vector<std::uint8_t> block;
	//! Whether the decoder has begun the block.
	bool started = true;
	//! Bytes of the block that were decoded.
	std::uintptr_t decoded = 0;
	std::uint64_t batch_index = 0;
};

bool HasGlob(const std::string &path) {
	return path.find_first_of("*?[") != std::string::npos;
}

//! Appends the files that a path, glob or folder stands for.
void ExpandPath(const FileSystem &files, const std::string &path, std::vector<ScanPath> &paths) {
	const bool named = !HasGlob(path) || files.Exists(path);
	auto found = files.Glob(path);
	if (found.empty() && !HasGlob(path)) {
		// A folder stands for the logs in it, as for DuckDB's own readers.
		found = files.Glob(path + "/**/*.evtx");
		if (found.empty()) {
			// Fails with the reason why it cannot be read.
			files.OpenFile(path, {duckdb::cxx::FileFlags::READ});
		}
	}
	if (found.empty()) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL,
		                             "No files found that match the pattern \"" + path + "\"");
	}
	std::sort(found.begin(), found.end());
	for (auto &file : found) {
		paths.push_back({std::move(file), named});
	}
}

void ExpandPaths(const FileSystem &files, const Value &value, std::vector<ScanPath> &paths) {
	const auto type = value.GetLogicalType().GetTypeId();
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException("read_evtx cannot take NULL as a path");
	}
	if (type == LogicalTypeId::LIST || type == LogicalTypeId::ARRAY) {
		if (value.GetChildCount() == 0) {
			throw duckdb::cxx::InvalidInputException("read_evtx needs at least one path");
		}
		for (idx_t i = 0; i < value.GetChildCount(); i++) {
			ExpandPaths(files, value[i], paths);
		}
		return;
	}
	if (type != LogicalTypeId::VARCHAR && type != LogicalTypeId::STRUCT) {
		throw duckdb::cxx::InvalidInputException("read_evtx takes a path, a glob, or a list of them, not " +
		                                         value.GetLogicalType().ToText());
	}
	ExpandPath(files, duckdb::cxx::GetFilePath(value), paths);
}

//! A named argument, which cannot be NULL.
Value NamedArgument(const TableFunction::BindInput &input, const std::string &name) {
	const auto index = input.FindArg(name);
	if (!index) {
		throw duckdb::cxx::InvalidInputException("read_evtx has no argument " + name);
	}
	auto value = input.GetConstantArgument(*index);
	if (value.IsNull()) {
		throw duckdb::cxx::InvalidInputException("read_evtx cannot take NULL as " + name);
	}
	return value;
}

//! Where a constant text stands in memory. Longer ones than twelve bytes are shared by the values that hold them.
const void *DataOf(const Value &text) {
	return text.Get<duckdb::cxx::varchar_t>().view().data();
}

//! All that a call reads from, so that two calls with the same have the same rows.
std::string Describe(const BoundCall &call) {
	const auto &options = call.options;
	std::string text = call.messages;
	for (const auto flag : {options.verify, options.recover, options.xml, options.json, options.location}) {
		text += flag ? '1' : '0';
	}
	text += std::to_string(static_cast<int>(options.on_error));
	for (const auto &path : call.paths) {
		text += '\0' + path.path;
	}
	return text;
}

void Bind(TableFunction::BindInput &input) {
	EvtxOptions options {};
	const auto on_error = NamedArgument(input, "on_error");
	options.on_error = ParseOnError(on_error.Get<duckdb::cxx::varchar_t>().view());
	options.verify = NamedArgument(input, "verify").Get<bool>();
	options.recover = NamedArgument(input, "recover").Get<bool>();
	options.xml = NamedArgument(input, "xml").Get<bool>();
	options.json = NamedArgument(input, "json").Get<bool>();
	options.location = NamedArgument(input, "location").Get<bool>();
	BoundCall call(options);
	const auto messages = NamedArgument(input, MESSAGES);
	call.messages = std::string(messages.Get<duckdb::cxx::varchar_t>().view());
	ExpandPaths(input.GetContext().GetFileSystem(), input.GetConstantArgument(0), call.paths);

	Schema arrow;
	GetTableSchema(options, arrow);
	const auto schema = ArrowImporter(input.GetContext(), arrow).GetSchema();
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		input.AddResultColumn(std::string(schema.GetFieldName(i)), schema.GetFieldType(i));
	}
	const auto *const default_argument = call.messages == DEFAULT_MESSAGES ? DataOf(messages) : nullptr;
	const auto is_original = input.GetUserData<PlanGuard::Defaults>().IsOriginal(default_argument);
	call.guard.emplace(Describe(call), is_original);
	input.SetBindData<BoundCall>(std::move(call));
}

void PushdownFilters(TableFunction::FilterPushdownInput &input) {
	auto &call = input.GetBindData<BoundCall>();
	if (call.guard->MayAccept()) {
		PushFilters(input, call.filter);
	}
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	std::vector<std::uintptr_t> columns;
	columns.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.push_back(input.GetColumnIndex(i));
	}
	const auto &call = input.GetBindData<BoundCall>();
	call.guard->Run();
	// The first damage is only known to be the first if the files are read in order. Otherwise, how many blocks they
	// have is not known before they are opened, and a thread that finds no work costs little.
	input.SetMaxThreads(call.options.on_error == EvtxOnError::FAIL ? 1 : MAX_THREADS);
	input.SetGlobalState<SharedState>(call, columns);
}

void InitLocal(TableFunction::InitLocalInput &input) {
	input.SetLocalState<ThreadState>(input.GetGlobalState<SharedState>().scan);
}

//! Claims the thread's next work and reads it. Returns false at the end of the scan.
bool NextWork(const FileSystem &files, FileQueue &queue, ThreadState &thread) {
	thread.work = queue.Claim(files, thread.batch_index);
	if (!thread.work) {
		return false;
	}
	const auto &work = *thread.work;
	thread.batch_index = work.batch_index;
	if (work.damage) {
		thread.decoder.ReportFile(work.path->path, *work.damage);
	}
	if (work.file) {
		thread.block.resize(work.block.len);
		work.file->handle.ReadAt(thread.block.data(), work.block.len, work.block.offset);
		thread.decoded = 0;
		thread.started = false;
	}
	return true;
}

//! Decodes the next rows into the importer. Returns false at the end of the scan.
bool NextBatch(const FileSystem &files, FileQueue &queue, ThreadState &thread) {
	Array array;
	while (true) {
		if (!thread.decoder.IsDone()) {
			const auto left = thread.block.size() - thread.decoded;
			thread.decoded += thread.decoder.Decode(thread.block.data() + thread.decoded, left);
		}
		if (thread.decoder.Flush(array)) {
			thread.importer->Append(array, true, true);
			return true;
		}
		if (!thread.decoder.IsDone()) {
			continue;
		}
		if (!thread.started) {
			// What is wrong with the file, if anything, was handed out.
			const auto &work = *thread.work;
			thread.decoder.Start(work.path->path, work.file->messages.get(), work.block);
			thread.started = true;
			continue;
		}
		if (!NextWork(files, queue, thread)) {
			return false;
		}
	}
}

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

void Exec(TableFunction::ExecInput &input) {
	auto &shared = input.GetGlobalState<SharedState>();
	auto &thread = input.GetLocalState<ThreadState>();
	if (!thread.importer) {
		Schema schema;
		shared.scan.GetSchema(schema);
		thread.importer = std::make_unique<ArrowImporter>(input.GetContext(), schema, VECTOR_ROWS);
	}
	const auto files = input.GetContext().GetFileSystem();
	while (true) {
		auto rows = thread.importer->NextChunk();
		if (rows) {
			const auto output = input.GetOutputChunk();
			for (idx_t i = 0; i < input.GetColumnCount(); i++) {
				HandOut(rows.GetVector(i), output.GetVector(i));
			}
			output.GetVector(0).SetSize(rows.GetRowCount());
			thread.rows = std::move(rows);
			return;
		}
		if (!NextBatch(files, shared.queue, thread)) {
			return;
		}
	}
}

void Progress(TableFunction::ProgressInput &input) {
	input.SetProgress(input.GetGlobalState<SharedState>().queue.Progress());
}

void PartitionData(TableFunction::PartitionDataInput &input) {
	input.SetBatchIndex(input.GetLocalState<ThreadState>().batch_index);
}

} // namespace

void RegisterReadEvtx(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	const auto boolean = factory.CreateType(LogicalTypeId::BOOLEAN);
	const auto no = factory.CreateValue(false);
	const auto named = duckdb::cxx::FunctionParameterKind::NAMED_ONLY;

	auto function = TableFunction::Create(factory);
	function.SetName("read_evtx")
	    .SetBindCallback(Bind)
	    .SetInitGlobalCallback(InitGlobal)
	    .SetInitLocalCallback(InitLocal)
	    .SetExecCallback(Exec)
	    .SetProgressCallback(Progress)
	    .SetPartitionDataCallback(PartitionData)
	    .SetFilterPushdownCallback(PushdownFilters)
	    .SetProjectionPushdown(true)
	    .SetUserData<PlanGuard::Defaults>();
	function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
		signature.AddParameter("files", factory.CreateType(LogicalTypeId::ANY))
		    .AddParameter("json", boolean, no, named)
		    .AddParameter("location", boolean, no, named)
		    .AddParameter(MESSAGES, factory.CreateType(LogicalTypeId::VARCHAR),
			              factory.CreateValue(duckdb::cxx::varchar_t(DEFAULT_MESSAGES)), named)
		    .AddParameter("on_error", factory.CreateType(LogicalTypeId::VARCHAR),
			              factory.CreateValue(duckdb::cxx::varchar_t("report")), named)
		    .AddParameter("recover", boolean, no, named)
		    .AddParameter("verify", boolean, no, named)
		    .AddParameter("xml", boolean, no, named);
	});
	function.WithDocs([](duckdb::cxx::FunctionDocs &docs) {
		docs.SetDescription(
		        "Reads Windows event logs (EVTX), a row per record. Takes a path, a glob, a folder, or a list of them.")
		    .AddExample("", "SELECT event_id, count(*) FROM read_evtx('logs/**/*.evtx') GROUP BY ALL ORDER BY 2 DESC");
	});
	extension.Register(function);
}

} // namespace evtx
