#include "register.hpp"

#include "duckdb_v2.h"

#include <cctype>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

//! The cast from text to TIMESTAMP_NS, the type of `time_created`. DuckDB 2 ignores an offset at the end of the
//! text, and so finds the wrong events; earlier versions apply it. Everything else about a text is left to DuckDB.

namespace evtx {

namespace {

using duckdb::cxx::CastFunction;
using duckdb::cxx::CastMode;
using duckdb::cxx::LogicalTypeId;

constexpr std::int64_t NANOS = 1000;
constexpr std::int64_t MICROS_PER_SECOND = 1000000;

bool IsDigit(char character) {
	return character >= '0' && character <= '9';
}

//! What follows the first `:` of a text: the rest of its time, and its zone.
std::string_view AfterHour(std::string_view text) {
	const auto colon = text.find(':');
	return colon == std::string_view::npos ? std::string_view() : text.substr(colon);
}

//! The nanoseconds of the fraction below its microseconds.
std::int64_t NanosBelowMicros(std::string_view rest) {
	std::int64_t nanos = 0;
	const auto point = rest.find('.');
	if (point != std::string_view::npos) {
		std::int64_t unit = NANOS * MICROS_PER_SECOND / 10;
		for (auto at = point + 1; at < rest.size() && IsDigit(rest[at]); at++, unit /= 10) {
			nanos += (rest[at] - '0') * unit;
		}
	}
	return nanos % NANOS;
}

//! The offset at the end, such as `+01`, `-0330` or `+01:00:00`, in seconds. None if something else is there that is
//! not UTC, such as the name of a zone.
std::optional<std::int64_t> Offset(std::string_view rest) {
	while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.back())) != 0) {
		rest.remove_suffix(1);
	}
	const auto zone = rest.find_first_not_of("0123456789:. ");
	if (zone == std::string_view::npos) {
		return 0;
	}
	rest.remove_prefix(zone);
	if ((rest.front() != '+' && rest.front() != '-') || rest.size() == 1 || !IsDigit(rest[1])) {
		std::string name(rest);
		for (auto &character : name) {
			character = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
		}
		return name == "Z" || name == "UTC" ? std::optional<std::int64_t>(0) : std::nullopt;
	}
	std::int64_t seconds = 0;
	std::int64_t unit = 3600;
	std::size_t at = 1;
	for (; at < rest.size() && unit > 0; unit /= 60) {
		const bool is_apart = rest[at] == ':' || at == 1;
		at += rest[at] == ':' ? 1 : 0;
		const auto end = at + 2;
		std::int64_t number = 0;
		for (; at < end && at < rest.size() && IsDigit(rest[at]); at++) {
			number = number * 10 + (rest[at] - '0');
		}
		if (at < end && !is_apart) {
			return std::nullopt;
		}
		seconds += number * unit;
	}
	if (at < rest.size()) {
		return std::nullopt;
	}
	return rest.front() == '-' ? -seconds : seconds;
}

//! The nanoseconds of a text that DuckDB casts to these microseconds; none with the reason in `error`.
std::optional<std::int64_t> Nanos(std::string_view text, std::int64_t micros, std::string &error) {
	if (micros == std::numeric_limits<std::int64_t>::max() || micros == -std::numeric_limits<std::int64_t>::max()) {
		return micros; // infinity
	}
	const auto rest = AfterHour(text);
	const auto offset = Offset(rest);
	if (!offset) {
		error = "\"" + std::string(text) +
		        "\" has a time zone that is not UTC or an offset. Use TIMESTAMPTZ '...' AT TIME ZONE 'UTC'";
		return std::nullopt;
	}
	std::int64_t nanos = 0;
	// The greatest number is infinity. The steps before it cannot give that of -infinity.
	if (__builtin_sub_overflow(micros, *offset * MICROS_PER_SECOND, &micros) ||
	    __builtin_mul_overflow(micros, NANOS, &nanos) ||
	    __builtin_add_overflow(nanos, NanosBelowMicros(rest), &nanos) ||
	    nanos == std::numeric_limits<std::int64_t>::max()) {
		error = "\"" + std::string(text) + "\" is not a time that TIMESTAMP_NS can hold";
		return std::nullopt;
	}
	return nanos;
}

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
		std::string error;
		const auto &text = text_view.Data<duckdb::cxx::varchar_t>()[text_view.SelAt(row)];
		const auto micros = cast_view.Data<std::int64_t>()[cast_view.SelAt(row)];
		const auto found = Nanos({text.data(), text.size()}, micros, error);
		if (found) {
			nanos[row] = *found;
			validity.SetValid(row);
		} else if (!is_try) {
			throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_TYPE_CONVERSION, error);
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
