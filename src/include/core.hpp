#pragma once

//! The Rust core through its C ABI: owning handles, exceptions for errors, and Arrow structs that release themselves.

#include "duckdb/common/arrow/arrow.hpp"
#include "duckdb_cpp.hpp"
#include "evtx_ffi.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evtx {

//! An Arrow struct that is released at the end of its scope, unless a consumer has taken it over.
template <class T>
struct Released : T {
	Released() : T {} {}
	Released(const Released &) = delete;
	Released &operator=(const Released &) = delete;
	~Released() {
		if (this->release) {
			this->release(this);
		}
	}
};

using Schema = Released<ArrowSchema>;
using Array = Released<ArrowArray>;

//! Throws the error that a function of the core returned, if there is one, and frees it. Rethrows the exception of a
//! storage.
//! @throws duckdb::cxx::Exception.
void Check(EvtxFailure failure);

template <auto FREE>
struct Freed {
	template <class T>
	void operator()(T *object) const {
		FREE(object);
	}
};

using Arrays = std::unique_ptr<EvtxArrays, Freed<evtx_arrays_free>>;
using Arguments = std::unique_ptr<EvtxArguments, Freed<evtx_arguments_free>>;
using Call = std::unique_ptr<EvtxCall, Freed<evtx_call_free>>;
using Scan = std::unique_ptr<EvtxScan, Freed<evtx_scan_free>>;
using Scalar = std::unique_ptr<EvtxScalar, Freed<evtx_scalar_free>>;
using Worker = std::unique_ptr<EvtxWorker, Freed<evtx_worker_free>>;

//! The object that a function of the core makes.
template <class Object, class Make, class... Arguments>
Object Create(Make make, Arguments... arguments) {
	typename Object::element_type *object = nullptr;
	Check(make(arguments..., &object));
	return Object(object);
}

//! The number, text or struct that a function of the core returns.
template <class Result, class Get, class... Arguments>
Result Ask(Get get, Arguments... arguments) {
	Result result {};
	Check(get(arguments..., &result));
	return result;
}

//! A text of the core. The function that returned it says how long it is valid.
inline std::string_view View(const EvtxText &text) {
	return {reinterpret_cast<const char *>(text.data), text.len};
}

inline std::string GetText(const EvtxText &text) {
	return std::string(View(text));
}

//! Lends a text to the core for a call.
inline EvtxText Lend(std::string_view text) {
	return {reinterpret_cast<const std::uint8_t *>(text.data()), text.size()};
}

template <class T>
EvtxSlice<T> Lend(const std::vector<T> &elements) {
	return {elements.data(), elements.size()};
}

//! Lends texts to the core for as long as the result and the texts exist.
inline std::vector<EvtxText> LendAll(const std::vector<std::string> &texts) {
	std::vector<EvtxText> lent;
	lent.reserve(texts.size());
	for (const auto &text : texts) {
		lent.push_back(Lend(text));
	}
	return lent;
}

//! Sets the name and the documentation of a function.
template <class Function>
void Describe(Function &function, const EvtxFunction &about) {
	function.SetName(GetText(about.name));
	auto docs = function.GetDocs();
	docs.SetDescription(View(about.description)).AddExample("", View(about.example));
	docs.AddCategory(View(Ask<EvtxDefinitions>(evtx_definitions).format));
}

//! The value of a setting of DuckDB.
std::string GetSetting(duckdb::cxx::Context &context, const char *name);

//! Whether a setting of the extension is on.
bool IsOn(duckdb::cxx::Context &context, const EvtxSetting &setting);

//! Whether two names are equal in SQL, which ignores the case of ASCII letters.
inline bool EqualNames(std::string_view a, std::string_view b) {
	return std::equal(a.begin(), a.end(), b.begin(), b.end(),
	                  [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

} // namespace evtx
