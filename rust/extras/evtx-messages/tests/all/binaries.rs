//! Binaries of providers: crafted PE files with manifests and tables, in one file or two, and real ones.
//!
//! Set `EVTX_BINARIES` to a folder of Windows binaries to read them all.

use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_messages::binary::Binary;
use evtx_messages::provider::{Known, ProviderFile, Rows};
use evtx_messages::registry::{Registration, Registry, files_of};
use evtx_messages::row::{Guid, guid_of_text};
use evtx_messages::*;

use super::common::{Pe, manifest, message_table};

const GUID: &str = "{12345678-9abc-def0-1234-56789abcdef0}";

fn file(path: &str, pe: &[u8]) -> ProviderFile {
    ProviderFile::new(path, Binary::read(pe.to_vec(), Interrupt::NEVER).expect("a binary"))
}

fn rows_of(files: impl Into<Vec<ProviderFile>>, registry: &Registry) -> Vec<MessageRow> {
    let known = Known {
        registry,
        interrupt: Interrupt::NEVER,
    };
    let mut rows = Rows::new(files.into(), known).expect("no interrupt");
    std::iter::from_fn(|| rows.next(known).expect("no interrupt")).collect()
}

fn texts() -> Vec<(u32, &'static str)> {
    vec![
        (0xb000_0001, "Event %1 of kind %2\r\n"),
        (0x5000_0004, "Information\r\n"),
        (0x7000_0001, "The task\r\n"),
        (0x1000_0001, "The keyword\r\n"),
        (0xd000_0001, "interactive\r\n"),
        (0x0000_0729, "Impersonation\r\n"),
    ]
}

fn guid() -> Guid {
    guid_of_text(GUID).expect("a GUID")
}

#[test]
fn a_manifest_and_its_texts_may_be_in_two_files() {
    let table = message_table(&texts());
    let manifest = manifest(guid());
    for is_64_bit in [false, true] {
        let one = Pe {
            is_64_bit,
            manifest: Some(&manifest),
            tables: &[(1033, &table)],
        }
        .bytes();
        let resource = Pe {
            is_64_bit,
            manifest: Some(&manifest),
            tables: &[],
        }
        .bytes();
        let mui = Pe {
            is_64_bit,
            manifest: None,
            tables: &[(1033, &table)],
        }
        .bytes();
        let alone = rows_of([file(r"C:\x.dll", &one)], &Registry::default());
        let pair = [file(r"C:\x.dll", &resource), file(r"C:\en-US\X.dll.mui", &mui)];
        assert_eq!(pair[0].location, pair[1].location);
        let mut apart = rows_of(pair, &Registry::default());
        apart.iter_mut().for_each(|row| row.file = alone[0].file.clone());
        assert_eq!(alone, apart);

        let event = &alone[0];
        assert_eq!((event.provider.as_deref(), event.guid), (None, Some(guid())));
        assert_eq!(
            (event.event_id, event.version, event.qualifiers),
            (Some(1), Some(2), None)
        );
        assert_eq!(event.text.as_deref(), Some("Event %1 of kind %2\r\n"));
        assert_eq!(event.language.as_deref(), Some("en-US"));
        assert_eq!(event.channel.as_deref(), Some("Test/Operational"));
        assert_eq!(
            (event.level.as_deref(), event.task.as_deref()),
            (Some("Information"), Some("The task"))
        );
        assert_eq!(
            event.opcode.as_deref(),
            Some("Info"),
            "the name, because it has no message"
        );
        assert_eq!(event.keywords.to_vec(), ["The keyword".into()]);
        let fields: Vec<_> = event
            .fields
            .iter()
            .map(|field| (&*field.name, field.in_type, field.out_type))
            .collect();
        assert_eq!(fields, [("Name", 1, 1), ("Kind", 8, 8)]);
        let map = ValueMap {
            name: "Kinds".into(),
            is_bit_map: false,
            entries: vec![(2, "interactive\r\n".into())],
        };
        assert_eq!(
            (event.fields[1].map.as_deref(), event.maps.to_vec()),
            (Some("Kinds"), vec![Arc::new(map)])
        );
        let parameter = &alone[1];
        assert_eq!(
            (parameter.kind, parameter.message_id),
            (MessageKind::Parameter, Some(0x729))
        );
        assert_eq!(alone.len(), 2);
    }
}

