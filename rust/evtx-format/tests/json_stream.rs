//! Elements that a record spells out: what can be told of them without a tree is what the tree tells.

use bumpalo::Bump;
use evtx_format::MAX_TEXT;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::{Reader, TopLevel};
use evtx_format::render::program::{Language, push_tree};
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
                let end = match content.is_empty() && empty {
                    true => vec![Token::EndEmpty],
                    false => [vec![Token::EndStart], content.concat(), vec![Token::End]].concat(),
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

/// What is said of the first element without a tree agrees with its tree. Returns whether JSON was written.
fn check(tokens: &[Token]) -> bool {
    let (chunk, start) = chunk(tokens);
    let arena = Bump::new();
    let names = Names::new(&chunk, &arena);
    let reader = Reader::new(&chunk, &names, &arena);
    let first = reader.parts(start..chunk.len());
    let (mut passed, mut written, mut read) = (first, first, first);
    let is_sound = reader.pass_element(&mut passed);
    let mut out = b"before".to_vec();
    let is_written = reader.push_json(&mut written, &mut out, MAX_TEXT);
    let name = reader.next_name(&first);
    let part = reader.next_part(&mut read);
    if is_sound || is_written {
        assert!(is_sound);
        let Some(Ok(TopLevel::Element(tree))) = part else {
            panic!("{part:?}")
        };
        assert_eq!(name, Some(tree.name));
        assert!(passed == read);
        if is_written {
            let mut expected = b"before".to_vec();
            push_tree(Language::Json, tree, &mut expected, MAX_TEXT).expect("a short text");
            assert_eq!(String::from_utf8(out), String::from_utf8(expected));
            assert!(written == read);
        }
    } else if let Some(Ok(TopLevel::Element(tree))) = part {
        // Only what holds elements of its own is not looked into.
        assert!(tokens.iter().any(|token| matches!(token, Token::Stream)), "{tree:?}");
    }
    if !is_written {
        assert!(written == first);
    }
    if !is_sound {
        assert!(passed == first);
    }
    is_written
}

#[test]
fn plain_elements_need_no_tree() {
    use Token::{Attribute, CharRef, End, EndEmpty, EndStart, EntityRef, Fragment, Number, Start, Stream, Text};
    // <A Name="x" q"="7"><B/><B>…</B><Name>7</Name><B Name="x">a&…</B></A>
    let plain = [
        Fragment,
        Start(0),
        Attribute(4),
        Text(1),
        Attribute(5),
        Number(7),
        EndStart,
        Start(1),
        EndEmpty,
        Start(1),
        EndStart,
        Text(2),
        End,
        Start(4),
        EndStart,
        Number(7),
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
    // Text and children; `Data` in `UserData`; an empty text; what holds elements of its own.
    for other in [
        &[Start(0), EndStart, Text(1), Start(1), EndEmpty, End][..],
        &[Start(3), EndStart, Start(2), EndEmpty, End],
        &[Start(0), EndStart, Text(0), End],
        &[Start(0), EndStart, Stream, End],
    ] {
        assert!(!check(other), "{other:?}");
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
        let part = reader.next_part(&mut reader.parts(start..chunk.len()));
        part.expect("a part").expect_err("an error").to_string()
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
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_told_without_a_tree_is_what_the_tree_tells(
        mut tokens in element(),
        strays in prop::collection::vec((any::<prop::sample::Index>(), any_token(), any::<bool>()), 0..2),
    ) {
        for (place, token, replaces) in strays {
            let place = place.index(tokens.len());
            tokens.splice(place..place + usize::from(replaces), [token]);
        }
        check(&tokens);
    }
}
