//! Catalogs: what is written is found again, in any order; damage is an error.

use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_messages::catalog::MAX_MESSAGE;
use evtx_messages::row::guid_of_text;
use evtx_messages::*;

const GUID: &str = "{54849625-5478-4994-a5ba-3e3b0328c30d}";

fn event(provider: &str, event_id: u16, version: Option<u8>, text: &str) -> MessageRow {
    MessageRow {
        provider: Some(provider.into()),
        event_id: Some(event_id),
        version,
        language: Some("en-US".into()),
        text: Some(text.into()),
        ..MessageRow::new(MessageKind::Event)
    }
}

fn parameter(provider: &str, id: u32, text: &str) -> MessageRow {
    MessageRow {
        provider: Some(provider.into()),
        message_id: Some(id),
        text: Some(text.into()),
        ..MessageRow::new(MessageKind::Parameter)
    }
}

fn fields(count: usize) -> Arc<[Field]> {
    let field = |index| Field {
        name: format!("f{index}").into(),
        in_type: 1,
        ..Field::default()
    };
    (0..count).map(field).collect()
}

fn rows_of(catalog: Catalog) -> Vec<MessageRow> {
    contested_rows_of(catalog).map(|(row, _)| row).collect()
}

/// The rows, and whether they are contested.
fn contested_rows_of(catalog: Catalog) -> impl Iterator<Item = (MessageRow, bool)> {
    let mut rows = catalog::Rows::new(catalog);
    std::iter::from_fn(move || rows.next(Interrupt::NEVER).expect("no damage"))
}

fn rows() -> Vec<MessageRow> {
    let map = ValueMap {
        name: "kinds".into(),
        is_bit_map: false,
        entries: vec![(2, "interactive".into())],
    };
    let mapped = Field {
        name: "kind".into(),
        in_type: 8,
        map: Some("kinds".into()),
        ..Field::default()
    };
    vec![
        MessageRow {
            guid: guid_of_text(GUID),
            channel: Some("Security".into()),
            level: Some("Information".into()),
            task: Some("Logon".into()),
            opcode: Some("Info".into()),
            keywords: ["Audit Success".into()].into(),
            fields: [mapped].into(),
            maps: [Arc::new(map)].into(),
            message_id: Some(0xb000_1210),
            ..event("Auditing", 4624, Some(2), "Logon %1, %%1833, %%5, %2")
        },
        MessageRow {
            fields: fields(2),
            ..event("Auditing", 4624, Some(0), "Old logon %2")
        },
        MessageRow {
            qualifiers: Some(0x4000),
            ..event("Classic", 7, None, "Classic %1")
        },
        MessageRow {
            qualifiers: Some(0xc000),
            ..event("classic", 7, None, "Error %1")
        },
        MessageRow {
            language: Some("de-DE".into()),
            ..event("Auditing", 1, Some(0), "Deutsch")
        },
        event("Auditing", 1, Some(0), "English"),
        event("Auditing", 1, Some(0), "English"),
        parameter("AUDITING", 1833, "Impersonation\r\n"),
        MessageRow {
            provider: None,
            guid: guid_of_text(GUID),
            ..event("", 9, None, "By GUID")
        },
        MessageRow {
            provider: None,
            ..event("", 10, None, "Unknown")
        },
    ]
}

fn written<'r>(rows: impl IntoIterator<Item = &'r MessageRow>) -> Vec<u8> {
    let mut writer = CatalogWriter::new(u64::MAX);
    rows.into_iter().try_for_each(|row| writer.push(row)).expect("rows");
    writer.finish(Interrupt::NEVER).expect("a catalog")
}

fn catalog() -> Catalog {
    Catalog::open(written(&rows())).expect("a catalog")
}

fn key(provider: &str, event_id: u16, version: u8, insertions: usize) -> EventKey<'_> {
    EventKey {
        provider,
        guid: None,
        event_id,
        version,
        qualifiers: None,
        insertions,
        names: &[],
    }
}

fn text(catalog: &Catalog, key: EventKey<'_>) -> Option<String> {
    catalog
        .find(&key)
        .expect("no damage")
        .map(|message| message.text.into())
}

