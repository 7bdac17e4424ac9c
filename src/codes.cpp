#include "core.hpp"
#include "register.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

namespace {

using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::ScalarFunction;
using duckdb::cxx::varchar_t;
using duckdb::cxx::Vector;

std::vector<EvtxText> GetTexts(const Vector &vector, idx_t count) {
	const auto view = vector.GetView();
	std::vector<EvtxText> texts(count);
	for (idx_t i = 0; i < count; i++) {
		const auto &text = view.Data<varchar_t>()[view.SelAt(i)];
		texts[i] = view.IsValid(i) ? EvtxText {text.data(), text.size()} : EvtxText {nullptr, 0};
	}
	return texts;
}

void PutTexts(Vector &vector, const EvtxAnswersView &answers) {
	auto *texts = vector.GetDataMutable<varchar_t>();
	auto validity = vector.GetValidityMutable();
	validity.SetAllValid(answers.text_count);
	for (idx_t i = 0; i < answers.text_count; i++) {
		const auto &text = answers.texts[i];
		if (text.data == nullptr) {
			validity.SetInvalid(i);
			continue;
		}
		const std::string_view view(text.data, text.len);
		texts[i] = answers.is_owned ? vector.GetHeap().AddStringUnsafe(view) : varchar_t(view);
	}
}

void Exec(ScalarFunction::ExecInput &input) {
	const auto &function = input.GetUserData<EvtxCodeFunction>();
	const auto count = input.GetRowCount();
	const auto tables = GetTexts(input.GetArg(0), count);
	const auto codes = GetTexts(input.GetArg(1), count);
	const auto answers = Create<Answers>(evtx_answers_new, function.kind, tables.data(), codes.data(), count);
	const auto view = Ask<EvtxAnswersView>(evtx_answers_view, answers.get());
	auto result = input.GetResult();
	if (!function.is_list) {
		PutTexts(result, view);
		return;
	}
	auto *lists = result.GetDataMutable<duckdb::cxx::list_entry_t>();
	auto validity = result.GetValidityMutable();
	validity.SetAllValid(count);
	for (idx_t i = 0; i < count; i++) {
		lists[i] = {view.lists[i].offset, view.lists[i].len};
		if (view.lists[i].is_null) {
			validity.SetInvalid(i);
		}
	}
	auto names = result.GetChild(0);
	names.SetSize(view.text_count);
	PutTexts(names, view);
}

} // namespace

void RegisterCodes(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	EvtxCodeFunction code {};
	for (std::size_t index = 0; Ask<bool>(evtx_code_function, index, &code); index++) {
		auto function = ScalarFunction::Create(factory);
		function.SetName(GetText(code.name)).SetExecCallback(Exec).SetUserData<EvtxCodeFunction>(code);
		function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
			signature.AddParameter("table", factory.CreateType(LogicalTypeId::VARCHAR))
			    .AddParameter("code", factory.CreateType(LogicalTypeId::VARCHAR))
			    .SetReturnType(factory.ParseType(code.is_list ? "VARCHAR[]" : "VARCHAR"));
		});
		function.WithDocs([&](duckdb::cxx::FunctionDocs &docs) {
			docs.SetDescription(GetText(code.description)).AddExample("", GetText(code.example)).AddCategory("evtx");
		});
		extension.Register(function);
	}
}

} // namespace evtx
