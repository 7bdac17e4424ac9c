#include "hive.hpp"

#include "duckdb_v2.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace evtx {

namespace {

using duckdb::cxx::Factory;
using duckdb::cxx::LogicalType;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::Value;

//! What stands for NULL.
constexpr std::string_view NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__";

//! Replaces `%XX` by the byte.
std::string Unescape(std::string_view text) {
	constexpr int HEXADECIMAL = 16;
	std::string result;
	for (std::size_t i = 0; i < text.size(); i++) {
		const auto is_digit = [&](std::size_t at) {
			return at < text.size() && std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
		};
		if (text[i] == '%' && is_digit(i + 1) && is_digit(i + 2)) {
			result += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, HEXADECIMAL));
			i += 2;
		} else {
			result += text[i];
		}
	}
	return result;
}

//! The keys and values of a path's folders.
std::vector<std::pair<std::string, std::string>> Parse(std::string_view path) {
	std::vector<std::pair<std::string, std::string>> found;
	std::size_t start = 0;
	for (auto end = path.find_first_of("/\\"); end != std::string_view::npos; end = path.find_first_of("/\\", start)) {
		const auto folder = path.substr(start, end - start);
		const auto sign = folder.find('=');
		if (sign != std::string_view::npos && sign > 0) {
			found.emplace_back(Unescape(folder.substr(0, sign)), Unescape(folder.substr(sign + 1)));
		}
		start = end + 1;
	}
	return found;
}

std::vector<std::string> Keys(const std::vector<std::pair<std::string, std::string>> &pairs) {
	std::vector<std::string> keys;
	keys.reserve(pairs.size());
	for (const auto &pair : pairs) {
		keys.push_back(pair.first);
	}
	return keys;
}

//! The value that a text is of a type; none where it is no such text, or another than the value's own.
std::optional<Value> TryCast(Factory &factory, const std::string &text, const LogicalType &type) {
	try {
		auto value = factory.CreateValue(duckdb::cxx::varchar_t(text)).Cast(factory, type);
		// A cast takes the date of a time, and rounds.
		return value.ToText() == text ? std::optional<Value>(std::move(value)) : std::nullopt;
	} catch (const duckdb::cxx::Exception &) {
		return std::nullopt;
	}
}

//! The values of a column, if all of them are of a type.
std::optional<std::vector<Value>> CastAll(Factory &factory, const std::vector<std::string> &texts,
                                          const LogicalType &type, Storage &storage) {
	std::vector<Value> result;
	for (const auto &text : texts) {
		storage.Check();
		auto value = text == NULL_PARTITION ? Value::CreateNull(factory, type) : TryCast(factory, text, type);
		if (!value) {
			return std::nullopt;
		}
		result.push_back(std::move(*value));
	}
	return result;
}

} // namespace

HivePartitions::HivePartitions(Factory &factory, const EvtxPaths &paths, Storage &storage) {
	const auto count = Ask<std::uintptr_t>(evtx_paths_count, &paths);
	const auto get_path = [&](std::uintptr_t number) { return AskText(evtx_paths_get, &paths, number); };
	std::vector<std::vector<std::pair<std::string, std::string>>> parsed;
	for (std::uintptr_t number = 0; number < count; number++) {
		storage.Check();
		parsed.push_back(Parse(get_path(number)));
		if (Keys(parsed.back()) != Keys(parsed.front())) {
			throw duckdb::cxx::Exception(DUCKDB_V2_ERROR_QUERY_BINDER, "The folders of \"" + std::string(get_path(0)) +
			                                                               "\" and \"" + std::string(get_path(number)) +
			                                                               "\" have different keys");
		}
	}
	if (parsed.empty()) {
		return;
	}
	names = Keys(parsed.front());
	values.resize(count);
	for (std::size_t column = 0; column < names.size(); column++) {
		std::vector<std::string> texts;
		texts.reserve(parsed.size());
		for (const auto &pairs : parsed) {
			texts.push_back(pairs[column].second);
		}
		for (const auto id :
		     {LogicalTypeId::DATE, LogicalTypeId::TIMESTAMP, LogicalTypeId::BIGINT, LogicalTypeId::VARCHAR}) {
			auto type = factory.CreateType(id);
			auto cast = CastAll(factory, texts, type, storage);
			if (!cast) {
				continue;
			}
			types.push_back(std::move(type));
			for (std::size_t path = 0; path < count; path++) {
				values[path].push_back(std::move((*cast)[path]));
			}
			break;
		}
	}
}

} // namespace evtx
