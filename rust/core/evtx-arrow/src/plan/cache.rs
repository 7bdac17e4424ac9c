//! The cache of compiled templates, which the threads of a scan share.
//!
//! A chunk's copy of a template refers to names by chunk offset, and has a name inline if it is the first to use it. So
//! the bytes of a template differ from chunk to chunk. Two copies are the same template if their names are equal, and
//! their bytes are equal apart from the references to names. Both are compared in full: with a GUID or a hash alone, a
//! crafted file could pass one template for another. The same goes for the templates of spelled-out elements, which have
//! the content of an implicit template in common.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use evtx_format::binxml::instance::{Definition, Instance, ValueTable};
use evtx_format::binxml::template_content::TemplateContent;
use evtx_format::binxml::tree::Element;
use evtx_format::binxml::{SubstitutionRanges, Template};
use evtx_format::render::program::{Language, Program};
use evtx_format::{Error, ErrorKind};
use hashbrown::HashMap;
use uuid::Uuid;

use super::column_plan::Plan;
use super::keys::Keys;
use super::projection::{Projection, TreeRoot};
use super::source::Extractor;

/// The most bytes of templates, explicit or implicit, and their compiled form that a scan keeps. Those of real logs
/// take one or two MiB.
const MAX_BYTES: usize = 16 << 20;

/// A template, compiled for the columns of a scan.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// A number that only this template has.
    pub(crate) number: u64,
    /// The GUID of the template, in the order of its text.
    pub(crate) guid: [u8; 16],
    /// The template ID that its instances have.
    pub(crate) template_id: u32,
    /// The error of a name in it whose hash does not match.
    pub(crate) invalid_name: Option<Error>,
    /// The error of a token of the template for which the grammar has no place.
    pub(crate) misplaced: Option<Error>,
    pub(crate) plan: Plan,
    /// The substitutions from which its `System` is read, if records with equal values of them share a row.
    pub(crate) system: Option<SubstitutionRanges>,
    /// Write the whole element, by [`Language`].
    pub(crate) programs: [Option<Program>; Language::ALL.len()],
    /// Writes the value of its `UserData` as JSON.
    pub(crate) user_data: Option<Program>,
}

/// A number that no other template has. Not 0.
fn next_number() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

impl Compiled {
    pub(crate) fn new(
        projection: &Projection,
        keys: &Keys,
        definition: &Definition,
        tree: &Element<'_>,
        root: TreeRoot,
    ) -> Self {
        Compiled {
            guid: Uuid::from_bytes_le(definition.guid).into_bytes(),
            template_id: definition.template_id(),
            ..Compiled::implicit(projection, keys, tree, root)
        }
    }

    /// The template of elements without a stored one, given its tree. No instance refers to it.
    pub(crate) fn implicit(projection: &Projection, keys: &Keys, tree: &Element<'_>, root: TreeRoot) -> Self {
        let plan = Plan::new(projection, keys, tree, root);
        let shares_system = root == TreeRoot::Event && plan.system && projection.shares_system();
        let system = shares_system.then(|| {
            let paths = projection.paths.iter().zip(&plan.paths);
            let sources = paths.filter_map(|(path, source)| source.as_ref().filter(|_| path.repeats()));
            sources.flat_map(Extractor::substitutions).collect()
        });
        // The program of one writes only that.
        let mut user_data = user_data(tree, root).filter(|_| plan.may_have_user_data());
        let user_data = user_data.next().filter(|_| user_data.next().is_none());
        Compiled {
            number: next_number(),
            guid: [0; 16],
            template_id: 0,
            invalid_name: None,
            misplaced: None,
            system: system.map(SubstitutionRanges::new),
            user_data: user_data.map(|element| Program::new(Language::Json, element)),
            plan,
            programs: Language::ALL.map(|language| {
                let is_read = projection.renders(language, root);
                is_read.then(|| Program::new(language, tree))
            }),
        }
    }

    /// The fault of an instance: it names another template, or a name of the template was overwritten.
    #[inline]
    pub(crate) fn fault(&self, instance: &Instance<'_>) -> Option<Error> {
        let is_own = instance.template_id == self.template_id && self.invalid_name.is_none();
        if is_own { None } else { self.describe_fault(instance) }
    }

