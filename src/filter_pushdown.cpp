#include "scan.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

//! Passes the predicates that DuckDB offers to the core as hints. None is accepted, so DuckDB evaluates each again: its
//! API does not expose all details of a predicate (for example, whether a BETWEEN excludes its bounds).

namespace evtx {

namespace {

using duckdb::cxx::Expression;
using duckdb::cxx::ExpressionType;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;
using duckdb::cxx::Value;

//! The most children of an expression that is passed on. DuckDB's API walks to each child from the first, so the time
//! is quadratic: 20 ms for 2,000 constants, 10 s for 50,000.
constexpr idx_t MAX_CHILDREN = 2000;

//! The operators that DuckDB does not treat as functions.
constexpr std::array<std::pair<ExpressionType, EvtxNodeKind>, 16> OPERATORS = {{
    {ExpressionType::CONJUNCTION_AND, EvtxNodeKind::AND},
    {ExpressionType::CONJUNCTION_OR, EvtxNodeKind::OR},
    {ExpressionType::OPERATOR_NOT, EvtxNodeKind::NOT},
    {ExpressionType::OPERATOR_IS_NULL, EvtxNodeKind::IS_NULL},
    {ExpressionType::OPERATOR_IS_NOT_NULL, EvtxNodeKind::IS_NOT_NULL},
    {ExpressionType::COMPARE_EQUAL, EvtxNodeKind::EQUAL},
    {ExpressionType::COMPARE_NOTEQUAL, EvtxNodeKind::NOT_EQUAL},
    {ExpressionType::COMPARE_LESSTHAN, EvtxNodeKind::LESS},
    {ExpressionType::COMPARE_LESSTHANOREQUALTO, EvtxNodeKind::LESS_OR_EQUAL},
    {ExpressionType::COMPARE_GREATERTHAN, EvtxNodeKind::GREATER},
    {ExpressionType::COMPARE_GREATERTHANOREQUALTO, EvtxNodeKind::GREATER_OR_EQUAL},
    {ExpressionType::COMPARE_DISTINCT_FROM, EvtxNodeKind::IS_DISTINCT_FROM},
    {ExpressionType::COMPARE_NOT_DISTINCT_FROM, EvtxNodeKind::IS_NOT_DISTINCT_FROM},
    {ExpressionType::COMPARE_BETWEEN, EvtxNodeKind::BETWEEN},
    {ExpressionType::COMPARE_IN, EvtxNodeKind::IN},
    {ExpressionType::COMPARE_NOT_IN, EvtxNodeKind::NOT_IN},
}};

//! Passes predicates from their leaves up.
struct Hints {
	const TableFunction::FilterPushdownInput &input;
	const EvtxCall &call;

	void Add(const Expression &expression) {
		const auto type = expression.GetType();
		if (type == ExpressionType::VALUE_CONSTANT) {
			AddConstant(expression.GetConstantValue());
			return;
		}
		if (type == ExpressionType::BOUND_COLUMN_REF) {
			Push(EvtxNodeKind::COLUMN, input.GetColumnIndex(expression.GetColumnIndex()));
			return;
		}
		auto kind = EvtxNodeKind::UNKNOWN;
		std::string name;
		if (type == ExpressionType::BOUND_FUNCTION) {
			// A user can define a function with the same name in another schema.
			const auto qualified = expression.GetFunctionQualifiedName();
			if (qualified.GetPartCount() <= 1 || qualified.GetPart(0) == "system") {
				kind = EvtxNodeKind::FUNCTION;
				name = expression.GetFunctionName();
			}
		} else {
			const auto *const found = std::find_if(OPERATORS.begin(), OPERATORS.end(),
			                                       [&](const auto &known) { return known.first == type; });
			kind = found == OPERATORS.end() ? kind : found->second;
		}
		const auto count = expression.GetChildCount();
		if (kind == EvtxNodeKind::UNKNOWN || count > MAX_CHILDREN) {
			Push(EvtxNodeKind::UNKNOWN);
			return;
		}
		for (idx_t i = 0; i < count; i++) {
			Add(expression.GetChild(i));
		}
		Push(kind, 0, name, count);
	}

	void Push(EvtxNodeKind kind, std::uint64_t number = 0, std::string_view bytes = {}, idx_t operands = 0) {
		Check(evtx_call_hint(&call, {kind, static_cast<std::uint32_t>(operands), number, Lend(bytes)}));
	}

	void AddConstant(const Value &value) {
		if (value.IsNull()) {
			Push(EvtxNodeKind::UNKNOWN);
			return;
		}
		switch (value.GetLogicalType().GetTypeId()) {
		case LogicalTypeId::UTINYINT:
		case LogicalTypeId::USMALLINT:
		case LogicalTypeId::UINTEGER:
		case LogicalTypeId::UBIGINT:
			Push(EvtxNodeKind::NUMBER, value.Get<std::uint64_t>());
			break;
		case LogicalTypeId::TINYINT:
		case LogicalTypeId::SMALLINT:
		case LogicalTypeId::INTEGER:
		case LogicalTypeId::BIGINT:
			Push(EvtxNodeKind::INTEGER, static_cast<std::uint64_t>(value.Get<std::int64_t>()));
			break;
		case LogicalTypeId::BOOLEAN:
			Push(EvtxNodeKind::BOOL, value.Get<bool>() ? 1 : 0);
			break;
		case LogicalTypeId::TIMESTAMP_NS:
			Push(EvtxNodeKind::INSTANT, static_cast<std::uint64_t>(value.Get<duckdb::cxx::timestamp_ns_t>().nanos));
			break;
		case LogicalTypeId::UUID: {
			const auto decoded = value.Get<duckdb::cxx::uuid_t>().Decode();
			Push(EvtxNodeKind::UUID, 0, {reinterpret_cast<const char *>(decoded.bytes), sizeof(decoded.bytes)});
			break;
		}
		case LogicalTypeId::VARCHAR:
			Push(EvtxNodeKind::TEXT, 0, value.Get<duckdb::cxx::varchar_t>().view());
			break;
		case LogicalTypeId::DATE:
		case LogicalTypeId::TIMESTAMP:
		case LogicalTypeId::ENUM:
			// Only columns of folders and levels of rules have these types. Their values are texts for the core: the
			// names of folders, which it gives a type only if DuckDB shows a value of the type as the same text
			// (evtx-query/src/folders.rs), and the names of levels. A column of another source that has such a type is
			// not compared with a text, so nothing is dropped by mistake.
			Push(EvtxNodeKind::TEXT, 0, value.ToText());
			break;
		default:
			// No column has this type.
			Push(EvtxNodeKind::UNKNOWN);
		}
	}
};

} // namespace

void PassHints(TableFunction::FilterPushdownInput &input, const EvtxCall &call) {
	Check(evtx_call_clear_hints(&call));
	if (!IsOn(input.GetContext(), Ask<EvtxDefinitions>(evtx_definitions).filter_pushdown)) {
		return;
	}
	Hints hints {input, call};
	for (idx_t i = 0; i < input.GetFilterCount(); i++) {
		hints.Add(input.GetFilter(i));
	}
}

} // namespace evtx
