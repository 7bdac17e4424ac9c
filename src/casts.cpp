#include "register.hpp"

#include "core.hpp"
#include "duckdb_v2.h"
#include "settings.hpp"

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

//! The cast from text to TIMESTAMP_NS, the type of `time_created`. DuckDB reads the text, and the core its offset,
//! which DuckDB 2 ignores.

namespace evtx {

namespace {

using duckdb::cxx::CastFunction;
using duckdb::cxx::CastMode;
using duckdb::cxx::LogicalTypeId;

// The API takes callbacks of this type only.
// NOLINTNEXTLINE(misc-const-correctness)
void Exec(CastFunction::ExecInput &input) {
	auto &factory = input.GetContext().GetFactory();
	auto texts = input.GetInput();
	// DuckDB sets no size if the texts are parts of another one, as in `'[...]'::TIMESTAMP_NS[]`.
	if (texts.GetSize() < input.GetRowCount()) {
		texts.SetSize(input.GetRowCount());
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
	const auto text_view = texts.GetView();
	const auto cast_view = cast.GetView();
	auto output = input.GetOutput();
	output.SetSize(input.GetRowCount());
	auto *nanos = output.GetDataMutable<std::int64_t>();
	auto validity = output.GetValidityMutable();
	for (duckdb::cxx::idx_t row = 0; row < input.GetRowCount(); row++) {
		validity.SetInvalid(row);
		if (!cast_view.IsValid(row)) {
			continue;
		}
		const auto &cell = text_view.Data<duckdb::cxx::varchar_t>()[text_view.SelAt(row)];
		const auto text = Lend(std::string_view(cell.data(), cell.size()));
		const auto micros = cast_view.Data<std::int64_t>()[cast_view.SelAt(row)];
		std::int64_t found = 0;
		const std::unique_ptr<EvtxError, Freed<evtx_error_free>> error(
		    evtx_timestamp_nanos(text, micros, has_offset, &found));
		if (!error) {
			nanos[row] = found;
			validity.SetValid(row);
		} else if (!is_try) {
			throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_TYPE_CONVERSION, GetText(error->message));
		}
	}
}

} // namespace

void RegisterCasts(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	auto function = CastFunction::Create(factory);
	function.SetSourceType(factory.CreateType(LogicalTypeId::VARCHAR))
	    .SetTargetType(factory.CreateType(LogicalTypeId::TIMESTAMP_NS))
	    .SetExecCallback(Exec);
	extension.Register(function);
}

} // namespace evtx
