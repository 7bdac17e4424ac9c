//! The providers of the logs that most cases have.

use std::collections::HashSet;

/// The names of the classic providers, in lower case of ASCII letters: those that a query without a provider is about.
///
/// They write to the logs that most cases have: Security, System, Application and Setup, Sysmon, and the operational
/// logs of PowerShell, Task Scheduler, Remote Desktop, Defender, BITS, WMI, the firewall, and the like. Sources such as
/// `MsiInstaller`, `ESENT` and `PowerShell` write to these logs too, but declare no fields: their events have unnamed
/// strings.
pub fn classic_providers() -> HashSet<String> {
    CLASSIC_PROVIDERS.iter().map(|name| name.to_ascii_lowercase()).collect()
}

const CLASSIC_PROVIDERS: &[&str] = &[
    "Application Error",
    "Application Hang",
    "Application Popup",
    "LsaSrv",
    "Microsoft-Windows-AAD",
    "Microsoft-Windows-Application-Experience",
    "Microsoft-Windows-AppLocker",
    "Microsoft-Windows-AppModel-Runtime",
    "Microsoft-Windows-AppXDeployment",
    "Microsoft-Windows-AppXDeployment-Server",
    "Microsoft-Windows-AppxPackagingOM",
    "Microsoft-Windows-Backup",
    "Microsoft-Windows-BitLocker-API",
    "Microsoft-Windows-Bits-Client",
    "Microsoft-Windows-CAPI2",
    "Microsoft-Windows-CertificateServicesClient-Lifecycle-System",
    "Microsoft-Windows-CertificateServicesClient-Lifecycle-User",
    "Microsoft-Windows-CodeIntegrity",
    "Microsoft-Windows-Dhcp-Client",
    "Microsoft-Windows-DHCPv6-Client",
    "Microsoft-Windows-Diagnosis-Scripted",
    "Microsoft-Windows-Directory-Services-SAM",
    "Microsoft-Windows-DistributedCOM",
    "Microsoft-Windows-DNS-Client",
    "Microsoft-Windows-DriverFrameworks-UserMode",
    "Microsoft-Windows-Eventlog",
    "Microsoft-Windows-FilterManager",
    "Microsoft-Windows-Firewall",
    "Microsoft-Windows-GroupPolicy",
    "Microsoft-Windows-HttpEvent",
    "Microsoft-Windows-HttpService",
    "Microsoft-Windows-Iphlpsvc",
    "Microsoft-Windows-Kernel-Boot",
    "Microsoft-Windows-Kernel-General",
    "Microsoft-Windows-Kernel-PnP",
    "Microsoft-Windows-Kernel-Power",
    "Microsoft-Windows-Kernel-ShimEngine",
    "Microsoft-Windows-LiveId",
    "Microsoft-Windows-NetworkProfile",
    "Microsoft-Windows-Ntfs",
    "Microsoft-Windows-NTLM",
    "Microsoft-Windows-Partition",
    "Microsoft-Windows-Power-Troubleshooter",
    "Microsoft-Windows-PowerShell",
    "Microsoft-Windows-PrintService",
    "Microsoft-Windows-Program-Compatibility-Assistant",
    "Microsoft-Windows-RemoteDesktopServices-RdpCoreTS",
    "Microsoft-Windows-Resource-Exhaustion-Detector",
    "Microsoft-Windows-RPC",
    "Microsoft-Windows-Security-Auditing",
    "Microsoft-Windows-Security-Kerberos",
    "Microsoft-Windows-Security-Mitigations",
    "Microsoft-Windows-Security-Netlogon",
    "Microsoft-Windows-Security-SPP",
    "Microsoft-Windows-SENSE",
    "Microsoft-Windows-Servicing",
    "Microsoft-Windows-Setup",
    "Microsoft-Windows-Shell-Core",
    "Microsoft-Windows-SMBClient",
    "Microsoft-Windows-SMBServer",
    "Microsoft-Windows-SoftwareRestrictionPolicies",
    "Microsoft-Windows-StorPort",
    "Microsoft-Windows-Sysmon",
    "Microsoft-Windows-TaskScheduler",
    "Microsoft-Windows-TerminalServices-ClientActiveXCore",
    "Microsoft-Windows-TerminalServices-LocalSessionManager",
    "Microsoft-Windows-TerminalServices-RemoteConnectionManager",
    "Microsoft-Windows-Time-Service",
    "Microsoft-Windows-TPM-WMI",
    "Microsoft-Windows-UAC",
    "Microsoft-Windows-User Profiles Service",
    "Microsoft-Windows-UserModePowerService",
    "Microsoft-Windows-UserPnp",
    "Microsoft-Windows-VHDMP",
    "Microsoft-Windows-WER-SystemErrorReporting",
    "Microsoft-Windows-Windows Defender",
    "Microsoft-Windows-Windows Firewall With Advanced Security",
    "Microsoft-Windows-WindowsUpdateClient",
    "Microsoft-Windows-Wininit",
    "Microsoft-Windows-Winlogon",
    "Microsoft-Windows-WinRM",
    "Microsoft-Windows-WLAN-AutoConfig",
    "Microsoft-Windows-WMI",
    "Microsoft-Windows-WMI-Activity",
    "Ntfs",
    "OpenSSH",
    "Schannel",
    "Service Control Manager",
    "User32",
    "Windows Error Reporting",
];

#[cfg(test)]
mod tests {
    use super::CLASSIC_PROVIDERS;
    use crate::packed::directory;

    #[test]
    fn the_catalog_has_each() {
        assert!(CLASSIC_PROVIDERS.is_sorted_by_key(|name| name.to_lowercase()));
        let blocks = directory(include_bytes!("../data/events.bin")).expect("a directory");
        let known: Vec<_> = blocks.iter().flat_map(|block| &block.providers).collect();
        for name in CLASSIC_PROVIDERS {
            assert!(known.iter().any(|known| &***known == *name), "{name}");
        }
    }
}
