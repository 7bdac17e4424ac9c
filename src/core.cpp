#include "core.hpp"

#include "duckdb_cpp.hpp"
#include "duckdb_v2.h"
#include "storage.hpp"

namespace evtx {

std::optional<std::string> TakeError(char *error) {
	const std::unique_ptr<char, Freed<evtx_error_free>> owned(error);
	return owned ? std::optional<std::string>(owned.get()) : std::nullopt;
}

void Check(char *error) {
	const auto whole = TakeError(error);
	if (!whole) {
		return;
	}
	const auto kind = static_cast<EvtxErrorKind>(whole->front() - '0');
	const auto text = whole->substr(1);
	if (kind == EvtxErrorKind::STORAGE || kind == EvtxErrorKind::INTERRUPTED) {
		Storage::ThrowKept();
	}
	if (kind == EvtxErrorKind::NO_FILES) {
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL, text);
	}
	throw duckdb::cxx::InvalidInputException(text);
}

} // namespace evtx
