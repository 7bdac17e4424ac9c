//! The reports: table functions whose rows are not records.

use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef, TimeUnit};
use evtx_detect::enum_of;
use evtx_exports::{SourceScan, event_schema};
use evtx_query::{Query, ScanCall};
use evtx_reports::{
    ChunkReport, DeclaredEventReport, FileReport, MessageScan, Report, ReportScan, ReportThreads, RuleReport,
    SchemaReport, message_schema,
};

/// The name of the SQL type of a column that DuckDB imports.
pub fn duckdb_type(field: &Field) -> String {
    type_name(field, "")
}

/// The same, with quotes around the names of fields of structs, some of which are words of SQL.
pub(crate) fn quoted_type(field: &Field) -> String {
    type_name(field, "\"")
}

fn type_name(field: &Field, quote: &str) -> String {
    if let Some(name) = enum_of(field) {
        return name.to_owned();
    }
    let name = match field.data_type() {
        DataType::List(item) => return format!("{}[]", type_name(item, quote)),
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Boolean => "BOOLEAN",
        DataType::Binary => "BLOB",
        DataType::Date32 => "DATE",
        DataType::Timestamp(TimeUnit::Microsecond, _) => "TIMESTAMP",
        DataType::Timestamp(..) => "TIMESTAMP_NS",
        DataType::FixedSizeBinary(_) if field.extension_type_name() == Some("arrow.uuid") => "UUID",
        DataType::FixedSizeBinary(16) => "HUGEINT",
        DataType::Struct(fields) => {
            let fields = fields
                .iter()
                .map(|field| format!("{quote}{}{quote} {}", field.name(), type_name(field, quote)));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(..) => "MAP(VARCHAR, VARCHAR)",
        _ if field.extension_type_name() == Some("arrow.json") => "JSON",
        DataType::Utf8 | DataType::Utf8View | DataType::Dictionary(..) => "VARCHAR",
        // No type of SQL: the statement fails.
        other => return format!("no type for {other}"),
    };
    name.to_owned()
}

/// The report of a table function.
pub(crate) struct ReportFunction {
    pub(crate) schema: SchemaRef,
    /// Makes the report of a call, with the columns that have these indexes.
    pub(crate) make: Box<Make>,
}

type Make = dyn Fn(&ScanCall, &[usize]) -> Box<dyn ReportThreads> + Send + Sync;

fn function<R: Report + 'static>(make: fn(&ScanCall, &[usize]) -> R) -> Option<ReportFunction> {
    Some(ReportFunction {
        schema: R::schema(),
        make: Box::new(move |call, columns| {
            Box::new(ReportScan::new(make(call, columns), call.paths.clone(), columns))
        }),
    })
}

/// The report that a query gives; `None` if its rows are records.
pub(crate) fn report_of(query: Query) -> Option<ReportFunction> {
    match query {
        Query::Records | Query::Matches | Query::Exports => None,
        Query::Rules => function(|call, _| RuleReport::new(Arc::clone(&call.rules))),
        Query::Fields => function(|_, _| SchemaReport::new(duckdb_type)),
        Query::Files => function(|_, columns| FileReport::of_columns(columns)),
        Query::Chunks => function(|_, _| ChunkReport::default()),
        Query::Messages => Some(ReportFunction {
            schema: message_schema(),
            make: Box::new(|call, columns| Box::new(MessageScan::new(call.paths.clone(), columns))),
        }),
        Query::Sources => Some(ReportFunction {
            schema: event_schema(),
            make: Box::new(|call, columns| {
                Box::new(SourceScan::new(call.paths.clone(), call.sources.clone(), columns))
            }),
        }),
        Query::DeclaredEvents => function(|_, _| DeclaredEventReport::new(duckdb_type)),
    }
}
