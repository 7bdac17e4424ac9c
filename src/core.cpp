#include "core.hpp"

#include "duckdb_v2.h"
#include "storage.hpp"

#include <algorithm>
#include <string_view>

namespace evtx {

void Check(EvtxFailure failure) {
	const std::unique_ptr<EvtxError, Freed<evtx_error_free>> owned(failure);
	if (!owned) {
		return;
	}
	switch (owned->kind) {
	case EvtxErrorKind::STORAGE:
		try {
			Storage::ThrowKept();
		} catch (const duckdb::cxx::Exception &error) {
			const std::string_view text = error.what();
			const auto is_control = [](unsigned char byte) { return (byte < 0x20 && byte != '\n') || byte == 0x7f; };
			if (std::none_of(text.begin(), text.end(), is_control)) {
				throw;
			}
			// DuckDB quotes a path as it is, and a terminal would act on it.
			throw duckdb::cxx::Exception(error.GetCode(), GetText(owned->message));
		}
	case EvtxErrorKind::INTERRUPTED:
		Storage::ThrowKept();
	case EvtxErrorKind::NO_FILES:
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_IO_GENERAL, GetText(owned->message));
	case EvtxErrorKind::CONVERSION:
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_TYPE_CONVERSION, GetText(owned->message));
	case EvtxErrorKind::BINDER:
		throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, GetText(owned->message));
	case EvtxErrorKind::INPUT:
		throw duckdb::cxx::InvalidInputException(GetText(owned->message));
	}
}

std::string GetSetting(duckdb::cxx::Context &context, const char *name) {
	const auto value = context.GetConfig().GetOption(name).value;
	return value.IsNull() ? std::string() : value.ToText();
}

bool IsOn(duckdb::cxx::Context &context, const EvtxSetting &setting) {
	return context.GetConfig().GetOption(View(setting.name)).value.Get<bool>();
}

} // namespace evtx
