//! The SQL macros, the enums and the settings.

use std::fmt::Write;

use evtx_arrow::ENUMS;
use evtx_ffi::{EvtxMacro, EvtxParameter, definitions};

use crate::api::{Connection, QueryResult, api};
use crate::types::{LogicalType, Value, c_text, id, text_of};

/// The database in memory that has the macros if the user's is a file.
const DATABASE: &str = "evtx";

/// Runs a statement, and returns the text of DuckDB's error if it fails.
fn run(connection: Connection, sql: &str) -> Result<(), String> {
    let mut result = QueryResult::NONE;
    // SAFETY: the result is destroyed once, also after a failure.
    unsafe {
        let state = (api().query)(connection, c_text(sql).as_ptr(), &mut result);
        let error = (state != 0).then(|| text_of((api().result_error)(&mut result)));
        (api().destroy_result)(&mut result);
        error.map_or(Ok(()), Err)
    }
}

/// Whether the default database is in memory: a file would keep the macros, and show them without the extension.
fn is_in_memory(connection: Connection) -> bool {
    let sql = "SELECT CASE WHEN path IS NOT NULL THEN error('') END FROM duckdb_databases() WHERE database_name = \
               current_database()";
    run(connection, sql).is_ok()
}

/// Registers the macros. Those of the system catalog, where the other extension has its own, cannot be made with SQL.
pub(crate) fn register_macros(connection: Connection) -> Result<(), String> {
    let macros = definitions().macros.get();
    let place = match is_in_memory(connection) {
        true => String::new(),
        false => {
            run(connection, &format!("ATTACH IF NOT EXISTS ':memory:' AS {DATABASE} (READ_WRITE)"))?;
            format!("{DATABASE}.main.")
        }
    };
    let mut sql = String::from("BEGIN;");
    for known in macros {
        sql.push_str(&definition(known, &place)?);
    }
    sql.push_str("COMMIT;");
    run(connection, &sql)
}

/// The statement that makes a macro in a place, where macros that it calls are too.
fn definition(known: &EvtxMacro, place: &str) -> Result<String, String> {
    let mut body = known.body.text()?.to_owned();
    if !place.is_empty() {
        for other in definitions().macros.get() {
            let name = other.function.name.text()?;
            body = body.replace(&format!("{name}("), &format!("{place}{name}("));
        }
    }
    let parameters: Result<Vec<String>, String> = known.parameters.get().iter().map(parameter).collect();
    let mut sql = format!(
        "CREATE OR REPLACE MACRO {place}{}({})",
        known.function.name.text()?,
        parameters?.join(", ")
    );
    let written = match known.is_table {
        true => writeln!(sql, " AS TABLE {body}\n;"),
        false => writeln!(sql, " AS ({body}\n);"),
    };
    written.map_err(|error| error.to_string())?;
    Ok(sql)
}

fn parameter(known: &EvtxParameter) -> Result<String, String> {
    let name = known.name.text()?;
    Ok(match known.default() {
        None => name.to_owned(),
        Some(None) => format!("{name} := NULL"),
        Some(Some(text)) => format!("{name} := '{}'", text?.replace('\'', "''")),
    })
}

/// Registers the enums, so that casts know their names.
pub(crate) fn register_enums(connection: Connection) -> Result<(), String> {
    for (name, values) in ENUMS {
        let known = LogicalType::enumeration(name, &values);
        // SAFETY: it is a type with a name.
        if unsafe { (api().register_logical_type)(connection, known.0, std::ptr::null_mut()) } != 0 {
            return Err(format!("DuckDB does not take the type {name}"));
        }
    }
    Ok(())
}

/// Registers the settings. Predicates never reach this door, but statements that set theirs should run.
pub(crate) fn register_settings(connection: Connection) -> Result<(), String> {
    let known = definitions();
    for setting in [known.filter_pushdown, known.template_cache] {
        let (name, about) = (c_text(setting.name.text()?), c_text(setting.about.text()?));
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut option = (api().create_config_option)();
            (api().config_option_set_name)(option, name.as_ptr());
            (api().config_option_set_type)(option, LogicalType::new(id::BOOLEAN).0);
            if let Some(value) = Value::owned((api().create_bool)(true)) {
                (api().config_option_set_default_value)(option, value.0);
            }
            (api().config_option_set_description)(option, about.as_ptr());
            let state = (api().register_config_option)(connection, option);
            (api().destroy_config_option)(&mut option);
            state
        };
        if state != 0 {
            return Err(format!("DuckDB does not take the setting {}", name.to_string_lossy()));
        }
    }
    Ok(())
}