#[test]
fn the_registry_says_whose_a_classic_table_is() {
    let table = message_table(&[(0x4000_0007, "Classic %1\r\n")]);
    let german = message_table(&[(0x4000_0007, "Klassisch %1\r\n")]);
    let pe = Pe {
        is_64_bit: true,
        manifest: None,
        tables: &[(1033, &table), (1031, &german)],
    }
    .bytes();
    let files = || [file("/mnt/Windows/System32/old.DLL", &pe)];
    let unknown = rows_of(files(), &Registry::default());
    assert_eq!(unknown.len(), 2);
    assert_eq!(
        (unknown[0].kind, unknown[0].provider.as_deref()),
        (MessageKind::Text, None)
    );
    assert_eq!((unknown[0].event_id, unknown[0].qualifiers), (Some(7), Some(0x4000)));

    let mut registry = Registry::default();
    for (name, message_files, parameter_files) in [
        ("Old", r"%SystemRoot%\System32\Old.dll;x.dll", ""),
        ("New", "", "old.dll"),
    ] {
        registry
            .add(Registration {
                name: name.into(),
                message_files: files_of(message_files),
                parameter_files: files_of(parameter_files),
                is_classic: true,
                ..Registration::default()
            })
            .expect("there is room");
    }
    registry.locate(&files()[0].location);
    let known = rows_of(files(), &registry);
    let seen: Vec<_> = known
        .iter()
        .map(|row| {
            (
                row.kind.name(),
                row.provider.as_deref().unwrap_or(""),
                row.language.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("event", "Old", Some("en-US")),
            ("parameter", "New", Some("en-US")),
            ("event", "Old", Some("de-DE")),
            ("parameter", "New", Some("de-DE")),
        ]
    );
}

#[test]
fn only_the_files_that_the_registry_names_speak_for_a_provider() {
    let pe = |text| {
        let table = message_table(&[(0xb000_0001, text), (0x0000_0729, text)]);
        let manifest = manifest(guid());
        let pe = Pe {
            is_64_bit: true,
            manifest: Some(&manifest),
            tables: &[(1033, &table)],
        };
        pe.bytes()
    };
    let (own, evil) = (
        pe("An account failed to log on"),
        pe("A scheduled health check found nothing at all"),
    );
    let texts = |files: &[(&str, &[u8])], registered: &str| {
        let mut registry = Registry::default();
        if !registered.is_empty() {
            let registration = Registration {
                name: "Test-Provider".into(),
                guid: Some(guid()),
                resource_files: files_of(registered),
                message_files: files_of(registered),
                ..Registration::default()
            };
            registry.add(registration).expect("there is room");
        }
        let files: Vec<_> = files.iter().map(|(path, pe)| file(path, pe)).collect();
        files.iter().for_each(|file| registry.locate(&file.location));
        let rows: Vec<_> = files.into_iter().flat_map(|file| rows_of([file], &registry)).collect();
        let of = |kind: MessageKind| {
            let rows = rows.iter().filter(move |row| row.kind == kind);
            rows.map(|row| row.file.to_string()).collect::<Vec<_>>()
        };
        [MessageKind::Event, MessageKind::Parameter, MessageKind::Text].map(of)
    };
    let files = [("System32/own.dll", &*own), ("System32/zz_evil.dll", &*evil)];
    let [events, parameters, others] = texts(&files, r"%SystemRoot%\system32\own.dll");
    assert_eq!([&events, &parameters], [&["System32/own.dll"]; 2]);
    assert_eq!(
        others, ["System32/zz_evil.dll"; 2],
        "they are listed, but speak for nobody"
    );
    let [events, parameters, others] = texts(&files, "");
    let both = ["System32/own.dll", "System32/zz_evil.dll"];
    assert_eq!(
        (&events[..], &parameters[..], others.len()),
        (&both.map(String::from)[..], &both.map(String::from)[..], 0)
    );
    // A file of the same name in another folder.
    let files = [("a/System32/own.dll", &*own), ("a/Users/own.dll", &*evil)];
    assert_eq!(
        texts(&files, r"%SystemRoot%\system32\own.dll")[0],
        ["a/System32/own.dll"]
    );
    assert_eq!(
        texts(&files[1..], r"%SystemRoot%\system32\own.dll")[0],
        ["a/Users/own.dll"]
    );
    // A provider that the registry has without a file.
    assert!(texts(&files[..1], ";")[0].is_empty());
}

#[test]
fn damaged_binaries_end() {
    let table = message_table(&texts());
    let manifest = manifest(guid());
    let pe = Pe {
        is_64_bit: true,
        manifest: Some(&manifest),
        tables: &[(1033, &table)],
    }
    .bytes();
    assert!(matches!(
        Binary::read(b"not a binary".to_vec(), Interrupt::NEVER),
        Err(Error::NotABinary)
    ));
    let stop = || true;
    assert!(matches!(
        Binary::read(pe.clone(), Interrupt::new(&stop)),
        Err(Error::Interrupted(_))
    ));
    let registry = Registry::default();
    let read = |pe: &[u8]| {
        if let Ok(binary) = Binary::read(pe.to_vec(), Interrupt::NEVER) {
            assert!(rows_of([ProviderFile::new("x.dll", binary)], &registry).len() < 100);
        }
    };
    for end in 0..pe.len() {
        read(&pe[..end]);
    }
    for at in 0..pe.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = pe.clone();
            damaged[at] = byte;
            read(&damaged);
        }
    }
}

