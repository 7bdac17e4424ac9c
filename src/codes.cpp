#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;

// The API takes callbacks of this type only.
// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Lend(input.GetArg(0), count);
	const auto codes = Lend(input.GetArg(1), count, function.takes_number);
	Storage storage(input.GetContext());
	const auto answers = Create<Arrays>(evtx_answers_new, function.number, tables, codes, storage.ForCore());
	ArrayWriter writer(answers);
	writer.Add(input.GetResult());
	writer.Write();
}

} // namespace

void RegisterCodes(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto text = factory.CreateType(LogicalTypeId::VARCHAR);
	const auto number = factory.CreateType(LogicalTypeId::HUGEINT);
	for (const auto &code : Ask<EvtxDefinitions>(evtx_definitions).code_functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, code.function);
		function.SetExecCallback(Exec).SetUserData<EvtxCodeFunction>(code);
		auto signature = function.GetSignature();
		signature.AddParameter("table", text).AddParameter("code", code.takes_number ? number : text);
		signature.SetReturnType(factory.ParseType(code.is_list ? "VARCHAR[]" : "VARCHAR"));
		extension.Register(function);
	}
}

} // namespace evtx
