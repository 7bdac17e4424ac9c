#include "filter_pushdown.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

//! Translates the predicates that DuckDB offers into the core's. What the core does not take is left to DuckDB.

namespace evtx {

namespace {

using duckdb::cxx::Expression;
using duckdb::cxx::ExpressionType;
using duckdb::cxx::idx_t;
using duckdb::cxx::LogicalTypeId;
using duckdb::cxx::TableFunction;

constexpr const char *SETTING = "evtx_filter_pushdown";

//! A constant of the query, and the bytes that its literal points to.
struct Constant {
	explicit Constant(EvtxLiteralKind kind, std::uint64_t number_p = 0) : literal {} {
		literal.kind = kind;
		literal.number = number_p;
	}

	EvtxLiteral Get() const {
		auto result = literal;
		result.bytes = bytes.data();
		result.len = bytes.size();
		return result;
	}

	EvtxLiteral literal;
	std::string bytes;
};

//! The constant of an expression; none where it is NULL or of a type that no column has.
std::optional<Constant> GetConstant(const Expression &expression) {
	if (expression.GetType() != ExpressionType::VALUE_CONSTANT) {
		return std::nullopt;
	}
	const auto value = expression.GetConstantValue();
	if (value.IsNull()) {
		return std::nullopt;
	}
	switch (value.GetLogicalType().GetTypeId()) {
	case LogicalTypeId::UTINYINT:
		return Constant(EvtxLiteralKind::NUMBER, value.Get<std::uint8_t>());
	case LogicalTypeId::USMALLINT:
		return Constant(EvtxLiteralKind::NUMBER, value.Get<std::uint16_t>());
	case LogicalTypeId::UINTEGER:
		return Constant(EvtxLiteralKind::NUMBER, value.Get<std::uint32_t>());
	case LogicalTypeId::UBIGINT:
		return Constant(EvtxLiteralKind::NUMBER, value.Get<std::uint64_t>());
	case LogicalTypeId::TINYINT:
	case LogicalTypeId::SMALLINT:
	case LogicalTypeId::INTEGER:
	case LogicalTypeId::BIGINT:
		return Constant(EvtxLiteralKind::INTEGER, static_cast<std::uint64_t>(value.Get<std::int64_t>()));
	case LogicalTypeId::BOOLEAN:
		return Constant(EvtxLiteralKind::BOOL, value.Get<bool>() ? 1 : 0);
	case LogicalTypeId::TIMESTAMP_NS:
		return Constant(EvtxLiteralKind::INSTANT,
		                static_cast<std::uint64_t>(value.Get<duckdb::cxx::timestamp_ns_t>().nanos));
	case LogicalTypeId::UUID: {
		Constant constant(EvtxLiteralKind::UUID);
		const auto decoded = value.Get<duckdb::cxx::uuid_t>().Decode();
		constant.bytes.assign(std::begin(decoded.bytes), std::end(decoded.bytes));
		return constant;
	}
	case LogicalTypeId::VARCHAR: {
		Constant constant(EvtxLiteralKind::TEXT);
		constant.bytes = std::string(value.Get<duckdb::cxx::varchar_t>().view());
		return constant;
	}
	default:
		return std::nullopt;
	}
}

//! What a test is about: a column, or the entry of a map.
struct Operand {
	std::uint64_t column = 0;
	std::optional<std::string> key;
};

std::optional<EvtxTest> GetComparison(ExpressionType type) {
	switch (type) {
	case ExpressionType::COMPARE_EQUAL:
		return EvtxTest::EQUAL;
	case ExpressionType::COMPARE_NOTEQUAL:
		return EvtxTest::NOT_EQUAL;
	case ExpressionType::COMPARE_LESSTHAN:
		return EvtxTest::LESS;
	case ExpressionType::COMPARE_LESSTHANOREQUALTO:
		return EvtxTest::LESS_OR_EQUAL;
	case ExpressionType::COMPARE_GREATERTHAN:
		return EvtxTest::GREATER;
	case ExpressionType::COMPARE_GREATERTHANOREQUALTO:
		return EvtxTest::GREATER_OR_EQUAL;
	default:
		return std::nullopt;
	}
}

//! The comparison with its sides exchanged.
EvtxTest Exchanged(EvtxTest test) {
	switch (test) {
	case EvtxTest::LESS:
		return EvtxTest::GREATER;
	case EvtxTest::LESS_OR_EQUAL:
		return EvtxTest::GREATER_OR_EQUAL;
	case EvtxTest::GREATER:
		return EvtxTest::LESS;
	case EvtxTest::GREATER_OR_EQUAL:
		return EvtxTest::LESS_OR_EQUAL;
	default:
		return test;
	}
}

//! The tests of text that LIKE becomes where its pattern is a plain one.
std::optional<EvtxTest> GetTextTest(const std::string &function) {
	if (function == "prefix" || function == "starts_with" || function == "^@") {
		return EvtxTest::PREFIX;
	}
	if (function == "suffix" || function == "ends_with") {
		return EvtxTest::SUFFIX;
	}
	if (function == "contains") {
		return EvtxTest::CONTAINS;
	}
	return std::nullopt;
}

//! Translates predicates, onto the filter's stack.
class Translator {
public:
	Translator(const TableFunction::FilterPushdownInput &input_p, Filter &filter_p)
	    : input(input_p), filter(filter_p) {}

