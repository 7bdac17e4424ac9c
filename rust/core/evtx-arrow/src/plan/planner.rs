//! Compiles the plan of a tree.

use evtx_format::binxml::fields::{FieldNamer, Param};
use evtx_format::binxml::instance::ValueTable;
use evtx_format::binxml::tree::{Element, Node};
use evtx_format::render::json;
use evtx_format::value::text::Escaping;
use evtx_format::value::{Scalar, ValueType};
use evtx_format::{MAX_NAMES, MAX_NODES, MAX_TEXT, Numbering};

use super::column_plan::{Conditional, Entry, EntryId, EventData, Plan, RequiredShape};
use super::content::{Guard, Irregular, deeper, has_certain_child, has_substitutions, is_substitution, plain};
use super::convert;
use super::keys::Keys;
use super::other_values::{ChildOfEvent, OtherValue};
use super::projection::{Projection, TreeRoot};
use super::source::{ConcatItem, Constant, Content, Extractor, MAX_FIELD};
use crate::schema::{ColumnKeys, EventPath};

impl Plan {
    /// The plan of a tree. Its substitutions are open in the tree of a template, and filled in the tree of a record.
    pub(crate) fn new(projection: &Projection, keys: &Keys, tree: &Element<'_>, root: TreeRoot) -> Self {
        let mut planner = Planner::new(projection, keys);
        planner.attributes(tree);
        match root {
            TreeRoot::Event => planner.event(tree),
            TreeRoot::Child => planner.children_of_event(&[tree]),
            TreeRoot::InUserData => planner.in_user_data(tree),
        }
        for (substitution, shape) in planner.required_shapes.iter().enumerate() {
            match shape {
                RequiredShape::Nothing => {}
                RequiredShape::Child | RequiredShape::InUserData => {
                    planner.plan.section_substitutions.insert_own(substitution);
                }
                RequiredShape::Leaf | RequiredShape::Single => planner.plan.shaped_substitutions.insert(substitution),
            }
        }
        planner.plan.required_shapes = planner.required_shapes.into();
        if !planner.other_values.is_empty() {
            let entries = EventData::new(planner.other_values.into(), [].into(), [].into());
            planner.plan.other_values = Some(entries);
        }
        let sources = planner.plan.paths.iter();
        planner.plan.bare_substitution = sources.map(|source| source.as_ref()?.bare_substitution()).collect();
        let mut paths = projection.paths.iter().zip(&planner.plan.paths);
        planner.plan.beyond_system = paths.any(|(path, source)| !path.in_system && source.is_some());
        planner.plan.repeats_values = planner.plan.overflows || planner.plan.texts_hold_many_values();
        // The tree of a record has only the entries that the record does not leave out, so it may not overflow.
        planner.plan.irregular |= planner.plan.overflows;
        planner.plan
    }

    /// The plan of what several sections of a record have: the entries of `EventData`, and those of `UserData`, as
    /// constants.
    pub(crate) fn merged(
        projection: &Projection,
        keys: &Keys,
        [event_data, user_data]: [&[Filled<'_, '_>]; 2],
    ) -> Self {
        let mut planner = Planner::new(projection, keys);
        let mut merge = |sections: &[Filled<'_, '_>]| {
            let entries = (sections.len() > 1).then(|| planner.merged(sections))?;
            planner.plan.overflows |= planner.overflows;
            Some(Conditional {
                guard: None,
                given: entries.ok()?,
            })
        };
        let (event_data, user_entries) = (merge(event_data), merge(user_data));
        Plan {
            repeats_values: planner.plan.overflows,
            event_data,
            user_entries,
            ..planner.plan
        }
    }
}

/// The entries of a section of a record, and their values.
pub(crate) type Filled<'p, 'r> = (&'p EventData, ValueTable<'r>);

impl From<Constant> for Extractor {
    fn from(constant: Constant) -> Self {
        Extractor {
            guard: None,
            attribute: false,
            content: Content::Constant(constant),
        }
    }
}

impl From<Vec<u8>> for Constant {
    fn from(text: Vec<u8>) -> Self {
        Constant {
            text: String::from_utf8(text).unwrap_or_default().into(),
            ..Constant::default()
        }
    }
}