#[test]
fn a_million_messages_are_read_once() {
    let messages: Vec<_> = (0..1_000_000).map(|id| (id, "")).collect();
    let table = message_table(&messages);
    let mut pe = Pe {
        is_64_bit: true,
        manifest: None,
        tables: &[(1033, &table)],
    }
    .bytes();
    let binary = Binary::read(pe.clone(), Interrupt::NEVER).expect("a binary");
    assert_eq!(binary.tables[0].ids().len(), 1_000_000);
    let rows = rows_of([ProviderFile::new("x.dll", binary)], &Registry::default()).len();
    assert_eq!(rows, 1_000_000);
    pe.truncate(pe.len() / 2);
    let problems = Binary::read(pe, Interrupt::NEVER).expect("a binary").problems;
    assert_eq!(problems.len(), 1);
}

#[test]
fn damage_within_a_resource_is_a_problem() {
    let mut table = message_table(&[(1, "one"), (2, "two")]);
    let last = table.len() - 12;
    table[last..last + 2].copy_from_slice(&0xffff_u16.to_le_bytes());
    let guid = guid_of_text("54849625-5478-4994-a5ba-3e3b0328c30d").expect("a GUID");
    let mut manifest = manifest(guid);
    manifest.truncate(manifest.len() - 4);
    let pe = Pe {
        is_64_bit: true,
        manifest: Some(&manifest),
        tables: &[(1033, &table)],
    };
    let binary = Binary::read(pe.bytes(), Interrupt::NEVER).expect("a binary");
    assert_eq!(binary.tables[0].ids().len(), 1, "the first message is there");
    let problems: Vec<_> = binary.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2);
    for (problem, what) in problems
        .iter()
        .zip(["a manifest at offset ", "a table of messages at offset "])
    {
        assert!(
            problem.starts_with(what) && problem.ends_with("only a part of it can be read"),
            "{problem}"
        );
    }
}

#[test]
fn real_binaries_are_read() {
    let Some(folder) = std::env::var_os("EVTX_BINARIES") else {
        eprintln!("skipped: EVTX_BINARIES is not set");
        return;
    };
    let (mut files, mut all, mut with_text) = (0, 0, 0);
    let mut writer = CatalogWriter::new(u64::MAX);
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let Ok(binary) = Binary::read(std::fs::read(&path).unwrap_or_default(), Interrupt::NEVER) else {
            continue;
        };
        assert_eq!(binary.problems, [], "{}", path.display());
        assert!(
            !binary.tables.iter().any(|table| table.is_damaged),
            "{}",
            path.display()
        );
        assert!(
            !binary.manifests.iter().any(|manifest| manifest.is_damaged),
            "{}",
            path.display()
        );
        files += 1;
        for row in rows_of(
            [ProviderFile::new(&path.to_string_lossy(), binary)],
            &Registry::default(),
        ) {
            all += 1;
            with_text += usize::from(row.text.is_some());
            writer.push(&row).expect("a row");
        }
    }
    let catalog = writer.finish(Interrupt::NEVER).expect("a catalog");
    eprintln!(
        "{files} files, {all} rows, {with_text} with a text, {} bytes",
        catalog.len()
    );
    assert!(all > 0);
}

/// The files in `test/data/messages`, which tests in SQL read. `EVTX_TEST_DATA=write` writes them.
#[test]
fn the_files_of_other_tests_are_these() {
    let (manifest, table) = (manifest(guid()), message_table(&texts()));
    let pe = |manifest, tables| {
        let is_64_bit = true;
        let pe = Pe {
            is_64_bit,
            manifest,
            tables,
        };
        pe.bytes()
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../test/data/messages");
    for (name, bytes) in [
        ("x.dll", pe(Some(&manifest), &[])),
        ("en-US/x.dll.mui", pe(None, &[(1033, &table)])),
        ("texts.messages", catalog()),
    ] {
        let path = folder.join(name);
        if std::env::var("EVTX_TEST_DATA").is_ok_and(|value| value == "write") {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(&path, &bytes).expect("a file");
        }
        assert!(std::fs::read(&path).is_ok_and(|known| known == bytes), "{name}");
    }
}

/// A catalog of texts for the samples.
fn catalog() -> Vec<u8> {
    let mut catalog = CatalogWriter::new(u64::MAX);
    for (provider, event_id, version, text) in [
        (
            "microsoft-windows-security-auditing",
            4624,
            None,
            "Logon of %6 with type %9%n%tLevel: %21, handle %8.%0",
        ),
        (
            "Microsoft-Windows-Security-Auditing",
            4625,
            Some(0),
            "Failed: %10 for %6, %99",
        ),
        ("Service Control Manager", 7036, None, "The %1 is now %2 and %%7000."),
        ("Service Control Manager", 7045, None, ""),
    ] {
        let row = MessageRow {
            provider: Some(provider.into()),
            event_id: Some(event_id),
            version,
            text: Some(text.into()),
            ..MessageRow::new(MessageKind::Event)
        };
        catalog.push(&row).expect("a row");
    }
    let parameter = MessageRow {
        provider: Some("Service Control Manager".into()),
        message_id: Some(7000),
        text: Some("well".into()),
        ..MessageRow::new(MessageKind::Parameter)
    };
    catalog.push(&parameter).expect("a row");
    catalog.finish(Interrupt::NEVER).expect("a catalog")
}
