//! Messages and reports from archives.

use super::*;

/// How many messages each log of an archive has.
fn messages_of(archive: &[u8]) -> Vec<usize> {
    let storage = Memory::default().with("a.zip", archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    let table = Table::from(Options::default());
    let column = table.schema().index_of("message").expect("a column");
    let finder = MessageFinder::new("LocaleMetaData/{log}_*.[Mm][Tt][Aa]", 64 << 20);
    let mut found = vec![0; paths.len()];
    let scan = Arc::new(FileScan::new(
        Arc::new(Scan::new(table, &[column])),
        paths,
        Some(finder),
    ));
    let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
    while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
        found[batch.file] += batch.rows.num_rows() - batch.rows.column(0).null_count();
    }
    found
}

#[test]
fn messages_are_found_whatever_case_and_slashes_names_have() {
    let log = sample("DC01-System.evtx");
    let messages = sample("LocaleMetaData/DC01-System_1033.MTA");
    for (own, beside) in [
        ("DC01-System.evtx", "LocaleMetaData/DC01-System_1033.MTA"),
        ("x\\DC01-System.evtx", "x\\LocaleMetaData\\DC01-System_1033.MTA"),
        (
            "C:\\Logs\\DC01-System.evtx",
            "C:\\Logs\\LocaleMetaData\\DC01-System_1033.MTA",
        ),
        ("X/DC01-SYSTEM.EVTX", "X/LOCALEMETADATA/DC01-SYSTEM_1033.MTA"),
        ("X/DC01-SYSTEM.EVTX", "x\\localemetadata\\dc01-system_1033.mta"),
    ] {
        let archive = craft(&[
            stored(b"LocaleMetaDatb/", b""),
            stored(own.as_bytes(), &log),
            stored(beside.as_bytes(), &messages),
        ]);
        assert_eq!(messages_of(&archive), [9], "{own}");
    }
}

#[test]
fn messages_and_reports_come_out_of_archives() {
    let log = sample("DC01-System.evtx");
    let messages = sample("LocaleMetaData/DC01-System_1033.MTA");
    let archive = zip(&[
        ("x/DC01-System.evtx", &log, deflated()),
        ("x/LocaleMetaData/DC01-System_1033.MTA", &messages, deflated()),
        ("y/DC01-System.evtx", &log, deflated()),
    ]);
    let storage = Memory::default().with("a.zip", &archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    assert_eq!(messages_of(&archive), [9, 0]);
    let mut report = ReportScan::new(FileReport::default(), paths, &[0]).thread();
    let mut rows = 0;
    while let Some(batch) = report.next(&storage, Interrupt::NEVER).expect("a report") {
        rows += batch.rows.num_rows();
    }
    assert_eq!(rows, 2);
}
