//! The headers of a tar archive: which entries there are, and where. Sources: POSIX.1-2017, `pax`, sections "ustar
//! Interchange Format" and "pax Header Block"; and the manual of GNU tar, "Basic Tar Format".

use evtx_format::Interrupt;
use evtx_scan::{ALL_READ, StorageError};

use crate::codec::Method;
use crate::findings::{ALL, Findings, MAX_TOLD, full_folder, hidden};
use crate::head::{Directory, Encryption, Head, MAX_DIRECTORY, MAX_ENTRIES, Place, SYMBOLIC_LINK, Wanted};
use crate::input::Source;
use crate::memory::unusable;
use crate::names::{is_folder, text, wanted_name};

/// Bytes of a header. Data is padded to a multiple of it.
const BLOCK: usize = 512;

/// Most bytes of the names and other attributes that precede one entry.
const MAX_EXTENSION: u64 = 1 << 20;

/// Most blocks of zeros at the end of an archive: 1 MiB. Another archive may follow them.
const MAX_ZEROS: usize = 2048;

/// Most names of an entry that its attributes replace.
const MAX_NAMES: usize = 16;

/// The smallest size that does not fit the octal digits of a header: 8 GiB.
const LARGE: u64 = 1 << 33;

/// Why a sparse file is not read.
const SPARSE: &str = "it is a sparse file, which is not supported";

/// How a size in attributes contradicts another one.
const OTHER_SIZES: &str = "has another size in the attributes before it";

/// Why an archive without its last bytes has a failure.
const CUT: &str = "the archive is cut short";

/// What precedes an entry and belongs to it. The last name and size of each kind count.
#[derive(Default)]
struct Extension {
    /// The name from a header for a long name.
    name: Option<Vec<u8>>,
    /// The name from attributes.
    path: Option<Vec<u8>>,
    /// The name of a sparse file. The other one is then made up.
    sparse_name: Option<Vec<u8>>,
    is_sparse: bool,
    size: Option<u64>,
    /// Names that others replace. Some programs use these.
    replaced: Vec<Vec<u8>>,
    /// How its parts contradict each other.
    contradiction: Option<&'static str>,
}

