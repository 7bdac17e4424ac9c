//! The reports: table functions whose rows are not records.

use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};
use evtx_arrow::enum_of;
use evtx_reports::{ChunkReport, DeclaredEventReport, FileReport, Report, RuleReport, SchemaReport};
use evtx_scan::{Query, ReportScan, ReportThreads, ScanCall};

/// The name of the SQL type of a column that DuckDB imports.
pub(crate) fn duckdb_type(field: &Field) -> String {
    if let Some(name) = enum_of(field) {
        return name.to_owned();
    }
    let name = match field.data_type() {
        DataType::List(item) => return format!("{}[]", duckdb_type(item)),
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
        DataType::Timestamp(..) => "TIMESTAMP_NS",
        DataType::FixedSizeBinary(_) if field.extension_type_name() == Some("arrow.uuid") => "UUID",
        DataType::FixedSizeBinary(_) => "HUGEINT",
        DataType::Struct(fields) => {
            let fields = fields
                .iter()
                .map(|field| format!("{} {}", field.name(), duckdb_type(field)));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(..) => "MAP(VARCHAR, VARCHAR)",
        _ if field.extension_type_name() == Some("arrow.json") => "JSON",
        _ => "VARCHAR",
    };
    name.to_owned()
}

/// The report of a table function.
pub(crate) struct ReportFunction {
    pub(crate) schema: SchemaRef,
    pub(crate) make: fn(&ScanCall, &[usize]) -> Box<dyn ReportThreads>,
}

/// The report on the files of a call, with the columns that have these indexes.
fn scan<R: Report + 'static>(report: R, call: &ScanCall, columns: &[usize]) -> Box<dyn ReportThreads> {
    Box::new(ReportScan::new(report, call.paths.clone(), columns))
}

/// The report that a query gives; `None` if its rows are records.
pub(crate) fn report_of(query: Query) -> Option<ReportFunction> {
    let report: ReportFunction = match query {
        Query::Records | Query::Matches => return None,
        Query::Rules => ReportFunction {
            schema: RuleReport::schema(),
            make: |call, columns| scan(RuleReport::new(Arc::clone(&call.rules)), call, columns),
        },
        Query::Fields => ReportFunction {
            schema: SchemaReport::schema(),
            make: |call, columns| scan(SchemaReport::new(duckdb_type), call, columns),
        },
        Query::Files => ReportFunction {
            schema: FileReport::schema(),
            make: |call, columns| scan(FileReport::of_columns(columns), call, columns),
        },
        Query::Chunks => ReportFunction {
            schema: ChunkReport::schema(),
            make: |call, columns| scan(ChunkReport::default(), call, columns),
        },
        Query::DeclaredEvents => ReportFunction {
            schema: DeclaredEventReport::schema(),
            make: |call, columns| scan(DeclaredEventReport::new(duckdb_type), call, columns),
        },
    };
    Some(report)
}
