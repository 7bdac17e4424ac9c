//! Correlations: the rows that `test/sql/sigma_correlations.test` expects.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, StringArray};
use evtx_arrow::{Comparison, Expression, Literal, MakeArrays};
use evtx_format::Interrupt;
use evtx_query::{Arguments, Query};
use evtx_scan::{ArgumentValue, FileKind, LocalStorage, Worker, expand};

fn titles(folders: &[&str], conditions: &[Expression]) -> BTreeMap<String, (usize, usize)> {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples");
    let mut arguments = Arguments::new(Query::Matches);
    let rules = Query::Matches.argument("rules").expect("an argument");
    let folders = folders.iter().map(|folder| format!("{samples}/{folder}")).collect();
    arguments
        .set(rules, ArgumentValue::List(folders), "test")
        .expect("folders");
    let pattern = format!("{samples}/*.evtx");
    let paths = expand(&LocalStorage, &pattern, FileKind::Logs, "test", Interrupt::NEVER).expect("logs");
    let call = arguments
        .call(paths, 2, u64::MAX, &LocalStorage, "test", Interrupt::NEVER)
        .expect("a call");
    let all: Vec<usize> = (0..call.table.schema().fields().len()).collect();
    let (scan, _) = call.scan(&all, conditions, u64::MAX);
    let scan = Arc::new(scan);
    let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
    let mut found = BTreeMap::new();
    while let Some(batch) = worker.next(&LocalStorage, Interrupt::NEVER).expect("rows") {
        let rows = &batch.rows;
        let titles = rows
            .column_by_name("rule_title")
            .expect("a column")
            .as_dictionary::<Int32Type>();
        let titles = titles.downcast_dict::<StringArray>().expect("texts");
        let bursts = rows.column_by_name("correlation").expect("a column");
        for (row, title) in titles.into_iter().enumerate() {
            let title = title.unwrap_or("none").to_owned();
            let count: &mut (usize, usize) = found.entry(title).or_default();
            count.0 += 1;
            count.1 += usize::from(bursts.is_valid(row));
        }
    }
    found
}

#[test]
fn bursts_are_rows() {
    let found = titles(&["correlations"], &[]);
    eprintln!("{found:?}");
    assert_eq!(found["Logon after a Failed Logon"], (2, 2));
    assert_eq!(found["Many Failed Logons of an Account"], (13, 13));
    assert_eq!(found["Password Spray"], (1, 1));
    // rule_level >= 'high'
    let sides = [
        Expression::Column(2),
        Expression::Constant(Literal::Text("high".into())),
    ];
    let high = Expression::Compare(Comparison::GreaterOrEqual, Box::new(sides));
    let found = titles(&["rules", "correlations"], &[high]);
    eprintln!("{found:?}");
    let rules = found.iter().filter(|(title, _)| *title != "none");
    let rules: Vec<_> = rules.map(|(title, (rows, _))| (title.as_str(), *rows)).collect();
    let expected = [
        ("Logon after a Failed Logon", 2),
        ("Password Spray", 1),
        ("PowerShell with a Hidden Window", 1),
        ("Security Log Cleared", 1),
        ("Service with a Binary in ProgramData", 2),
    ];
    assert_eq!(rules, expected);
}