/// What a header stands for.
enum Kind {
    File,
    Folder,
    /// The names in a folder, as GNU tar writes them for incremental backups.
    List,
    /// The name of a volume, in the header itself.
    Label,
    /// Something without data, and why it is not read.
    Refused(&'static str),
    /// Something whose data is not read, and why.
    Unread(&'static str),
    /// Attributes of the next entry.
    Attributes,
    /// Attributes of all later entries.
    AttributesOfAll,
    /// The name of the next entry.
    Name,
    /// The target of the next entry, which is a link.
    Target,
}

/// A header.
struct Header<'h> {
    bytes: &'h [u8; BLOCK],
    /// Bytes of data that follow it.
    size: u64,
}

/// Reads the headers of an archive, whose data is at `place`.
struct Reader<'r, 'w> {
    source: &'r mut dyn Source,
    place: fn(u64) -> Place,
    wanted: &'r mut Wanted<'w>,
    interrupt: Interrupt<'r>,
    directory: Directory,
    /// What is in the archive besides its entries, or what programs take for an entry or not.
    findings: Findings,
    /// Bytes of all names.
    names: u64,
    next: Extension,
    /// The name that a header gives all later entries without a name in attributes of their own.
    name_of_all: Option<Vec<u8>>,
}

/// Reads the headers of an archive. `place` says where the data of an entry is, by its offset in the source.
///
/// # Errors
/// Those of the storage, and [`StorageError::Unusable`] if it does not start with a header.
pub(crate) fn directory(
    source: &mut dyn Source,
    place: fn(u64) -> Place,
    wanted: &mut Wanted<'_>,
    interrupt: Interrupt<'_>,
) -> Result<Directory, StorageError> {
    let mut reader = Reader {
        source,
        place,
        wanted,
        interrupt,
        directory: Directory::default(),
        findings: Findings::new(MAX_TOLD),
        names: 0,
        next: Extension::default(),
        name_of_all: None,
    };
    let damage = match reader.headers() {
        Err(StorageError::Unusable(why)) if reader.source.offset() > BLOCK as u64 => Some(why),
        read => read.map(|()| None)?,
    };
    let is_whole = damage.as_ref().is_none_or(|why| why.starts_with(ALL_READ));
    let findings = reader.findings.into_texts(if is_whole { ALL } else { "" });
    reader.directory.failures = damage.into_iter().chain(findings).collect();
    Ok(reader.directory)
}

impl Reader<'_, '_> {
    /// Reads headers up to the end: blocks of zeros. Some programs append an archive after these.
    fn headers(&mut self) -> Result<(), StorageError> {
        let mut zeros = 0;
        loop {
            self.interrupt.check()?;
            let (at, mut bytes) = (self.source.offset(), [0; BLOCK]);
            if !self.source.fill(&mut bytes)? {
                return match zeros {
                    0 if at == 0 => unusable("it is not a tar archive"),
                    0 => unusable(format!("{CUT}: it has no end")),
                    _ => Ok(()),
                };
            }
            if bytes == [0; BLOCK] {
                zeros += 1;
                if zeros > MAX_ZEROS {
                    return unusable("more than 1 MiB of zeros follows its end");
                }
                continue;
            }
            let Some(header) = Header::of(&bytes) else {
                return match (at, zeros) {
                    (0, _) => unusable("it is not a tar archive"),
                    (_, 0) => damaged(at),
                    _ => unusable(format!("{ALL_READ} up to its end, but other bytes follow")),
                };
            };
            zeros = 0;
            self.member(&header, at)?;
        }
    }

    /// Reads what belongs to a header at an offset, up to the next header.
    fn member(&mut self, header: &Header<'_>, at: u64) -> Result<(), StorageError> {
        match header.kind() {
            Kind::Attributes => {
                let attributes = self.attributes(header.size, at)?;
                self.next.take(&attributes).map_or_else(|| damaged(at), Ok)
            }
            Kind::AttributesOfAll => {
                let (attributes, mut all) = (self.attributes(header.size, at)?, Extension::default());
                all.take(&attributes).map_or_else(|| damaged(at), Ok)?;
                // Programs differ in whether they use these.
                if all.path.is_some() {
                    self.name_of_all = all.path;
                    self.tell(at, "gives all later entries one name");
                }
                if all.size.is_some() || all.is_sparse {
                    self.tell(at, "gives all later entries one size");
                }
                Ok(())
            }
            Kind::Name => {
                let name = self.long_name(header.size, at)?;
                self.next.rename(|next| &mut next.name, &name);
                Ok(())
            }
            Kind::Target => self.long_name(header.size, at).map(drop),
            Kind::Label => {
                self.next = Extension::default();
                if header.size > 0 {
                    self.tell(
                        at,
                        &format!("is the label of a volume with {} bytes of data", header.size),
                    );
                }
                self.skip(header.size)?.1.map_or(Ok(()), Err)
            }
            Kind::List => {
                self.next = Extension::default();
                if !self.is_list(header.size)? {
                    self.tell(at, "is a list of the names in a folder, and has other data");
                }
                Ok(())
            }
            Kind::Folder => {
                let next = std::mem::take(&mut self.next);
                self.check_empty(header, &next, at);
                Ok(())
            }
            Kind::File => self.entry(header, header.size, None, at),
            Kind::Refused(why) => self.entry(header, 0, Some(why), at),
            Kind::Unread(why) => self.entry(header, header.size, Some(why), at),
        }
    }

    /// Reports how a header at an offset can be understood in another way, or what else it has.
    fn tell(&mut self, at: u64, what: &str) {
        self.findings.tell(&format!("its header at offset {at} {what}"));
    }

