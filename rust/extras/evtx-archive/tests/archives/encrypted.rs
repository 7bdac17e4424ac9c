//! Encrypted entries.

use super::*;

#[test]
fn encrypted_entries_need_their_password() {
    let log = sample("dirty.evtx");
    let aes = |mode| deflated().with_aes_encryption(mode, "secret");
    let archive = zip(&[
        ("1.evtx", &log, aes(AesMode::Aes128)),
        ("2.evtx", &log, aes(AesMode::Aes192)),
        ("3.evtx", &log, aes(AesMode::Aes256)),
        ("4.evtx", &log, plain().with_aes_encryption(AesMode::Aes256, "secret")),
        (
            "5.evtx",
            &log,
            deflated().with_deprecated_encryption(b"secret").expect("a password"),
        ),
        (
            "6.evtx",
            &log,
            plain().with_deprecated_encryption(b"secret").expect("a password"),
        ),
        ("7.evtx", &log, deflated()),
    ]);
    let storage = Memory::default().with("a.zip", &archive);
    let names: Vec<_> = (1..=7).map(|i| format!("a.zip/{i}.evtx")).collect();
    let all = |error: &str| -> Rows {
        let errors = [error]
            .iter()
            .filter(|error| !error.is_empty())
            .copied()
            .collect::<Vec<_>>();
        let mut rows: Rows = names
            .iter()
            .map(|name| file(name, 80 * usize::from(error.is_empty()), &errors))
            .collect();
        rows[6] = file(&names[6], 80, &[]);
        rows
    };
    let read = |archives: &Archives| read(&storage, "a.zip", archives, 2).expect("rows");
    assert_eq!(read(&with_password("secret")), all(""));
    let none = ": cannot be read: it is encrypted, and no password is given";
    assert_eq!(read(&Archives::default()), all(none));
    // The writer draws its salts. One wrong password in 256 fits the byte that the old encryption compares, and one in
    // 65,536 fits that of AES: only what is decrypted then tells it.
    let mut wrong = read(&with_password("wrong"));
    assert_eq!(wrong.pop(), all("").pop());
    for (row, name) in wrong.iter().zip(&names) {
        let says = |error: &String| error.starts_with(": cannot be read: ") && error.ends_with("the password is wrong");
        assert!(
            row.0 == *name && row.1 == 0 && row.2.len() == 1 && says(&row.2[0]),
            "{row:?}"
        );
    }
    assert_eq!(wrong.len(), 6);
    let named = self::read(&storage, "a.zip/3.evtx", &Archives::default(), 1).expect_err("it is named");
    assert_eq!(
        named.to_string(),
        "a.zip/3.evtx: it is encrypted, and no password is given"
    );
    // A byte that was changed is told by the tag.
    let one = zip(&[("1.evtx", &log, plain().with_aes_encryption(AesMode::Aes256, "secret"))]);
    let mut changed = one.clone();
    changed[40_000] ^= 1;
    let storage = Memory::default().with("a.zip", &changed);
    let rows = self::read(&storage, "a.zip", &with_password("secret"), 1).expect("rows");
    assert_eq!(rows[0].2[0], ": cannot be read: its encrypted bytes were changed");
}
