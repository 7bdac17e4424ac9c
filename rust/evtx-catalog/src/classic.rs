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

const CLASSIC_PROVIDERS: &str = include_str!("../data/classic_providers.txt");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::all_events;

    #[test]
    fn the_catalog_has_each() {
        assert!(CLASSIC_PROVIDERS.lines().is_sorted_by_key(str::to_lowercase));
        let known: HashSet<_> = all_events().map(|event| event.provider).collect();
        for name in CLASSIC_PROVIDERS.lines() {
            assert!(known.contains(name), "{name}");
        }
    }
}
