//! Any bytes, as a file of messages.
#![no_main]

use evtx_format::Interrupt;
use evtx_messages::mta::SavedMessages;

libfuzzer_sys::fuzz_target!(|file: &[u8]| {
    let Ok(messages) = SavedMessages::read(file.to_vec(), Interrupt::NEVER) else {
        return;
    };
    let mut out = Vec::new();
    for record in 0..200 {
        for provider in [
            "Service Control Manager",
            "EventLog",
            "Microsoft-Windows-WindowsUpdateClient",
        ] {
            out.clear();
            if messages.push(provider, record, 14_001 + record, &mut out) {
                std::str::from_utf8(&out).expect("messages are UTF-8");
            }
        }
    }
});