	//! Returns false where any part of the predicate is not the core's. The stack then has parts of it.
	bool Translate(const Expression &expression) {
		const auto type = expression.GetType();
		switch (type) {
		case ExpressionType::CONJUNCTION_AND:
			return Junction(expression, EvtxLogic::AND);
		case ExpressionType::CONJUNCTION_OR:
			return Junction(expression, EvtxLogic::OR);
		case ExpressionType::OPERATOR_NOT:
			return Translate(expression.GetChild(0)) && Combine(EvtxLogic::NOT, 1);
		case ExpressionType::OPERATOR_IS_NULL:
			return Test(expression.GetChild(0), EvtxTest::IS_NULL, {});
		case ExpressionType::OPERATOR_IS_NOT_NULL:
			return Test(expression.GetChild(0), EvtxTest::IS_NULL, {}) && Combine(EvtxLogic::NOT, 1);
		case ExpressionType::COMPARE_IN:
			return In(expression);
		case ExpressionType::COMPARE_NOT_IN:
			return In(expression) && Combine(EvtxLogic::NOT, 1);
		case ExpressionType::COMPARE_BETWEEN:
			return Compare(expression.GetChild(0), EvtxTest::GREATER_OR_EQUAL, expression.GetChild(1)) &&
			       Compare(expression.GetChild(0), EvtxTest::LESS_OR_EQUAL, expression.GetChild(2)) &&
			       Combine(EvtxLogic::AND, 2);
		case ExpressionType::COMPARE_DISTINCT_FROM:
			return Distinct(expression);
		case ExpressionType::COMPARE_NOT_DISTINCT_FROM:
			return Distinct(expression) && Combine(EvtxLogic::NOT, 1);
		case ExpressionType::BOUND_COLUMN_REF: {
			const Constant yes(EvtxLiteralKind::BOOL, 1);
			return Test(expression, EvtxTest::EQUAL, {yes});
		}
		case ExpressionType::BOUND_FUNCTION: {
			const auto test = GetTextTest(expression.GetFunctionName());
			return test && expression.GetChildCount() == 2 &&
			       Compare(expression.GetChild(0), *test, expression.GetChild(1));
		}
		default: {
			const auto test = GetComparison(type);
			return test && (Compare(expression.GetChild(0), *test, expression.GetChild(1)) ||
			                Compare(expression.GetChild(1), Exchanged(*test), expression.GetChild(0)));
		}
		}
	}

private:
	bool Combine(EvtxLogic logic, std::uint64_t count) {
		filter.Combine(logic, count);
		return true;
	}

	bool Junction(const Expression &expression, EvtxLogic logic) {
		const auto count = expression.GetChildCount();
		for (idx_t i = 0; i < count; i++) {
			if (!Translate(expression.GetChild(i))) {
				return false;
			}
		}
		return Combine(logic, count);
	}

	//! `value IS DISTINCT FROM constant`: NULL is.
	bool Distinct(const Expression &expression) {
		return Test(expression.GetChild(0), EvtxTest::IS_NULL, {}) &&
		       Compare(expression.GetChild(0), EvtxTest::NOT_EQUAL, expression.GetChild(1)) &&
		       // Where the value is NULL, the first alone decides.
		       Combine(EvtxLogic::OR, 2);
	}

