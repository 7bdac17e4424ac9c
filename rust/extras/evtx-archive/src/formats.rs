//! Which files are archives or compressed, by the ends of their names.

use evtx_scan::{Nesting, ends_with};

use crate::codec::Method;

/// What kind of archive a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Zip,
    SevenZip,
    /// A tar, compressed as a whole.
    Tar(Method),
}

/// Archives, by the ends of their names.
const ARCHIVES: &[(&str, Format)] = &[
    (".zip", Format::Zip),
    (".zipx", Format::Zip),
    (".7z", Format::SevenZip),
    (".tar", Format::Tar(Method::Stored)),
    (".tar.gz", Format::Tar(Method::Gzip)),
    (".tgz", Format::Tar(Method::Gzip)),
    (".tar.zst", Format::Tar(Method::Zstd)),
    (".tzst", Format::Tar(Method::Zstd)),
    (".tar.bz2", Format::Tar(Method::Bzip2)),
    (".tbz2", Format::Tar(Method::Bzip2)),
    (".tbz", Format::Tar(Method::Bzip2)),
    (".tar.xz", Format::Tar(Method::Xz)),
    (".txz", Format::Tar(Method::Xz)),
];

/// How files are compressed that hold one file, by the ends of their names.
const COMPRESSED: &[(&str, Method)] = &[
    (".gz", Method::Gzip),
    (".zst", Method::Zstd),
    (".bz2", Method::Bzip2),
    (".xz", Method::Xz),
];

/// Which files are archives.
pub static NESTING: Nesting = Nesting {
    folders: &ends::<_, { ARCHIVES.len() }>(ARCHIVES),
    files: &ends::<_, { COMPRESSED.len() }>(COMPRESSED),
};

const fn ends<T, const N: usize>(table: &[(&'static str, T)]) -> [&'static str; N] {
    let mut out = [""; N];
    let mut nth = 0;
    while nth < N {
        out[nth] = table[nth].0;
        nth += 1;
    }
    out
}

fn of<T: Copy>(table: &[(&str, T)], path: &str) -> Option<T> {
    let found = table.iter().find(|(end, _)| ends_with(path, end));
    found.map(|&(_, value)| value)
}

/// The format of an archive.
pub(crate) fn format_of(path: &str) -> Option<Format> {
    of(ARCHIVES, path)
}

/// The method of a compressed file.
pub(crate) fn method_of(path: &str) -> Option<Method> {
    of(COMPRESSED, path)
}
