#include "vectors.hpp"

namespace evtx {

namespace {

//! From how many bytes on an import takes less time than a copy.
constexpr std::size_t LONG = std::size_t {256} * 1024;

} // namespace

void TextImporter::Import(duckdb::cxx::Context &context, const Arrays &arrays, std::size_t index,
                          duckdb::cxx::Vector &vector) {
	Schema schema;
	Array array;
	auto found = known.find(index);
	const auto is_known = found != known.end();
	Check(evtx_arrays_export(arrays.get(), index, is_known ? nullptr : &schema, &array));
	if (!is_known) {
		found = known.emplace(index, Imported {{context, schema}, {}}).first;
	}
	auto &imported = found->second;
	imported.importer.Append(array, true, true);
	imported.chunk = imported.importer.NextChunk();
	vector.Reference(imported.chunk->GetVector(0));
}

void ArrayWriter::Add(duckdb::cxx::Vector vector) {
	const auto index = rooms.size();
	const auto &need = needs[index];
	if (texts != nullptr && need.heap >= LONG) {
		texts->Import(*context, arrays, index, vector);
		rooms.push_back({});
		return;
	}
	vector.SetSize(need.rows);
	rooms.push_back({need.has_data ? vector.GetDataMutable() : nullptr,
	                 need.has_nulls ? vector.GetValidityMutable().words : nullptr,
	                 need.heap > 0 ? vector.GetHeap().Allocate(need.heap) : nullptr, false});
	for (std::size_t i = 0; i < need.children; i++) {
		Add(vector.GetChild(i));
	}
}

} // namespace evtx
