#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#include <cstddef>

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;
using duckdb::cxx::Vector;

EvtxVector Lend(const Vector &vector, std::size_t rows, bool is_number) {
	const auto view = vector.GetView();
	return {view.data, view.validity, view.sel, rows, is_number};
}

// The API takes callbacks of this type only.
// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Lend(input.GetArg(0), count, false);
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
