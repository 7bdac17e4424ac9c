#include "register.hpp"

#include "arguments.hpp"
#include "core.hpp"
#include "scan.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

//! The table functions over files, such as `read_evtx`: their arguments, their columns, their projection and their
//! hints. The core has the list of them.

namespace evtx {

namespace {

using duckdb::cxx::Context;
using duckdb::cxx::Factory;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalType;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;

//! The function that the path of a log stands for.
constexpr const char *READ_EVTX = "read_evtx";

//! A table function over files.
struct ScanFunction {
	std::size_t index;
	std::string name;
	bool takes_files;
};

//! A call of a function.
struct BoundCall {
	BoundCall(std::shared_ptr<const EvtxCall> call_p, const std::string &arguments)
	    : call(std::move(call_p)), planned(Create<Planned>(evtx_planned_new, arguments.data(), arguments.size())) {}

	std::shared_ptr<const EvtxCall> call;
	std::shared_ptr<const EvtxPlanned> planned;
};

void Bind(TableFunction::BindInput &input) {
	const auto &function = input.GetUserData<ScanFunction>();
	ArgumentSetter arguments(function.name, function.index);
	std::optional<Value> files;
	auto text = function.name;
	if (function.takes_files) {
		files = input.GetConstantArgument(0);
		text += '\n' + files->ToText();
	}
	for (const auto &argument : ListArguments(function.index)) {
		const auto name = GetText(argument.name);
		const auto index = input.FindArg(name);
		if (!index) {
			throw duckdb::cxx::InvalidInputException(function.name + " has no argument " + name);
		}
		const auto value = input.GetConstantArgument(*index);
		arguments.Set(argument, value);
		text += '\n' + value.ToText();
	}
	BoundCall bound(arguments.MakeCall(input.GetContext(), files), text);
	const auto columns = GetColumns(input.GetContext(), *bound.call);
	for (std::size_t i = 0; i < columns.names.size(); i++) {
		input.AddResultColumn(columns.names[i], columns.types[i]);
	}
	Storage storage(input.GetContext());
	if (const auto rows = Ask<std::uint64_t>(evtx_call_estimate, bound.call.get(), storage.ForCore())) {
		input.SetCardinality(rows, false);
	}
	input.SetBindData<BoundCall>(std::move(bound));
}

void PushdownFilters(TableFunction::FilterPushdownInput &input) {
	TellHints(input, *input.GetBindData<BoundCall>().planned);
}

void InitGlobal(TableFunction::InitGlobalInput &input) {
	const auto &bound = input.GetBindData<BoundCall>();
	// One thread reads the files in order, so that `on_error := 'fail'` reports the first damage. Otherwise as many as
	// DuckDB has: the number of blocks is not known before the files are opened, and an idle thread costs little.
	input.SetMaxThreads(Ask<EvtxCallInfo>(evtx_call_info, bound.call.get()).fails ? 1 : MAX_THREADS);
	std::vector<idx_t> columns;
	columns.reserve(input.GetColumnCount());
	for (idx_t i = 0; i < input.GetColumnCount(); i++) {
		columns.push_back(input.GetColumnIndex(i));
	}
	input.SetGlobalState<SharedScan>(input.GetContext(), bound.call, columns, bound.planned.get());
}

LogicalType GetType(Factory &factory, const EvtxArgument &argument) {
	switch (static_cast<EvtxValueKind>(argument.kind)) {
	case EvtxValueKind::FLAG:
		return factory.CreateType(LogicalTypeId::BOOLEAN);
	case EvtxValueKind::INTEGER:
		return factory.CreateType(LogicalTypeId::BIGINT);
	case EvtxValueKind::TEXT:
		return factory.CreateType(LogicalTypeId::VARCHAR);
	default:
		// A value, or a list of them.
		return factory.CreateType(LogicalTypeId::ANY);
	}
}

Value GetDefault(Factory &factory, const EvtxArgument &argument, const LogicalType &type) {
	if (argument.default_text.data == nullptr) {
		const auto is_any = type.GetTypeId() == LogicalTypeId::ANY;
		return Value::CreateNull(factory, factory.CreateType(is_any ? LogicalTypeId::UINTEGER : type.GetTypeId()));
	}
	const auto text = GetText(argument.default_text);
	return factory.CreateValue(duckdb::cxx::varchar_t(text)).Cast(factory, type);
}

//! Whether the name of a table ends like the path of a log. It then stands for a call of read_evtx.
bool IsLogPath(std::string_view name) {
	constexpr std::array<std::string_view, 3> ENDS = {".evtx", ".evtx.gz", ".evtx.zst"};
	return std::any_of(ENDS.begin(), ENDS.end(), [&](std::string_view end) {
		return name.size() >= end.size() && EqualNames(name.substr(name.size() - end.size()), end);
	});
}

void Replace(duckdb::cxx::ReplacementScan::Input &input) {
	const auto name = input.GetName();
	if (name.GetPartCount() != 1) {
		return;
	}
	const std::string path(name.GetPart(0));
	if (!IsLogPath(path)) {
		return;
	}
	input.SetFunctionName(READ_EVTX);
	input.AddArgument(input.GetContext().GetFactory().CreateValue(duckdb::cxx::varchar_t(path)));
}

//! The values of an enum, which are texts of the core.
using EnumNames = std::vector<std::string_view>;

//! Casts texts to an enum. A text that is none of its values is NULL. DuckDB's own cast is an error for it, so that
//! `IN` and `BETWEEN` would fail where `=` does not.
// NOLINTNEXTLINE(misc-const-correctness)
void CastToEnum(duckdb::cxx::CastFunction::ExecInput &input) {
	const auto &names = input.GetUserData<EnumNames>();
	const auto input_vector = input.GetInput();
	const auto texts = input_vector.GetView();
	auto output = input.GetOutput();
	auto *numbers = output.GetDataMutable<std::uint8_t>();
	auto validity = output.GetValidityMutable();
	validity.SetAllValid(input.GetRowCount());
	for (idx_t row = 0; row < input.GetRowCount(); row++) {
		const auto text = texts.IsValid(row) ? texts.Data<duckdb::cxx::varchar_t>()[texts.SelAt(row)].view() : "";
		const auto found = std::find(names.begin(), names.end(), text);
		if (found == names.end()) {
			validity.SetInvalid(row);
		} else {
			numbers[row] = static_cast<std::uint8_t>(found - names.begin());
		}
	}
}

} // namespace

void RegisterEnums(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	const auto ask = [](std::size_t type, std::size_t value) { return AskText(evtx_enum, type, value); };
	for (std::size_t index = 0; !ask(index, 0).empty(); index++) {
		std::vector<std::string_view> names;
		std::vector<duckdb::cxx::TypeParam> values;
		for (std::size_t i = 1; !ask(index, i).empty(); i++) {
			names.push_back(ask(index, i));
			values.emplace_back(factory.CreateValue(duckdb::cxx::varchar_t(names.back())));
		}
		auto type = duckdb::cxx::CustomType::Create(factory);
		const auto base = factory.CreateType(LogicalTypeId::ENUM, values);
		type.SetName(std::string(ask(index, 0))).SetBaseType(base);
		extension.Register(type);
		auto cast = duckdb::cxx::CastFunction::Create(factory);
		cast.SetSourceType(factory.CreateType(LogicalTypeId::VARCHAR))
		    .SetTargetType(base.WithAlias(factory, ask(index, 0)))
		    .SetUserData<EnumNames>(std::move(names))
		    .SetExecCallback(CastToEnum);
		extension.Register(cast);
	}
}

void RegisterScanFunctions(duckdb::cxx::Extension &extension, Context &context) {
	auto &factory = context.GetFactory();
	EvtxScanFunction about {};
	for (std::size_t index = 0; Ask<bool>(evtx_scan_function, index, &about); index++) {
		auto function = TableFunction::Create(factory);
		Describe(function, about.function);
		function.SetBindCallback(Bind)
		    .SetInitGlobalCallback(InitGlobal)
		    .SetFilterPushdownCallback(PushdownFilters)
		    .SetUserData<ScanFunction>(ScanFunction {index, GetText(about.function.name), about.files.data != nullptr});
		SetScanCallbacks(function);
		function.WithSignature([&](duckdb::cxx::FunctionSignature &signature) {
			if (about.files.data != nullptr) {
				signature.AddParameter(GetText(about.files), factory.CreateType(LogicalTypeId::ANY));
			}
			for (const auto &argument : ListArguments(index)) {
				const auto type = GetType(factory, argument);
				signature.AddParameter(GetText(argument.name), type, GetDefault(factory, argument, type),
				                       duckdb::cxx::FunctionParameterKind::NAMED_ONLY);
			}
		});
		extension.Register(function);
	}
}

void RegisterReplacementScan(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto scan = duckdb::cxx::ReplacementScan::Create(context.GetFactory());
	scan.SetCallback(Replace);
	extension.Register(scan);
}

} // namespace evtx
