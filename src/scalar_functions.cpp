#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

//! The scalar functions: the meanings of codes, the details of events, and the redaction of records.

namespace evtx {

namespace {

using duckdb::cxx::ScalarFunction;

// The API takes callbacks of these types only.
// NOLINTNEXTLINE(misc-const-correctness)
void ExecCodes(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Lend(input.GetArg(0), count);
	const auto codes = Lend(input.GetArg(1), count, function.takes_number);
	Storage storage(input.GetContext());
	Write(Create<Arrays>(evtx_answers_new, function.number, tables, codes, storage.ForCore()), input.GetResult());
}

//! A vector of lists of pairs of texts.
EvtxPairs LendPairs(const duckdb::cxx::Vector &lists, std::size_t rows) {
	const auto pairs = lists.GetChild(0);
	pairs.Flatten();
	const auto keys = pairs.GetChild(0);
	const auto values = pairs.GetChild(1);
	return {Lend(lists, rows), Lend(keys, keys.GetSize()), Lend(values, values.GetSize())};
}

// NOLINTNEXTLINE(misc-const-correctness)
void ExecDetails(ScalarFunction::ExecInput &input) {
	const auto count = input.GetRowCount();
	const auto shown = input.GetArg(4);
	const auto texts = shown.GetChild(0);
	const EvtxEvents events {
	    Lend(input.GetArg(0), count), Lend(input.GetArg(1), count), LendPairs(input.GetArg(2), count),
	    Lend(input.GetArg(3), count), Lend(shown, count),           Lend(texts, texts.GetSize())};
	Storage storage(input.GetContext());
	Write(Create<Arrays>(evtx_events_details, events, storage.ForCore()), input.GetResult());
}

// NOLINTNEXTLINE(misc-const-correctness)
void InitRedact(ScalarFunction::InitInput &input) {
	input.SetInitData<Redactor>(Create<Redactor>(evtx_redactor_new, input.GetUserData<std::size_t>()));
}

// NOLINTNEXTLINE(misc-const-correctness)
void ExecRedact(ScalarFunction::ExecInput &input) {
	const auto count = input.GetRowCount();
	const EvtxRedaction redaction {Lend(input.GetArg(0), count), LendPairs(input.GetArg(1), count)};
	Storage storage(input.GetContext());
	const auto redactor = input.GetInitData<Redactor>().get();
	Write(Create<Arrays>(evtx_redactor_redact, redactor, redaction, storage.ForCore()), input.GetResult());
}

} // namespace

void RegisterScalarFunctions(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto text = factory.ParseType("VARCHAR");
	for (const auto &code : Ask<EvtxDefinitions>(evtx_definitions).code_functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, code.function);
		function.SetExecCallback(ExecCodes).SetUserData<EvtxCodeFunction>(code);
		function.GetSignature()
		    .AddParameter("table", text)
		    .AddParameter("code", factory.ParseType(code.takes_number ? "HUGEINT" : "VARCHAR"))
		    .SetReturnType(factory.ParseType(code.is_list ? "VARCHAR[]" : "VARCHAR"));
		extension.Register(function);
	}
	auto details = ScalarFunction::Create(factory);
	Describe(details, Ask<EvtxDefinitions>(evtx_definitions).details_function);
	details.SetExecCallback(ExecDetails)
	    .GetSignature()
	    .AddParameter("provider", text)
	    .AddParameter("event_id", factory.ParseType("UINTEGER"))
	    .AddParameter("fields", factory.ParseType(R"(STRUCT("key" VARCHAR, "value" VARCHAR)[])"))
	    .AddParameter("root", text)
	    .AddParameter("shown", factory.ParseType("VARCHAR[]"))
	    .SetReturnType(text);
	extension.Register(details);
	std::size_t number = 0;
	for (const auto &about : Ask<EvtxDefinitions>(evtx_definitions).redact_functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, about);
		function.SetInitCallback(InitRedact).SetExecCallback(ExecRedact).SetUserData<std::size_t>(number++);
		function.GetSignature()
		    .AddParameter("record", factory.ParseType("BLOB"))
		    .AddParameter("replacements", factory.ParseType("MAP(VARCHAR, VARCHAR)"))
		    .SetReturnType(factory.ParseType("BLOB"));
		extension.Register(function);
	}
}

} // namespace evtx
