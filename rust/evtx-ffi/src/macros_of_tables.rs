//! The macros over a table of events: each macro over `files` has one, derived from its text.
//!
//! `evtx_timeline(files)` reads `read_evtx(files)`, so `evtx_timeline_of(table_name)` is the same text over
//! `query_table(table_name)`. A macro that reads `evtx_sigma(files, ...)` has one over a table of its rows.

use evtx_arrow::{reference, rule_reference};

/// Reports on files have no rows, because a table of events does not say what the files are like.
const NO_FILES: &str =
    "(SELECT NULL::VARCHAR AS filename, NULL::BOOLEAN AS is_wrapped, NULL::UBIGINT AS records LIMIT 0)";

/// How a macro reads matches of rules.
const MATCHES: &str = "evtx_sigma(files,";

/// The text of the macro over a table, from the text of a macro; `None` if the macro does not read files, or its text
/// cannot be derived.
pub(crate) fn over_table(source: &str) -> Option<String> {
    let (header, body) = source.split_once("\n\n")?;
    let name = header.strip_prefix("-- ")?.split_once("(files")?.0;
    let [signature, description, example] = <[&str; 3]>::try_from(header.split("\n--\n").collect::<Vec<_>>()).ok()?;
    // Those of files and rules come last.
    let of_files = [", rules", ", messages := ", ", password := "]
        .into_iter()
        .find_map(|first| signature.split_once(first));
    let (parameters, of_files) = of_files.map_or((signature, ""), |(parameters, _)| (parameters, ")"));
    let signature = format!("{}{of_files}", parameters.replace("(files", "_of(table_name"));
    let (before, rest) = example.split_once(&format!("{name}('"))?;
    let (_, after) = rest.split_once('\'')?;
    let after = after.strip_prefix(", 'rules'").unwrap_or(after);
    let origin = match body.contains(MATCHES) {
        true => "evtx_sigma",
        false => "read_evtx",
    };
    // A name that no table has. The macro's own names could be those of the user's table.
    let events = format!("{name}_events");
    // Comments can come before the query.
    let mut starts = body.match_indices("WITH ").map(|(at, _)| at);
    let (comment, query) = body.split_at(starts.find(|&at| at == 0 || body[..at].ends_with('\n'))?);
    let with = ["WITH RECURSIVE ", "WITH "]
        .into_iter()
        .find(|with| query.starts_with(with))?;
    let query = reads_table(&query[with.len()..], &events)?;
    let columns = columns(body);
    Some(format!(
        "{signature}\n--\n-- Over a table, a view or a Parquet file with the columns of {origin}:\n{description}\n--\n\
         {before}{name}_of('events'{after}\n\n\
         {comment}{with}{events} AS NOT MATERIALIZED (\n    \
         SELECT COLUMNS(lambda column_name: lower(column_name) IN ({columns})) FROM query_table(table_name)\n),\n{query}"
    ))
}

