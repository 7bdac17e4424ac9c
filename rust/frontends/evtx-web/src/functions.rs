//! The functions that the macros call, for many rows at a time.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, downcast_primitive_array};
use arrow_schema::DataType;
use evtx_ffi::{Caller, ScalarFunction, scalar_functions};
use evtx_format::Interrupt;
use evtx_scan::LocalStorage;

use crate::columns::Column;

/// The length of NULL among packed texts.
const NULL: u32 = u32::MAX;

/// Packed texts: before each its length in bytes, in 4 bytes from the lowest; NULL is a length alone.
struct Packed<'b>(&'b [u8]);

impl<'b> Iterator for Packed<'b> {
    type Item = Option<&'b str>;

    fn next(&mut self) -> Option<Self::Item> {
        let (len, rest) = self.0.split_first_chunk()?;
        let len = u32::from_le_bytes(*len);
        let (text, rest) = if len == NULL {
            (None, rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(len as usize)?;
            (Some(str::from_utf8(bytes).unwrap_or_default()), rest)
        };
        self.0 = rest;
        Some(text)
    }
}

/// Calls a function of the extension, by its name without `evtx_`, for rows of packed arguments. Returns its packed results, as DuckDB
/// casts them. A [`Column`] reads the arguments. Times are in nanoseconds.
///
/// # Errors
/// A text if there is no such function or no such table.
pub(crate) fn call(name: &str, count: usize, input: &[u8]) -> Result<Vec<u8>, String> {
    let texts: Vec<_> = Packed(input).collect();
    let rows = texts.chunks(count.max(1));
    let is_it = |function: &&ScalarFunction| function.name.strip_prefix("evtx_") == Some(name);
    let function = scalar_functions().iter().find(is_it);
    let function = function.ok_or_else(|| format!("there is no function {name}"))?;
    let mut out = Vec::new();
    for result in results_of(function, rows)? {
        let len = result.as_ref().map_or(NULL, |text| text.len() as u32);
        out.extend(len.to_le_bytes());
        out.extend(result.unwrap_or_default().into_bytes());
    }
    Ok(out)
}

/// The results of a function of the extension for rows of arguments.
fn results_of<'t>(
    function: &ScalarFunction,
    rows: impl Iterator<Item = &'t [Option<&'t str>]>,
) -> Result<Vec<Option<String>>, String> {
    let parameters = function.parameters.iter();
    let mut columns: Vec<_> = parameters.map(|parameter| Column::new(parameter.data_type())).collect();
    for row in rows {
        let mut texts = row.iter().copied();
        columns.iter_mut().for_each(|column| column.push(&mut texts));
    }
    let vectors: Vec<_> = columns.iter().flat_map(Column::vectors).collect();
    let caller = Caller {
        storage: &LocalStorage,
        interrupt: Interrupt::NEVER,
    };
    // SAFETY: the columns have the types of the parameters, and they live until the call has ended, as their texts do.
    let results = unsafe { function.thread().call(&vectors, caller) };
    let results = results.map_err(|error| error.text().to_owned())?;
    let value = |row| text(&results, row).map_or_else(|| shown(&results, row), str::to_owned);
    let rows = 0..results.len();
    Ok(rows.map(|row| results.is_valid(row).then(|| value(row))).collect())
}

/// The value, if it is a text.
fn text(values: &dyn Array, row: usize) -> Option<&str> {
    match values.data_type() {
        DataType::Utf8View => Some(values.as_string_view().value(row)),
        DataType::Dictionary(..) => {
            let texts = values.as_dictionary::<Int32Type>();
            text(texts.values(), texts.key(row)?)
        }
        _ => None,
    }
}

/// A value in a nested value, as DuckDB casts it.
fn shown(values: &dyn Array, row: usize) -> String {
    let all = |values: &dyn Array| (0..values.len()).map(|row| shown(values, row)).collect::<Vec<_>>();
    if values.is_null(row) {
        return "NULL".to_owned();
    }
    downcast_primitive_array!(
        values => format!("{:?}", values.value(row)),
        // HUGEINT.
        DataType::FixedSizeBinary(_) => {
            let bytes = values.as_fixed_size_binary().value(row);
            bytes.try_into().map_or_else(|_| "NULL".to_owned(), |bytes| i128::from_ne_bytes(bytes).to_string())
        }
        DataType::Boolean => values.as_boolean().value(row).to_string(),
        DataType::List(_) => format!("[{}]", all(&values.as_list::<i32>().value(row)).join(", ")),
        DataType::Map(..) => {
            let entries = values.as_map().value(row);
            let [keys, values] = [0, 1].map(|column| all(entries.column(column)));
            let pairs: Vec<_> = keys.iter().zip(values).map(|(key, value)| format!("{key}={value}")).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(values.as_struct().columns());
            let columns: Vec<_> = columns.map(|(field, column)| format!("'{}': {}", field.name(), shown(column, row))).collect();
            format!("{{{}}}", columns.join(", "))
        }
        _ => quoted(text(values, row).unwrap_or_default()),
    )
}