	bool In(const Expression &expression) {
		std::vector<Constant> constants;
		for (idx_t i = 1; i < expression.GetChildCount(); i++) {
			auto constant = GetConstant(expression.GetChild(i));
			if (!constant) {
				return false;
			}
			constants.push_back(std::move(*constant));
		}
		return Test(expression.GetChild(0), EvtxTest::IN, constants);
	}

	bool Compare(const Expression &value, EvtxTest test, const Expression &with) {
		auto constant = GetConstant(with);
		return constant && Test(value, test, {std::move(*constant)});
	}

	bool Test(const Expression &value, EvtxTest test, const std::vector<Constant> &constants) {
		const auto operand = GetOperand(value);
		if (!operand) {
			return false;
		}
		std::vector<EvtxLiteral> literals;
		literals.reserve(constants.size());
		for (const auto &constant : constants) {
			literals.push_back(constant.Get());
		}
		return filter.Test(operand->column, operand->key, test, literals);
	}

	std::optional<Operand> GetOperand(const Expression &expression) const {
		Operand operand;
		if (expression.GetType() == ExpressionType::BOUND_COLUMN_REF) {
			operand.column = input.GetColumnIndex(expression.GetColumnIndex());
			return operand;
		}
		// map['key']
		if (expression.GetType() != ExpressionType::BOUND_FUNCTION ||
		    expression.GetFunctionName() != "map_extract_value" || expression.GetChildCount() != 2 ||
		    expression.GetChild(0).GetType() != ExpressionType::BOUND_COLUMN_REF) {
			return std::nullopt;
		}
		auto key = GetConstant(expression.GetChild(1));
		if (!key || key->literal.kind != EvtxLiteralKind::TEXT) {
			return std::nullopt;
		}
		operand.column = input.GetColumnIndex(expression.GetChild(0).GetColumnIndex());
		operand.key = std::move(key->bytes);
		return operand;
	}

	const TableFunction::FilterPushdownInput &input;
	Filter &filter;
};

//! Leaves out the paths whose folders do not have one of the constants that a column of theirs is compared with. DuckDB
//! decides the predicate all the same.
void SkipFolders(const TableFunction::FilterPushdownInput &input, const Expression &expression, const ScanCall &call,
                 std::vector<bool> &kept) {
	const auto type = expression.GetType();
	if (!call.hive || (type != ExpressionType::COMPARE_EQUAL && type != ExpressionType::COMPARE_IN) ||
	    expression.GetChild(0).GetType() != ExpressionType::BOUND_COLUMN_REF) {
		return;
	}
	const auto column = input.GetColumnIndex(expression.GetChild(0).GetColumnIndex());
	const auto table_columns = call.table->ColumnCount();
	if (column < table_columns) {
		return;
	}
	std::vector<std::string> constants;
	for (idx_t i = 1; i < expression.GetChildCount(); i++) {
		if (expression.GetChild(i).GetType() != ExpressionType::VALUE_CONSTANT) {
			return;
		}
		constants.push_back(expression.GetChild(i).GetConstantValue().ToText());
	}
	for (const auto &path : call.paths) {
		const auto value = call.hive->GetValue(path.number, column - table_columns).ToText();
		if (std::find(constants.begin(), constants.end(), value) == constants.end()) {
			kept[path.number] = false;
		}
	}
}

} // namespace

void PushFilters(TableFunction::FilterPushdownInput &input, const ScanCall &call, Filter &filter,
                 std::vector<bool> &kept, bool yields) {
	if (!input.GetContext().GetConfig().GetOption(SETTING).value.Get<bool>()) {
		return;
	}
	if (yields) {
		// What was not accepted is offered again.
		filter.Clear();
	}
	Translator translator(input, filter);
	for (idx_t i = 0; i < input.GetFilterCount(); i++) {
		const auto decided = translator.Translate(input.GetFilter(i));
		filter.Finish(decided);
		if (decided && !yields) {
			input.Accept(i);
		} else if (!decided) {
			SkipFolders(input, input.GetFilter(i), call, kept);
		}
	}
}

void RegisterFilterPushdownOption(duckdb::cxx::Extension &extension, duckdb::cxx::Context &context) {
	auto &factory = context.GetFactory();
	auto option = duckdb::cxx::CustomOption::Create(factory);
	option.SetName(SETTING)
	    .SetType(factory.CreateType(LogicalTypeId::BOOLEAN))
	    .SetDefaultValue(factory.CreateValue(true))
	    .SetDescription("Whether read_evtx decides predicates itself, before it builds the rows");
	extension.Register(option);
}

} // namespace evtx
