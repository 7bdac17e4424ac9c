#pragma once

//! Vectors for the core, and its arrays, written into DuckDB's vectors.

#include "core.hpp"
#include "duckdb_cpp.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace evtx {

//! A vector for the core, which reads it during the call.
inline EvtxVector Lend(const duckdb::cxx::Vector &vector, std::size_t rows) {
	const auto view = vector.GetView();
	return {view.data, view.validity, view.sel, rows};
}

//! Imports the arrays of long texts, from batch to batch. A copy of them would take longer.
class TextImporter {
public:
	//! Makes a vector refer to an array, until the array with this index is imported again.
	void Import(duckdb::cxx::Context &context, const Arrays &arrays, std::size_t index, duckdb::cxx::Vector &vector);

private:
	struct Imported {
		duckdb::cxx::ArrowImporter importer;
		std::optional<duckdb::cxx::DataChunk> chunk;
	};
	//! By index of the array.
	std::map<std::size_t, Imported> known;
};

//! Writes arrays into vectors: texts into the heaps of their vectors, so that DuckDB can keep a vector as long as it
//! likes.
class ArrayWriter {
public:
	explicit ArrayWriter(const Arrays &arrays_p)
	    : arrays(arrays_p), needs(Ask<EvtxSlice<EvtxArray>>(evtx_arrays_needs, arrays.get()).data) {}

	//! Imports long texts.
	ArrayWriter(const Arrays &arrays_p, duckdb::cxx::Context &context_p, TextImporter &texts_p)
	    : ArrayWriter(arrays_p) {
		context = &context_p;
		texts = &texts_p;
	}

	//! Adds the vector of the next array, and those of its items or fields.
	void Add(duckdb::cxx::Vector vector);

	//! Writes the arrays whose vectors were added.
	void Write() const {
		Check(evtx_arrays_write(arrays.get(), Lend(rooms)));
	}

private:
	const Arrays &arrays;
	const EvtxArray *needs;
	duckdb::cxx::Context *context = nullptr;
	TextImporter *texts = nullptr;
	//! By index of the array.
	std::vector<EvtxRoom> rooms;
};

//! Writes an array into a vector.
inline void Write(const Arrays &array, duckdb::cxx::Vector vector) {
	ArrayWriter writer(array);
	writer.Add(std::move(vector));
	writer.Write();
}

} // namespace evtx
