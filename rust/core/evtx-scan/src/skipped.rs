//! Files that look like evidence, but are not read because of their names, and what to do about them.

use crate::storage::ends_with;

const OLD_LOG: &str =
    "it is a log of Windows XP or Server 2003: convert it on Windows with `wevtutil epl old.evt new.evtx /lf:true`";
const TRACE: &str = "it is a trace of events: convert it on Windows with `tracerpt trace.etl -o trace.evtx -of EVTX`";
const COPY: &str = "its name does not end in .evtx: pass its own path to read it";
const IMAGE: &str = "it is an image of a disk: mount it, or extract its logs";
const FILES: &str = "it is an image of files, not of a disk: extract its logs";
const RAW: &str = "it is a raw image: mount it, extract its logs, or pass its own path with `recover := true`";
const MEMORY: &str = "it is an image of memory: pass its own path with `recover := true`";
const PART: &str = "it is one part of an archive or image: join the parts";
const ENCRYPTED: &str = "it is encrypted: decrypt it";
const ARCHIVE: &str = "it is a kind of archive or compression that is not supported: extract it";

/// The ends of names, each with what such a file is and what to do.
const SKIPPED: [(&str, &[&str]); 10] = [
    (OLD_LOG, &[".evt"]),
    (TRACE, &[".etl"]),
    (
        COPY,
        &[
            ".evtx.1",
            ".evtx~",
            ".evtx.bak",
            ".evtx.backup",
            ".evtx.old",
            ".evtx.orig",
            ".evtx.copy",
            ".evtx.save",
            ".evtx.tmp",
        ],
    ),
    (
        IMAGE,
        &[
            ".e01", ".ex01", ".s01", ".aff", ".aff4", ".vhd", ".vhdx", ".avhd", ".avhdx", ".vmdk", ".vdi", ".qcow2",
            ".iso", ".dmg",
        ],
    ),
    (FILES, &[".ad1", ".l01", ".lx01", ".wim", ".esd"]),
    (RAW, &[".dd", ".raw", ".img"]),
    (MEMORY, &[".mem", ".vmem", ".dmp", ".lime"]),
    (PART, &[".001", ".z01"]),
    (ENCRYPTED, &[".evtx.gpg"]),
    (
        ARCHIVE,
        &[
            ".rar",
            ".cab",
            ".lzh",
            ".ace",
            ".arj",
            ".ova",
            ".tar.lz4",
            ".tar.lz",
            ".tar.lzma",
            ".tar.br",
            ".evtx.lz4",
            ".evtx.lz",
            ".evtx.lzma",
            ".evtx.br",
        ],
    ),
];

/// What to do about a file with this name that no folder is read for, if it looks like evidence.
pub(crate) fn advice(name: &str) -> Option<&'static str> {
    let is = |ends: &[&str]| ends.iter().any(|end| ends_with(name, end));
    SKIPPED.iter().find(|(_, ends)| is(ends)).map(|&(advice, _)| advice)
}

/// The same about a file that was read, and is not a log.
pub(crate) fn advice_on_other(name: &str) -> Option<&'static str> {
    advice(name).filter(|&advice| advice != COPY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_evidence_have_advice() {
        for (name, expected) in [
            ("SecEvent.Evt", Some(OLD_LOG)),
            ("case/boot.etl", Some(TRACE)),
            ("Security.evtx.bak", Some(COPY)),
            ("Security.evtx~", Some(COPY)),
            ("Security.EVTX.1", Some(COPY)),
            ("https://host/DISK.E01?key=1", Some(IMAGE)),
            ("checkpoint.avhd", Some(IMAGE)),
            ("case.AD1", Some(FILES)),
            ("case.Lx01", Some(FILES)),
            ("disk.dd", Some(RAW)),
            ("MEMORY.DMP", Some(MEMORY)),
            ("case.7z.001", Some(PART)),
            ("Security.evtx.gpg", Some(ENCRYPTED)),
            ("logs.rar", Some(ARCHIVE)),
            ("machine.ova", Some(ARCHIVE)),
            ("Security.evtx", None),
            ("notes.bak", None),
            ("case.zip", None),
            ("disk.e01.txt", None),
        ] {
            assert_eq!(advice(name), expected, "{name}");
            let other = expected.filter(|&advice| advice != COPY);
            assert_eq!(advice_on_other(name), other, "{name}");
        }
    }
}