    /// Reports the size of something that has no data. Some programs pass over so many bytes, others over none, so they find
    /// other entries after it.
    fn check_empty(&mut self, header: &Header<'_>, next: &Extension, at: u64) {
        let size = header.size.max(next.size.unwrap_or(0));
        if size > 0 {
            self.tell(at, &format!("is no file, and says that it has {size} bytes of data"));
        }
    }

    /// Lists an entry with so many bytes of data, and passes over these.
    fn entry(
        &mut self,
        header: &Header<'_>,
        size: u64,
        refusal: Option<&'static str>,
        at: u64,
    ) -> Result<(), StorageError> {
        let next = std::mem::take(&mut self.next);
        if let Kind::Refused(_) = header.kind() {
            self.check_empty(header, &next, at);
        } else if let Some(why) = next.contradiction(header.size) {
            self.tell(at, why);
        }
        let refusal = refusal.or(next.is_sparse.then_some(SPARSE));
        let size = next.size.filter(|_| size > 0 || refusal.is_none()).unwrap_or(size);
        self.skip_maps(header, at)?;
        let preferred = [next.sparse_name, next.path, self.name_of_all.clone(), next.name];
        let names = preferred.into_iter().flatten().chain([header.name()]);
        let mut names: Vec<_> = names.chain(next.replaced).map(|name| text(&name)).collect();
        // A header that has no room for the whole name can cut it after a slash.
        for name in &mut names[1..] {
            name.truncate(name.trim_end_matches('/').len());
        }
        // Old programs write a folder as a file whose name ends so.
        if size == 0 && is_folder(&names[0]) {
            return Ok(());
        }
        // A log must not be lost by a second name.
        let nth = wanted_name(&names, self.wanted.is_wanted).unwrap_or(0);
        let mut name = names[nth].as_str();
        while let Some(rest) = name.strip_prefix("./") {
            name = rest.trim_start_matches('/');
        }
        self.names += name.len() as u64;
        if self.directory.entries.len() >= MAX_ENTRIES || self.names > MAX_DIRECTORY {
            return unusable(format!(
                "it has more than {MAX_ENTRIES} entries, or more than {} MiB of names",
                MAX_DIRECTORY >> 20
            ));
        }
        if is_folder(name) {
            self.findings.tell(&full_folder(name, size));
        }
        let place = (self.place)(self.source.offset());
        let (found, failure) = self.skip(size)?;
        let head = Head {
            place,
            compressed: found,
            size: Some(size),
            checksum: None,
            method: Method::Stored,
            encryption: Encryption::None,
            refusal,
            limit: u64::MAX,
        };
        self.directory.push(name, head, self.wanted)?;
        failure.map_or(Ok(()), Err)
    }

    /// Passes over data and its padding. Returns how many bytes of it there are, and why there are not all.
    fn skip(&mut self, size: u64) -> Result<(u64, Option<StorageError>), StorageError> {
        let start = self.source.offset();
        let mut skipped = self.source.skip(size);
        let found = self.source.offset() - start;
        if let Ok(true) = skipped {
            skipped = self.source.skip(size.wrapping_neg() % BLOCK as u64);
        }
        match skipped {
            Ok(true) => Ok((found, None)),
            Ok(false) => Ok((found, Some(StorageError::Unusable(CUT.to_owned())))),
            Err(StorageError::Unusable(why)) => Ok((found, Some(StorageError::Unusable(why)))),
            Err(error) => Err(error),
        }
    }

    /// Reads the data of a header at an offset that describes the next entry.
    fn extension(&mut self, size: u64, at: u64) -> Result<Vec<u8>, StorageError> {
        if size > MAX_EXTENSION {
            return unusable(format!(
                "the header at offset {at} has {size} bytes of attributes, more than {MAX_EXTENSION}"
            ));
        }
        let (mut data, mut bytes) = (Vec::new(), [0; BLOCK]);
        while (data.len() as u64) < size {
            if !self.source.fill(&mut bytes)? {
                return unusable(CUT);
            }
            data.extend_from_slice(&bytes);
        }
        data.truncate(size as usize);
        Ok(data)
    }

