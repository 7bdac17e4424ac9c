//! Registry hives: crafted ones with every kind of list, circles and damage, and real ones.
//!
//! Set `EVTX_HIVES` to a folder of hives to read them all.

use evtx_format::Interrupt;
use evtx_messages::registry::{FileLocation, Hive, RegisteredFile, Registry, Root, file_name, files_of};
use evtx_messages::row::guid_of_text;
use evtx_messages::*;

/// A key to write.
#[derive(Default)]
struct Node {
    name: String,
    values: Vec<(&'static str, u32, Vec<u8>)>,
    keys: Vec<Node>,
}

fn node(name: &str, keys: Vec<Node>) -> Node {
    Node {
        name: name.into(),
        keys,
        ..Node::default()
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn with(name: &str, values: &[(&'static str, &str)]) -> Node {
    let values = values.iter().map(|(name, text)| (*name, 1, utf16(text))).collect();
    Node {
        name: name.into(),
        values,
        keys: Vec::new(),
    }
}

/// Which list of keys a hive has.
#[derive(Clone, Copy, PartialEq)]
enum List {
    Leaf,
    Index,
    Root,
}

/// The cells of a hive.
struct Cells(Vec<u8>, List);

impl Cells {
    fn cell(&mut self, mut data: Vec<u8>) -> u32 {
        let at = self.0.len() as u32;
        data.resize(data.len().next_multiple_of(8) + 4, 0);
        self.0.extend((-(data.len() as i32 + 4)).to_le_bytes());
        self.0.extend(data);
        at
    }

    fn list(&mut self, keys: &[u32]) -> u32 {
        match self.1 {
            List::Leaf => {
                let items = keys.iter().flat_map(|key| [key.to_le_bytes(), *b"hash"].concat());
                let head = [*b"lh", (keys.len() as u16).to_le_bytes()].concat();
                self.cell(head.into_iter().chain(items).collect())
            }
            kind => {
                let half = keys.len() / 2;
                let index = |magic: &[u8; 2], keys: &[u32]| {
                    let head = [*magic, (keys.len() as u16).to_le_bytes()].concat();
                    head.into_iter()
                        .chain(keys.iter().flat_map(|key| key.to_le_bytes()))
                        .collect::<Vec<u8>>()
                };
                if kind == List::Index || half == 0 {
                    return self.cell(index(b"li", keys));
                }
                let lists = [
                    self.cell(index(b"li", &keys[..half])),
                    self.cell(index(b"li", &keys[half..])),
                ];
                self.cell(index(b"ri", &lists))
            }
        }
    }

    fn data(&mut self, data: &[u8]) -> u32 {
        if data.len() <= 16_344 {
            return self.cell(data.to_vec());
        }
        let parts: Vec<_> = data.chunks(16_344).map(|part| self.cell(part.to_vec())).collect();
        let list = self.cell(parts.iter().flat_map(|part| part.to_le_bytes()).collect());
        let head = [*b"db", (parts.len() as u16).to_le_bytes()].concat();
        self.cell(head.into_iter().chain(list.to_le_bytes()).collect())
    }

    fn key(&mut self, node: &Node) -> u32 {
        let keys: Vec<_> = node.keys.iter().map(|key| self.key(key)).collect();
        let keys_at = if keys.is_empty() { u32::MAX } else { self.list(&keys) };
        let mut values = Vec::new();
        for (name, kind, data) in &node.values {
            let mut cell = [*b"vk", (name.len() as u16).to_le_bytes()].concat();
            if let [a, b, c, d] = data[..] {
                cell.extend((1 << 31 | 4_u32).to_le_bytes());
                cell.extend([a, b, c, d]);
            } else {
                cell.extend((data.len() as u32).to_le_bytes());
                cell.extend(self.data(data).to_le_bytes());
            }
            cell.extend(kind.to_le_bytes());
            cell.extend([1, 0, 0, 0]);
            cell.extend(name.as_bytes());
            values.push(self.cell(cell));
        }
        let values_at = self.cell(values.iter().flat_map(|value| value.to_le_bytes()).collect());
        let mut cell = vec![0; 76];
        let mut put = |at: usize, bytes: &[u8]| cell[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"nk");
        put(20, &(keys.len() as u32).to_le_bytes());
        put(28, &keys_at.to_le_bytes());
        put(36, &(values.len() as u32).to_le_bytes());
        put(40, &values_at.to_le_bytes());
        // A name in UTF-16 or not.
        let name = if node.name.is_ascii() {
            node.name.clone().into_bytes()
        } else {
            node.name.encode_utf16().flat_map(u16::to_le_bytes).collect()
        };
        put(2, &(if node.name.is_ascii() { 0x20_u16 } else { 0 }).to_le_bytes());
        put(72, &(name.len() as u16).to_le_bytes());
        cell.extend(name);
        self.cell(cell)
    }
}

fn hive(root: &Node, list: List) -> Vec<u8> {
    // The first bytes are the header of a bin.
    let mut cells = Cells(vec![0; 32], list);
    let root = cells.key(root);
    let mut file = vec![0; 4096];
    file[..4].copy_from_slice(b"regf");
    file[36..40].copy_from_slice(&root.to_le_bytes());
    file.extend(cells.0);
    file
}

const GUID: &str = "{54849625-5478-4994-a5ba-3e3b0328c30d}";

fn software() -> Node {
    let mut publisher = with(
        GUID,
        &[
            ("", "Auditing"),
            ("ResourceFileName", r"%SystemRoot%\system32\adtschema.dll"),
            ("MessageFileName", r"%SystemRoot%\system32\AdtSchema.dll"),
            (
                "ParameterFileName",
                r"%SystemRoot%\system32\msobjs.dll;C:\x\kernel32.dll",
            ),
        ],
    );
    publisher.values.push(("Enabled", 4, vec![1, 0, 0, 0]));
    let path = ["Microsoft", "Windows", "CurrentVersion", "WINEVT"];
    let publishers = node(
        "publishers",
        vec![with("not a GUID", &[("", "x")]), publisher, with("é", &[])],
    );
    path.iter()
        .rev()
        .fold(publishers, |inner, name| {
            node(name, vec![node("other", Vec::new()), inner])
        })
        .into_root()
}

impl Node {
    fn into_root(self) -> Node {
        node("ROOT", vec![self])
    }
}

fn system() -> Node {
    let long = format!(r"{};C:\last.dll", "x".repeat(20_000));
    let sources = vec![
        with(
            "Disk",
            &[
                ("EventMessageFile", r"%SystemRoot%\System32\IoLogMsg.dll;C:\disk.sys"),
                ("providerguid", GUID),
            ],
        ),
        with("Only", &[("ParameterMessageFile", "kernel32.dll")]),
        with("Long", &[("EventMessageFile", &long)]),
        with("None", &[("Types", "7")]),
    ];
    let logs = node("EventLog", vec![node("System", sources)]);
    node(
        "ROOT",
        vec![
            node("Select", Vec::new()),
            node("ControlSet001", vec![node("Services", vec![logs])]),
        ],
    )
}

fn registry_of(hives: &[Vec<u8>]) -> Registry {
    let mut registry = Registry::default();
    hives
        .iter()
        .for_each(|hive| registry.add_hive(hive, None, Interrupt::NEVER).expect("a hive"));
    registry
}

#[test]
fn providers_have_their_files() {
    for list in [List::Leaf, List::Index, List::Root] {
        let registry = registry_of(&[hive(&software(), list), hive(&system(), list)]);
        let names: Vec<_> = registry.registrations().map(|found| &*found.name).collect();
        assert_eq!(names, ["Auditing", "Disk", "Long", "Only"]);
        let guid = guid_of_text(GUID).expect("a GUID");
        let auditing = registry.by_guid(&guid).expect("a provider");
        assert_eq!(names_of(&auditing.resource_files), ["adtschema.dll"]);
        assert_eq!(names_of(&auditing.message_files), ["adtschema.dll"]);
        assert_eq!(names_of(&auditing.parameter_files), ["msobjs.dll", "kernel32.dll"]);
        let with_messages = |file| {
            let found = registry.by_message_file(file);
            found.map(|found| (&*found.name, found.guid)).collect::<Vec<_>>()
        };
        assert_eq!(with_messages("iologmsg.dll"), [("Disk", Some(guid))]);
        assert_eq!(with_messages("disk.sys"), [("Disk", Some(guid))]);
        assert_eq!(with_messages("last.dll"), [("Long", None)]);
        assert_eq!(with_messages("adtschema.dll"), [], "it has a manifest");
        let with_parameters = registry.by_parameter_file("kernel32.dll").map(|found| &*found.name);
        assert_eq!(with_parameters.collect::<Vec<_>>(), ["Auditing", "Only"]);
    }
}

fn names_of(files: &[RegisteredFile]) -> Vec<&str> {
    files.iter().map(RegisteredFile::name).collect()
}

#[test]
fn files_are_known_by_their_names() {
    assert_eq!(file_name(r"C:\Windows/System32\en-US\X.DLL.mui"), "x.dll");
    assert_eq!(file_name("SystemResources/x.dll.mun"), "x.dll");
    assert_eq!(names_of(&files_of(r"a\B.dll; c.sys ;;")), ["b.dll", "c.sys"]);
    assert_eq!(files_of(&"x;".repeat(1000)).len(), 64);
    for (path, folder, name) in [
        ("C:/Windows/System32/x.dll", "c:/windows/system32", "x.dll"),
        ("C:/Windows/System32/en-US/x.dll.mui", "c:/windows/system32", "x.dll"),
        ("C:\\Windows\\sr-Latn-RS\\x.dll.mui", "c:/windows", "x.dll"),
        ("C:/flat/x.dll.mui", "c:/flat", "x.dll"),
        ("en-US/x.dll.mui", "", "x.dll"),
        ("x.dll", "", "x.dll"),
        ("C:/Windows/SystemResources/x.dll.mun", "c:/windows/system32", "x.dll"),
        (
            "C:/Windows/System32/drivers/en-US/x.sys.mui",
            "c:/windows/system32",
            "x.sys",
        ),
        ("C:/other/drivers/x.sys", "c:/other/drivers", "x.sys"),
    ] {
        let location = FileLocation::of(path);
        assert_eq!((location.folder(), location.name()), (folder, name), "{path}");
    }
}

/// A registry with a provider for each list of files.
fn registry_with(lists: &[&registry::Files]) -> Registry {
    let mut registry = Registry::default();
    for files in lists {
        let registration = registry::Registration {
            message_files: (*files).clone(),
            ..Default::default()
        };
        registry.add(registration).expect("there is room");
    }
    registry
}

/// Which of some files of a call a registered value names.
fn found<'p>(value: &str, paths: &[&'p str]) -> Vec<&'p str> {
    let files = files_of(value);
    // Another provider has its file there.
    let other = files_of(r"%SystemRoot%\System32\b.dll");
    let mut registry = registry_with(&[&files, &other]);
    paths.iter().for_each(|path| registry.locate(&FileLocation::of(path)));
    let is_own = |path: &&&str| registry.is_file_of(&files, &FileLocation::of(path));
    paths.iter().filter(is_own).copied().collect()
}

#[test]
fn a_file_has_the_path_that_the_registry_says() {
    let own = [
        "/mnt/c/Windows/System32/x.dll",
        "/mnt/c/Windows/System32/de-DE/x.dll.mui",
        "/mnt/c/Windows/System32/ca-ES-valencia/x.dll.mui",
        "/mnt/c/Windows/SystemResources/x.dll.mun",
    ];
    let others = [
        "/mnt/c/Users/x/x.dll",
        "/mnt/c/System32/x.dll",
        "/mnt/c/Windows/System32/y.dll",
        "/mnt/c/Windows/System32/y/x.dll",
        "/mnt/c/Users/x/Windows/System32/x.dll",
        "/mnt/c/Users/x/Windows/System32/en-US/x.dll.mui",
        "/mnt/c/Users/x/SystemResources/x.dll.mun",
        "/mnt/c/Windows/System32/spool/Windows/System32/x.dll",
    ];
    let paths = [&own[..], &others].concat();
    for value in [
        r"%SystemRoot%\System32\x.dll",
        r"@%windir%\system32\X.dll,-1001",
        r"\SystemRoot\system32\x.dll",
        r"\??\C:\Windows\system32\x.dll",
        r"\Windows\system32\x.dll",
        r"%SystemDrive%\Windows\System32\x.dll",
        r"system32\x.dll",
        r"x.dll",
        r#""%SystemRoot%\\.\SysNative\x.dll""#,
    ] {
        assert_eq!(found(value, &paths), own, "{value}");
    }
}

#[test]
fn nothing_elsewhere_stands_in_for_a_file_that_is_missing() {
    for (value, own, planted) in [
        (r"%ProgramFiles%\App\x.dll", "Program Files/App/x.dll", "App/x.dll"),
        (r"%ProgramW6432%\App\x.dll", "Program Files/App/x.dll", "App/x.dll"),
        (
            r"%CommonProgramFiles(x86)%\x.dll",
            "Program Files (x86)/Common Files/x.dll",
            "x.dll",
        ),
        (
            r"C:\Program Files\Acme, Inc\x.dll",
            "Program Files/Acme, Inc/x.dll",
            "Inc/x.dll",
        ),
        (r"%SystemRoot%\x.exe", "Windows/x.exe", "Temp/Windows/x.exe"),
        (r"App\x.dll", "Windows/System32/App/x.dll", "App/x.dll"),
        (r"D:\App\x.dll", "", "App/x.dll"),
        (r"\\srv\share\x.dll", "", "srv/share/x.dll"),
        (r"%Unknown%\App\x.dll", "", "App/x.dll"),
        (r"C:\PROGRA~1\App\x.dll", "", "App/x.dll"),
    ] {
        let [own, planted] = [own, planted].map(|path| format!("m/{path}"));
        let color = format!("m/Windows/System32/spool/drivers/color/{}", &planted[2..]);
        let paths = ["m/Windows/System32/b.dll", &planted, &color, "m/Users/bob/x.dll"];
        assert_eq!(found(value, &paths), [""; 0], "{value}");
        if own != "m/" {
            assert_eq!(found(value, &[&paths[..], &[&own]].concat()), [&own], "{value}");
        }
    }
}

#[test]
fn files_can_have_lost_their_folders() {
    let value = r"%SystemRoot%\System32\x.dll";
    // The folder with `System32` has any name. Users can write to some folders of System32.
    let copied = ["case/System32/x.dll", "case/System32/spool/Windows/System32/x.dll"];
    assert_eq!(found(value, &copied), copied[..1]);
    assert_eq!(
        found(
            r"%SystemRoot%\x.exe",
            &["case/x.exe", "case/System32/b.dll", "case/y/x.exe"]
        ),
        ["case/x.exe"]
    );
    assert_eq!(
        found(r"%ProgramFiles%\x\x.dll", &["case/System32/b.dll", "case/x/x.dll"]),
        [""; 0]
    );
    let flat = [
        "s32/x.dll",
        "s32/en-US/x.dll.mui",
        "s32/spool/x.dll",
        "s32/spool/System32/x.dll",
    ];
    assert_eq!(found(value, &flat), flat[..2]);
    assert_eq!(found(value, &["x.dll", "spool/x.dll"]), ["x.dll"]);
    // Files in the root of a volume are not those of Windows.
    let whole = ["m/x.dll", "m/Windows/System32/x.dll"];
    assert_eq!(found(value, &whole), whole[1..]);
}

#[test]
fn hives_have_a_place() {
    for (path, is_in_place) in [
        ("m/Windows/System32/config/SOFTWARE", true),
        ("m/System32/config/SYSTEM", true),
        ("m/Windows/System32/config/RegBack/SOFTWARE", false),
        ("m/config/SOFTWARE", false),
        ("SOFTWARE", false),
    ] {
        assert_eq!(Root::of_hive(path).1, is_in_place, "{path}");
    }
    let root = |path: &&str| Root::of_hive(path).0;
    // From the first on, each is nearer than the next.
    for paths in [
        [
            "m/Windows/System32/config/SOFTWARE",
            "m/System32/config/SOFTWARE",
            "m/x/SOFTWARE",
        ],
        [
            "s/config/SOFTWARE",
            "s/Tasks/Windows/System32/config/SOFTWARE",
            "s/Tasks/System32/config/SOFTWARE",
        ],
    ] {
        assert!(paths.is_sorted_by_key(root), "{paths:?}");
    }
}

#[test]
fn circles_and_damage_end() {
    assert!(matches!(
        Hive::open(b"not a hive", Interrupt::NEVER),
        Err(Error::NotAHive)
    ));
    let files = [hive(&software(), List::Root), hive(&system(), List::Leaf)];
    let read = |file: &[u8]| {
        let mut registry = Registry::default();
        let _ = registry.add_hive(file, None, Interrupt::NEVER);
        registry.registrations().count()
    };
    for file in &files {
        for end in (0..file.len()).step_by(31) {
            assert!(read(&file[..end]) <= 3);
        }
        for at in (4096..file.len()).step_by(17) {
            for byte in [0, 0x20, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = byte;
                assert!(read(&damaged) < 10);
            }
        }
    }
    // The list of a log that contains the log itself, 65,535 times.
    let mut cells = Cells(vec![0; 32], List::Index);
    let system = cells.key(&system());
    let at = cells.0.len() as u32;
    let list: Vec<u8> = [*b"li", [0xff, 0xff]]
        .concat()
        .into_iter()
        .chain(system.to_le_bytes().repeat(65_535))
        .collect();
    assert_eq!(cells.cell(list), at);
    for key in (0..cells.0.len() - 76)
        .filter(|key| cells.0[*key..].starts_with(b"nk\x20"))
        .collect::<Vec<_>>()
    {
        cells.0[key + 20..key + 24].copy_from_slice(&9_u32.to_le_bytes());
        cells.0[key + 28..key + 32].copy_from_slice(&at.to_le_bytes());
    }
    let mut file = vec![0; 4096];
    file[..4].copy_from_slice(b"regf");
    file[36..40].copy_from_slice(&system.to_le_bytes());
    file.extend(cells.0);
    // A hive of so many bytes has so many cells at most, and there is a look for every 16 of them.
    let looks = std::cell::Cell::new(0);
    let never = || {
        looks.set(looks.get() + 1);
        false
    };
    let mut registry = Registry::default();
    let started = std::time::Instant::now();
    let _ = registry.add_hive(&file, None, Interrupt::new(&never));
    println!(
        "promise: a hive of circles: {:.3} s of 2 s",
        started.elapsed().as_secs_f64()
    );
    assert_eq!(registry.registrations().count(), 0);
    assert!(looks.get() <= file.len() / 64 + 64, "{} looks", looks.get());
}

#[test]
fn reading_a_hive_can_be_interrupted() {
    let file = hive(&software(), List::Leaf);
    let stop = || true;
    let error = Registry::default().add_hive(&file, None, Interrupt::new(&stop));
    // So small a hive may be read before the first check.
    assert!(matches!(error, Err(Error::Interrupted(_)) | Ok(())));
    let keys = (0..1000)
        .map(|index| with(&format!("source {index}"), &[("EventMessageFile", "x.dll")]))
        .collect();
    let services = node("Services", vec![node("EventLog", vec![node("Log", keys)])]);
    let file = hive(&node("ROOT", vec![node("ControlSet001", vec![services])]), List::Leaf);
    assert_eq!(registry_of(std::slice::from_ref(&file)).registrations().count(), 1000);
    let error = Registry::default().add_hive(&file, None, Interrupt::new(&stop));
    assert!(matches!(error, Err(Error::Interrupted(_))));
}

#[test]
fn real_hives_are_read() {
    let Some(folder) = std::env::var_os("EVTX_HIVES") else {
        eprintln!("skipped: EVTX_HIVES is not set");
        return;
    };
    let mut registry = Registry::default();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let before = registry.registrations().count();
        match registry.add_hive(&std::fs::read(&path).unwrap_or_default(), None, Interrupt::NEVER) {
            Ok(()) => eprintln!(
                "{}: {} providers",
                path.display(),
                registry.registrations().count() - before
            ),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
    assert!(registry.registrations().count() > 0);
}
