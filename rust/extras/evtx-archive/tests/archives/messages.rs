//! Messages and reports from archives.

use evtx_extras::{Extras, MessageFiles};

use super::*;

/// How many messages each log of an archive has.
fn messages_of(archive: &[u8]) -> Vec<usize> {
    let storage = Memory::default().with("a.zip", archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    let table = Extras::default().of(Table::from(Options::default()), None);
    let column = table.schema().index_of("message").expect("a column");
    let finder = MessageFiles::new("LocaleMetaData/{log}_*.[Mm][Tt][Aa]", 64 << 20);
    let mut found = vec![0; paths.len()];
    let scan = Arc::new(FileScan::new(
        Arc::new(Scan::new(table, &[column])),
        paths,
        Some(Box::new(finder)),
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

/// The messages of the log of an archive, and where they are from without the folder.
fn sources_of(archive: &[u8]) -> Vec<(Option<String>, Option<String>)> {
    let storage = Memory::default().with("a.zip", archive);
    let paths = paths(&storage, "a.zip", &Archives::default()).expect("paths");
    let extras = Extras {
        message_source: true,
        ..Extras::default()
    };
    let table = extras.of(Table::from(Options::default()), None);
    let columns = ["message", "message_source"].map(|name| table.schema().index_of(name).expect("a column"));
    let finder = MessageFiles::new("LocaleMetaData/{log}_*.[Mm][Tt][Aa]", 64 << 20);
    let scan = Arc::new(FileScan::new(
        Arc::new(Scan::new(table, &columns)),
        paths,
        Some(Box::new(finder)),
    ));
    let mut worker = Worker::new(&scan, MakeArrays::CHECKED);
    let mut found = Vec::new();
    while let Some(batch) = worker.next(&storage, Interrupt::NEVER).expect("rows") {
        let [messages, sources] = [0, 1].map(|column| {
            let texts = batch
                .rows
                .column(column)
                .as_any()
                .downcast_ref::<StringViewArray>()
                .expect("texts");
            texts
                .iter()
                .map(|text| text.map(|text| text.replace("a.zip/LocaleMetaData/DC01-System", "")))
                .collect::<Vec<_>>()
        });
        found.extend(messages.into_iter().zip(sources));
    }
    found
}

/// Anyone can put files beside a log: what they say counts only where nothing contradicts it, and each names its file.
#[test]
fn files_of_one_language_that_disagree_are_contested() {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let sound = sample("LocaleMetaData/DC01-System_1033.MTA");
    let with = |new: &str| {
        let (old, new) = (utf16("service"), utf16(new));
        let mut bytes = sound.clone();
        while let Some(at) = bytes.windows(old.len()).position(|window| window == old) {
            bytes[at..at + old.len()].copy_from_slice(&new);
        }
        bytes
    };
    let (forged, damaged) = (with("SERVICE"), sound[..40].to_vec());
    let content = |kind: char| match kind {
        't' => &sound,
        'f' => &forged,
        _ => &damaged,
    };
    // The files, and which of them each message is from; or that those that the forged one changes have none.
    for (files, expected) in [
        (&[("_1033.MTA", 't')][..], Ok(("_1033.MTA", 't'))),
        (&[("_1033.MTA", 't'), ("_0.MTA", 'f')], Ok(("_1033.MTA", 't'))),
        (&[("_1031.MTA", 't'), ("_0.MTA", 'f')], Ok(("_1031.MTA", 't'))),
        (&[("_0.MTA", 'f')], Ok(("_0.MTA", 'f'))),
        (&[("_1.MTA", 'f'), ("_1033.MTA", 't')], Ok(("_1033.MTA", 't'))),
        (&[("_2_1033.MTA", 'f'), ("_1033.MTA", 't')], Ok(("_1033.MTA", 't'))),
        (&[("_01033.MTA", 'd'), ("_1033.MTA", 't')], Ok(("_1033.MTA", 't'))),
        (&[("_1033.MTA", 'd'), ("_1031.MTA", 't')], Ok(("_1031.MTA", 't'))),
        (&[("_01033.MTA", 't'), ("_1033.MTA", 't')], Ok(("_01033.MTA", 't'))),
        (&[("_01033.MTA", 'f'), ("_1033.MTA", 't')], Err("_01033.MTA, _1033.MTA")),
        (&[("_1033.MTA", 't'), ("_1033.mta", 'f')], Err("_1033.MTA, _1033.mta")),
        (&[("_0.MTA", 't'), ("_00.MTA", 'f')], Err("_0.MTA, _00.MTA")),
        (&[("_1033.MTA", 'd'), ("_0.MTA", 'f')], Ok(("", 'd'))),
        (&[("_2_1033.MTA", 'f')], Ok(("", 'd'))),
    ] {
        let names: Vec<_> = files
            .iter()
            .map(|(name, _)| format!("LocaleMetaData/DC01-System{name}"))
            .collect();
        let entries = names
            .iter()
            .zip(files)
            .map(|(name, (_, kind))| stored(name.as_bytes(), content(*kind)));
        let log = sample("DC01-System.evtx");
        let all: Vec<_> = entries.chain([stored(b"DC01-System.evtx", &log)]).collect();
        let found = sources_of(&craft(&all));
        let messages = || found.iter().filter_map(|(message, _)| message.as_deref());
        let of_service = messages().filter(|message| message.contains("service")).count();
        let of_forged = messages().filter(|message| message.contains("SERVICE")).count();
        let mut sources: Vec<_> = found.iter().filter_map(|(_, source)| source.clone()).collect();
        sources.sort();
        sources.dedup();
        match expected {
            Ok((_, 'd')) => assert_eq!((messages().count(), sources), (0, vec![]), "{files:?}"),
            Ok((name, kind)) => {
                assert_eq!(messages().count(), 9, "{files:?}");
                assert_eq!((of_service > 0, of_forged > 0), (kind == 't', kind == 'f'), "{files:?}");
                assert_eq!(sources, [format!("file: {name}")], "{files:?}");
            }
            Err(paths) => {
                let contested = format!("contested: {paths}");
                assert_eq!((of_service, of_forged), (0, 0), "{files:?}");
                assert_eq!(messages().count(), 1, "{files:?}");
                let of_none = found.iter().filter(|(message, _)| message.is_none());
                let sources: Vec<_> = of_none.filter_map(|(_, source)| source.as_deref()).collect();
                assert_eq!(sources, vec![contested; 8], "{files:?}");
            }
        }
    }
}
