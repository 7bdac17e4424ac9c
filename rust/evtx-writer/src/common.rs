//! Names that redactions do not look for.

/// Names that say nothing about anybody: the parts of names of providers, channels, fields and accounts that all Windows
/// have. They do not stand for an account or a host, so a redaction does not look for them alone.
const COMMON: &[&str] = &[
    "admin",
    "administrator",
    "application",
    "client",
    "computer",
    "data",
    "default",
    "device",
    "domain",
    "event",
    "file",
    "guest",
    "host",
    "image",
    "kernel",
    "local",
    "manager",
    "microsoft",
    "name",
    "network",
    "none",
    "power",
    "process",
    "public",
    "remote",
    "security",
    "server",
    "service",
    "setup",
    "source",
    "system",
    "target",
    "task",
    "test",
    "type",
    "user",
    "users",
    "windows",
    "workgroup",
    "workstation",
];

/// Whether a name says nothing about an account or a host.
pub(crate) fn is_common(name: &str) -> bool {
    COMMON.iter().any(|common| common.eq_ignore_ascii_case(name))
}