    /// Reads the attributes in the data of a header at an offset.
    fn attributes(&mut self, size: u64, at: u64) -> Result<Vec<u8>, StorageError> {
        let attributes = self.extension(size, at)?;
        if let Some(what) = hidden(&attributes) {
            self.tell(at, &format!("has attributes that contain {what}"));
        }
        Ok(attributes)
    }

    /// Reads the name in the data of a header at an offset. It ends at a zero, and only zeros follow it.
    fn long_name(&mut self, size: u64, at: u64) -> Result<Vec<u8>, StorageError> {
        let mut name = self.extension(size, at)?;
        let len = until_zero(&name).len();
        if name[len..].iter().any(|&byte| byte != 0) {
            self.tell(at, "has other bytes after a name");
        }
        name.truncate(len);
        Ok(name)
    }

    /// Passes over so many bytes and their padding. Returns whether they are a list of names in a folder: each after a letter
    /// and before a zero, and a zero at the end (GNU tar, "Dumpdir").
    fn is_list(&mut self, size: u64) -> Result<bool, StorageError> {
        let (mut is_list, mut last, mut has_ended) = (true, 0, false);
        let (mut left, mut bytes) = (size, [0; BLOCK]);
        while left > 0 {
            self.interrupt.check()?;
            if !self.source.fill(&mut bytes)? {
                return unusable(CUT);
            }
            for &byte in &bytes[..left.min(BLOCK as u64) as usize] {
                is_list &= !has_ended && (last != 0 || matches!(byte, 0 | b'Y' | b'N' | b'D' | b'R' | b'T' | b'X'));
                has_ended |= last == 0 && byte == 0;
                last = byte;
            }
            left = left.saturating_sub(BLOCK as u64);
        }
        Ok(is_list && (has_ended || size == 0))
    }

    /// Passes over the further maps of a sparse file of GNU tar. The last byte but seven of each says whether one more
    /// follows. To programs that know no sparse files, they are the next headers.
    fn skip_maps(&mut self, header: &Header<'_>, at: u64) -> Result<(), StorageError> {
        let mut is_extended = header.bytes[156] == b'S' && header.bytes[482] != 0;
        while is_extended {
            self.interrupt.check()?;
            let mut map = [0; BLOCK];
            if !self.source.fill(&mut map)? {
                return unusable(CUT);
            }
            if Header::of(&map).is_some() {
                self.tell(at, "has a map of a sparse file that is a header, too");
            }
            is_extended = map[504] != 0;
        }
        Ok(())
    }
}

fn damaged<T>(at: u64) -> Result<T, StorageError> {
    unusable(format!("its header at offset {at} is damaged"))
}

impl<'h> Header<'h> {
    /// The header in a block; `None` if its checksum or its size is wrong. The checksum is the sum of the bytes, with
    /// spaces in its own place. Old programs add signed bytes.
    fn of(bytes: &'h [u8; BLOCK]) -> Option<Self> {
        let stored = number(&bytes[148..156])?;
        let covered = || bytes[..148].iter().chain(&[b' '; 8]).chain(&bytes[156..]);
        let unsigned: u64 = covered().copied().map(u64::from).sum();
        let signed: i64 = covered().map(|&byte| i64::from(byte.cast_signed())).sum();
        let is_sound = stored == unsigned || i64::try_from(stored) == Ok(signed);
        let size = number(&bytes[124..136])?;
        is_sound.then_some(Header { bytes, size })
    }

