//! Tests of plans: what that of a template gives of a record is what that of the record's own tree gives.

use evtx_format::binxml::instance::{Definition, ValueTable};
use evtx_format::binxml::tree;
use evtx_format::value::{Scalar, Value as Stored};
use evtx_format::{MAX_NAMES, MAX_TEXT};
use evtx_writer::{Content, Element, Event, Stream, Substitution, Template, Value};

use super::column_plan::{EntryId, Plan};
use super::keys::Keys;
use super::projection::Projection;
use super::projection::TreeRoot;
use super::source::Resolved;
use crate::schema::{COLUMNS, ColumnSource};
use crate::testing::{self, data, leaf};

/// A projection of every path, all of `event_data`, two of its keys and `user_data`.
fn projection() -> Projection {
    let mut projection = Projection {
        user_data: true,
        ..Projection::default()
    };
    for column in COLUMNS {
        if let ColumnSource::Path(path, _) = column.source {
            projection.path(path);
        }
    }
    projection.key("b");
    projection.key("a");
    projection
}

/// A projection of every value.
fn every_value() -> Projection {
    Projection {
        user_entries: true,
        other_values: true,
        ..projection()
    }
}

/// What a plan gives of a record: its fields, its entries and the keys among them, as text.
fn given(projection: &Projection, keys: &Keys, plan: &Plan, values: ValueTable<'_>) -> String {
    let text = |found: Resolved<'_, '_>| {
        let mut text = Vec::new();
        found.push_entry(&mut text);
        String::from_utf8(text).expect("UTF-8")
    };
    let mut given = Vec::new();
    for (path, source) in projection.paths.iter().zip(&plan.paths) {
        if let Some(found) = source.as_ref().and_then(|source| source.find(values)) {
            let attribute = path.attribute.map(|name| format!("@{name}")).unwrap_or_default();
            given.push(format!("{}{attribute}={}", path.elements.join("/"), text(found)));
        }
    }
    if let Some(event_data) = plan.event_data(values) {
        given.push("map".to_owned());
        for entry in &event_data.entries {
            if let Some(found) = entry.source.find(values) {
                given.push(format!("{}={}", keys.name(&entry.key), text(found)));
            }
        }
        for key in ["a", "b"] {
            let entry = projection.key_index(key).and_then(|number| event_data.keyed[number]);
            if let Some(found) = entry.and_then(|EntryId(entry)| event_data.entries[entry].source.find(values)) {
                given.push(format!("[{key}]={}", text(found)));
            }
        }
    }
    if plan.has_user_data(values) {
        given.push("user".to_owned());
    }
    for entry in plan.other_values.iter().flat_map(|others| &others.entries) {
        if let Some(found) = entry.source.find(values) {
            given.push(format!("({}={})", keys.name(&entry.key), text(found)));
        }
    }
    for entry in plan.user_entries(values).iter().flat_map(|leaves| &leaves.entries) {
        if let Some(found) = entry.source.find(values) {
            given.push(format!("{{{}={}}}", keys.name(&entry.key), text(found)));
        }
    }
    given.join(" ")
}

/// Whether the plan of an event's template supports its values, and what the event's own tree gives, as the plan does.
fn planned(projection: &Projection, root: Element, values: Vec<Value>) -> (Supported, String) {
    let chunk = testing::chunk(&[Event::new(&Template::new([7; 16], root), values)]);
    testing::with_instances(&chunk, |reader, instances| {
        let (keys, instance) = (Keys::default(), &instances[0]);
        let definition = Definition::read(&chunk, instance.definition).expect("a definition");
        let template = reader.template(&definition).expect("a template");
        let plan = Plan::new(projection, &keys, template.root, TreeRoot::Event);
        let tree = reader.instance(instance).expect("a tree");
        let own = Plan::new(projection, &keys, tree, TreeRoot::Event);
        assert!(own.supports(ValueTable::none()), "a tree without substitutions");
        let expected = given(projection, &keys, &own, ValueTable::none());
        let supported = match (plan.supports(instance.values), plan.irregular) {
            (true, _) => Supported::Yes,
            (false, true) => Supported::Irregular,
            (false, false) => Supported::NotTheseValues,
        };
        if supported == Supported::Yes {
            assert_eq!(given(projection, &keys, &plan, instance.values), expected);
        }
        (supported, expected)
    })
}