    #[cold]
    fn describe_fault(&self, instance: &Instance<'_>) -> Option<Error> {
        if instance.template_id == self.template_id {
            return self.invalid_name;
        }
        let kind = ErrorKind::TemplateId {
            named: instance.template_id,
            found: self.template_id,
        };
        Some(Error::new(instance.definition as usize, kind))
    }

    /// Whether there are programs for the whole element, and all support these values. Then its tree has no error.
    pub(crate) fn supports_text(&self, values: ValueTable<'_>) -> bool {
        let mut programs = self.programs.iter().flatten().peekable();
        programs.peek().is_some() && programs.all(|program| program.supports(values))
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        let programs = self.programs.iter().chain([&self.user_data]);
        size_of::<Self>() + self.plan.bytes() + programs.flatten().map(Program::bytes).sum::<usize>()
    }

    pub(crate) fn program(&self, language: Language) -> Option<&Program> {
        self.programs[language as usize].as_ref()
    }
}

/// The `UserData` elements of a tree.
pub(crate) fn user_data<'a>(tree: &'a Element<'a>, root: TreeRoot) -> impl Iterator<Item = &'a Element<'a>> {
    let of_event = (root == TreeRoot::Event).then(|| tree.elements()).into_iter().flatten();
    let own = (root == TreeRoot::Child).then_some(tree);
    of_event.chain(own).filter(|element| element.name == "UserData")
}

/// The key of the cache: the GUID of a template, which other templates can have too, and the role of its root.
type Identity = ([u8; 16], TreeRoot);

/// The compiled templates of a scan, and the names of their keys.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    pub(crate) keys: Arc<Keys>,
    known: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    templates: HashMap<Identity, Vec<KnownTemplate>>,
    bytes: usize,
    /// Implicit templates, by role of the root and content.
    implicit: [HashMap<Box<[u8]>, Arc<Compiled>>; TreeRoot::COUNT],
}

/// About how many bytes an entry of the maps takes, with the unused capacity of its parts.
const ENTRY: usize = 2 * (size_of::<Identity>() + size_of::<Vec<KnownTemplate>>()) + 4 * size_of::<KnownTemplate>();
const IMPLICIT_TEMPLATE: usize = 2 * size_of::<(Box<[u8]>, Arc<Compiled>)>();

#[derive(Debug)]
struct KnownTemplate {
    content: TemplateContent,
    compiled: Arc<Compiled>,
}

impl PlanCache {
    /// Whether a thread panicked while it added something. The decoder then returns no batch (`Scan::is_poisoned`).
    pub(crate) fn is_poisoned(&self) -> bool {
        self.known.is_poisoned() || self.keys.is_poisoned()
    }

    #[cfg(test)]
    pub(crate) fn lock(&self) -> &RwLock<impl Send + Sync + use<>> {
        &self.known
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `add` if there is space for the bytes that it adds. Returns whether there was.
    fn add(&self, bytes: usize, add: impl FnOnce(&mut Known)) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let fits = known.bytes + bytes <= MAX_BYTES;
        if fits {
            known.bytes += bytes;
            add(&mut known);
        }
        fits
    }

    /// The compiled template of a chunk's definition, if the scan keeps it.
    pub(crate) fn get(&self, chunk: &[u8], definition: &Definition, root: TreeRoot) -> Option<Arc<Compiled>> {
        let known = self.read();
        let templates = known.templates.get(&(definition.guid, root))?;
        let found = templates
            .iter()
            .find(|known| known.content.matches(chunk, definition))?;
        Some(Arc::clone(&found.compiled))
    }

    /// Keeps a compiled template for other chunks with the same template, if there is space. Returns whether it is
    /// kept. A template with a damaged name is not kept, because it may be valid in other chunks.
    pub(crate) fn insert(
        &self,
        chunk: &[u8],
        definition: &Definition,
        template: &Template<'_>,
        root: TreeRoot,
        compiled: &Arc<Compiled>,
    ) -> bool {
        if !template.self_contained || compiled.invalid_name.is_some() {
            return false;
        }
        let Ok(content) = TemplateContent::new(chunk, definition, template) else {
            return false;
        };
        let bytes = ENTRY + content.bytes() + compiled.bytes();
        let compiled = Arc::clone(compiled);
        self.add(bytes, |known| {
            let templates = known.templates.entry((definition.guid, root)).or_default();
            templates.push(KnownTemplate { content, compiled });
        })
    }

