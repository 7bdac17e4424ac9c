//! The walk over BinXML, on streams that evtx-writer makes.

use bumpalo::Bump;
use evtx_format::binxml::instance::Definition;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::value::text::Escaping;
use evtx_format::{ErrorKind, MAX_OPEN_ELEMENTS, Result};
use evtx_writer::{self as writer, Content, Event, LogWriter, Stream, Substitution, Template, Value};

/// Writes a record and hands its chunk and the range of its BinXML to `check`.
fn with_record<T>(stream: &Stream, check: impl FnOnce(&[u8], std::ops::Range<usize>) -> T) -> T {
    let mut log = LogWriter::new(1);
    log.write_stream(0, stream).expect("a record that fits");
    let file = log.finish();
    let chunk = &file[4096..];
    let (mut walk, damage) = RecordWalk::new(chunk, PromisedIds::default(), false);
    assert_eq!(damage, None);
    let found = walk.next(chunk).expect("a record").expect("a valid one");
    check(chunk, found.record.binxml())
}

/// A readable text form of a tree.
fn show(element: &Element<'_>) -> String {
    let text = |node: &Node<'_>| {
        let mut text = Vec::new();
        node.push_text(&mut text, Escaping::Plain);
        let substitution = match node {
            Node::Substitution(substitution) => format!(
                "%{}{}",
                substitution.index,
                if substitution.optional { "?" } else { "" }
            ),
            _ => String::new(),
        };
        String::from_utf8(text).unwrap() + &substitution + &node.elements().map(show).collect::<String>()
    };
    let all = |nodes: &[Node<'_>]| nodes.iter().map(text).collect::<String>();
    let attributes: String = element
        .attributes
        .iter()
        .map(|a| format!(" {}={}", a.name, all(a.content)))
        .collect();
    let closing = if element.self_closing { "/" } else { "" };
    format!("<{}{attributes}{closing}>{}", element.name, all(element.content))
}

/// The first fragment of a record, as a tree with its substitutions filled.
fn filled(stream: &Stream) -> Result<String> {
    with_record(stream, |chunk, binxml| {
        let arena = Bump::new();
        let names = Names::new(chunk, &arena);
        let reader = Reader::new(chunk, &names, &arena);
        let mut fragments = reader.fragments(binxml);
        match reader.next_fragment(&mut fragments).expect("a fragment")? {
            Fragment::Element(element) => Ok(show(element)),
            Fragment::Instance(instance) => reader.instance(&instance).map(show),
        }
    })
}

fn instance(root: writer::Element, values: Vec<Value>) -> Stream {
    Event::new(&Template::new([1; 16], root), values).into()
}

fn string(text: &str) -> Value {
    Value::string(text)
}

#[test]
fn a_definition_keeps_its_substitutions_and_an_instance_fills_them() {
    let root = writer::Element::new("A")
        .attribute_substitution("x", Substitution::new(0, 1))
        .attribute_of("y", vec![Content::Text("t".into()), Content::EntityRef("lt".into())])
        .child(
            writer::Element::new("B")
                .substitution(Substitution::new(1, 8).required())
                .depends_on(1),
        )
        .child(writer::Element::new("C"));
    let stream = instance(root.clone(), vec![string("v"), Value::UInt32(7)]);
    with_record(&stream, |chunk, binxml| {
        let arena = Bump::new();
        let names = Names::new(chunk, &arena);
        let reader = Reader::new(chunk, &names, &arena);
        let Some(Ok(Fragment::Instance(instance))) = reader.next_fragment(&mut reader.fragments(binxml)) else {
            panic!("an instance")
        };
        let template = reader
            .template(&Definition::read(chunk, instance.definition).unwrap())
            .unwrap();
        assert_eq!(show(template.root), "<A x=%0? y=t<><B>%1<C/>");
        let b = template.root.elements().next().unwrap();
        assert_eq!(b.dependency, Some(1));
        // A, x, y, lt, B, C.
        assert_eq!(template.name_refs.len(), 6);
        assert!(template.self_contained);
    });
    assert_eq!(filled(&stream), Ok("<A x=v y=t<><B>7<C/>".to_owned()));
    // An attribute without content is not there, nor an element whose dependency is NULL.
    let stream = instance(root, vec![string(""), Value::Null]);
    assert_eq!(filled(&stream), Ok("<A y=t<><C/>".to_owned()));
}

#[test]
fn arrays_repeat_the_element_that_holds_them() {
    let array = |items: &[&str]| Value::StringArray(items.iter().map(|&item| item.to_owned()).collect());
    let root = writer::Element::new("A").child(
        writer::Element::new("B")
            .attribute_substitution("n", Substitution::new(0, 0x81))
            .substitution(Substitution::new(1, 0x81)),
    );
    let stream = instance(root.clone(), vec![array(&["p", ""]), array(&["1", "2"])]);
    // Content before attributes; an empty item leaves its attribute out.
    assert_eq!(filled(&stream), Ok("<A><B n=p>1<B>1<B n=p>2<B>2".to_owned()));
    let stream = instance(root, vec![array(&["p"]), array(&[])]);
    assert_eq!(filled(&stream), Ok("<A><B n=p>".to_owned()));
}

#[test]
fn streams_nest_where_their_substitution_is() {
    let inner = Event::new(
        &Template::new([2; 16], writer::Element::new("I").substitution(Substitution::new(0, 1))),
        vec![string("x")],
    );
    let parts = vec![
        writer::Fragment::Instance(inner),
        writer::Fragment::Element(writer::Element::new("J").text("y")),
    ];
    let root = writer::Element::new("A")
        .text("1")
        .substitution(Substitution::new(0, 33))
        .text("2");
    let stream = instance(root, vec![Value::BinXml(Stream::new(parts))]);
    assert_eq!(filled(&stream), Ok("<A>1<I>x<J>y2".to_owned()));
}

#[test]
fn tokens_that_do_not_form_a_tree_are_errors() {
    let kind = |stream: &Stream| filled(stream).unwrap_err().kind;
    let element = Stream::new(vec![writer::Fragment::Element(
        writer::Element::new("A").substitution(Substitution::new(0, 1)),
    )]);
    assert_eq!(kind(&element), ErrorKind::SubstitutionOutsideTemplate);
    let inner = Stream::new(vec![writer::Fragment::Element(writer::Element::new("I"))]);
    let attribute = writer::Element::new("A").attribute_substitution("x", Substitution::new(0, 33));
    assert_eq!(
        kind(&instance(attribute, vec![Value::BinXml(inner)])),
        ErrorKind::ElementInAttribute
    );
    let deep = |levels| {
        (1..levels).fold(writer::Element::new("X").text("x"), |inner, _| {
            writer::Element::new("X").child(inner)
        })
    };
    let stream = |levels| Stream::new(vec![writer::Fragment::Element(deep(levels))]);
    assert!(filled(&stream(MAX_OPEN_ELEMENTS)).is_ok());
    assert_eq!(kind(&stream(MAX_OPEN_ELEMENTS + 1)), ErrorKind::OpenElements);
    let huge = writer::Element::new("A").substitution(Substitution::new(0, 8));
    assert!(matches!(
        kind(&instance(huge, vec![Value::Raw(8, vec![1, 2])])),
        ErrorKind::ValueSize { value_type: 8, size: 2 }
    ));
}