#[derive(Debug, PartialEq)]
enum Supported {
    Yes,
    NotTheseValues,
    Irregular,
}
use Supported::{Irregular, NotTheseValues, Yes};

fn element(name: &str, children: impl IntoIterator<Item = Element>) -> Element {
    children.into_iter().fold(Element::new(name), Element::child)
}

/// An `Event` that has an `EventData` with these.
fn with_data(children: impl IntoIterator<Item = Element>) -> Element {
    element("Event", [element("EventData", children)])
}

fn substitution(index: u16) -> Content {
    Content::Substitution(Substitution::new(index, 0))
}

fn text(text: &str) -> Content {
    Content::Text(text.to_owned())
}

fn constant(name: &str, text: &str) -> Element {
    Element::new("Data").attribute("Name", name).text(text)
}

fn string(text: &str) -> Value {
    Value::string(text)
}

/// The bytes of a text in UTF-16LE.
fn utf16(text: &str) -> Value {
    Value::Binary(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
}

fn strings(items: &[&str]) -> Value {
    Value::StringArray(items.iter().map(|&item| item.to_owned()).collect())
}

/// A stream with an element.
fn stream(element: Element) -> Value {
    Value::BinXml(Stream::new(vec![evtx_writer::Fragment::Element(element)]))
}

/// A list of cases: an event and its values, whether the plan of its template supports them, and what it gives.
macro_rules! cases {
    ($($root:expr, $values:expr => $supported:ident $given:expr;)+) => {
        vec![$(($root, $values, $supported, $given)),+]
    };
}

macro_rules! check {
    ($($cases:tt)+) => { check(cases! { $($cases)+ }) };
}

#[track_caller]
fn check(cases: Vec<(Element, Vec<Value>, Supported, &str)>) {
    for (root, values, supported, expected) in cases {
        let case = format!("{root:?} with {values:?}");
        // A stream is a part of its own, with a plan of its own.
        if !values.iter().any(|value| matches!(value, Value::BinXml(_))) {
            planned(&every_value(), root.clone(), values.clone());
        }
        assert_eq!(
            planned(&projection(), root, values),
            (supported, expected.to_owned()),
            "{case}"
        );
    }
}

#[test]
fn values_that_are_no_entries_have_names() {
    let event = |child: Element| element("Event", [element("System", [Element::new("EventID").text("7")]), child]);
    let two = || vec![Value::Null, string("y")];
    let certificate = || {
        Element::new("Certificate")
            .attribute("xmlns:a", "b")
            .attribute("subject", "s")
            .text("t")
    };
    let other = |name: &str, text: &str| Element::new(name).text(text);
    let cases = cases! {
        // Attributes, and text next to elements, of elements whose leaves are entries.
        event(element("EventData", [certificate()])), vec![] => Yes "(Certificate.subject=s)";
        event(element("UserData", [element("Root", [certificate()])])), vec![]
            => Yes "(Certificate.subject=s) {Certificate=t}";
        // The attributes of an element of `UserData`, and elements of `UserData` that are values, are entries.
        event(element("UserData", [certificate(), other("N", "5")])), vec![]
            => Yes "{Certificate.subject=s} {Certificate=t} {N=5}";
        event(element("UserData", [Element::new("Root").attribute_substitution("a", Substitution::new(0, 1)).attribute_substitution("b", Substitution::new(1, 1))])), two()
            => Yes "{Root.b=y} {Root=}";
        event(element("EventData", [constant("a", "x").attribute("Type", "T").child(certificate()).text("z")])), vec![]
            => Yes "(a.Type=T) (Certificate.subject=s)";
        // All values of other children.
        event(element("RenderingInfo", [other("Message", "m"), element("Keywords", [other("Keyword", "k")])])), vec![]
            => Yes "(RenderingInfo.Message=m) (RenderingInfo.Keyword=k)";
        // The leaves of a second element are entries, too.
        element("Event", ["x", "y"].map(|text| element("EventData", [constant("a", text).attribute("Type", text)]))), vec![]
            => Yes "(a.Type=x) (a.Type=y)";
        // `System` beyond its paths.
        element("Event", [element("System", [other("Channel", "c"), other("Channel", "d"), other("New", "n")])]), vec![]
            => Yes "(System.Channel=d) (System.New=n)";
        // What a record leaves out, and empty values.
        event(element("Other", [leaf("a", 0), leaf("b", 1), leaf("c", 1).depends_on(0)])), two() => Yes "(Other.b=y)";
        event(element("Other", [leaf("a", 1).attribute_of("k", vec![substitution(0), substitution(1)])])), two()
            => Yes "(Other.a.k=y) (Other.a=y)";
        event(element("Other", [element("a", [leaf("b", 1).depends_on(1)]).depends_on(0)])), two() => Irregular "";
        event(element("Other", [Element::new("Data").attribute_of("Name", vec![substitution(1)]).text("x")])), two()
            => Irregular "(Other.y=x)";
        event(element("Other", [leaf("a", 0)])), vec![strings(&["x", "y"])] => NotTheseValues "(Other.a=x) (Other.a=y)";
    };
    for (root, values, supported, expected) in cases {
        let case = format!("{root:?} with {values:?}");
        let (found, given) = planned(&every_value(), root, values);
        let others = given.find(['(', '{']).map_or("", |at| &given[at..]);
        assert_eq!((found, others), (supported, expected), "{case}");
    }
}

#[test]
fn only_what_is_read_counts() {
    let channel = |text: &str| Element::new("Channel").text(text);
    check! {
        // A field is that of the first element with the name of its parent.
        element("Event", [element("Other", [channel("x")])]), vec![] => Yes "";
        element("Event", ["x", "y"].map(|text| element("System", [channel(text)]))), vec![] => Yes "System/Channel=x";
        // What nobody reads can be anything.
        element("Event", [element("Other", [data("b", 0)]), element("EventData", [data("a", 1)])]),
        vec![stream(Element::new("In").text("x")), strings(&["x", "y"])] => Yes "map a=[\"x\",\"y\"] [a]=[\"x\",\"y\"]";
    }
}

#[test]
fn children_of_event_data_and_text_beside_them() {
    let with_text = |child: Element| element("Event", [element("EventData", [child]).content(substitution(0))]);
    check! {
        // A record that leaves the child out has a text.
        with_text(data("a", 1).depends_on(1)), vec![string("x"), string("y")] => Irregular "map a=y EventData=x [a]=y";
        // A text can be blank.
        with_text(data("a", 1)), vec![string("x"), string("y")] => Irregular "map a=y EventData=x [a]=y";
        with_text(data("a", 1)), vec![string(" \n"), string("y")] => Irregular "map a=y [a]=y";
        with_text(data("a", 1)), vec![Value::Null, string("y")] => Irregular "map a=y [a]=y";
        // Each is a value of the element that it is in.
        element("Event", [Element::new("EventData").text("p").child(data("a", 0)).text("\n").child(data("b", 1)).text("q")]),
        vec![string("x"), string("y")] => Yes "map EventData=p a=x b=y EventData_1=q [a]=x [b]=y";
        with_data([Element::new("Data").attribute("Name", "a").text("p").child(leaf("In", 0)).depends_on(1)]),
        vec![string("x"), string("y")] => Yes "map a=p In=x [a]=p";
        with_data([Element::new("Data").attribute("Name", "a").text("p").child(leaf("In", 0)).depends_on(1)]),
        vec![string("x"), Value::Null] => Yes "map";
        with_data([Element::new("Data").text("p").child(leaf("In", 0)).text("q"), leaf("Data", 1)]),
        vec![string("x"), string("y")] => Yes "map param1=p In=x param1_1=q param2=y";
        // Not each attribute `Name` names values.
        with_data([leaf("In", 0).attribute("Name", "a")]), vec![string("x")] => Yes "map In=x";
        // Copies that an array makes do not end the entries.
        with_data([data("a", 0), data("b", 1)]), vec![strings(&["x", "y"]), string("z")]
            => Yes "map a=[\"x\",\"y\"] b=z [a]=[\"x\",\"y\"] [b]=z";
    }
}

#[test]
fn entries_are_constants_substitutions_and_concatenations() {
    let concatenated = Element::new("Data")
        .attribute("Name", "b")
        .content(text("<"))
        .content(substitution(0))
        .content(Content::CharRef(62))
        .content(substitution(1));
    check! {
        with_data([data("a", 0), data("b", 1)]), vec![string("x"), Value::UInt16(7)] => Yes "map a=x b=7 [a]=x [b]=7";
        with_data([constant("b", "c")]), vec![] => Yes "map b=c [b]=c";
        with_data([concatenated.clone()]), vec![string("x"), Value::HexInt32(255)] => Yes "map b=<x>0xff [b]=<x>0xff";
        with_data([concatenated.clone()]), vec![string("x"), Value::Null] => Yes "map b=<x> [b]=<x>";
        with_data([concatenated.clone()]), vec![string("x")] => Yes "map b=<x> [b]=<x>";
        // Concatenations take single values only.
        with_data([concatenated.clone()]), vec![strings(&["x"]), Value::Null] => Yes "map b=<x> [b]=<x>";
        with_data([concatenated]), vec![strings(&["x", "y"]), Value::Null]
            => NotTheseValues "map b=[\"<x>\",\"<y>\"] [b]=[\"<x>\",\"<y>\"]";
        with_data([data("a", 5)]), vec![] => Yes "map a= [a]=";
        with_data([data("a", 0)]), vec![Value::Null] => Yes "map a= [a]=";
        with_data([data("a", 0)]), vec![strings(&["x", "y"])] => Yes "map a=[\"x\",\"y\"] [a]=[\"x\",\"y\"]";
        with_data([data("a", 0)]), vec![stream(Element::new("In").text("x"))] => NotTheseValues "map In=x";
        with_data([data("a", 0)]), vec![Value::Raw(33, vec![])] => Yes "map a= [a]=";
    }
}

#[test]
fn a_map_is_what_event_data_holds() {
    let alone = |content: Vec<Content>| content.into_iter().fold(Element::new("EventData"), Element::content);
    let of = |event_data| element("Event", [event_data]);
    check! {
        of(alone(vec![])), vec![] => Yes "map";
        of(alone(vec![text("x")])), vec![] => Yes "map EventData=x";
        of(alone(vec![text("")])), vec![] => Yes "map";
        // It can be text or elements.
        of(alone(vec![substitution(0)])), vec![string("x")] => Irregular "map EventData=x";
        Element::new("Event"), vec![] => Yes "";
        element("Event", [element("Other", [constant("a", "x")])]), vec![] => Yes "";
        element("Event", [element("EventData", [constant("a", "1")]), element("EventData", [constant("a", "2")])]),
        vec![] => Yes "map a=1 a_1=2 [a]=1";
        with_data([Element::new("Named").text("x"), Element::new("b").text("y")]), vec![]
            => Yes "map Named=x b=y [b]=y";
        // What an event has in place of `EventData`.
        element("Event", [element("DebugData", [Element::new("Message").text("x")])]), vec![] => Yes "map Message=x";
        of(Element::new("BinaryEventData").text("0A")), vec![] => Yes "map BinaryEventData=0A";
        of(Element::new("BinaryEventData").content(substitution(0))), vec![utf16("text\0")]
            => Irregular "map BinaryEventData=text";
        of(element("ProcessingErrorData", [leaf("ErrorCode", 0), leaf("EventPayload", 1)])),
        vec![Value::UInt32(15005), utf16("one\0two\0\0")] => Irregular "map ErrorCode=15005 EventPayload=one\ntwo";
        // Bytes that may be numbers, have control characters or lone surrogates, or end in the middle of a text.
        of(leaf("BinaryEventData", 0)), vec![utf16("abc\0")] => Irregular "map BinaryEventData=6100620063000000";
        of(leaf("BinaryEventData", 0)), vec![utf16("\u{1}bcd\0")] => Irregular "map BinaryEventData=01006200630064000000";
        of(leaf("BinaryEventData", 0)), vec![Value::Binary(b"a\0b\0c\0\0\xd8\0\0".to_vec())]
            => Irregular "map BinaryEventData=61006200630000D80000";
        of(leaf("BinaryEventData", 0)), vec![Value::Binary(b"8 bits\0\0".to_vec())]
            => Irregular "map BinaryEventData=3820626974730000";
        of(leaf("BinaryEventData", 0)), vec![utf16("no end")] => Irregular "map BinaryEventData=6E006F00200065006E006400";
        of(leaf("BinaryEventData", 0)), vec![string("text")] => Irregular "map BinaryEventData=text";
        with_data([element("Outer", [constant("a", "1"), element("Inner", [constant("b", "2")])])]), vec![]
            => Yes "map a=1 b=2 [a]=1 [b]=2";
    }
}

#[test]
fn names_are_numbered_where_none_can_be_missing() {
    let unnamed = |index| leaf("Data", index);
    let three = || vec![string("x"), string("y"), Value::Null];
    check! {
        with_data([unnamed(0), unnamed(1)]), three() => Yes "map param1=x param2=y";
        with_data([data("a", 0), data("a", 1)]), three() => Yes "map a=x a_1=y [a]=x";
        with_data([data("a", 0).depends_on(1), data("b", 1)]), three() => Yes "map a=x b=y [a]=x [b]=y";
        with_data([data("a", 0).depends_on(2), data("b", 1)]), three() => Yes "map b=y [b]=y";
        with_data([data("a", 0).depends_on(2), data("a", 1)]), three() => Irregular "map a=y [a]=y";
        with_data([data("a", 0).depends_on(2), unnamed(1)]), three() => Irregular "map param1=y";
        with_data([unnamed(1), data("a", 0).depends_on(2)]), three() => Yes "map param1=y";
        with_data([Element::new("Data").attribute_substitution("Name", Substitution::new(0, 0)).text("v")]), three()
            => Irregular "map x=v";
    }
}

#[test]
fn an_element_has_one_condition_at_most() {
    let two = || vec![Value::Null, string("y")];
    let nested = |outer: u16, own: u16| {
        with_data([element("Outer", [data("a", 1).depends_on(own), data("b", 1)]).depends_on(outer)])
    };
    let all = |guard: u16| element("Event", [element("EventData", [data("a", 1)]).depends_on(guard)]);
    let twice = |guard: u16| {
        let first = element("EventData", [data("a", 1)]).depends_on(guard);
        element("Event", [first, element("EventData", [data("b", 1)])])
    };
    check! {
        all(0), two() => Yes "";
        all(1), two() => Yes "map a=y [a]=y";
        twice(0), two() => Irregular "map b=y [b]=y";
        // An element whose children are all left out would be a leaf itself.
        with_data([data("a", 1).depends_on(0)]), two() => Yes "map";
        with_data([element("Outer", [data("a", 1).depends_on(0)])]), two() => Irregular "map Outer=";
        nested(1, 1), two() => Yes "map a=y b=y [a]=y [b]=y";
        nested(0, 0), two() => Yes "map";
        nested(1, 0), two() => Irregular "map b=y [b]=y";
    }
}

#[test]
fn fields_are_the_first_at_their_path() {
    let system = |children: Vec<Element>| element("Event", [element("System", children)]);
    let id = |text: &str| Element::new("EventID").text(text);
    let two = || vec![Value::Null, Value::UInt32(4624)];
    check! {
        system(vec![leaf("EventID", 1)]), two() => Yes "System/EventID=4624";
        system(vec![leaf("EventID", 0)]), two() => Yes "System/EventID=";
        system(vec![leaf("EventID", 1).depends_on(0)]), two() => Yes "";
        system(vec![id("1"), id("2")]), vec![] => Yes "System/EventID=1";
        system(vec![id("1").depends_on(0), id("2")]), two() => Irregular "System/EventID=2";
        system(vec![id("1"), id("2").depends_on(0)]), two() => Yes "System/EventID=1";
        element("Event", [element("System", [id("1")]).depends_on(1)]), two() => Yes "System/EventID=1";
        element("Event", [element("System", [id("1").depends_on(0)]).depends_on(1)]), two() => Irregular "";
        system(vec![element("EventID", [Element::new("In").text("7")]).text("8")]), vec![] => Yes "System/EventID=78";
        system(vec![element("EventID", [leaf("In", 1)])]), two() => Irregular "System/EventID=4624";
        system(vec![element("EventID", [Element::new("In").text("7").depends_on(0)])]), two()
            => Irregular "System/EventID=";
        system(vec![leaf("EventID", 0)]), vec![Value::UInt32Array(vec![1])] => Yes "System/EventID=1";
        system(vec![leaf("EventID", 0)]), vec![Value::UInt32Array(vec![1, 2])] => NotTheseValues "System/EventID=1";
    }
}

#[test]
fn attributes_are_there_where_they_have_content() {
    let of = |content: Vec<Content>| {
        let security = Element::new("Security").attribute_of("UserID", content);
        element("Event", [element("System", [security])])
    };
    let two = || vec![Value::Null, string("x")];
    let cdata = || Content::CData(String::new());
    check! {
        of(vec![substitution(1)]), two() => Yes "System/Security@UserID=x";
        of(vec![substitution(0)]), two() => Yes "";
        of(vec![substitution(0)]), vec![string("")] => Yes "";
        of(vec![substitution(0), substitution(1)]), two() => Yes "System/Security@UserID=x";
        of(vec![substitution(0), substitution(0)]), two() => Yes "";
        of(vec![text("S"), substitution(0)]), two() => Yes "System/Security@UserID=S";
        of(vec![text(""), substitution(0)]), two() => Yes "";
        of(vec![cdata(), substitution(0)]), two() => Yes "System/Security@UserID=";
        of(vec![text("S")]), vec![] => Yes "System/Security@UserID=S";
        of(vec![text("")]), vec![] => Yes "";
        of(vec![cdata()]), vec![] => Yes "System/Security@UserID=";
        // An array would repeat the element.
        of(vec![substitution(0)]), vec![strings(&["x"])] => Yes "System/Security@UserID=x";
        of(vec![substitution(0)]), vec![strings(&["x", "y"])] => NotTheseValues "System/Security@UserID=x";
    }
}

#[test]
fn copies_of_an_element_are_one_entry_if_they_are_named_alike() {
    let copies = |name: Vec<Content>| {
        let data = Element::new("Data").attribute_of("Name", name).text("v");
        with_data([data.attribute_of("Other", vec![substitution(0)])])
    };
    let two = || vec![strings(&["x", "y"])];
    check! {
        copies(vec![text("a")]), two() => NotTheseValues "map a=[\"v\",\"v\"] [a]=[\"v\",\"v\"]";
        copies(vec![substitution(0)]), two() => Irregular "map x=v x_1=v y=v y_1=v";
    }
}

#[test]
fn a_map_ends_behind_its_longest_names_and_constants() {
    let projection = projection();
    let overflows = |name: usize, text: usize| {
        let (name, text) = ("n".repeat(name), vec![b't'; text]);
        let content = [tree::Node::Value(Stored::new(Scalar::AnsiString, &text))];
        let leaf = tree::Element::new(&name, &[], &content);
        let leaves = [tree::Node::Element(&leaf), tree::Node::Element(&leaf)];
        let event_data = tree::Element::new("EventData", &[], &leaves);
        let plan = Plan::new(&projection, &Keys::default(), &event_data, TreeRoot::Child);
        assert_eq!((plan.repeats_values, plan.irregular), (plan.overflows, plan.overflows));
        plan.overflows
    };
    assert!(!overflows(MAX_NAMES / 2, 1) && overflows(MAX_NAMES / 2 + 1, 1));
    assert!(!overflows(1, MAX_TEXT / 2) && overflows(1, MAX_TEXT / 2 + 1));
}

#[test]
fn children_come_behind_what_the_event_spells_out() {
    let child = |name: &str| stream(element(name, [constant("a", "in")]));
    let spelled = || element("EventData", [constant("a", "out")]);
    let event = |content: Vec<Content>| content.into_iter().fold(Element::new("Event"), Element::content);
    let user = |guard: u16| Element::new("UserData").depends_on(guard);
    check! {
        // The plan of the event's own template does not look into its children.
        event(vec![Content::Element(spelled()), substitution(0)]), vec![child("Other")] => Yes "map a=out [a]=out";
        event(vec![substitution(0)]), vec![Value::Null] => Yes "";
        event(vec![substitution(0), Content::Element(spelled())]), vec![child("EventData")]
            => Irregular "map a=in a_1=out [a]=in";
        element("Event", [Element::new("UserData")]), vec![] => Yes "user";
        element("Event", [user(0)]), vec![Value::Null] => Yes "";
        element("Event", [user(0)]), vec![Value::UInt8(1)] => Yes "user";
        element("Event", [user(0), Element::new("UserData")]), vec![Value::Null] => Irregular "user";
        element("Event", [Element::new("UserData"), user(0)]), vec![Value::Null] => Irregular "user";
    }
}