#[test]
fn messages_are_found_and_rendered() {
    let catalog = catalog();
    let message = catalog
        .find(&key("auditing", 4624, 2, 1))
        .expect("no damage")
        .expect("a message");
    let mut out = Vec::new();
    let fallback = |id| (id == 5).then_some("fallback".into());
    assert!(message.render(&[Insertion::Text("2")][..], &fallback, &mut out));
    assert_eq!(
        String::from_utf8(out).as_deref(),
        Ok("Logon interactive, Impersonation, fallback, %2")
    );
    assert_eq!(catalog.parameter("Auditing", 1833), Ok(Some("Impersonation\r\n")));
    assert_eq!(catalog.parameter("Auditing", 1834), Ok(None));
    assert_eq!(catalog.parameter("none", 1833), Ok(None));
}

#[test]
fn versions_qualifiers_and_languages_decide() {
    let catalog = catalog();
    let logon = |version, insertions| text(&catalog, key("Auditing", 4624, version, insertions));
    assert_eq!(logon(0, 9).as_deref(), Some("Old logon %2"));
    assert_eq!(logon(2, 0).as_deref(), Some("Logon %1, %%1833, %%5, %2"));
    assert_eq!(
        logon(1, 2).as_deref(),
        Some("Old logon %2"),
        "as many fields as insertions"
    );
    assert_eq!(logon(1, 1), None, "both texts ask for two insertions");
    let classic = |qualifiers| {
        text(
            &catalog,
            EventKey {
                qualifiers,
                ..key("CLASSIC", 7, 0, 1)
            },
        )
    };
    assert_eq!(classic(Some(0x4000)).as_deref(), Some("Classic %1"));
    assert_eq!(classic(Some(0xc000)).as_deref(), Some("Error %1"));
    assert_eq!(classic(Some(0)), None);
    assert_eq!(classic(None).as_deref(), Some("Classic %1"));
    assert_eq!(text(&catalog, key("Auditing", 1, 0, 0)).as_deref(), Some("English"));
}

#[test]
fn the_number_of_insertions_says_more_than_the_version() {
    let rows = [
        event("p", 1, Some(1), "%1 in an old build"),
        event("p", 1, None, "%1 and %2"),
        event("p", 1, None, "%1  and  %2"),
        event("p", 1, None, "%1 and %3"),
        event("p", 1, Some(0), "%1, %2 of another version"),
    ];
    let catalog = Catalog::open(written(&rows)).expect("a catalog");
    let found = |version, insertions| text(&catalog, key("p", 1, version, insertions));
    assert_eq!(found(1, 1).as_deref(), Some("%1 in an old build"));
    assert_eq!(found(1, 2).as_deref(), Some("%1  and  %2"), "the longest");
    assert_eq!(found(1, 3).as_deref(), Some("%1 and %3"));
    assert_eq!(found(0, 2).as_deref(), Some("%1, %2 of another version"));
    assert_eq!(
        found(1, 0).as_deref(),
        Some("%1 in an old build"),
        "as the event has this version"
    );
}

#[test]
fn many_texts_without_a_version_are_those_of_several_providers() {
    let texts: Vec<_> = ["one", "two", "three", "four", "five", "six", "seven %1"]
        .iter()
        .map(|text| event("p", 1, None, text))
        .collect();
    let of = |rows: &[MessageRow]| {
        let catalog = Catalog::open(written(rows)).expect("a catalog");
        text(&catalog, key("p", 1, 1, 1))
    };
    assert_eq!(of(&texts), None);
    let with = |row| of(&[&texts[1..], &[row]].concat());
    let same = event("p", 1, None, r"t%nh%tr e\ne%0");
    assert_eq!(with(same).as_deref(), Some("seven %1"), "only whitespace differs");
    let german = MessageRow {
        language: Some("de-DE".into()),
        ..texts[0].clone()
    };
    assert_eq!(with(german).as_deref(), Some("seven %1"), "another language");
    let known = event("p", 1, Some(1), "known %1");
    assert_eq!(of(&[&texts[..], &[known]].concat()).as_deref(), Some("known %1"));
}