    /// What its type says. An unknown type is a file, as POSIX has it.
    fn kind(&self) -> Kind {
        match self.bytes[156] {
            b'1' => Kind::Refused("it is a hard link, which is not followed"),
            b'2' => Kind::Refused(SYMBOLIC_LINK),
            b'3' | b'4' | b'6' => Kind::Refused("it is a device, not a file"),
            b'5' => Kind::Folder,
            b'S' => Kind::Unread(SPARSE),
            b'M' => Kind::Unread("it is a part of an archive of several files"),
            b'x' | b'X' => Kind::Attributes,
            b'L' => Kind::Name,
            b'g' => Kind::AttributesOfAll,
            b'K' => Kind::Target,
            b'D' => Kind::List,
            b'V' => Kind::Label,
            _ => Kind::File,
        }
    }

    /// The name, with the prefix that POSIX allows.
    fn name(&self) -> Vec<u8> {
        let (name, prefix) = (until_zero(&self.bytes[..100]), until_zero(&self.bytes[345..500]));
        let is_joined = self.bytes[257..263] == *b"ustar\0" || name.is_empty();
        if is_joined && !prefix.is_empty() {
            [prefix, b"/", name].concat()
        } else {
            name.to_vec()
        }
    }
}

/// The bytes before the first zero.
fn until_zero(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// The name in these bytes, which ends at a zero, as for GNU tar; `None` if it is empty.
fn name_in(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(until_zero(bytes).to_vec()).filter(|name| !name.is_empty())
}

/// A number in octal digits, or in bytes after one of 0x80; `None` if it is another one, or more than a file can have.
fn number(field: &[u8]) -> Option<u64> {
    let value = match field {
        [0x80, bytes @ ..] => bytes
            .iter()
            .try_fold(0_u64, |value, &byte| Some(value.checked_mul(256)? | u64::from(byte)))?,
        _ => {
            let digits = until_zero(field).trim_ascii();
            digits.iter().try_fold(0_u64, |value, &digit| match digit {
                b'0'..=b'7' => Some(value.checked_mul(8)? | u64::from(digit - b'0')),
                _ => None,
            })?
        }
    };
    (value <= i64::MAX as u64).then_some(value)
}

impl Extension {
    /// Takes the name in these bytes in place of another one of its kind.
    fn rename(&mut self, kind: fn(&mut Self) -> &mut Option<Vec<u8>>, bytes: &[u8]) {
        let Some(name) = name_in(bytes) else {
            return;
        };
        let Some(other) = kind(self).replace(name) else {
            return;
        };
        if self.replaced.len() < MAX_NAMES {
            self.replaced.push(other);
        } else {
            self.contradiction = Some("has too many names before it");
        }
    }

    /// How its parts contradict each other, or the size in a header. The header has no room for a large size: it has 0, as many
    /// digits as fit, or only sevens.
    fn contradiction(&self, in_header: u64) -> Option<&'static str> {
        let is_other = |size: u64| {
            let is_cut = size >= LARGE && [0, size % LARGE, LARGE - 1].contains(&in_header);
            size != in_header && !is_cut
        };
        let other_size = self.size.is_some_and(is_other).then_some(OTHER_SIZES);
        self.contradiction.or(other_size)
    }

    /// Takes attributes: records of a length in decimal digits, a space, a key, `=`, a value and a line feed. The length
    /// counts all of these. Returns `None` for other bytes.
    fn take(&mut self, mut attributes: &[u8]) -> Option<()> {
        while !attributes.is_empty() {
            let space = attributes.iter().take(20).position(|&byte| byte == b' ')?;
            let len: usize = std::str::from_utf8(&attributes[..space]).ok()?.parse().ok()?;
            let (record, rest) = attributes.split_at_checked(len)?;
            let record = record.get(space + 1..)?.strip_suffix(b"\n")?;
            let equals = record.iter().position(|&byte| byte == b'=')?;
            let (key, value) = (&record[..equals], &record[equals + 1..]);
            match key {
                b"path" => self.rename(|next| &mut next.path, value),
                b"GNU.sparse.name" => self.rename(|next| &mut next.sparse_name, value),
                b"size" => {
                    let size = std::str::from_utf8(value).ok()?.parse().ok()?;
                    if size > i64::MAX as u64 {
                        return None;
                    }
                    if self.size.replace(size).is_some_and(|other| other != size) {
                        self.contradiction = Some(OTHER_SIZES);
                    }
                }
                _ => {}
            }
            self.is_sparse |= key.starts_with(b"GNU.sparse.");
            attributes = rest;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Budget, ListMemory};

    #[test]
    fn numbers_have_two_forms() {
        for (field, value) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"  644 \0 ", Some(0o644)),
            (b"\0\0\0", Some(0)),
            (b"77777777777\0", Some(0o77_777_777_777)),
            (b"\x80\0\0\x01\x02", Some(258)),
            (b"\x80\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", Some(i64::MAX as u64)),
            (b"\x80\x80\0\0\0\0\0\0\0", None),
            (b"\x80\x01\0\0\0\0\0\0\0\0", None),
            (b"\xFF\xFF", None),
            (b"8", None),
            (b"-1", None),
            (b"777777777777777777777777", None),
        ] {
            assert_eq!(number(field), value, "{field:?}");
        }
    }

