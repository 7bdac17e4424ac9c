#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace evtx {

namespace {

using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;
using duckdb::cxx::varchar_t;
using duckdb::cxx::Vector;

EvtxVector Lend(const Vector &vector, std::size_t rows, bool is_number) {
	const auto view = vector.GetView();
	return {view.data, view.validity, view.sel, rows, is_number};
}

//! Calls `put` with each range, and makes the rows of the others NULL.
template <class Put>
void Fill(Vector &vector, const EvtxSlice<EvtxRange> &ranges, Put put) {
	auto validity = vector.GetValidityMutable();
	validity.SetAllValid(ranges.len);
	for (std::size_t i = 0; i < ranges.len; i++) {
		const auto &range = ranges.data[i];
		put(i, range);
		if (range.is_null) {
			validity.SetInvalid(i);
		}
	}
}

void PutTexts(Vector &vector, const EvtxAnswersView &answers) {
	auto *rows = vector.GetDataMutable<varchar_t>();
	const auto bytes = View(answers.bytes);
	auto *copy = reinterpret_cast<char *>(vector.GetHeap().Allocate(bytes.size()));
	std::copy(bytes.begin(), bytes.end(), copy);
	Fill(vector, answers.texts, [&](std::size_t i, const EvtxRange &text) {
		rows[i] = varchar_t(copy + text.offset, static_cast<std::uint32_t>(text.len));
	});
}

// The API takes callbacks of this type only.
// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Lend(input.GetArg(0), count, false);
	const auto codes = Lend(input.GetArg(1), count, function.takes_number);
	Storage storage(input.GetContext());
	const auto answers = Create<Answers>(evtx_answers_new, function.number, tables, codes, storage.ForCore());
	const auto view = Ask<EvtxAnswersView>(evtx_answers_view, answers.get());
	auto result = input.GetResult();
	if (!function.is_list) {
		return PutTexts(result, view);
	}
	auto *rows = result.GetDataMutable<duckdb::cxx::list_entry_t>();
	Fill(result, view.lists, [&](std::size_t i, const EvtxRange &list) { rows[i] = {list.offset, list.len}; });
	auto names = result.GetChild(0);
	names.SetSize(view.texts.len);
	PutTexts(names, view);
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
