//! Registry hives: crafted ones with every kind of list, circles and damage, and real ones.
//!
//! Set `EVTX_HIVES` to a folder of hives to read them all.

use evtx_format::Interrupt;
use evtx_messages::registry::{FilePlace, Hive, HiveName, RegisteredFile, Registry, file_name, files_of};
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
        let name = match node.name.is_ascii() {
            true => node.name.clone().into_bytes(),
            false => node.name.encode_utf16().flat_map(u16::to_le_bytes).collect(),
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
        let place = FilePlace::of(path);
        assert_eq!((place.folder(), place.name()), (folder, name), "{path}");
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

#[test]
fn a_file_has_the_path_that_the_registry_says() {
    let file = |path| FilePlace::of(path);
    for value in [
        r"%SystemRoot%\System32\x.dll",
        r"@%windir%\system32\X.dll,-1001",
        r"\SystemRoot\system32\x.dll",
        r"\??\C:\system32\x.dll",
        r"system32\x.dll",
        r"x.dll",
        r#""%SystemRoot%\\.\SysNative\x.dll""#,
    ] {
        let files = files_of(value);
        let mut registry = registry_with(&[&files]);
        let [own, other] = ["/mnt/c/Windows/System32/x.dll", "/mnt/c/Users/x/x.dll"].map(file);
        assert!(
            registry.is_file_of(&files, &other),
            "{value}: without the own one, the name is enough"
        );
        for place in [&other, &file("/mnt/c/System32/x.dll"), &own] {
            registry.locate(place);
        }
        assert!(registry.is_file_of(&files, &own), "{value}");
        for stranger in [
            &other,
            &file("/mnt/c/Windows/System32/y.dll"),
            &file("/mnt/system32/y/x.dll"),
            &file("/mnt/c/Users/x/Windows/System32/x.dll"),
            &file("/mnt/c/System32/x.dll"),
            &file("/mnt/c/Users/x/SystemResources/x.dll.mun"),
            &file("/SystemResources/x.dll.mun"),
            &file("/mnt/c/Users/x/Windows/System32/en-US/x.dll.mui"),
        ] {
            assert!(!registry.is_file_of(&files, stranger), "{value}: {stranger:?}");
        }
        for texts in [
            "C:/Windows/System32/de-DE/x.dll.mui",
            "C:/Windows/SystemResources/x.dll.mun",
        ] {
            assert!(registry.is_file_of(&files, &file(texts)), "{value}: {texts}");
        }
    }
}

#[test]
fn a_name_is_enough_only_if_no_file_has_its_folders() {
    let [own, other] = [r"%SystemRoot%\a.exe", r"%SystemRoot%\System32\b.dll"].map(files_of);
    let mut registry = registry_with(&[&own, &other]);
    let stranger = FilePlace::of("/mnt/Windows/System32/spool/a.exe");
    registry.locate(&stranger);
    assert!(registry.is_file_of(&own, &stranger));
    registry.locate(&FilePlace::of("/mnt/Windows/System32/b.dll"));
    assert!(!registry.is_file_of(&own, &stranger));
}

#[test]
fn no_folder_below_that_of_windows_stands_in_for_it() {
    let [missing, other] = [r"%SystemRoot%\System32\gone.dll", r"%SystemRoot%\System32\b.dll"].map(files_of);
    let with = |found: &[&str]| {
        let mut registry = registry_with(&[&missing, &other]);
        found.iter().for_each(|path| registry.locate(&FilePlace::of(path)));
        registry
    };
    let gone = FilePlace::of("m/Users/bob/Windows/System32/gone.dll");
    let registry = with(&["m/Windows/System32/b.dll", "m/Users/bob/Windows/System32/gone.dll"]);
    assert!(
        !registry.is_file_of(&missing, &gone),
        "the folder of Windows lacks the file"
    );
    // Users can write to some folders of System32, and to the root of a volume.
    let below = "case/System32/spool/Windows/System32/b.dll";
    let registry = with(&["case/System32/b.dll", below]);
    assert!(registry.is_file_of(&other, &FilePlace::of("case/System32/b.dll")));
    assert!(
        !registry.is_file_of(&other, &FilePlace::of(below)),
        "it is below System32"
    );
    let registry = with(&["m/Windows/System32/b.dll", "m/System32/b.dll"]);
    assert!(registry.is_file_of(&other, &FilePlace::of("m/Windows/System32/b.dll")));
    assert!(!registry.is_file_of(&other, &FilePlace::of("m/System32/b.dll")));
    let near = HiveName::distance("case/System32/config/SOFTWARE");
    assert!(near < HiveName::distance("case/System32/spool/Windows/System32/config/SOFTWARE"));
    assert!(
        HiveName::distance("m/Windows/System32/config/SOFTWARE") < HiveName::distance("m/System32/config/SOFTWARE")
    );
}

#[test]
fn resources_are_where_windows_has_them() {
    for (value, own, other) in [
        (
            r"%SystemRoot%\System32\drivers\x.sys",
            "c/Windows/System32/drivers/x.sys",
            "c/drivers/x.sys",
        ),
        (
            r"%ProgramFiles%\Windows Defender\x.sys",
            "c/Program Files/Windows Defender/x.sys",
            "c/Windows Defender/x.sys",
        ),
    ] {
        let files = files_of(value);
        let mut registry = registry_with(&[&files]);
        let counts = |registry: &Registry, path| registry.is_file_of(&files, &FilePlace::of(path));
        let (resources, others) = ("c/Windows/SystemResources/x.sys.mun", "c/A/SystemResources/x.sys.mun");
        assert!(
            counts(&registry, others),
            "{value}: without the file, the name is enough"
        );
        for path in [others, other, own] {
            registry.locate(&FilePlace::of(path));
        }
        assert!(!counts(&registry, other), "{value}");
        assert!(
            !counts(&registry, others),
            "{value}: without resources of Windows, neither"
        );
        registry.locate(&FilePlace::of(resources));
        let found = [own, other, resources, others].map(|path| counts(&registry, path));
        assert_eq!(found, [true, false, true, false], "{value}");
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
    let started = std::time::Instant::now();
    assert_eq!(read(&file), 0);
    assert!(started.elapsed().as_secs() < 2);
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
