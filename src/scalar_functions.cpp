#include "core.hpp"
#include "register.hpp"
#include "storage.hpp"
#include "vectors.hpp"

#include <map>
#include <string>
#include <vector>

//! The scalar functions of the core.

namespace evtx {

namespace {

using duckdb::cxx::ScalarFunction;

//! Lends a vector, and after it the vectors of its items or fields.
void Add(const duckdb::cxx::Vector &vector, std::size_t rows, std::vector<EvtxVector> &lent) {
	const auto index = lent.size();
	lent.push_back({});
	if (vector.GetLogicalType().GetTypeId() == duckdb::cxx::LogicalTypeId::STRUCT) {
		// Its fields have the rows of its view.
		vector.Flatten();
	}
	for (std::size_t i = 0; i < vector.GetChildCount(); i++) {
		const auto child = vector.GetChild(i);
		child.Flatten();
		Add(child, child.GetSize(), lent);
	}
	// Taking the view of a vector can move those in it.
	lent[index] = Lend(vector, rows);
}

// The API takes callbacks of these types only.
// NOLINTNEXTLINE(misc-const-correctness)
void Init(ScalarFunction::InitInput &input) {
	input.SetInitData<Scalar>(Create<Scalar>(evtx_scalar_new, input.GetUserData<std::size_t>()));
}

// NOLINTNEXTLINE(misc-const-correctness)
void Exec(ScalarFunction::ExecInput &input) {
	std::vector<EvtxVector> lent;
	for (std::size_t i = 0; i < input.GetArgCount(); i++) {
		Add(input.GetArg(i), input.GetRowCount(), lent);
	}
	Storage storage(input.GetContext());
	const auto scalar = input.GetInitData<Scalar>().get();
	Write(Create<Arrays>(evtx_scalar_call, scalar, Lend(lent), storage.ForCore()), input.GetResult());
}

} // namespace

void RegisterScalarFunctions(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	//! By their names, as DuckDB parses each with its parser of SQL.
	std::map<std::string, duckdb::cxx::LogicalType> types;
	const auto type = [&](const EvtxText &name) -> const duckdb::cxx::LogicalType & {
		const auto text = GetText(name);
		const auto found = types.find(text);
		return found == types.end() ? types.emplace(text, factory.ParseType(text)).first->second : found->second;
	};
	std::size_t number = 0;
	for (const auto &known : Ask<EvtxDefinitions>(evtx_definitions).scalar_functions) {
		auto function = ScalarFunction::Create(factory);
		Describe(function, known.function);
		function.SetInitCallback(Init).SetExecCallback(Exec).SetUserData<std::size_t>(number++).SetNullHandling(
		    duckdb::cxx::FunctionNullHandling::SPECIAL);
		if (known.is_volatile) {
			function.SetStability(duckdb::cxx::FunctionStability::VOLATILE);
		}
		auto signature = function.GetSignature();
		for (const auto &parameter : known.parameters) {
			signature.AddParameter(GetText(parameter.name), type(parameter.type_name));
		}
		signature.SetReturnType(type(known.result));
		extension.Register(function);
	}
}

} // namespace evtx
