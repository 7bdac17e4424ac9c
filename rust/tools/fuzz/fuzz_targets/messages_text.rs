//! Any text, as the text of a message, of its values, and of its parameters.
#![no_main]

use evtx_messages::Insertion;
use evtx_messages::render::{Declared, render};
use evtx_messages::template::Template;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let values = [Insertion::Text(text), Insertion::Text("5")];
    let template = Template::parse(text);
    let parameters = |id| (id % 2 == 0).then_some(text.into());
    let mut out = Vec::new();
    let limit = 100_000;
    render(
        (text, &template),
        &values[..],
        Declared::default(),
        &parameters,
        &mut out,
        limit,
    );
    assert!(out.len() <= limit);
    std::str::from_utf8(&out).expect("messages are UTF-8");
});
