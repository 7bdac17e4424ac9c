#include "core.hpp"
#include "register.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace evtx {

namespace {

using duckdb::cxx::ScalarFunction;
using duckdb::cxx::varchar_t;
using duckdb::cxx::Vector;

std::vector<EvtxText> GetTexts(const Vector &vector, std::size_t count) {
	const auto view = vector.GetView();
	std::vector<EvtxText> texts(count, EvtxText {nullptr, 0});
	for (std::size_t i = 0; i < count; i++) {
		if (view.IsValid(i)) {
			const auto &text = view.Data<varchar_t>()[view.SelAt(i)];
			texts[i] = {text.data(), text.size()};
		}
	}
	return texts;
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
	auto heap = vector.GetHeap();
	Fill(vector, answers.text_count, [&](std::size_t i) {
		const auto &text = answers.texts[i];
		const std::string_view view(text.data, text.len);
		rows[i] = answers.is_owned ? heap.AddStringUnsafe(view) : varchar_t(view);
		return text.data != nullptr;
	});
}

void Exec(ScalarFunction::ExecInput &input) {
	const auto count = input.GetRowCount();
	const auto tables = GetTexts(input.GetArg(0), count);
	const auto codes = GetTexts(input.GetArg(1), count);
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto answers = Create<Answers>(evtx_answers_new, function.kind, tables.data(), codes.data(), count);
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
	const auto text = factory.CreateType(duckdb::cxx::LogicalTypeId::VARCHAR);
	EvtxCodeFunction code {};
	for (std::size_t index = 0; Ask<bool>(evtx_code_function, index, &code); index++) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, code.function);
		function.SetExecCallback(Exec).SetUserData<EvtxCodeFunction>(code);
		auto signature = function.GetSignature();
		signature.AddParameter("table", text).AddParameter("code", text);
		signature.SetReturnType(factory.ParseType(code.is_list ? "VARCHAR[]" : "VARCHAR"));
		extension.Register(function);
	}
}

} // namespace evtx