#[test]
fn providers_are_found_by_guid_and_name() {
    let catalog = catalog();
    let guid = guid_of_text(GUID);
    assert_eq!(
        text(
            &catalog,
            EventKey {
                guid,
                ..key("other name", 9, 0, 0)
            }
        )
        .as_deref(),
        Some("By GUID")
    );
    assert_eq!(text(&catalog, key("auditing", 9, 0, 0)).as_deref(), Some("By GUID"));
    assert_eq!(
        text(
            &catalog,
            EventKey {
                guid,
                ..key("Classic", 7, 0, 1)
            }
        )
        .as_deref(),
        Some("Classic %1")
    );
    assert_eq!(
        text(
            &catalog,
            EventKey {
                guid,
                ..key("none", 7, 0, 1)
            }
        ),
        None
    );
    assert_eq!(text(&catalog, key("", 10, 0, 0)), None);
    let alone = Catalog::open(written(&rows()[8..])).expect("a catalog");
    assert_eq!(
        text(
            &alone,
            EventKey {
                guid,
                ..key("any", 9, 0, 0)
            }
        )
        .as_deref(),
        Some("By GUID")
    );
    assert_eq!(rows_of(alone)[0].provider, None);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let rows = rows();
    let bytes = written(&rows);
    assert_eq!(written(rows.iter().rev()), bytes);
    assert_eq!(written(rows.iter().skip(4).chain(&rows[..4])), bytes);
}

#[test]
fn a_catalog_written_from_its_rows_is_the_same() {
    let bytes = written(&rows());
    let catalog = Catalog::open(bytes.clone()).expect("a catalog");
    assert_eq!(catalog.providers().collect::<Vec<_>>(), ["AUDITING", "Classic"]);
    let rows = rows_of(catalog);
    assert_eq!(rows.len(), 8);
    assert_eq!(written(&rows), bytes);
    let names = |row: &MessageRow| [&row.channel, &row.level, &row.task, &row.opcode].map(Option::clone);
    let expected = ["Security", "Information", "Logon", "Info"].map(|name| Some(name.into()));
    assert!(
        rows.iter()
            .any(|row| names(row) == expected && row.keywords == ["Audit Success".into()].into())
    );
}

fn of_file(file: &str, row: MessageRow) -> MessageRow {
    MessageRow {
        file: file.into(),
        ..row
    }
}