    /// The compiled implicit template with this content, if the scan keeps it.
    pub(crate) fn implicit(&self, content: &[u8], root: TreeRoot) -> Option<Arc<Compiled>> {
        self.read().implicit[root as usize].get(content).map(Arc::clone)
    }

    /// Keeps a compiled implicit template for other chunks, if there is space. Returns whether it is kept.
    pub(crate) fn insert_implicit(&self, content: Box<[u8]>, root: TreeRoot, compiled: &Arc<Compiled>) -> bool {
        let bytes = IMPLICIT_TEMPLATE + content.len() + compiled.bytes();
        self.add(bytes, |known| {
            known.implicit[root as usize].insert(content, Arc::clone(compiled));
        })
    }
}

#[cfg(test)]
mod tests {
    use evtx_format::binxml::Reader;
    use evtx_writer::{Element, Event, Template as Written, Value};

    use super::*;
    use crate::testing::{chunk, data, with_instances};
    use evtx_format::binxml::template_content::{NameRef, reference};

    const EVENT: TreeRoot = TreeRoot::Event;

    fn event(guid: u8, data: impl IntoIterator<Item = Element>) -> Event {
        let event_data = data.into_iter().fold(Element::new("EventData"), Element::child);
        let root = Element::new("Event").child(event_data);
        Event::new(&Written::new([guid; 16], root), vec![Value::Null])
    }

