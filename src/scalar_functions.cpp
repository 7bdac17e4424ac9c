#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#include <cstddef>

//! The scalar functions: the meanings of codes, the details of events, and the redaction of records.

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;

// The API takes callbacks of these types only.
// NOLINTNEXTLINE(misc-const-correctness)
void ExecCodes(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Lend(input.GetArg(0), count);
	const auto codes = Lend(input.GetArg(1), count, function.takes_number);
	Storage storage(input.GetContext());
	const auto answers = Create<Arrays>(evtx_answers_new, function.number, tables, codes, storage.ForCore());
	Write(answers, input.GetResult());
}

// NOLINTNEXTLINE(misc-const-correctness)
void ExecDetails(ScalarFunction::ExecInput &input) {
	const auto count = input.GetRowCount();
	const auto fields = input.GetArg(2);
	const auto entries = fields.GetChild(0);
	entries.Flatten();
	const auto keys = entries.GetChild(0);
	const auto values = entries.GetChild(1);
	const auto shown = input.GetArg(4);
	const auto texts = shown.GetChild(0);
	const EvtxEvents events {Lend(input.GetArg(0), count), Lend(input.GetArg(1), count),   Lend(fields, count),
	                         Lend(keys, keys.GetSize()),   Lend(values, values.GetSize()), Lend(input.GetArg(3), count),
	                         Lend(shown, count),           Lend(texts, texts.GetSize())};
	Storage storage(input.GetContext());
	const auto details = Create<Arrays>(evtx_events_details, events, storage.ForCore());
	Write(details, input.GetResult());
}

//! The number of a function.
struct Number {
	std::size_t number;
};

// NOLINTNEXTLINE(misc-const-correctness)
void InitRedact(ScalarFunction::InitInput &input) {
	input.SetInitData<Redactor>(Create<Redactor>(evtx_redactor_new, input.GetUserData<Number>().number));
}

// NOLINTNEXTLINE(misc-const-correctness)
void ExecRedact(ScalarFunction::ExecInput &input) {
	const auto count = input.GetRowCount();
	const auto records = input.GetArg(0);
	const auto maps = input.GetArg(1);
	const auto entries = maps.GetChild(0);
	entries.Flatten();
	const auto keys = entries.GetChild(0);
	const auto values = entries.GetChild(1);
	keys.Flatten();
	values.Flatten();
	const EvtxRedaction redaction {Lend(records, count), Lend(maps, count), Lend(keys, keys.GetSize()),
	                               Lend(values, values.GetSize())};
	Storage storage(input.GetContext());
	const auto redacted =
	    Create<Arrays>(evtx_redactor_redact, input.GetInitData<Redactor>().get(), redaction, storage.ForCore());
	Write(redacted, input.GetResult());
}

} // namespace

void RegisterScalarFunctions(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto text = factory.CreateType(LogicalTypeId::VARCHAR);
	const auto integer = factory.CreateType(LogicalTypeId::HUGEINT);
	for (const auto &code : Ask<EvtxDefinitions>(evtx_definitions).code_functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, code.function);
		function.SetExecCallback(ExecCodes).SetUserData<EvtxCodeFunction>(code);
		auto signature = function.GetSignature();
		signature.AddParameter("table", text).AddParameter("code", code.takes_number ? integer : text);
		signature.SetReturnType(factory.ParseType(code.is_list ? "VARCHAR[]" : "VARCHAR"));
		extension.Register(function);
	}
	auto details = ScalarFunction::Create(factory);
	Describe(details, Ask<EvtxDefinitions>(evtx_definitions).details_function);
	details.SetExecCallback(ExecDetails);
	auto of_details = details.GetSignature();
	of_details.AddParameter("provider", text)
	    .AddParameter("event_id", factory.CreateType(LogicalTypeId::UINTEGER))
	    .AddParameter("fields", factory.ParseType("STRUCT(\"key\" VARCHAR, \"value\" VARCHAR)[]"))
	    .AddParameter("root", text)
	    .AddParameter("shown", factory.ParseType("VARCHAR[]"));
	of_details.SetReturnType(text);
	extension.Register(details);
	const auto record = factory.CreateType(LogicalTypeId::BLOB);
	const auto functions = Ask<EvtxDefinitions>(evtx_definitions).redact_functions;
	std::size_t number = 0;
	for (const auto &about : functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, about);
		function.SetInitCallback(InitRedact).SetExecCallback(ExecRedact).SetUserData<Number>(Number {number++});
		auto signature = function.GetSignature();
		signature.AddParameter("record", record)
		    .AddParameter("replacements", factory.ParseType("MAP(VARCHAR, VARCHAR)"));
		signature.SetReturnType(record);
		extension.Register(function);
	}
}

} // namespace evtx