#[test]
fn no_text_is_used_that_files_disagree_about() {
    let own = of_file(
        "adtschema.dll",
        event("p", 4625, Some(0), "An account failed to log on. %6"),
    );
    let other = of_file("zz_evil.dll", event("p", 4625, Some(0), "A scheduled health check, %6"));
    let catalog_of = |rows: &[MessageRow]| Catalog::open(written(rows)).expect("a catalog");
    let found = |rows: &[MessageRow]| text(&catalog_of(rows), key("p", 4625, 0, 6));
    let contested = |rows: &[MessageRow]| {
        let rows = contested_rows_of(catalog_of(rows));
        rows.map(|(row, contested)| (row.file, contested)).collect::<Vec<_>>()
    };
    let with = |row: &MessageRow, change: fn(&mut MessageRow)| {
        let mut changed = row.clone();
        change(&mut changed);
        changed
    };
    let message = catalog_of(std::slice::from_ref(&own)).find(&key("p", 4625, 0, 6));
    assert_eq!(&*message.expect("no damage").expect("a message").file, "adtschema.dll");
    let both = [own.clone(), other.clone()];
    assert_eq!(found(&both), None);
    assert_eq!(
        contested(&both),
        [("zz_evil.dll".into(), true), ("adtschema.dll".into(), true)]
    );
    for (change, why) in [
        (
            (|row| row.text = Some("An account failed\r\nto log%non. %6".into())) as fn(&mut MessageRow),
            "whitespace",
        ),
        (|row| row.file = "adtschema.dll".into(), "one file has both"),
        (|row| row.version = Some(1), "another version"),
        (|row| row.text = None, "no text"),
    ] {
        let rows = [own.clone(), with(&other, change)];
        assert!(found(&rows).is_some(), "{why}");
        assert!(contested(&rows).iter().all(|(_, contested)| !contested), "{why}");
    }
    let kinds = [
        with(&own, |row| row.qualifiers = Some(6)),
        with(&other, |row| row.qualifiers = Some(7)),
    ];
    assert!(
        contested(&kinds).iter().all(|(_, contested)| !contested),
        "other kinds of events"
    );
    for (change, why) in [
        (
            (|row| row.text = Some("A check of %5".into())) as fn(&mut MessageRow),
            "another number of values",
        ),
        (|row| row.fields = fields(6), "fields"),
        (
            |row| row.text = Some(format!("{} %6", "longer ".repeat(99)).into()),
            "length",
        ),
        (|row| row.message_id = Some(1), "another ID of the message"),
        (|row| row.language = Some("de-DE".into()), "another language"),
    ] {
        let rows = [own.clone(), with(&other, change)];
        assert_eq!(found(&rows), None, "{why} does not make a text better");
        assert!(contested(&rows).iter().all(|(_, contested)| *contested), "{why}");
    }
    // Texts in several languages are those of one file, or all files have the one that is used.
    let in_language = |file: &str, language: &str, text: &str| MessageRow {
        language: Some(language.into()),
        ..of_file(file, event("p", 4625, Some(0), text))
    };
    for (rows, expected) in [
        (
            &[("a/x.dll", "fr-FR", "oui"), ("a/de-DE/X.dll.mui", "de-DE", "ja")][..],
            Some("ja"),
        ),
        (
            &[
                ("a/x.dll", "fr-FR", "oui"),
                ("a/x.dll", "de-DE", "ja"),
                ("b/x.dll", "de-DE", "ja"),
            ],
            Some("ja"),
        ),
        (
            &[
                ("System32/de-DE/x.dll.mui", "de-DE", "ja"),
                ("SystemResources/x.dll.mun", "en-US", "yes"),
            ],
            Some("yes"),
        ),
        (&[("a/x.dll", "de-DE", "ja"), ("b/x.dll", "en-US", "no")], None),
        // The same text, in whatever language.
        (&[("a/x.dll", "en-US", "yes"), ("b/x.dll", "en-GB", "yes")], Some("yes")),
        // One that has the texts of the other, too, and comes first.
        (
            &[
                ("b/x.dll", "de-DE", "ja"),
                ("a/x.dll", "de-DE", "ja"),
                ("a/x.dll", "en-US", "no"),
            ],
            None,
        ),
    ] {
        let rows: Vec<_> = rows
            .iter()
            .map(|(file, of, text)| in_language(file, of, text))
            .collect();
        assert_eq!(found(&rows).as_deref(), expected, "{rows:?}");
        let is_contested = expected.is_none();
        assert!(
            contested(&rows).iter().all(|(_, contested)| *contested == is_contested),
            "{rows:?}"
        );
    }
    // Those of other languages count, even if they are so many that their texts are not looked at.
    let german = (0..100).map(|text| in_language("a/x.dll", "de-DE", &format!("nein {text}")));
    let mut many: Vec<_> = german.chain([in_language("a/x.dll", "en-US", "no")]).collect();
    assert_eq!(found(&many).as_deref(), Some("no"));
    many.push(in_language("b/x.dll", "fr-FR", "oui"));
    assert_eq!(found(&many), None);
    // The same file a hundred times is one text.
    let copies: Vec<_> = (0..100)
        .map(|nth| in_language(&format!("{nth}/x.dll"), "en-US", "yes"))
        .collect();
    assert_eq!(found(&copies).as_deref(), Some("yes"));
    // A file cannot drown the text of another one in texts of its own.
    let drowned = |count: u32| {
        let many = (0..count).map(|id| {
            let row = of_file("zz_evil.dll", event("p", 4625, Some(0), &format!("{id} %6")));
            MessageRow {
                message_id: Some(id),
                ..row
            }
        });
        many.chain([own.clone()]).collect::<Vec<_>>()
    };
    for count in [1, 63, 64, 5000] {
        let rows = drowned(count);
        assert_eq!(found(&rows), None, "{count}");
        assert!(contested(&rows).iter().all(|(_, contested)| *contested), "{count}");
    }
    let parameters = |texts: &[(&str, &str)]| {
        let rows = texts
            .iter()
            .map(|(file, text)| of_file(file, parameter("p", 1833, text)));
        let catalog = catalog_of(&rows.collect::<Vec<_>>());
        catalog.parameter("p", 1833).map(|found| found.map(str::to_owned))
    };
    assert_eq!(
        parameters(&[("a.dll", "Yes"), ("b.dll", "Yes\r\n")]),
        Ok(Some("Yes".into()))
    );
    assert_eq!(parameters(&[("a.dll", "Yes"), ("b.dll", "No")]), Ok(None));
    let texts: Vec<_> = (0..5000).map(|text| text.to_string()).collect();
    let of_one: Vec<_> = texts.iter().map(|text| ("a.dll", &**text)).collect();
    assert_eq!(parameters(&of_one[..2]), Ok(Some("0".into())), "they are not contested");
    assert_eq!(parameters(&of_one), Ok(None), "they are too many");
}

