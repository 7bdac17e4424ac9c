//! Logs that only some programs find in an archive: they are read, or a row tells of them.

use super::*;
use crate::packed::*;
use crate::tars::{member, tar};

#[test]
fn names_are_those_of_files_in_windows() {
    let log = &sample("dirty.evtx")[..];
    let names = [
        "x/a.evtx.",
        "x/a.evtx ",
        "x/b.evtx . ..",
        "x\\c.evtx:stream",
        "d.EVTX::$DATA",
        "C:e.evtx",
        "f.txt:f.evtx",
    ];
    let others = ["a.evtx.txt", "a.evtx_", "b.evtx:/c", "a.evtxx:b"];
    let all: Vec<_> = names.iter().chain(&others).copied().collect();
    let entries: Vec<_> = all.iter().map(|name| stored(name.as_bytes(), log)).collect();
    let members: Vec<_> = all.iter().map(|name| member(name.as_bytes(), b'0', log)).collect();
    let list: Vec<_> = all.iter().map(|name| (*name, log)).collect();
    for (path, bytes) in [
        ("a.zip", craft(&entries)),
        ("a.tar", tar(&members)),
        ("a.7z", seven_of(&list)),
    ] {
        let storage = Memory::default().with(path, &bytes);
        let rows = read(&storage, path, &Archives::default(), 1).expect("rows");
        let mut whole = names.map(|name| file(&format!("{path}/{name}"), 80, &[]));
        whole.sort();
        assert_eq!(rows, whole);
        for (row, name) in whole.iter().map(|row| (row, &row.0)) {
            assert_eq!(
                read(&storage, name, &Archives::default(), 1).expect("rows"),
                std::slice::from_ref(row)
            );
        }
        let rows = |inner: &str| {
            let rows = read(&storage, &format!("{path}/{inner}"), &Archives::default(), 1).expect("rows");
            rows.into_iter().map(|row| row.1).collect::<Vec<_>>()
        };
        assert_eq!(rows("x/*.evtx"), [80; 4]);
        assert_eq!(rows("x"), [80; 4]);
        assert_eq!(rows("X/b.evtx"), [80]);
    }
    // The rest of a name after a zero, which tar and 7z cannot have; and an archive.
    let inner = craft(&[stored(b"a.evtx", log)]);
    let rows = rows_of(&craft(&[stored(b"a.evtx\0.txt", log), stored(b"b.zip.", &inner)]));
    let told = ": cannot be read: it is an archive inside of an archive, which is not opened";
    assert_eq!(rows[0].1, 80);
    assert_eq!(rows[1..], [file("a.zip/b.zip.", 0, &[told])]);
}
