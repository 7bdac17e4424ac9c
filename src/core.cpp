#include "core.hpp"

#include "duckdb_cpp.hpp"
#include "duckdb_v2.h"
#include "storage.hpp"

namespace evtx {

void Check(EvtxFailure failure) {
	const std::unique_ptr<EvtxError, Freed<evtx_error_free>> owned(failure);
	if (!owned) {
		return;
	}
	switch (owned->kind) {
	case EvtxErrorKind::STORAGE:
	case EvtxErrorKind::INTERRUPTED:
		Storage::ThrowKept();
	case EvtxErrorKind::NO_FILES:
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL, GetText(owned->message));
	case EvtxErrorKind::INPUT:
		throw duckdb::cxx::InvalidInputException(GetText(owned->message));
	}
}

} // namespace evtx