#[test]
fn qualifiers_do_not_keep_texts_apart_that_an_event_can_have() {
    let own = of_file("services.exe", event("p", 7045, Some(0), "A service was installed: %1"));
    for version in [0, 9] {
        let other = MessageRow {
            qualifiers: Some(16384),
            ..of_file("a.db", event("p", 7045, Some(version), "Nothing happened"))
        };
        let found = |rows: &[&MessageRow]| {
            let catalog = Catalog::open(written(rows.iter().copied())).expect("a catalog");
            let key = EventKey {
                qualifiers: Some(16384),
                ..key("p", 7045, 0, 1)
            };
            text(&catalog, key)
        };
        assert!(found(&[&own]).is_some() && found(&[&other]).is_some());
        assert_eq!(found(&[&own, &other]), None, "{version}");
    }
}

#[test]
fn too_many_texts_of_one_file_are_contested() {
    for (count, is_used) in [(64, true), (65, false)] {
        let rows: Vec<_> = (0..count)
            .map(|text| of_file("a.dll", event("p", 1, Some(0), &format!("text {text:02}"))))
            .collect();
        let catalog = || Catalog::open(written(&rows)).expect("a catalog");
        assert_eq!(text(&catalog(), key("p", 1, 0, 0)).is_some(), is_used, "{count}");
        let mut rows = contested_rows_of(catalog());
        assert!(rows.all(|(_, contested)| contested != is_used), "{count}");
    }
}

#[test]
fn files_of_one_place_and_other_blocks_do_not_decide_a_contest() {
    let found = |rows: &[MessageRow]| {
        let catalog = Catalog::open(written(rows)).expect("a catalog");
        let key = EventKey {
            guid: guid_of_text(GUID),
            ..key("A", 1, 0, 9)
        };
        text(&catalog, key)
    };
    let row = |file: &str, text: &str| MessageRow {
        guid: guid_of_text(GUID),
        ..of_file(file, event("A", 1, Some(0), text))
    };
    let real = || row("Windows/System32/a.dll", "Logon %1");
    assert_eq!(found(&[real()]).as_deref(), Some("Logon %1"));
    for file in [
        "Windows/System32/A.DLL",
        "Windows/System32/a.dll.mui",
        "Windows/System32/zz-ZZ/a.dll.mui",
    ] {
        assert_eq!(found(&[real(), row(file, "Nothing happened at all")]), None, "{file}");
        assert!(found(&[real(), row(file, "Logon%n%1")]).is_some(), "{file}");
    }
    // Without a GUID, it is another provider of the same name.
    let by_name = of_file("w.db", event("A", 1, Some(0), "Nothing"));
    assert_eq!(found(&[real(), row("x.dll", "Evil"), by_name]), None);
    for (one, other) in [
        ("Logon%0 denied", "Logon denied"),
        ("id %10 x", "id %1 0 x"),
        ("%%t2", "%2"),
    ] {
        assert_eq!(found(&[row("x.dll", one), row("y.dll", other)]), None, "{one}");
    }
}

