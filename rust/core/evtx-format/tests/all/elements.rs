//! Elements that a record spells out: checks and implicit templates agree with trees.

use std::ops::Range;

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::tree::Element;
use evtx_format::binxml::{Fragment, ImplicitTemplate, Reader};
use evtx_format::bytes::Cursor;
use evtx_format::render::program::{Language, OnName, Program, Streams, push_tree};
use evtx_format::{MAX_TEXT, Result};
use proptest::prelude::*;

/// Names of elements and attributes. `Data` in `UserData` has rules of its own, and one needs an escape.
const NAMES: [&str; 7] = [
    "A",
    "B",
    "Data",
    "UserData",
    "Name",
    "q\"",
    "aNameThatIsLongerThanTheRoomThereIs",
];
const TEXTS: [&str; 6] = [
    "",
    "x",
    "a \"text\"\n",
    "ünïcödé",
    "\u{1}<&>",
    "a text that takes more than a few blocks",
];

/// A token.
#[derive(Debug, Clone, Copy)]
enum Token {
    Start(usize),
    Attribute(usize),
    Text(usize),
    Number(u32),
    CData(usize),
    CharRef(u16),
    EntityRef(usize),
    EndStart,
    EndEmpty,
    End,
    Substitution,
    Stream,
    Fragment,
    EndOfStream,
    Unknown,
}

/// A chunk of names and a stream, and where the stream starts.
fn chunk(tokens: &[Token]) -> (Vec<u8>, usize) {
    let mut chunk = vec![0; 512];
    let units = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let offsets = NAMES.map(|name| {
        let offset = chunk.len() as u32;
        chunk.extend([0; 6]);
        chunk.extend((name.encode_utf16().count() as u16).to_le_bytes());
        chunk.extend(units(name));
        chunk.extend([0; 2]);
        offset.to_le_bytes()
    });
    let start = chunk.len();
    let counted = |text: &str| {
        let units = units(text);
        [&(units.len() as u16 / 2).to_le_bytes()[..], &units].concat()
    };
    for token in tokens {
        let bytes = match *token {
            Token::Start(name) => [&[1, 0, 0, 0, 0], &offsets[name][..]].concat(),
            Token::Attribute(name) => [&[6], &offsets[name][..]].concat(),
            Token::Text(text) => [&[5, 1], &counted(TEXTS[text])[..]].concat(),
            Token::Number(number) => [&[5, 8], &number.to_le_bytes()[..]].concat(),
            Token::CData(text) => [&[7], &counted(TEXTS[text])[..]].concat(),
            Token::CharRef(number) => [&[8], &number.to_le_bytes()[..]].concat(),
            Token::EntityRef(name) => [&[9], &offsets[name][..]].concat(),
            Token::EndStart => vec![2],
            Token::EndEmpty => vec![3],
            Token::End => vec![4],
            Token::Substitution => vec![0x0e, 0, 0, 1],
            Token::Stream => vec![5, 0x21, 0, 0],
            Token::Fragment => vec![0x0f, 1, 1, 0],
            Token::EndOfStream => vec![0],
            Token::Unknown => vec![0x3f],
        };
        chunk.extend(bytes);
    }
    (chunk, start)
}

/// A piece of text.
fn piece() -> impl Strategy<Value = Vec<Token>> {
    prop_oneof![
        4 => (0..TEXTS.len()).prop_map(Token::Text),
        2 => any::<u32>().prop_map(Token::Number),
        1 => (0..TEXTS.len()).prop_map(Token::CData),
        1 => any::<u16>().prop_map(Token::CharRef),
        1 => (0..NAMES.len()).prop_map(Token::EntityRef),
    ]
    .prop_map(|token| vec![token])
}