    /// A header of an empty file, again and again.
    struct Endless(u64, [u8; BLOCK]);

    impl Source for Endless {
        fn offset(&self) -> u64 {
            self.0
        }

        fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, StorageError> {
            buffer.copy_from_slice(&self.1[..buffer.len()]);
            self.0 += buffer.len() as u64;
            Ok(true)
        }

        fn skip(&mut self, len: u64) -> Result<bool, StorageError> {
            self.0 += len;
            Ok(true)
        }
    }

    #[test]
    fn entries_and_names_without_end_are_not_read() {
        for (kind, letter) in [(b'0', b'n'), (b'L', b'n')] {
            let mut header = [0; BLOCK];
            header[..3].copy_from_slice(&[letter; 3]);
            header[156] = kind;
            header[148..156].fill(b' ');
            let sum: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
            header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
            let looks = std::cell::Cell::new(0_u64);
            let is_set = || looks.replace(looks.get() + 1) > 2_000_000;
            let budget = std::sync::Arc::new(Budget::new(4 << 30, 0, None));
            let mut wanted = Wanted {
                memory: ListMemory::new(&budget, 1 << 40),
                is_wanted: &|_| true,
            };
            let read = directory(
                &mut Endless(0, header),
                |offset| Place::File { offset },
                &mut wanted,
                Interrupt::new(&is_set),
            );
            match kind {
                b'0' => {
                    let read = read.expect("entries");
                    assert_eq!(read.entries.len(), MAX_ENTRIES);
                    assert!(
                        read.failures
                            .first()
                            .is_some_and(|why| why.contains("more than 1000000 entries"))
                    );
                }
                _ => assert!(matches!(read, Err(StorageError::Interrupted(_))), "names of no entry"),
            }
        }
    }

    #[test]
    fn attributes_are_taken_as_a_whole_or_not() {
        let take = |attributes: &[u8]| {
            let mut next = Extension::default();
            next.take(attributes).map(|()| next)
        };
        let next = take(b"12 path=a=\n\n16 size=1048576\n11 other=x\n").expect("attributes");
        assert_eq!((next.path.as_deref(), next.size), (Some(&b"a=\n"[..]), Some(1 << 20)));
        assert!(!next.is_sparse && take(b"22 GNU.sparse.major=1\n").expect("one").is_sparse);
        for wrong in [
            &b"13 path=a=\n\n"[..],
            b"11 path=a=\n\n",
            b"path=a\n",
            b"0 path=a\n",
            b"99999999999999999999999 path=a\n",
            b"18446744073709551615 path=a\n",
            b"9 pathxa\n",
            b"10 size=-1\n",
            b"28 size=9223372036854775808\n",
            b"3 \n",
            b"2 ",
        ] {
            assert!(take(wrong).is_none(), "{wrong:?}");
        }
    }
}