#[test]
fn fields_are_matched_by_name() {
    let named = |names: &[&str]| {
        let field = |name: &&str| Field {
            name: (*name).into(),
            in_type: 1,
            ..Field::default()
        };
        names.iter().map(field).collect::<Arc<[_]>>()
    };
    let sysmon = MessageRow {
        fields: named(&["RuleName", "Image", "OriginalFileName", "CommandLine"]),
        ..event("p", 1, Some(5), "%2 ran %4")
    };
    let shown = |row: &MessageRow, names: &[&str]| {
        let catalog = Catalog::open(written([row])).expect("a catalog");
        let values: Vec<_> = names.iter().map(|name| format!("<{name}>")).collect();
        let insertions: Vec<_> = values.iter().map(|value| Insertion::Text(value)).collect();
        let found = catalog.find(&EventKey {
            names,
            ..key("p", 1, 5, names.len())
        });
        found.expect("no damage").map(|message| {
            let mut out = Vec::new();
            message.render(&insertions[..], &|_| None, &mut out);
            String::from_utf8(out).expect("UTF-8")
        })
    };
    let same = ["RuleName", "image", "OriginalFileName", "CommandLine"];
    assert_eq!(shown(&sysmon, &same).as_deref(), Some("<image> ran <CommandLine>"));
    let old = ["Image", "CommandLine"];
    assert_eq!(shown(&sysmon, &old).as_deref(), Some("<Image> ran <CommandLine>"));
    let asks = MessageRow {
        text: Some("%2 is %3, ran %4".into()),
        ..sysmon.clone()
    };
    assert_eq!(shown(&asks, &old), None, "it lacks OriginalFileName");
    let unknown = ["", "", "", ""];
    assert_eq!(shown(&asks, &unknown).as_deref(), Some("<> is <>, ran <>"));
    // The text with the names of the event comes before any other, however good the rest of it is.
    let plain = MessageRow {
        fields: named(&old),
        ..event("p", 1, Some(4), "%1 of an older version ran %2")
    };
    let catalog = Catalog::open(written([&sysmon, &plain])).expect("a catalog");
    let found = catalog.find(&EventKey {
        names: &old,
        ..key("p", 1, 5, 2)
    });
    let found = found.expect("no damage").expect("a message");
    assert_eq!(&*found.text, "%1 of an older version ran %2");
}

#[test]
fn writing_can_be_interrupted() {
    let mut writer = CatalogWriter::new(u64::MAX);
    rows().iter().for_each(|row| writer.push(row).expect("a row"));
    let stop = || true;
    let error = writer.finish(Interrupt::new(&stop));
    assert!(matches!(error, Err(Error::Interrupted(_))));
}

#[test]
fn large_texts_are_refused() {
    let mut writer = CatalogWriter::new(u64::MAX);
    let row = event("p", 1, None, &"x".repeat(MAX_MESSAGE + 1));
    let error = writer.push(&row).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "the text of a message at offset 0 would take 1048577 bytes, but at most 1048576 are allowed"
    );
}

#[test]
fn a_catalog_that_is_too_large_names_the_file() {
    let mut writer = CatalogWriter::new(2 << 20);
    let row = |file: &str, id: u32| of_file(file, parameter("p", id, &format!("{id:0200}")));
    writer.push(&row("small.dll", 1)).expect("there is room");
    let pushed = (0..1 << 16).try_for_each(|id| writer.push(&row("langs.dll", id)));
    let error = pushed.expect_err("too large").to_string();
    assert!(error.contains("The file with most of them is 'langs.dll'"), "{error}");
    let mut writer = CatalogWriter::new(u64::MAX);
    let rows = (0..1 << 17).map(|id| row(if id % 3 == 0 { "some.dll" } else { "most.dll" }, id));
    rows.for_each(|row| writer.push(&row).expect("there is room"));
    let error = writer.finish(Interrupt::NEVER).expect_err("too large").to_string();
    assert!(error.starts_with("the messages of p would take "), "{error}");
    assert!(error.contains("'most.dll'"), "{error}");
}

#[test]
fn damage_is_an_error_or_harmless() {
    let bytes = written(&rows());
    assert!(matches!(Catalog::open(&b"not this"[..]), Err(Error::NotACatalog(_))));
    let mut other = bytes.clone();
    other[8] = 3;
    assert_eq!(
        Catalog::open(other).expect_err("version").to_string().split(':').next(),
        Some("the catalog of messages has version 3, but this version of the extension reads version 2")
    );
    for end in 0..bytes.len() {
        let found = Catalog::open(&bytes[..end]).and_then(|catalog| catalog.find(&key("Classic", 7, 0, 1)));
        assert!(found.is_err(), "cut at {end}");
    }
    let mut errors = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        let found = Catalog::open(damaged).and_then(|catalog| {
            catalog.find(&key("Classic", 7, 0, 1))?;
            catalog.find(&key("Auditing", 1, 0, 1))
        });
        errors += usize::from(found.is_err());
    }
    assert!(errors + 8 > bytes.len(), "{errors} of {}", bytes.len());
}

#[test]
fn threads_share_a_catalog() {
    let catalog = Arc::new(catalog());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(catalog.find(&key("Classic", 7, 0, 1)).expect("no damage").is_some()));
        }
    });
}
