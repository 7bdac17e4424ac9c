#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#include <cstddef>

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;

//! The number of a function.
struct Number {
	std::size_t number;
};

// The API takes callbacks of these types only.
// NOLINTNEXTLINE(misc-const-correctness)
void Init(ScalarFunction::InitInput &input) {
	input.SetInitData<Redactor>(Create<Redactor>(evtx_redactor_new, input.GetUserData<Number>().number));
}

// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
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
	ArrayWriter writer(redacted);
	writer.Add(input.GetResult());
	writer.Write();
}

} // namespace

void RegisterRedact(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto record = factory.CreateType(LogicalTypeId::BLOB);
	const auto functions = Ask<EvtxDefinitions>(evtx_definitions).redact_functions;
	std::size_t number = 0;
	for (const auto &about : functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, about);
		function.SetInitCallback(Init).SetExecCallback(Exec).SetUserData<Number>(Number {number++});
		auto signature = function.GetSignature();
		signature.AddParameter("record", record)
		    .AddParameter("replacements", factory.ParseType("MAP(VARCHAR, VARCHAR)"));
		signature.SetReturnType(record);
		extension.Register(function);
	}
}

} // namespace evtx
