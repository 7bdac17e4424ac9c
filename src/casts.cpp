#include "register.hpp"

#include "core.hpp"
#include "vectors.hpp"

#include <utility>
#include <vector>

//! The casts from text to enums, and to TIMESTAMP_NS, the type of `time_created`: DuckDB reads the text, and the core
//! its offset, which DuckDB 2 ignores.

namespace evtx {

namespace {

using duckdb::cxx::CastFunction;
using duckdb::cxx::CastMode;
using duckdb::cxx::LogicalTypeId;

//! Writes the values of a cast.
void Store(const Arrays &values, const CastFunction::ExecInput &input) {
	auto output = input.GetOutput();
	output.GetValidityMutable().SetAllValid(input.GetRowCount());
	Write(values, std::move(output));
}

// The API takes callbacks of these types only.
// NOLINTNEXTLINE(misc-const-correctness)
void CastToTime(CastFunction::ExecInput &input) {
	auto &factory = input.GetContext().GetFactory();
	auto texts = input.GetInput();
	const auto rows = input.GetRowCount();
	// DuckDB sets no size if the texts are parts of another one, as in `'[...]'::TIMESTAMP_NS[]`.
	if (texts.GetSize() < rows) {
		texts.SetSize(rows);
	}
	std::vector<duckdb::cxx::LogicalType> types;
	types.push_back(factory.CreateType(LogicalTypeId::TIMESTAMP));
	const auto chunk = factory.CreateDataChunk(types);
	auto cast = chunk.GetVector(0);
	const bool is_try = input.GetMode() == CastMode::TRY;
	const bool has_offset = IsOn(input.GetContext(), Ask<EvtxDefinitions>(evtx_definitions).timestamp_offsets);
	if (is_try) {
		texts.TryCast(factory, cast);
	} else {
		texts.Cast(factory, cast);
	}
	Store(Create<Arrays>(evtx_timestamps_new, Lend(texts, rows), Lend(cast, rows), has_offset, is_try), input);
}

//! Casts texts to an enum. A text that is not one of its values becomes NULL. DuckDB's own cast would fail instead, and
//! with it `IN` and `BETWEEN`, where `=` does not.
// NOLINTNEXTLINE(misc-const-correctness)
void CastToEnum(CastFunction::ExecInput &input) {
	const auto texts = Lend(input.GetInput(), input.GetRowCount());
	Store(Create<Arrays>(evtx_enum_numbers_new, input.GetUserData<EvtxEnum>().number, texts), input);
}

} // namespace

void RegisterCasts(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	for (const auto &known : Ask<EvtxDefinitions>(evtx_definitions).enums) {
		std::vector<duckdb::cxx::TypeParam> values;
		for (const auto &value : known.values) {
			values.emplace_back(factory.CreateValue(duckdb::cxx::varchar_t(View(value))));
		}
		auto type = duckdb::cxx::CustomType::Create(factory);
		const auto base = factory.CreateType(LogicalTypeId::ENUM, values);
		type.SetName(GetText(known.name)).SetBaseType(base);
		extension.Register(type);
		auto cast = CastFunction::Create(factory);
		cast.SetSourceType(factory.CreateType(LogicalTypeId::VARCHAR))
		    .SetTargetType(base.WithAlias(factory, View(known.name)))
		    .SetUserData<EvtxEnum>(known)
		    .SetExecCallback(CastToEnum);
		extension.Register(cast);
	}
	auto cast = CastFunction::Create(factory);
	cast.SetSourceType(factory.CreateType(LogicalTypeId::VARCHAR))
	    .SetTargetType(factory.CreateType(LogicalTypeId::TIMESTAMP_NS))
	    .SetExecCallback(CastToTime);
	extension.Register(cast);
}

} // namespace evtx
