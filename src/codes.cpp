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

EvtxVector Show(const Vector &vector, bool is_number) {
	const auto view = vector.GetView();
	return {view.data, view.validity, view.sel, is_number};
}

//! Fills a vector with what `put` returns for each row, or with NULL where it returns false.
template <class Put>
void Fill(Vector &vector, std::size_t count, Put put) {
	auto validity = vector.GetValidityMutable();
	validity.SetAllValid(count);
	for (std::size_t i = 0; i < count; i++) {
		if (!put(i)) {
			validity.SetInvalid(i);
		}
	}
}

void PutTexts(Vector &vector, const EvtxAnswersView &answers) {
	auto *rows = vector.GetDataMutable<varchar_t>();
	const auto &owned = answers.owned;
	auto *copy = reinterpret_cast<char *>(vector.GetHeap().Allocate(owned.len));
	std::copy_n(owned.data, owned.len, copy);
	Fill(vector, answers.text_count, [&](std::size_t i) {
		const auto &text = answers.texts[i];
		const bool is_owned = text.data >= owned.data && text.data < owned.data + owned.len;
		rows[i] =
		    varchar_t(is_owned ? copy + (text.data - owned.data) : text.data, static_cast<std::uint32_t>(text.len));
		return text.data != nullptr;
	});
}

// The API takes callbacks of this type only.
// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = Show(input.GetArg(0), false);
	const auto codes = Show(input.GetArg(1), function.takes_number);
	Storage storage(input.GetContext());
	const auto answers = Create<Answers>(evtx_answers_new, function.number, tables, codes, count, storage.ForCore());
	const auto view = Ask<EvtxAnswersView>(evtx_answers_view, answers.get());
	auto result = input.GetResult();
	if (!function.is_list) {
		return PutTexts(result, view);
	}
	auto *rows = result.GetDataMutable<duckdb::cxx::list_entry_t>();
	Fill(result, count, [&](std::size_t i) {
		rows[i] = {view.lists[i].offset, view.lists[i].len};
		return !view.lists[i].is_null;
	});
	auto names = result.GetChild(0);
	names.SetSize(view.text_count);
	PutTexts(names, view);
}

} // namespace

void RegisterCodes(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	const auto text = factory.CreateType(LogicalTypeId::VARCHAR);
	const auto number = factory.CreateType(LogicalTypeId::HUGEINT);
	EvtxCodeFunction code {};
	for (std::size_t index = 0; Ask<bool>(evtx_code_function, index, &code); index++) {
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