/// An element, which is mostly plain.
fn element() -> impl Strategy<Value = Vec<Token>> {
    let with = |content: BoxedStrategy<Vec<Vec<Token>>>| {
        let attribute = (
            0..NAMES.len(),
            prop_oneof![4 => piece(), 1 => Just(Vec::new())],
            prop_oneof![4 => Just(Vec::new()), 1 => piece()],
        )
            .prop_map(|(name, first, second)| [vec![Token::Attribute(name)], first, second].concat());
        (
            0..NAMES.len(),
            prop::collection::vec(attribute, 0..3),
            content,
            any::<bool>(),
        )
            .prop_map(|(name, attributes, content, empty)| {
                let start = [vec![Token::Start(name)], attributes.concat()].concat();
                let end = if content.is_empty() && empty {
                    vec![Token::EndEmpty]
                } else {
                    [vec![Token::EndStart], content.concat(), vec![Token::End]].concat()
                };
                [start, end].concat()
            })
    };
    let leaf =
        with(prop_oneof![3 => prop::collection::vec(piece(), 0..2), 1 => prop::collection::vec(piece(), 2)].boxed());
    leaf.prop_recursive(4, 40, 8, move |inner| {
        let children = prop::collection::vec(inner.clone(), 1..8);
        let mixed = prop::collection::vec(prop_oneof![inner, piece()], 1..5);
        with(prop_oneof![5 => children, 1 => mixed].boxed())
    })
}

/// Tokens that may stand anywhere, by chance.
fn any_token() -> impl Strategy<Value = Token> {
    use Token::{
        Attribute, End, EndEmpty, EndOfStream, EndStart, Fragment, Start, Stream, Substitution, Text, Unknown,
    };
    prop::sample::select(vec![
        Start(0),
        Attribute(1),
        Text(1),
        EndStart,
        EndEmpty,
        End,
        Substitution,
        Stream,
        Fragment,
        EndOfStream,
        Unknown,
    ])
}

/// An implicit template has no streams.
struct NoStreams;

impl Streams for NoStreams {
    fn push_stream(&mut self, _: Language, _: Range<usize>, _: &mut Vec<u8>, _: &mut OnName<'_>) -> Result<()> {
        unreachable!()
    }
}

/// Compares the texts that the programs of an element's implicit template write with those of its tree. Returns whether
/// the element has an implicit template.
fn check_implicit<'a>(
    reader: &Reader<'a, 'a>,
    chunk: &'a [u8],
    arena: &'a Bump,
    first: Cursor<'a>,
    tree: &Element<'_>,
) -> bool {
    let (mut cursor, mut implicit) = (first, ImplicitTemplate::default());
    if !reader.read_implicit(&mut cursor, &mut implicit) {
        return false;
    }
    let open = reader.open_texts(&first).expect("a valid element").expect("an element");
    let values = implicit.values(chunk, arena);
    for language in Language::ALL {
        let program = Program::new(language, open);
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        if program.supports(values)
            && program
                .run(values, None, &mut NoStreams, &mut written, MAX_TEXT)
                .expect("a short text")
        {
            push_tree(language, tree, &mut expected, MAX_TEXT).expect("a short text");
            assert_eq!(
                String::from_utf8_lossy(&written),
                String::from_utf8_lossy(&expected),
                "{language:?}"
            );
        }
    }
    true
}

/// Checks the first element without a tree, and compares with its tree. Returns whether it has an implicit template.
fn check(tokens: &[Token]) -> bool {
    let (chunk, start) = chunk(tokens);
    let arena = Bump::new();
    let names = Names::new(&chunk, &arena);
    let reader = Reader::new(&chunk, &names, &arena);
    let first = reader.fragments(start..chunk.len());
    let (mut passed, mut read) = (first, first);
    let is_valid = reader.pass_element(&mut passed);
    match (is_valid, reader.next_fragment(&mut read)) {
        (true, Some(Ok(Fragment::Element(tree)))) => {
            assert_eq!(passed.pos(), read.pos());
            check_implicit(&reader, &chunk, &arena, first, tree)
        }
        (true, fragment) => panic!("{fragment:?}"),
        (false, fragment) => {
            assert_eq!(passed.pos(), first.pos());
            // A check does not look into streams.
            let is_element = matches!(fragment, Some(Ok(Fragment::Element(_))));
            assert!(
                !is_element || tokens.iter().any(|token| matches!(token, Token::Stream)),
                "{fragment:?}"
            );
            false
        }
    }
}

