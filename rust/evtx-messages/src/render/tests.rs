use evtx_format::value::{Scalar, Value};

use super::*;

fn parameter(id: u32) -> Option<Cow<'static, str>> {
    Some(match id {
        1833 => "Impersonation\r\n".into(),
        7 => "seven %1 %n%0 not shown".into(),
        8 => "<%%7>".into(),
        9 => "%%9%%9".into(),
        10 => "x".repeat(1000).into(),
        _ => return None,
    })
}

fn rendered_to(text: &str, values: &[&str], bytes: usize) -> (String, bool) {
    let insertions: Vec<_> = values.iter().map(|&value| Insertion::Text(value)).collect();
    let mut out = b"before".to_vec();
    let template = Template::parse(text);
    let complete = render(
        (text, &template),
        &insertions[..],
        Declared::default(),
        &parameter,
        &mut out,
        Limits { bytes },
    );
    let out = String::from_utf8(out).expect("UTF-8");
    (out.strip_prefix("before").expect("what was there").to_owned(), complete)
}

fn rendered(text: &str, values: &[&str]) -> String {
    rendered_to(text, values, 1 << 20).0
}

#[test]
fn insertions_and_escapes_are_filled_in() {
    for (text, values, expected) in [
        (
            "Logon of %1 from %2.%n%tType: %3\r\n",
            &["a", "b", "3"][..],
            "Logon of a from b.\r\n\tType: 3",
        ),
        ("%1 %5 %2!s!", &["a"], "a %5 %2"),
        ("%1!08x!", &["255"], "000000ff"),
        (
            "%%1833 and %1",
            &["x %%1833 y %%5 %%"],
            "Impersonation and x Impersonation y %%5 %%",
        ),
        ("%%%1", &["1833"], "Impersonation"),
        ("%%%1", &["5"], "%%5"),
        ("%%%1", &["a"], "%a"),
        ("100%% of %%8", &[], "100% of <seven %1 \r\n>"),
        ("%1%n%n", &["a\r\n"], "a"),
        ("a %0 b", &[], "a "),
        ("%1", &["%2 stays"], "%2 stays"),
    ] {
        assert_eq!(rendered(text, values), expected, "{text}");
    }
}

#[test]
fn values_null_and_maps() {
    let map = ValueMap {
        name: "m".into(),
        is_bit_map: false,
        entries: vec![(5, "five".into())],
    };
    let field = |map: Option<&str>| Field {
        map: map.map(Into::into),
        ..Field::default()
    };
    let fields = [field(None), field(Some("m")), field(Some("other"))];
    let bytes = 5_u32.to_le_bytes();
    let five = Insertion::Value(Value::new(Scalar::UInt32, &bytes));
    let insertions = [Insertion::Value(Value::new(Scalar::Null, &[])), five, five];
    let text = "[%1][%2][%3][%4]";
    let mut out = Vec::new();
    let declared = Declared {
        fields: &fields,
        maps: &[map],
    };
    assert!(render(
        (text, &Template::parse(text)),
        &insertions[..],
        declared,
        &|_| None,
        &mut out,
        Limits::default()
    ));
    assert_eq!(String::from_utf8(out).as_deref(), Ok("[][five][5][%4]"));
}

#[test]
fn chains_and_sizes_are_bounded() {
    // Each doubles, and ends at the depth.
    assert_eq!(rendered("%%9", &[]), "%%9".repeat(1 << MAX_DEPTH));
    let many = rendered(&"%1".repeat(2000), &["%%1833"]);
    assert_eq!(many.matches("Impersonation").count(), MAX_PARAMETERS);
    assert_eq!(rendered_to("aé%1", &["bcd"], 4), ("aéb".to_owned(), false));
    assert_eq!(rendered_to("aé", &[], 2), ("a".to_owned(), false));
    let (long, complete) = rendered_to(&"%%10".repeat(9000), &[], 1 << 20);
    assert_eq!((long.len(), complete), (1 << 20, false));
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_rendering(text in "[%!0-9xsnt a\r\né]{0,60}", value in "[%0-9a]{0,9}", limit in 0_usize..99) {
        let (out, complete) = rendered_to(&text, &[&value, "b"], limit);
        proptest::prop_assert!(out.len() <= limit);
        proptest::prop_assert!(complete || out.len() + 4 > limit);
    }
}
