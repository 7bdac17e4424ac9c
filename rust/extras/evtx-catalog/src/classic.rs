//! The providers of the logs that most cases have.

use std::collections::HashSet;

/// The names of the classic providers, in lower case of ASCII letters: those that a query without a provider is about.
///
/// They write to the logs that most cases have: Security, System, Application and Setup, Sysmon, and the operational
/// logs of PowerShell, Task Scheduler, Remote Desktop, Defender, BITS, WMI, the firewall, and the like. Sources such as
/// `MsiInstaller`, `ESENT` and `PowerShell` do too, but declare no fields.
pub fn classic_providers() -> HashSet<String> {
    CLASSIC_PROVIDERS.lines().map(str::to_ascii_lowercase).collect()
}

pub(crate) const CLASSIC_PROVIDERS: &str = include_str!("../data/classic_providers.txt");
