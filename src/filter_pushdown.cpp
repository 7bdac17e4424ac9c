#include "scan.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

//! The names in SQL of the operators that DuckDB does not treat as functions.
constexpr std::array<std::pair<ExpressionType, const char *>, 16> OPERATORS = {{
    {ExpressionType::CONJUNCTION_AND, "AND"},
    {ExpressionType::CONJUNCTION_OR, "OR"},
    {ExpressionType::OPERATOR_NOT, "NOT"},
    {ExpressionType::OPERATOR_IS_NULL, "IS NULL"},
    {ExpressionType::OPERATOR_IS_NOT_NULL, "IS NOT NULL"},
    {ExpressionType::COMPARE_EQUAL, "="},
    {ExpressionType::COMPARE_NOTEQUAL, "<>"},
    {ExpressionType::COMPARE_LESSTHAN, "<"},
    {ExpressionType::COMPARE_LESSTHANOREQUALTO, "<="},
    {ExpressionType::COMPARE_GREATERTHAN, ">"},
    {ExpressionType::COMPARE_GREATERTHANOREQUALTO, ">="},
    {ExpressionType::COMPARE_DISTINCT_FROM, "IS DISTINCT FROM"},
    {ExpressionType::COMPARE_NOT_DISTINCT_FROM, "IS NOT DISTINCT FROM"},
    {ExpressionType::COMPARE_BETWEEN, "BETWEEN"},
    {ExpressionType::COMPARE_IN, "IN"},
    {ExpressionType::COMPARE_NOT_IN, "NOT IN"},
}};

//! The name of an operator or a function; empty for other expressions and for functions of a user.
std::string GetOperation(const Expression &expression) {
	const auto type = expression.GetType();
	if (type == ExpressionType::BOUND_FUNCTION) {
		// A user can define a function with the same name in another schema.
		const auto qualified = expression.GetFunctionQualifiedName();
		const auto is_system = qualified.GetPartCount() <= 1 || qualified.GetPart(0) == "system";
		return is_system ? std::string(expression.GetFunctionName()) : std::string();
	}
	const auto *const found =
	    std::find_if(OPERATORS.begin(), OPERATORS.end(), [&](const auto &known) { return known.first == type; });
	return found == OPERATORS.end() ? std::string() : found->second;
}

//! Writes predicates as nodes, each in postfix order.
class Writer {
public:
	explicit Writer(const TableFunction::FilterPushdownInput &input_p) : input(input_p) {}

	EvtxSlice<EvtxNode> Nodes() const {
		return Lend(nodes);
	}

	void Write(const Expression &expression) {
		const auto type = expression.GetType();
		if (type == ExpressionType::VALUE_CONSTANT) {
			WriteConstant(expression.GetConstantValue());
			return;
		}
		if (type == ExpressionType::BOUND_COLUMN_REF) {
			WriteNode(EvtxNodeKind::COLUMN, input.GetColumnIndex(expression.GetColumnIndex()));
			return;
		}
		const auto name = GetOperation(expression);
		const auto count = expression.GetChildCount();
		if (name.empty() || count > MAX_CHILDREN) {
			WriteNode(EvtxNodeKind::UNKNOWN);
			return;
		}
		for (idx_t i = 0; i < count; i++) {
			Write(expression.GetChild(i));
		}
		WriteNode(EvtxNodeKind::OPERATION, 0, name, count);
	}

private:
	void WriteNode(EvtxNodeKind kind, std::uint64_t number = 0, std::string bytes = {}, idx_t children = 0) {
		texts.push_back(std::move(bytes));
		nodes.push_back({kind, static_cast<std::uint32_t>(children), number, Lend(texts.back())});
	}

	void WriteConstant(const Value &value) {
		if (value.IsNull()) {
			WriteNode(EvtxNodeKind::UNKNOWN);
			return;
		}
		switch (value.GetLogicalType().GetTypeId()) {
		case LogicalTypeId::UTINYINT:
		case LogicalTypeId::USMALLINT:
		case LogicalTypeId::UINTEGER:
		case LogicalTypeId::UBIGINT:
			WriteNode(EvtxNodeKind::NUMBER, value.Get<std::uint64_t>());
			break;
		case LogicalTypeId::TINYINT:
		case LogicalTypeId::SMALLINT:
		case LogicalTypeId::INTEGER:
		case LogicalTypeId::BIGINT:
			WriteNode(EvtxNodeKind::INTEGER, static_cast<std::uint64_t>(value.Get<std::int64_t>()));
			break;
		case LogicalTypeId::BOOLEAN:
			WriteNode(EvtxNodeKind::BOOL, value.Get<bool>() ? 1 : 0);
			break;
		case LogicalTypeId::TIMESTAMP_NS:
			WriteNode(EvtxNodeKind::INSTANT,
			          static_cast<std::uint64_t>(value.Get<duckdb::cxx::timestamp_ns_t>().nanos));
			break;
		case LogicalTypeId::UUID: {
			const auto decoded = value.Get<duckdb::cxx::uuid_t>().Decode();
			WriteNode(EvtxNodeKind::UUID, 0, std::string(std::begin(decoded.bytes), std::end(decoded.bytes)));
			break;
		}
		case LogicalTypeId::VARCHAR:
			WriteNode(EvtxNodeKind::TEXT, 0, std::string(value.Get<duckdb::cxx::varchar_t>().view()));
			break;
		case LogicalTypeId::DATE:
		case LogicalTypeId::TIMESTAMP:
		case LogicalTypeId::ENUM:
			// Only columns of folders and levels of rules have these types. The core treats their values as text.
			WriteNode(EvtxNodeKind::TEXT, 0, value.ToText());
			break;
		default:
			// No column has this type.
			WriteNode(EvtxNodeKind::UNKNOWN);
		}
	}

	const TableFunction::FilterPushdownInput &input;
	std::vector<EvtxNode> nodes;
	//! The bytes of the nodes. In a deque, what is lent stays where it is.
	std::deque<std::string> texts;
};

} // namespace

void PassHints(TableFunction::FilterPushdownInput &input, const EvtxPlanned &planned) {
	Writer writer(input);
	if (IsOn(input.GetContext(), Ask<EvtxDefinitions>(evtx_definitions).filter_pushdown)) {
		for (idx_t i = 0; i < input.GetFilterCount(); i++) {
			writer.Write(input.GetFilter(i));
		}
	}
	Check(evtx_planned_hint(&planned, writer.Nodes()));
}

} // namespace evtx