/// A text in a nested value, as DuckDB casts it back.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::items;

    fn packed(texts: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for text in texts {
            out.extend(text.map_or(NULL, |text| text.len() as u32).to_le_bytes());
            out.extend(text.unwrap_or_default().as_bytes());
        }
        out
    }

    fn called(name: &str, count: usize, arguments: &[Option<&str>]) -> Vec<Option<String>> {
        let answer = call(name, count, &packed(arguments)).expect("a function");
        Packed(&answer).map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn a_row_has_a_result_each_and_null_has_none() {
        let rows = [Some("logon_type"), Some("3"), Some("logon_type"), None];
        assert_eq!(called("code_name", 2, &rows), [Some("Network".to_owned()), None]);
        let names = called("code_names", 2, &[Some("privilege"), Some("SeDebugPrivilege \"x\"")]);
        assert!(
            names[0].as_ref().is_none_or(|list| list.starts_with("[\"")),
            "{names:?}"
        );
        let error = call("code_name", 2, &packed(&[Some("nothing"), Some("3")])).unwrap_err();
        assert!(error.starts_with("unknown table of codes 'nothing'"), "{error}");
        assert_eq!(
            call("nothing", 1, &packed(&[None])).unwrap_err(),
            "there is no function nothing"
        );
        assert_eq!(call("code_name", 2, &[1, 2, 3]), Ok(Vec::new()));
    }

    #[test]
    fn lists_are_texts_with_lengths_in_bytes() {
        assert_eq!(items("3:a:b-1:-2:é"), [Some("a:b"), None, Some("-"), Some("é")]);
        for damaged in ["", "3:ab", "x", ":", "1:é"] {
            assert_eq!(items(damaged), [], "{damaged}");
        }
        let row = [Some("P"), Some("1"), Some("1:a2:=b1:c-"), None, None, Some("S-1-5-18")];
        let roles = called("event_roles", 6, &row).remove(0).expect("a struct");
        assert!(
            roles.contains("'user_sid': \"S-1-5-18\", 'remote_host': NULL"),
            "{roles}"
        );
        assert!(
            roles.ends_with("'details': \"a: =b\", 'claims_own_name': false, 'is_windows': false}"),
            "{roles}"
        );
    }

    /// An item of a list: NULL for an empty text.
    fn item(text: &str) -> String {
        match text.len() {
            0 => "-".to_owned(),
            len => format!("{len}:{text}"),
        }
    }

    #[test]
    fn encoded_texts_are_a_list() {
        let row = Some("1:a16:dwBoAG8AYQBtAGkA1:b1:x1:c-");
        let expected = r#"[{'field': "a", 'encoding': "base64", 'text': "whoami"}]"#;
        assert_eq!(called("decoded_texts", 1, &[row]), [Some(expected.to_owned())]);
        assert_eq!(called("decoded_texts", 1, &[None]), [Some("[]".to_owned())]);
    }

    #[test]
    fn records_are_placed_in_time() {
        let record = |digest, id, time, old, new| {
            [digest, "pc", "System", "x", id, id, time, old, new, "", "0"]
                .map(item)
                .concat()
        };
        let hour = 3_600_000_000_000_i64;
        let [one, two] = [hour, 2 * hour].map(|time| time.to_string());
        let records = record("7", "1", &two, "", "") + &record("8", "2", &one, &two, &one);
        let places = called("log_places", 1, &[Some(&records), None]);
        let place = |digest| {
            format!(
                "{{'digest': {digest}, 'machine': \"pc\", 'log_time': {hour}, 'is_contested': false, 'is_woken': false}}"
            )
        };
        let expected = [Some(format!("[{}, {}]", place(7), place(8))), Some("[]".to_owned())];
        assert_eq!(places, expected);
        let data = ["OldTime", "2024-01-01T10:00:00Z", "NewTime", "2024-01-01T09:00:00Z"]
            .map(item)
            .concat();
        let row = [
            None,
            None,
            None,
            Some("1"),
            Some("5"),
            Some("1"),
            None,
            Some(&*data),
            None,
        ];
        let stamp = called("record_stamp", 9, &row).remove(0).expect("a struct");
        assert!(
            stamp.contains("'old_time': 1704103200000000000, 'new_time': 1704099600000000000"),
            "{stamp}"
        );
        let rows = [&[Some("x"), Some("1"), None], &row[..]].concat();
        let told = called("fact_row", 12, &rows).remove(0).expect("a row");
        let facts = called("fact_list", 5, &[Some(&*item(&told)), None, None, None, None]);
        assert_eq!(facts, [Some("[]".to_owned())]);
    }

    #[test]
    fn events_become_sessions() {
        let pairs = "13:TargetLogonId4:0xA114:TargetUserName4:anna9:LogonType2:10";
        let step = called(
            "logon_step",
            4,
            &[
                Some("Microsoft-Windows-Security-Auditing"),
                Some("4624"),
                Some(pairs),
                None,
            ],
        );
        assert!(
            step[0]
                .as_ref()
                .is_some_and(|step| step.contains("'session': \"0xa1\", 'account': \"anna\"")),
            "{step:?}"
        );
        assert_eq!(
            called("logon_step", 4, &[Some("x"), Some("4624"), Some(pairs), None]),
            [None]
        );
        let event = |event_id, time, act| {
            let items = [
                event_id, "1", time, time, "7", "0", "pc", "windows", act, "0xa1", "anna", "D", "", "", "", "", "", "",
                "2", "10",
            ];
            items.map(item).concat()
        };
        let events = event("4624", "5", "logon") + &event("4634", "9", "logoff") + &event("4634", "9", "logoff");
        let sessions = called("logon_sessions", 2, &[Some(&events), None])
            .remove(0)
            .expect("a list");
        let connections = "'connections': [{'connected': 5, 'disconnected': 9, 'remote_host': NULL}]";
        for part in [
            "[{'kind': \"remote desktop\", 'computer': \"pc\", 'user_name': \"D\\\\anna\"",
            "'logon_time': 5, 'logoff_time': 9",
            connections,
        ] {
            assert!(sessions.contains(part), "{sessions}");
        }
        assert_eq!(sessions.matches("'kind'").count(), 1);
        assert_eq!(
            called("logon_sessions", 2, &[Some("1:x"), None]),
            [Some("[]".to_owned())]
        );
    }

    #[test]
    fn names_of_computers_and_accounts_have_lists() {
        let hour = |computer, first, last| {
            item(&format!(
                r#"{{"filename":"x/1","computer":"{computer}","channel":"System","hour":0,"records":2,"numbers":[{first},{last}],"times":[1,2],"shifts":[0,0],"ends":[]}}"#
            ))
        };
        let hours = hour("a", 1, 2) + &hour("b", 3, 4);
        let expected = r#"[{'filename': "x/1", 'computer': "a", 'machine': "b"}, {'filename': "x/1", 'computer': "b", 'machine': "b"}]"#;
        assert_eq!(
            called("machines", 2, &[Some(&hours), None]),
            [Some(expected.to_owned())]
        );
        let told = ["x/1", "a", "System", "2", "", "", ""].map(item).concat();
        let expected = r#"[{'filename': "x/1", 'computer': "a", 'machine': "a"}]"#;
        assert_eq!(called("machines", 2, &[None, Some(&told)]), [Some(expected.to_owned())]);
        let names = item(r#"name [["pc","S-1-5-21-1","D","anna","created",7,null],3,[9,5]]"#);
        let expected = r#"[{'computer': "pc", 'user_sid': "S-1-5-21-1", 'user_name': "D\\anna", 'first_seen': 5, 'last_seen': 9, 'is_renamed': false, 'name_source': "created"}]"#;
        assert_eq!(
            called("account_names", 1, &[Some(&names), None]),
            [Some(expected.to_owned()), Some("[]".to_owned())]
        );
    }

    #[test]
    fn user_data_is_one_element_with_attributes_or_all() {
        let json = r##"{"X": {"#attributes": {"xmlns": "u"}, "A": "q\"\\", "B": null, "C": {"d": 1}}}"##;
        let fields = r##"{"#attributes"="{\"xmlns\":\"u\"}", "A"="q\"\\", "B"=NULL, "C"="{\"d\":1}"}"##;
        let expected = format!(r#"{{'element': "X", 'attributes': {{"xmlns"="u"}}, 'fields': {fields}}}"#);
        assert_eq!(called("user_data_fields", 1, &[Some(json)]), [Some(expected)]);
        let two = r#"{'element': "A", 'attributes': NULL, 'fields': {"A"="1", "B"="2"}}"#;
        let rows = [Some(r#"{"A": "1", "B": "2"}"#), Some("[1]"), Some("{"), None];
        let nothing = "{'element': NULL, 'attributes': NULL, 'fields': NULL}";
        let expected = [two, nothing, nothing, nothing].map(|text| Some(text.to_owned()));
        assert_eq!(called("user_data_fields", 1, &rows), expected);
        let machine = |row: &[Option<&str>]| called("other_machine", 3, row).remove(0);
        assert_eq!(
            machine(&[Some("FS01\\IPC$"), None, Some("windows")]).as_deref(),
            Some("FS01")
        );
        assert_eq!(machine(&[Some("PC"), Some("pc"), Some("windows")]), None);
    }
}