    /// Hands on the definitions of a chunk's records, each with what it compiles to.
    fn with_definitions<R>(chunk: &[u8], with: impl FnOnce(&[(Definition, Template<'_>, Arc<Compiled>)]) -> R) -> R {
        let compile = |reader: &Reader<'_, '_>, definition| {
            let definition = Definition::read(chunk, definition).expect("a definition");
            // Only for what is asked of the compiled template, which lives longer than the tree.
            let template = reader.template(&definition).expect("a template");
            let projection = Projection {
                event_data: true,
                ..Projection::default()
            };
            Arc::new(Compiled::new(
                &projection,
                &Keys::default(),
                &definition,
                template.root,
                EVENT,
            ))
        };
        with_instances(chunk, |reader, instances| {
            let all = instances.iter().map(|instance| {
                let compiled = compile(reader, instance.definition);
                let definition = Definition::read(chunk, instance.definition).expect("a definition");
                (definition, reader.template(&definition).expect("a template"), compiled)
            });
            with(&all.collect::<Vec<_>>())
        })
    }

    #[test]
    fn a_template_is_known_again_where_its_names_stand_elsewhere() {
        let shared = || event(1, [data("a", 0), data("b", 0)]);
        // The names of the second are those of the first, and are not inline there.
        let (alone, behind) = (chunk(&[shared()]), chunk(&[event(2, [data("b", 0)]), shared()]));
        let cache = PlanCache::default();
        with_definitions(&alone, |known| {
            let (definition, template, compiled) = &known[0];
            assert!(cache.get(&alone, definition, EVENT).is_none());
            assert!(cache.insert(&alone, definition, template, EVENT, compiled));
            let found = cache.get(&alone, definition, EVENT).expect("the template");
            assert!(Arc::ptr_eq(&found, compiled));
            assert!(cache.get(&alone, definition, TreeRoot::Child).is_none());
        });
        // A copy with other inline names differs in its references only.
        let moved = chunk(&[event(2, [data("c", 0)]), shared()]);
        with_definitions(&moved, |known| {
            assert!(cache.get(&moved, &known[0].0, EVENT).is_none(), "another GUID");
        });
        for other in [&moved, &behind] {
            with_definitions(other, |known| {
                let (definition, template, compiled) = &known[1];
                if cache.get(other, definition, EVENT).is_none() {
                    // What is inline is another content, which is known by then.
                    assert!(cache.insert(other, definition, template, EVENT, compiled));
                }
                assert!(cache.get(other, definition, EVENT).is_some());
            });
        }
        // It is elsewhere, but has the same inline names as before: both name the event's root.
        let far = chunk(&[event(3, [data("d", 0)]), event(2, [data("c", 0)]), shared()]);
        with_definitions(&far, |known| {
            assert!(cache.get(&far, &known[2].0, EVENT).is_some());
        });
    }

    #[test]
    fn a_template_with_the_same_guid_is_another_if_any_byte_is() {
        let valid = chunk(&[event(1, [data("name", 0).text("literal")])]);
        let cache = PlanCache::default();
        let (body, refs) = with_definitions(&valid, |known| {
            let (definition, template, compiled) = &known[0];
            assert!(cache.insert(&valid, definition, template, EVENT, compiled));
            let refs: Vec<_> = template.name_refs.iter().map(|&at| at as usize).collect();
            let start = definition.body as usize;
            (start..start + definition.size as usize, refs)
        });
        let definition = Definition {
            guid: [1; 16],
            body: body.start as u32,
            size: body.len() as u32,
        };
        assert!(cache.get(&valid, &definition, EVENT).is_some());
        let link = |at: usize| refs.iter().any(|&name| (name + 4..name + 8).contains(&at));
        for at in body.clone() {
            let mut other = valid.clone();
            other[at] ^= 1;
            // An inline name follows the link to the next name of its bucket, which varies.
            let expected = link(at);
            assert_eq!(
                cache.get(&other, &definition, EVENT).is_some(),
                expected,
                "byte {at} of {body:?}"
            );
        }
        let shorter = Definition {
            size: definition.size - 1,
            ..definition
        };
        assert!(cache.get(&valid, &shorter, EVENT).is_none());
        let outside = Definition {
            body: 65_536 - 4,
            ..definition
        };
        assert!(cache.get(&valid, &outside, EVENT).is_none());
    }

    #[test]
    fn a_template_is_another_if_a_name_outside_of_it_or_its_hash_is() {
        let valid = chunk(&[event(2, [data("b", 0)]), event(1, [data("b", 0)])]);
        with_definitions(&valid, |known| {
            let (definition, template, compiled) = &known[1];
            let body = definition.body..definition.body + definition.size;
            let refs = template.name_refs.iter().map(|&at| reference(&valid, at as usize));
            let names: Vec<_> = refs.filter(|(name, _)| !body.contains(name)).collect();
            assert!(!names.is_empty() && names.iter().all(|(_, inline)| !inline));
            let cache = PlanCache::default();
            assert!(cache.insert(&valid, definition, template, EVENT, compiled));
            for (name, _) in names {
                // The hash of the name follows the link, and its text follows the hash and the length.
                for behind in [4, 8] {
                    let mut other = valid.clone();
                    other[name as usize + behind] ^= 1;
                    assert!(
                        cache.get(&other, definition, EVENT).is_none(),
                        "{behind} bytes behind {name}"
                    );
                }
                let mut other = valid.clone();
                other[name as usize] ^= 1;
                assert!(cache.get(&other, definition, EVENT).is_some(), "the link varies");
            }
        });
    }

    #[test]
    fn nothing_is_kept_of_what_is_damaged_or_depends_on_its_chunk() {
        let chunk = chunk(&[event(1, [data("a", 0)])]);
        with_definitions(&chunk, |known| {
            let (definition, template, _) = &known[0];
            let compile = |invalid_name| {
                let (projection, keys) = (Projection::default(), Keys::default());
                Arc::new(Compiled {
                    invalid_name,
                    ..Compiled::new(&projection, &keys, definition, template.root, EVENT)
                })
            };
            let cache = PlanCache::default();
            let invalid = compile(Some(Error::new(7, ErrorKind::Names)));
            assert!(!cache.insert(&chunk, definition, template, EVENT, &invalid));
            let embedding = Template {
                root: template.root,
                name_refs: template.name_refs.clone(),
                self_contained: false,
            };
            assert!(!cache.insert(&chunk, definition, &embedding, EVENT, &compile(None)));
            assert!(cache.get(&chunk, definition, EVENT).is_none());
        });
    }

    #[test]
    fn only_so_many_bytes_are_kept() {
        let long = "x".repeat(20_000);
        let chunk = chunk(&[event(1, [data("a", 0).text(long)]), event(2, [data("b", 0)])]);
        with_definitions(&chunk, |known| {
            let cache = PlanCache::default();
            let insert = |(definition, template, compiled): &(Definition, Template<'_>, Arc<Compiled>)| {
                cache.insert(&chunk, definition, template, EVENT, compiled)
            };
            let (definition, template, compiled) = &known[0];
            let content = TemplateContent::new(&chunk, definition, template).expect("its names");
            let names: usize = content.names.len();
            assert_eq!(
                content.bytes(),
                definition.size as usize + names + template.name_refs.len() * size_of::<NameRef>()
            );
            let bytes = ENTRY + content.bytes() + compiled.bytes();
            let kept = (0..).take_while(|_| insert(&known[0])).count();
            assert_eq!(kept, MAX_BYTES / bytes);
            assert_eq!(cache.read().bytes, kept * bytes);
            // One that fits still does.
            assert_eq!(insert(&known[1]), MAX_BYTES - kept * bytes > 4096);
        });
    }

    #[test]
    fn an_implicit_template_is_known_by_all_of_its_content_and_its_root() {
        let (projection, keys) = (Projection::default(), Keys::default());
        let tree = evtx_format::binxml::tree::Element::new("Event", &[], &[]);
        let known = Arc::new(Compiled::implicit(&projection, &keys, &tree, EVENT));
        let (cache, content) = (PlanCache::default(), vec![7; 10_000]);
        assert!(cache.implicit(&content, EVENT).is_none());
        let bytes = IMPLICIT_TEMPLATE + content.len() + known.bytes();
        let insert = |number: &usize| {
            let mut content = content.clone();
            content[..8].copy_from_slice(&number.to_le_bytes());
            cache.insert_implicit(content.into(), EVENT, &known)
        };
        let kept = (0..).take_while(insert).count();
        assert_eq!(kept, MAX_BYTES / bytes);
        assert_eq!(cache.read().bytes, kept * bytes);
        let first = [&[0; 8][..], &content[8..]].concat();
        let found = cache.implicit(&first, EVENT).expect("the implicit template");
        assert!(Arc::ptr_eq(&found, &known) && cache.implicit(&first, TreeRoot::Child).is_none());
        assert!(cache.implicit(&first[1..], EVENT).is_none() && cache.implicit(&content, EVENT).is_none());
    }

    #[test]
    fn an_instance_of_another_template_has_a_fault() {
        let chunk = chunk(&[event(1, [data("a", 0)])]);
        with_instances(&chunk, |reader, instances| {
            let definition = Definition::read(&chunk, instances[0].definition).expect("a definition");
            let template = reader.template(&definition).expect("a template");
            let (projection, keys) = (Projection::default(), Keys::default());
            let compiled = Compiled::new(&projection, &keys, &definition, template.root, EVENT);
            assert_eq!(compiled.fault(&instances[0]), None);
            let other = Instance {
                template_id: 7,
                ..instances[0]
            };
            let kind = ErrorKind::TemplateId {
                named: 7,
                found: 0x0101_0101,
            };
            assert_eq!(
                compiled.fault(&other),
                Some(Error::new(other.definition as usize, kind))
            );
            let invalid = Compiled {
                invalid_name: Some(Error::new(9, ErrorKind::Names)),
                ..compiled
            };
            assert_eq!(invalid.fault(&instances[0]), Some(Error::new(9, ErrorKind::Names)));
        });
    }

    #[test]
    fn a_reference_that_is_not_there_is_to_no_name() {
        let chunk = [9, 4, 0, 0, 0, 6, 0, 0, 0];
        assert_eq!(reference(&chunk, 1), (4, false));
        assert_eq!(reference(&chunk, 5), (6, false));
        assert_eq!(reference(&[9, 5, 0, 0, 0], 1), (5, true));
        assert_eq!(reference(&chunk, 6), (u32::MAX, false));
        assert_eq!(reference(&chunk, 60), (u32::MAX, false));
    }
}