struct Planner<'t> {
    projection: &'t Projection,
    keys: &'t Keys,
    plan: Plan,
    required_shapes: Vec<RequiredShape>,
    /// Bytes of the constants of the current entries so far, and of their names.
    text: usize,
    names: usize,
    /// Numbers those without a name.
    namer: FieldNamer,
    /// Whether they end before the last, because one of the two is too large.
    overflows: bool,
    /// The values that are neither at a path of `System` nor entries, and bytes of their names and constants so far.
    other_values: Vec<Entry>,
    other_text: usize,
}

impl<'t> Planner<'t> {
    fn new(projection: &'t Projection, keys: &'t Keys) -> Self {
        Planner {
            projection,
            keys,
            plan: Plan {
                paths: projection.paths.iter().map(|_| None).collect(),
                ..Plan::default()
            },
            required_shapes: Vec::new(),
            text: 0,
            names: 0,
            namer: FieldNamer::default(),
            overflows: false,
            other_values: Vec::new(),
            other_text: 0,
        }
    }

    fn event(&mut self, event: &Element<'_>) {
        let mut children = Vec::new();
        for node in event.content {
            if let Node::Substitution(substitution) = node {
                children.push(substitution.index);
                self.require(substitution.index, RequiredShape::Child);
            }
        }
        self.plan.children = children.into();
        let elements: Vec<_> = event.elements().collect();
        self.children_of_event(&elements);
        // Columns read the elements of the tree first, then the streams in its substitutions. This is the order in the
        // event only if the substitutions come last.
        let last = event.content.iter().rposition(|node| node.elements().next().is_some());
        let substitution = event.content.iter().position(is_substitution);
        if let (Some(substitution), Some(last)) = (substitution, last) {
            self.plan.irregular |= substitution < last;
        }
    }

    /// The result; `None` if it is irregular, which makes the plan irregular.
    fn regular<T>(&mut self, found: Result<T, Irregular>) -> Option<T> {
        self.plan.irregular |= found.is_err();
        found.ok()
    }

