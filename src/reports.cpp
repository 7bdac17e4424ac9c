#include "reports.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::ArrowImporter;
using duckdb::cxx::Context;
using duckdb::cxx::DataChunk;
using duckdb::cxx::FileSystem;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;

//! The first piece of a file.
constexpr std::uint64_t HEADER_SIZE = 4096;

//! A table function.
struct Kind {
	const char *name;
	EvtxReportKind kind;
	const char *description;
	const char *example;
};

constexpr std::array<Kind, 3> KINDS = {{
    {"evtx_schema", EvtxReportKind::EVENTS,
	 "Tells which events Windows event logs (EVTX) hold: a row per field of each provider, event ID, version and "
	 "channel, with "
	 "the type that its template declares, the type of its column in read_evtx(..., event_id := ...), and how many "
	 "records there "
	 "are. Takes what read_evtx takes.",
	 "SELECT provider, event_id, any_value(records), list(field_name ORDER BY field_position) FROM "
	 "evtx_schema('logs/**/*.evtx') "
	 "GROUP BY ALL"},
    {"evtx_file_metadata", EvtxReportKind::FILES,
	 "Tells of each Windows event log (EVTX) what its header says and what is in it: flags, checksums as stored and as "
	 "computed, "
	 "chunks, records, the span of record IDs and what is missing in it, the span of time, what is damaged.",
	 "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')"},
    {"evtx_chunk_metadata", EvtxReportKind::CHUNKS,
	 "Tells of each chunk of Windows event logs (EVTX) what its header says and what is in it: record numbers and IDs, "
	 "free space, "
	 "checksums as stored and as computed, templates, the span of time, what is damaged.",
	 "SELECT chunk_index, first_record_id, last_record_id, records, error FROM evtx_chunk_metadata('Security.evtx')"},
}};

//! A call of such a function.
struct BoundReport {
	EvtxReportKind kind {};
	std::vector<ScanPath> paths;
};

struct ReportState {
	explicit ReportState(const BoundReport &call) : report(call.kind), reader(report) {}

	Report report;
	ReportReader reader;
	std::unique_ptr<ArrowImporter> importer;
	//! The rows last handed out: vectors refer to them until the next call.
	std::optional<DataChunk> rows;
	//! The next path, and whether a file before it is being read.
	std::size_t next = 0;
	bool open = false;
	bool done = false;

	//! Reads the next piece of the files. Returns false at the end.
	bool Read(Interrupt &interrupt, const std::vector<ScanPath> &paths) {
		if (open) {
			interrupt.SetReading(paths[next - 1].path);
			open = reader.Next(interrupt);
			return true;
		}
		interrupt.Check();
		if (next < paths.size()) {
			reader.Start(interrupt.Files(), paths[next++]);
			open = true;
			return true;
		}
		return !std::exchange(done, true);
	}
};

void Bind(TableFunction::BindInput &input) {
	const auto &kind = input.GetUserData<Kind>();
	BoundReport call;
	call.kind = kind.kind;
	Interrupt interrupt(input.GetContext());
	ExpandPaths(interrupt, input.GetConstantArgument(0), kind.name, call.paths);
	Schema arrow;
	Report(call.kind).GetSchema(arrow);
	const auto schema = ArrowImporter(input.GetContext(), arrow).GetSchema();
	for (idx_t i = 0; i < schema.GetFieldCount(); i++) {
		input.AddResultColumn(std::string(schema.GetFieldName(i)), schema.GetFieldType(i));
	}
	input.SetBindData<BoundReport>(std::move(call));
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	input.SetGlobalState<ReportState>(input.GetBindData<BoundReport>());
}

void Exec(TableFunction::ExecInput &input) {
	const auto &call = input.GetBindData<BoundReport>();
	auto &state = input.GetGlobalState<ReportState>();
	if (!state.importer) {
		Schema schema;
		state.report.GetSchema(schema);
		state.importer = std::make_unique<ArrowImporter>(input.GetContext(), schema, VECTOR_ROWS);
	}
	Interrupt interrupt(input.GetContext());
	while (true) {
		auto rows = state.importer->NextChunk();
		if (rows) {
			const auto output = input.GetOutputChunk();
			for (idx_t i = 0; i < input.GetColumnCount(); i++) {
				output.GetVector(i).Reference(rows.GetVector(i));
			}
			output.GetVector(0).SetSize(rows.GetRowCount());
			state.rows = std::move(rows);
			return;
		}
		// A report hands out a bounded number of rows at a time: all that are whole go out before more is read.
		Array array;
		if (state.report.Flush(state.done, array)) {
			state.importer->Append(array, true, true);
		} else if (!state.Read(interrupt, call.paths)) {
			return;
		}
	}
}

} // namespace

void ReportReader::Fail(const std::string &why) {
	log.reset();
	report.End(why);
}

void ReportReader::Start(const FileSystem &files, const ScanPath &path_p) {
	path = &path_p;
	offset = 0;
	log.reset();
	try {
		log.emplace(files, *path);
	} catch (const duckdb::cxx::InterruptException &) {
		throw;
	} catch (const duckdb::cxx::Exception &error) {
		if (path->named) {
			throw;
		}
		report.Start(path->path, 0);
		Fail(DescribeFailure(error));
		return;
	}
	report.Start(path->path, log->Size());
}

bool ReportReader::Next(Interrupt &interrupt) {
	if (!log) {
		return false;
	}
	bytes.resize(std::min(offset == 0 ? HEADER_SIZE : log->PieceSize(), log->Size() - offset));
	if (offset > 0 && bytes.empty()) {
		log.reset();
		report.End(std::nullopt);
		return false;
	}
	try {
		log->ReadAt(bytes, offset);
	} catch (const duckdb::cxx::InterruptException &) {
		throw;
	} catch (const duckdb::cxx::Exception &error) {
		if (path->named) {
			throw;
		}
		Fail(DescribeFailure(error));
		return false;
	}
	offset += bytes.size();
	if (const auto why = report.Push(bytes, interrupt)) {
		if (path->named) {
			throw duckdb::cxx::InvalidInputException(path->path + ": " + *why);
		}
		Fail(*why);
		return false;
	}
	return true;
}

void ReportReader::Skip(std::uint64_t pieces) {
	if (log) {
		offset = std::min(offset + pieces * log->PieceSize(), log->Size());
	}
}

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
			signature.AddParameter("files", factory.CreateType(LogicalTypeId::ANY));
		});
		function.WithDocs([&](duckdb::cxx::FunctionDocs &docs) {
			docs.SetDescription(kind.description).AddExample("", kind.example).AddCategory("evtx");
		});
		extension.Register(function);
	}
}

} // namespace evtx
