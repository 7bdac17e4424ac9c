//! The SQL macros, the enums and the settings.

use evtx_detect::ENUMS;
use evtx_ffi::{FILTER_PUSHDOWN, MESSAGES, Macro, macros};

use crate::api::*;
use crate::call::registered;
use crate::types::{LogicalType, Value, c_text, id, taken, text_of};

/// Runs statements, and returns the first value of the last one; empty for NULL.
fn ask(connection: duckdb_connection, sql: &str) -> Result<String, String> {
    let mut result = no_result();
    // SAFETY: the result is destroyed once, also after a failure. There may be no value.
    unsafe {
        let answer = match duckdb_query(connection, c_text(sql).as_ptr(), &mut result) {
            0 => Ok(taken(duckdb_value_varchar(&mut result, 0, 0))),
            _ => Err(text_of(duckdb_result_error(&mut result))),
        };
        duckdb_destroy_result(&mut result);
        answer
    }
}

/// Where the macros are made: in the default database, or in another one in memory if that is a file, which would keep
/// them.
fn place(connection: duckdb_connection) -> Result<String, String> {
    let default =
        "SELECT database_name FROM duckdb_databases() WHERE database_name = current_database() AND path IS NULL";
    let mut name = ask(connection, default)?;
    if name.is_empty() {
        name = ask(
            connection,
            "WITH taken AS (SELECT lower(database_name) AS name FROM duckdb_databases() UNION ALL
                            SELECT lower(schema_name) FROM duckdb_schemas())
             SELECT name FROM (SELECT i, 'evtx_macros' || CASE i WHEN 1 THEN '' ELSE '_' || i END AS name FROM range(1, 1000) t(i))
             WHERE name NOT IN (FROM taken) ORDER BY i LIMIT 1",
        )?;
        ask(connection, &format!("ATTACH ':memory:' AS {name} (READ_WRITE)"))?;
    }
    Ok(format!("\"{}\".main.", name.replace('"', "\"\"")))
}

/// Registers the macros, except for those that the user has. SQL cannot make any in the system catalog, where the other
/// extension has its own.
pub(crate) fn register_macros(connection: duckdb_connection) -> Result<(), String> {
    let place = place(connection)?;
    let mut sql = String::from("BEGIN;");
    let macros = macros();
    for known in &macros {
        sql.push_str(&definition(known, &macros, &place));
    }
    sql.push_str("COMMIT;");
    ask(connection, &sql).map(drop)
}

/// Whether an earlier, failed `LOAD` has registered everything but the macros.
pub(crate) fn has_settings(connection: duckdb_connection) -> Result<bool, String> {
    let sql = format!("SELECT name FROM duckdb_settings() WHERE name = '{}'", MESSAGES.0);
    Ok(!ask(connection, &sql)?.is_empty())
}

/// The statement that makes a macro in a place, where the macros that it calls are too.
fn definition(known: &Macro, macros: &[Macro], place: &str) -> String {
    let mut body = known.body.clone();
    for Macro { name, .. } in macros {
        body = body.replace(&format!("{name}("), &format!("{place}{name}("));
    }
    known.statement(place, &body)
}

/// Registers the enums, so that casts know their names.
pub(crate) fn register_enums(connection: duckdb_connection) -> Result<(), String> {
    for (name, values) in ENUMS {
        let known = LogicalType::enumeration(name, values);
        // SAFETY: it is a type with a name.
        let state = unsafe { duckdb_register_logical_type(connection, known.0, std::ptr::null_mut()) };
        registered(state, "type", name)?;
    }
    Ok(())
}

/// Registers the settings. Predicates never reach this front end, but statements that set theirs should run.
pub(crate) fn register_settings(connection: duckdb_connection) -> Result<(), String> {
    for (name, about, is_flag) in [FILTER_PUSHDOWN, MESSAGES] {
        let (c_name, about) = (c_text(name), c_text(about));
        // SAFETY: every object is what the function takes, and is destroyed once.
        let state = unsafe {
            let mut option = duckdb_create_config_option();
            duckdb_config_option_set_name(option, c_name.as_ptr());
            let (type_id, default) = if is_flag {
                (id::BOOLEAN, Value::owned(duckdb_create_bool(true)))
            } else {
                (id::VARCHAR, Some(Value::of("")))
            };
            duckdb_config_option_set_type(option, LogicalType::new(type_id).0);
            if let Some(value) = default {
                duckdb_config_option_set_default_value(option, value.0);
            }
            duckdb_config_option_set_description(option, about.as_ptr());
            let state = duckdb_register_config_option(connection, option);
            duckdb_destroy_config_option(&mut option);
            state
        };
        registered(state, "setting", name)?;
    }
    Ok(())
}
