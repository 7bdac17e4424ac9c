//! Any text, as Sigma rules. Those that load are evaluated.
#![no_main]

use evtx_format::Interrupt;
use evtx_sigma::{LogSources, Placeholders, load_rules};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let placeholders = Placeholders::from([("p".to_string(), vec!["*".to_string(), String::new()])]);
    let event = [
        ("CommandLine", Some("powershell -enc ZQBjAGgAbwA=")),
        ("Image", Some("C:\\Windows\\System32\\cmd.exe")),
        ("EventID", Some("4624")),
        ("IpAddress", Some("10.1.1.1")),
        ("UtcTime", Some("2024-01-01 02:03:04")),
        ("Missing", None),
    ];
    for rule in load_rules(text, &placeholders) {
        match rule {
            Ok(rule) => {
                rule.matches(&&event[..]);
                let _ = LogSources::builtin().resolve(&rule.log_sources);
            }
            Err(refused) => assert!(refused.error.position.line >= 1, "{refused}"),
        }
    }
    let _ = LogSources::load(text, Interrupt::NEVER);
});