/// The names of the columns that the macro reads, quoted. A table can have others, with names that the macro gives to
/// columns of its own.
fn columns(body: &str) -> String {
    let is_read = |option: Option<&str>| option.is_none_or(|option| body.contains(&format!("{option} := true")));
    let rules = body.contains(MATCHES).then(rule_reference);
    let columns = rules.into_iter().flatten().chain(reference());
    columns
        .filter(|column| is_read(column.option))
        .map(|column| format!("'{}'", column.field.name()))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A query in which functions of `files` are those of a table; `None` if a call does not end.
fn reads_table(query: &str, events: &str) -> Option<String> {
    let mut derived = String::new();
    let mut rest = query;
    // `files.filename` is a column.
    while let Some(at) = [rest.find("(files)"), rest.find("(files,")].into_iter().flatten().min() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (before, call) = rest.split_at(at);
        let unnamed = before.trim_end_matches(is_name);
        derived.push_str(unnamed);
        match &before[unnamed.len()..] {
            "read_evtx" | "evtx_sigma" => derived.push_str(events),
            "evtx_file_metadata" => derived.push_str(NO_FILES),
            name => derived.push_str(&format!("{name}_of('{events}')")),
        }
        rest = call.split_once(')')?.1;
    }
    derived.push_str(rest);
    Some(derived)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "-- evtx_x(files, word, messages := 'x', password := NULL)\n--\n-- What\n-- it is.\n--\n\
        -- SELECT a FROM evtx_x('*.evtx', 'b')\n\n-- Why.\nWITH a AS (FROM read_evtx(files, text := true, password := \
        password) WHERE contains(\"text\", word))\nFROM a, evtx_y(files), evtx_file_metadata(files, password := \
        password) AS files WHERE lower(files.filename) = ''\n";

    #[test]
    fn a_macro_over_files_has_one_over_a_table() {
        let derived = over_table(SOURCE).expect("a macro");
        let (header, body) = derived.split_once("\n\n").expect("a body");
        assert_eq!(
            header,
            "-- evtx_x_of(table_name, word)\n--\n-- Over a table, a view or a Parquet file with the columns of \
             read_evtx:\n-- What\n-- it is.\n--\n-- SELECT a FROM evtx_x_of('events', 'b')"
        );
        let (scan, query) = body.split_once("\n),\n").expect("a query");
        assert!(
            scan.starts_with("-- Why.\nWITH evtx_x_events AS NOT MATERIALIZED (\n    SELECT COLUMNS("),
            "{scan}"
        );
        assert!(scan.ends_with(" FROM query_table(table_name)"), "{scan}");
        assert_eq!(
            query,
            format!(
                "a AS (FROM evtx_x_events WHERE contains(\"text\", word))\nFROM a, evtx_y_of('evtx_x_events'), \
                 {NO_FILES} AS files WHERE lower(files.filename) = ''\n"
            )
        );
    }

    #[test]
    fn a_macro_over_files_and_rules_has_one_over_a_table_of_matches() {
        let source = "-- evtx_x(files, rules, status := NULL, password := NULL)\n--\n-- What it is.\n--\n-- SELECT a FROM \
            evtx_x('logs', 'rules')\n\nWITH a AS (FROM evtx_sigma(files, rules := rules, status := status, password := \
            password))\nFROM a\n";
        let derived = over_table(source).expect("a macro");
        let header = "-- evtx_x_of(table_name)\n--\n-- Over a table, a view or a Parquet file with the columns of \
             evtx_sigma:\n-- What it is.\n--\n-- SELECT a FROM evtx_x_of('events')\n\nWITH evtx_x_events AS NOT \
             MATERIALIZED (\n    SELECT COLUMNS(lambda column_name: lower(column_name) IN ('rule_id', ";
        assert!(derived.starts_with(header), "{derived}");
        assert!(
            derived.contains("'matched', ") && derived.contains("'record_id', "),
            "{derived}"
        );
        assert!(
            derived.ends_with("FROM query_table(table_name)\n),\na AS (FROM evtx_x_events)\nFROM a\n"),
            "{derived}"
        );
        assert!(!columns(SOURCE).contains("'matched'"));
    }

    #[test]
    fn it_reads_the_columns_that_the_macro_asks_for() {
        let columns = columns(SOURCE);
        assert!(
            columns.starts_with("'record_id', 'time_created', ") && columns.contains(", 'text'"),
            "{columns}"
        );
        assert!(
            !columns.contains("'fields'") && !columns.contains("'recovered'"),
            "{columns}"
        );
    }

    #[test]
    fn other_macros_have_none() {
        for source in [
            "-- f(a)\n--\n-- About.\n--\n-- SELECT f(1)\n\na",
            "",
            "-- f(files)\n\nFROM read_evtx(files)",
        ] {
            assert_eq!(over_table(source), None);
        }
    }
}
