#pragma once

//! The Rust core through its C ABI: owning handles, exceptions for errors, and Arrow structs that release themselves.

#include "duckdb/common/arrow/arrow.hpp"
#include "evtx_ffi.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

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

//! The most rows of a batch: the size of a DuckDB vector.
constexpr std::size_t VECTOR_ROWS = 2048;

//! The error that a function of the core returned, if there is one: the digit of its kind, and its text. Frees it.
std::optional<std::string> TakeError(char *error);

//! Throws the error that a function of the core returned, if there is one. Rethrows the exception of a storage.
//! @throws duckdb::cxx::Exception.
void Check(char *error);

template <auto FREE>
struct Freed {
	template <class T>
	void operator()(T *object) const {
		FREE(object);
	}
};

using Answers = std::unique_ptr<EvtxAnswers, Freed<evtx_answers_free>>;
using Paths = std::unique_ptr<EvtxPaths, Freed<evtx_paths_free>>;
using Arguments = std::unique_ptr<EvtxArguments, Freed<evtx_arguments_free>>;
using Call = std::unique_ptr<EvtxCall, Freed<evtx_call_free>>;
using Planned = std::unique_ptr<EvtxPlanned, Freed<evtx_planned_free>>;
using Scan = std::unique_ptr<EvtxScan, Freed<evtx_scan_free>>;
using Worker = std::unique_ptr<EvtxWorker, Freed<evtx_worker_free>>;

//! The object that a function of the core makes from arguments.
template <class Object, class Make, class... Arguments>
Object Create(Make make, Arguments... arguments) {
	typename Object::element_type *object = nullptr;
	Check(make(arguments..., &object));
	return Object(object);
}

//! The number or struct that a function of the core writes.
template <class Number, class Get, class... Arguments>
Number Ask(Get get, Arguments... arguments) {
	Number number {};
	Check(get(arguments..., &number));
	return number;
}

//! The text that a function of the core writes. The function says how long it is valid.
template <class Get, class... Arguments>
std::string_view AskText(Get get, Arguments... arguments) {
	const char *data = nullptr;
	std::uintptr_t len = 0;
	Check(get(arguments..., &data, &len));
	return {data, len};
}

inline std::string GetText(const EvtxText &text) {
	return {text.data, text.len};
}

//! Says what a function that is registered is.
template <class Function>
void Describe(Function &function, const EvtxFunction &about) {
	function.SetName(GetText(about.name));
	auto docs = function.GetDocs();
	docs.SetDescription(GetText(about.description)).AddExample("", GetText(about.example)).AddCategory("evtx");
}

//! Whether two names are equal in SQL, which ignores the case of ASCII letters.
inline bool EqualNames(std::string_view a, std::string_view b) {
	return std::equal(a.begin(), a.end(), b.begin(), b.end(),
	                  [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

} // namespace evtx