#[test]
fn plain_elements_have_implicit_templates() {
    use Token::{Attribute, CData, CharRef, End, EndEmpty, EndStart, EntityRef, Fragment, Number, Start, Stream, Text};
    // <A Name="x" q"="..."><B/><B>…</B><Name>…</Name><B Name="x">a&…</B></A>
    let plain = [
        Fragment,
        Start(0),
        Attribute(4),
        Text(1),
        Attribute(5),
        Text(2),
        EndStart,
        Start(1),
        EndEmpty,
        Start(1),
        EndStart,
        Text(2),
        End,
        Start(4),
        EndStart,
        Text(5),
        End,
        Start(1),
        Attribute(4),
        Text(1),
        EndStart,
        Text(3),
        EntityRef(0),
        CharRef(38),
        End,
        End,
    ];
    assert!(check(&plain));
    assert!(check(&[Start(0), EndStart, Text(1), Start(1), EndEmpty, Text(2), End]));
    for other in [Number(7), CData(1), Stream] {
        let other = [Start(0), EndStart, other, End];
        assert!(!check(&other), "{other:?}");
    }
}

#[test]
fn tokens_without_a_place_are_ignored_and_noted() {
    use Token::{Attribute, CData, CharRef, End, EndStart, EntityRef, Start, Text};
    let read = |tokens: &[Token]| {
        check(tokens);
        let (chunk, start) = chunk(tokens);
        let arena = Bump::new();
        let names = Names::new(&chunk, &arena);
        let reader = Reader::new(&chunk, &names, &arena);
        let fragment = reader.next_fragment(&mut reader.fragments(start..chunk.len()));
        let Some(Ok(Fragment::Element(tree))) = fragment else {
            panic!("{fragment:?}");
        };
        let mut json = Vec::new();
        push_tree(Language::Json, tree, &mut json, MAX_TEXT).expect("a short text");
        (String::from_utf8(json).expect("UTF-8"), reader.misplaced())
    };
    // Each element has the attribute whose text is part of an implicit template.
    let data = [Start(1), Attribute(4), Text(1), EndStart, Text(2), End];
    let valid = [&[Start(0), EndStart][..], &data, &data, &[End]].concat();
    let (json, misplaced) = read(&valid);
    assert_eq!(misplaced, None);
    for extra in [Text(3), CharRef(38), EntityRef(0), CData(1)] {
        // Before the attribute of the second element.
        let mut tokens = valid.clone();
        tokens.insert(9, extra);
        let (other, misplaced) = read(&tokens);
        assert_eq!(other, json);
        assert!(misplaced.is_some(), "{extra:?}");
    }
}

#[test]
fn tags_that_do_not_match_are_errors() {
    use Token::{Attribute, End, EndEmpty, EndStart, Start, Text};
    let error = |tokens: &[Token]| {
        assert!(!check(tokens));
        let (chunk, start) = chunk(tokens);
        let arena = Bump::new();
        let names = Names::new(&chunk, &arena);
        let reader = Reader::new(&chunk, &names, &arena);
        let fragment = reader.next_fragment(&mut reader.fragments(start..chunk.len()));
        fragment.expect("a fragment").expect_err("an error").to_string()
    };
    // An end inside of a start tag closes neither the element nor the one around it.
    let inside = error(&[Start(0), EndStart, Start(1), End, End]);
    assert!(inside.contains("an element ends that was not open"), "{inside}");
    let twice = error(&[Start(0), Start(1), EndEmpty, EndEmpty]);
    assert!(twice.contains("an element starts inside of a start tag"), "{twice}");
    let outside = error(&[Start(0), EndStart, Attribute(1), Text(1), End]);
    assert!(
        outside.contains("an attribute stands outside of a start tag"),
        "{outside}"
    );
    let open = error(&[Start(0), EndStart, Start(1), EndEmpty]);
    assert!(open.contains("an element is not closed"), "{open}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000.max(ProptestConfig::default().cases), ..ProptestConfig::default() })]

    #[test]
    fn checks_and_implicit_templates_agree_with_trees(
        mut tokens in element(),
        extra_tokens in prop::collection::vec((any::<prop::sample::Index>(), any_token(), any::<bool>()), 0..2),
    ) {
        for (position, token, replaces) in extra_tokens {
            let position = position.index(tokens.len());
            tokens.splice(position..position + usize::from(replaces), [token]);
        }
        check(&tokens);
    }
}