    fn children_of_event(&mut self, elements: &[&Element<'_>]) {
        elements.iter().for_each(|element| self.child_of_event(element));
        let named = |is_it: fn(&str) -> bool| -> Vec<_> {
            let elements = elements.iter().copied();
            elements.filter(|element| is_it(element.name)).collect()
        };
        self.event_data(&named(FieldNamer::has_fields));
        self.user_data(&named(|name| name == "UserData"));
    }

    fn child_of_event(&mut self, element: &Element<'_>) {
        let guard = element.dependency;
        self.plan.system |= element.name == "System";
        for (i, path) in self.projection.paths.iter().enumerate() {
            if path.elements[0] == element.name && self.plan.paths[i].is_none() {
                let source = self.path(element, path, guard);
                self.plan.paths[i] = self.regular(source).flatten();
            }
        }
        if self.projection.other_values {
            let has_entries = FieldNamer::has_fields(element.name) || element.name == "UserData";
            self.other_values(element, has_entries, guard);
        }
    }

    fn event_data(&mut self, elements: &[&Element<'_>]) {
        self.plan.has_fields = !elements.is_empty();
        if self.projection.event_data && self.plan.has_fields {
            let entries = self.entries_of(elements);
            self.plan.event_data = self.regular(entries);
            self.plan.overflows = self.overflows;
        }
    }

    fn user_data(&mut self, elements: &[&Element<'_>]) {
        let [first, others @ ..] = elements else { return };
        let guard = first.dependency;
        if self.projection.user_data {
            self.plan.user_data = Some(Conditional { guard, given: () });
        }
        // The tree of a record has the elements of their streams.
        let is_open = |element: &&Element<'_>| element.dependency.is_some() || has_substitutions(element);
        self.plan.irregular |= !others.is_empty() && elements.iter().any(is_open);
        if !self.projection.user_entries {
            return;
        }
        match first.content {
            &[Node::Substitution(substitution)] => {
                self.require(substitution.index, RequiredShape::InUserData);
                let given = substitution.index;
                self.plan.user_stream = Some(Conditional { guard, given });
            }
            _ => self.user_entries(elements),
        }
    }

    fn user_entries(&mut self, elements: &[&Element<'_>]) {
        let entries = self.entries_of(elements);
        self.plan.user_entries = self.regular(entries);
        // The tree of a record may not be too long.
        self.plan.irregular |= self.overflows;
    }

    /// The plan of an element that is the content of `UserData`.
    fn in_user_data(&mut self, element: &Element<'_>) {
        if self.projection.user_entries {
            // A root is never left out.
            let root = Element {
                dependency: None,
                ..*element
            };
            let content = [Node::Element(&root)];
            let user_data = Element::new("UserData", &[], &content);
            self.user_entries(&[&user_data]);
            if self.projection.other_values {
                self.other_values(&user_data, true, None);
            }
        }
    }

    /// Adds the other values of a child of `Event`. `has_entries` is whether its leaves are entries.
    fn other_values(&mut self, element: &Element<'_>, has_entries: bool, guard: Guard) {
        let child = ChildOfEvent {
            element,
            has_entries,
            paths: &self.projection.paths,
        };
        let outcome = child.values_in(element, guard, &mut |value| self.other_value(&value));
        self.regular(outcome);
    }

    fn other_value(&mut self, value: &OtherValue<'_>) {
        self.require_content(value.content, RequiredShape::Single);
        if self.other_text > MAX_TEXT {
            return;
        }
        let source = self.source(value.content, MAX_TEXT);
        if let Content::Constant(constant) = &source.content {
            if constant.text.is_empty() {
                return;
            }
            self.other_text += constant.text.len();
        }
        let name = value.name();
        self.other_text += name.len();
        self.other_values.push(Entry {
            key: self.keys.key(&name),
            name_len: name.len(),
            source: Extractor {
                guard: value.guard,
                attribute: true,
                ..source
            },
            declared: declared(value.content),
        });
    }

    /// The first match of a path in a child of `Event`, in the order of XPath.
    fn path(&mut self, child: &Element<'_>, path: &EventPath, guard: Guard) -> Result<Option<Extractor>, Irregular> {
        self.require_content(child.content, RequiredShape::Single);
        let mut found: Option<Extractor> = None;
        for element in child.elements().filter(|element| element.name == path.elements[1]) {
            let guard = deeper(guard, element)?;
            let value = match path.attribute {
                Some(name) => self.attribute(element, name, guard),
                None => Some(self.text(element, guard, MAX_FIELD)?),
            };
            match (&found, value) {
                (None, first) => found = first,
                // If a record leaves the first out, the second counts.
                (Some(first), Some(_)) if first.guard.is_some() || first.attribute => return Err(Irregular),
                _ => {}
            }
        }
        Ok(found)
    }

    /// The value of an attribute of an element; `None` if no record has it.
    fn attribute(&mut self, element: &Element<'_>, name: &str, guard: Guard) -> Option<Extractor> {
        let content = element.attribute(name)?;
        let source = self.source(content, MAX_FIELD);
        // An attribute with literal text is in every record.
        let has_text = content.iter().any(|node| match node {
            Node::Substitution(_) => false,
            Node::CData(_) => true,
            node => node.is_text(),
        });
        let is_there = has_text || !matches!(source.content, Content::Constant(_));
        is_there.then_some(Extractor {
            guard,
            attribute: !has_text,
            ..source
        })
    }

    /// The text of an element. A constant longer than `limit` bytes is cut somewhere after that length.
    fn text(&mut self, element: &Element<'_>, guard: Guard, limit: usize) -> Result<Extractor, Irregular> {
        let mut source = if element.elements().next().is_some() {
            if has_substitutions(element) {
                return Err(Irregular);
            }
            let mut text = Vec::new();
            element.push_text(&mut text, Escaping::Plain, limit);
            Constant::from(text).into()
        } else {
            self.require_content(element.content, RequiredShape::Single);
            self.source(element.content, limit)
        };
        source.guard = guard;
        Ok(source)
    }

    /// The text of content without elements. A constant longer than `limit` bytes is cut somewhere after that length.
    fn source(&mut self, content: &[Node<'_>], limit: usize) -> Extractor {
        let content = match content {
            [Node::Substitution(substitution)] => Content::Substitution(substitution.index),
            [Node::Value(value)] => {
                let mut text = Vec::new();
                value.push_text(&mut text, Escaping::Plain);
                let constant = Constant {
                    time: convert::is_time(value).then(|| convert::nanos(value)),
                    ..text.into()
                };
                return constant.into();
            }
            _ if content.iter().any(is_substitution) => {
                let mut items = Vec::new();
                for siblings in content.chunk_by(|a, b| !is_substitution(a) && !is_substitution(b)) {
                    if let [Node::Substitution(substitution)] = siblings {
                        items.push(ConcatItem::Substitution(substitution.index));
                        continue;
                    }
                    let text = plain(siblings, limit);
                    if !text.is_empty() {
                        items.push(ConcatItem::Text(text.into()));
                    }
                }
                Content::Concat(items.into())
            }
            _ => return Constant::from(plain(content, limit).into_bytes()).into(),
        };
        Extractor {
            guard: None,
            attribute: false,
            content,
        }
    }

    /// The entries of one element, or of several, which every record must have then.
    fn entries_of(&mut self, elements: &[&Element<'_>]) -> Result<Conditional<EventData>, Irregular> {
        let guard = match elements {
            [element] => element.dependency,
            _ if elements.iter().any(|element| element.dependency.is_some()) => return Err(Irregular),
            _ => None,
        };
        (self.text, self.names, self.overflows) = (0, 0, false);
        self.namer = FieldNamer::default();
        let mut leaves = Vec::new();
        for element in elements {
            self.leaves_of(element, &mut leaves)?;
            if self.overflows {
                break;
            }
        }
        let given = entries(self.projection, self.keys, leaves)?;
        Ok(Conditional { guard, given })
    }

    /// The entries of several sections of a record.
    fn merged(&mut self, sections: &[Filled<'_, '_>]) -> Result<EventData, Irregular> {
        (self.text, self.names, self.overflows) = (0, 0, false);
        let mut leaves = Vec::new();
        let mut last_number = 0;
        'sections: for &(of_section, values) in sections {
            // The numbers of a section follow those of the sections before it.
            let before = last_number;
            for entry in &of_section.entries {
                let Some(found) = entry.source.find(values) else {
                    continue;
                };
                let key = self.keys.name(&entry.key);
                // The texts of an element share a number, so a suffix can follow it.
                let own = key.split('_').next().filter(|_| entry.name_len == 0);
                let number = own.and_then(Param::number).map(|own| before + own);
                last_number = last_number.max(number.unwrap_or_default());
                let leaf = Leaf {
                    name: key.get(..entry.name_len).unwrap_or_default().to_owned(),
                    number,
                    source: found.constant().into(),
                    declared: entry.declared,
                };
                // Many sections can be of one stream.
                self.overflows = leaves.len() >= MAX_NODES;
                if !self.add(leaf, &mut leaves) {
                    break 'sections;
                }
            }
        }
        entries(self.projection, self.keys, leaves)
    }

    /// Adds the leaves of an element that has entries.
    fn leaves_of(&mut self, element: &Element<'_>, leaves: &mut Vec<Leaf>) -> Result<(), Irregular> {
        for root in element.elements().filter(|_| element.name == "UserData") {
            self.attributes_of_root(root, leaves)?;
        }
        if element.elements().next().is_some() {
            if !has_certain_child(element) && !element.content.iter().all(|node| node.elements().next().is_some()) {
                return Err(Irregular);
            }
            self.leaves(element, element.name.to_owned(), None, leaves)?;
        } else if element.content.iter().any(is_substitution) {
            // The substitution can hold text or elements, depending on the record.
            return Err(Irregular);
        } else if element.content.iter().any(Node::is_text) {
            let (source, declared) = self.leaf_value(element)?;
            let name = element.name.to_owned();
            let leaf = Leaf {
                name,
                number: None,
                source,
                declared,
            };
            self.add(leaf, leaves);
        }
        Ok(())
    }

    /// Adds the attributes of an element of `UserData`, which some providers fill: entries with the names of other values.
    fn attributes_of_root(&mut self, root: &Element<'_>, leaves: &mut Vec<Leaf>) -> Result<(), Irregular> {
        let guard = deeper(None, root)?;
        for attribute in root.attributes.iter().filter(|attribute| root.is_value(attribute)) {
            let source = self.source(attribute.content, MAX_TEXT);
            if matches!(&source.content, Content::Constant(constant) if constant.text.is_empty()) {
                continue;
            }
            let leaf = Leaf {
                name: format!("{}.{}", root.name, attribute.name),
                number: None,
                source: Extractor {
                    guard,
                    attribute: true,
                    ..source
                },
                declared: declared(attribute.content),
            };
            if !self.add(leaf, leaves) {
                break;
            }
        }
        Ok(())
    }

    /// Adds a leaf to the entries of the map. Returns false if the map is too long and ends with it.
    fn add(&mut self, leaf: Leaf, leaves: &mut Vec<Leaf>) -> bool {
        self.names += leaf.name.len();
        if let Content::Constant(constant) = &leaf.source.content {
            self.text += constant.text.len();
        }
        leaves.push(leaf);
        self.overflows |= self.text > MAX_TEXT || self.names > MAX_NAMES;
        !self.overflows
    }

    /// Adds the leaves below an element with a name, and its texts beside elements; `Data` without a name gets a number.
    ///
    /// Recurses once per level of the tree; [`MAX_OPEN_ELEMENTS`](evtx_format::MAX_OPEN_ELEMENTS) bounds the levels.
    fn leaves(
        &mut self,
        element: &Element<'_>,
        name: String,
        guard: Guard,
        leaves: &mut Vec<Leaf>,
    ) -> Result<(), Irregular> {
        // All texts of `Data` without a name share a number.
        let mut number = None;
        self.require_content(element.content, RequiredShape::Single);
        let is_element = |node: &Node<'_>| node.elements().next().is_some();
        for siblings in element.content.chunk_by(|a, b| !is_element(a) && !is_element(b)) {
            if !is_element(&siblings[0]) {
                if let Some(source) = text_beside(siblings, guard)? {
                    if name.is_empty() {
                        number.get_or_insert_with(|| self.namer.next_param());
                    }
                    let leaf = Leaf {
                        name: name.clone(),
                        number,
                        source,
                        declared: TEXT,
                    };
                    if !self.add(leaf, leaves) {
                        return Ok(());
                    }
                }
                continue;
            }
            if let [Node::Repeated(copies)] = siblings
                && let Some(mut leaf) = array_leaf(copies)
            {
                leaf.number = leaf.name.is_empty().then(|| self.namer.next_param());
                if !self.add(leaf, leaves) {
                    return Ok(());
                }
                continue;
            }
            for child in siblings.iter().flat_map(Node::elements) {
                let guard = deeper(guard, child)?;
                let name = leaf_name(child)?;
                if child.elements().next().is_some() {
                    if !has_certain_child(child) {
                        return Err(Irregular);
                    }
                    self.leaves(child, name, guard, leaves)?;
                    if self.overflows {
                        return Ok(());
                    }
                    continue;
                }
                let (mut source, declared) = self.leaf_value(child)?;
                source.guard = guard;
                let leaf = Leaf {
                    number: name.is_empty().then(|| self.namer.next_param()),
                    name,
                    source,
                    declared,
                };
                if !self.add(leaf, leaves) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The value of a leaf, and its type.
    fn leaf_value(&mut self, leaf: &Element<'_>) -> Result<(Extractor, ValueType), Irregular> {
        let declared = if leaf.is_payload() {
            TEXT
        } else {
            declared(leaf.content)
        };
        let source = match leaf.content {
            // Only the record says whether its payload is text.
            content if leaf.is_payload() && content.iter().any(is_substitution) => return Err(Irregular),
            [Node::Substitution(substitution)] => {
                self.require(substitution.index, RequiredShape::Leaf);
                self.source(leaf.content, MAX_TEXT)
            }
            content => match leaf.payload_text() {
                Some(text) => Constant::from(text.into_bytes()).into(),
                None if self.projection.names_only && !content.iter().any(is_substitution) => {
                    Constant::default().into()
                }
                None => self.text(leaf, None, MAX_TEXT)?,
            },
        };
        Ok((source, declared))
    }

    fn require(&mut self, substitution: u16, shape: RequiredShape) {
        let substitution = usize::from(substitution);
        if self.required_shapes.len() <= substitution {
            self.required_shapes.resize(substitution + 1, RequiredShape::Nothing);
        }
        self.required_shapes[substitution] = self.required_shapes[substitution].max(shape);
    }

    fn require_content(&mut self, content: &[Node<'_>], shape: RequiredShape) {
        for node in content {
            if let Node::Substitution(substitution) = node {
                self.require(substitution.index, shape);
            }
        }
    }

    /// Requires single values in attributes: an array would repeat the element, and a stream is an error.
    fn attributes(&mut self, element: &Element<'_>) {
        for attribute in element.attributes {
            self.require_content(attribute.content, RequiredShape::Single);
        }
        element.elements().for_each(|child| self.attributes(child));
    }
}

/// Leaves as entries. Their keys are their names: unnamed entries become `param1`, `param2`, …; repeated names get the suffixes
/// `_1`, `_2`, …
fn entries(projection: &Projection, keys: &Keys, leaves: Vec<Leaf>) -> Result<EventData, Irregular> {
    let numbers = leaves.iter().filter_map(|leaf| leaf.number);
    let is_clear = (1..).zip(numbers).all(|(nth, number)| nth == number)
        && !leaves.iter().any(|leaf| Param::resembles(&leaf.name));
    let mut guarded = false;
    let mut names = Numbering::new(|name: &str| keys.key(name));
    names.reserve(leaves.len());
    let mut keyed: Box<[Option<EntryId>]> = vec![None; projection.keys.len()].into();
    let mut columns: Box<[Option<EntryId>]> = vec![None; projection.columns.len()].into();
    let mut column_keys = ColumnKeys::default();
    let entries = (0..).map(EntryId).zip(leaves).map(|(id, leaf)| {
        let Leaf {
            name,
            number,
            source,
            declared,
        } = leaf;
        let (name_len, is_unnamed) = (name.len(), number.is_some());
        let name = number.map_or(name, |number| Param(number).to_string());
        let (name, key, is_numbered) = names.take_normalized(name);
        if let Some(wanted) = projection.key_index(&name) {
            keyed[wanted] = Some(id);
        }
        let mut depends = is_unnamed || is_numbered;
        if !columns.is_empty() {
            let (column, is_numbered) = column_keys.take(&name);
            if let Some(&wanted) = projection.columns.get(&*column) {
                columns[wanted] = Some(id);
            }
            depends |= is_numbered;
        }
        // If an entry before this one is left out, the name of this one changes. An empty attribute is.
        let may_be_empty = source.attribute && source.substitutions().next().is_some();
        let irregular = depends && guarded || is_numbered && may_be_empty;
        guarded |= source.guard.is_some();
        if irregular {
            Err(Irregular)
        } else {
            Ok(Entry {
                key,
                name_len,
                source,
                declared,
            })
        }
    });
    let entries = entries.collect::<Result<_, _>>()?;
    Ok(EventData::new(entries, keyed, columns).splitting(is_clear))
}

/// Text beside the elements of an element; `None` if it is blank. Fails if only the record says whether it is.
fn text_beside(siblings: &[Node<'_>], guard: Guard) -> Result<Option<Extractor>, Irregular> {
    if siblings.iter().any(is_substitution) {
        return Err(Irregular);
    }
    let text = plain(siblings, MAX_TEXT);
    let is_blank = text.bytes().all(|byte| byte.is_ascii_whitespace());
    Ok((!is_blank).then(|| Extractor {
        guard,
        ..Constant::from(text.into_bytes()).into()
    }))
}

/// The name of a leaf: that of the element, or the attribute `Name` of `Data`; empty for `Data` without one.
fn leaf_name(leaf: &Element<'_>) -> Result<String, Irregular> {
    let content = leaf.attribute("Name").filter(|_| leaf.is_called()).unwrap_or_default();
    if content.iter().any(is_substitution) {
        return Err(Irregular);
    }
    let name = plain(content, MAX_NAMES);
    if name.is_empty() && !FieldNamer::is_numbered(leaf.name) {
        return Ok(leaf.name.to_owned());
    }
    Ok(name)
}

/// An element of `EventData` or `UserData` that has no elements in it, or a text beside elements.
struct Leaf {
    /// Empty if it has a number.
    name: String,
    number: Option<usize>,
    source: Extractor,
    declared: ValueType,
}

/// The type that a definition declares for the value of a leaf, or the type of its literal value.
fn declared(content: &[Node<'_>]) -> ValueType {
    match content {
        [Node::Substitution(substitution)] => substitution.declared,
        [Node::Value(value)] => value.value_type,
        _ => TEXT,
    }
}

const TEXT: ValueType = ValueType {
    scalar: Scalar::String,
    array: false,
};

/// The copies of a leaf as one entry, a JSON array. `None` if they are not leaves, or have different names.
fn array_leaf(copies: &[Element<'_>]) -> Option<Leaf> {
    let first = copies.first()?;
    let name = leaf_name(first).ok()?;
    // Copies that an array in the content has made share their attributes.
    let has_the_name = |copy: &Element<'_>| {
        std::ptr::eq(copy.attributes, first.attributes) && std::ptr::eq(copy.name, first.name)
            || leaf_name(copy).as_ref() == Ok(&name)
    };
    let is_copy = |copy: &Element<'_>| copy.elements().next().is_none() && has_the_name(copy);
    if !copies.iter().all(is_copy) {
        return None;
    }
    let mut items = Vec::new();
    let mut text = vec![b'['];
    for (i, copy) in copies.iter().enumerate() {
        if text.len() > MAX_TEXT {
            // The text is too long, so the value is NULL; the other items are not needed.
            break;
        }
        items.push(plain(copy.content, MAX_TEXT).into_bytes().into());
        if i > 0 {
            text.push(b',');
        }
        json::push_content(&mut text, copy.content, false, MAX_TEXT);
    }
    text.push(b']');
    let constant = Constant {
        items: items.into(),
        ..text.into()
    };
    Some(Leaf {
        name,
        number: None,
        source: constant.into(),
        declared: ValueType {
            array: true,
            ..declared(first.content)
        },
    })
}

#[cfg(test)]
mod tests {
    use evtx_format::value::Value;

    use super::*;

    #[test]
    fn copies_of_a_leaf_keep_their_items() {
        let contents = [&b"x"[..], b"y"].map(|text| [Node::Value(Value::new(Scalar::AnsiString, text))]);
        let copy = |name, content| Element::new(name, &[], content);
        let leaf = array_leaf(&[copy("a", &contents[0]), copy("a", &contents[1])]).expect("copies of a leaf");
        assert_eq!(leaf.name, "a");
        let declared = ValueType {
            scalar: Scalar::AnsiString,
            array: true,
        };
        assert_eq!(leaf.declared, declared);
        let Content::Constant(constant) = &leaf.source.content else {
            panic!("{:?}", leaf.source);
        };
        assert_eq!(&*constant.text, "[\"x\",\"y\"]");
        assert_eq!(
            constant.items.iter().map(|item| &*item.text).collect::<Vec<_>>(),
            ["x", "y"]
        );
        assert!(array_leaf(&[]).is_none());
        assert!(array_leaf(&[copy("a", &contents[0]), copy("b", &contents[1])]).is_none());
        let inner = copy("c", &contents[0]);
        let nested = [Node::Element(&inner)];
        assert!(array_leaf(&[copy("a", &contents[0]), copy("a", &nested)]).is_none());
    }

    #[test]
    fn items_behind_a_text_that_is_too_long_are_left_out() {
        let items = |len: usize| {
            let text = vec![b'x'; len];
            let content = [Node::Value(Value::new(Scalar::AnsiString, &text))];
            let copy = Element::new("a", &[], &content);
            match array_leaf(&[copy; 3]).expect("copies of a leaf").source.content {
                Content::Constant(constant) => constant.items.len(),
                other => panic!("{other:?}"),
            }
        };
        // A bracket and two quotes belong to the text.
        assert_eq!([1, MAX_TEXT - 3, MAX_TEXT - 2].map(items), [3, 2, 1]);
    }
}
