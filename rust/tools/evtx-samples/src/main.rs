//! Writes the logs under `samples/`. usage: `make_samples FOLDER [CHUNKS]`
//!
//! With CHUNKS, it also writes two logs of so many different chunks, to measure with: large-security.evtx and
//! large-sysmon.evtx.
//!
//! The logs tell one story, of the morning of 5 March 2024 at northwind.example. Somebody at 203.0.113.45 tries one
//! password on many accounts of the domain controller DC01 and gets in as `svc-backup`. They install a service that runs
//! a downloaded program, and clear the Security log of the workstation WS07. Other logs have shapes that readers must
//! handle: wrapped, dirty, damaged, and with everything that BinXML can hold.

mod machine;
mod story;
mod oddities;
mod shapes;
mod large;

use std::path::Path;

/// Every sample: its path and its bytes.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let mut samples = story::logs();
    samples.extend(oddities::logs());
    samples.extend(shapes::logs());
    samples.push(("LocaleMetaData/DC01-System_1033.MTA", story::system_messages()));
    samples
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "samples".to_owned());
    let mut logs = samples();
    if let Some(chunks) = std::env::args().nth(2) {
        let chunks = chunks.parse().map_err(std::io::Error::other)?;
        logs.push(("large-security.evtx", large::security(chunks)));
        logs.push(("large-sysmon.evtx", large::sysmon(chunks)));
    }
    for (name, bytes) in logs {
        let path = Path::new(&folder).join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tracked_samples_are_what_make_samples_writes() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples");
        let samples = samples();
        let mut total = 0;
        for (name, bytes) in &samples {
            let tracked = std::fs::read(folder.join(name)).unwrap_or_default();
            assert!(tracked == *bytes, "samples/{name} differs: run make samples");
            total += bytes.len();
        }
        assert!(total < 4 << 20, "{total} bytes of samples");
        let is_log = |path: &Path| path.extension().is_some_and(|extension| extension == "evtx");
        let tracked = std::fs::read_dir(&folder).expect("the folder").flatten();
        let tracked = tracked.filter(|entry| is_log(&entry.path())).count();
        let written = samples.iter().filter(|(name, _)| is_log(Path::new(name))).count();
        assert_eq!(tracked, written, "logs under samples/ that make samples does not write");
    }
}
