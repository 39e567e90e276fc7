//! From a path and a method to an operation.

use crate::answer::Problem;
use crate::dialect::Dialect;
use crate::request::Request;
use crate::table::{
    CHILDREN, Child, IN_LISTENS, Key, OTHERS, Other, Parent, SECTIONS, Section, Shape, Since, Verb,
};

/// What an operation is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    Section(&'static Section, Verb),
    Child(&'static Child, Verb),
    Other(Other),
}

/// A path, and what its methods do.
#[derive(Debug)]
pub(crate) struct Path {
    /// As the specification writes it, below `/v3`.
    pub(crate) template: String,
    segments: Vec<Part>,
    pub(crate) operations: Vec<(&'static str, Operation)>,
}

#[derive(Debug)]
enum Part {
    Word(String),
    Variable,
}

/// All paths of a dialect.
#[derive(Debug)]
pub(crate) struct Routes {
    pub(crate) paths: Vec<Path>,
}

/// What a request asks for: the operation, and the variable parts of the path.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) operation: Operation,
    pub(crate) names: Vec<String>,
}

const CONFIGURATION: &str = "services/haproxy/configuration/";

impl Routes {
    pub(crate) fn of(dialect: Dialect) -> Self {
        let has = |since: Since| (since.0..=since.1).contains(&dialect.version());
        let mut paths = Vec::new();
        let mut add = |template: String, operations: Vec<(&'static str, Operation)>| {
            let words = template
                .split('/')
                .map(|word| if word.starts_with('{') { Part::Variable } else { Part::Word(word.to_owned()) });
            paths.push(Path { segments: words.collect(), template, operations });
        };
        for (path, _, methods) in OTHERS.iter().filter(|(_, since, _)| has(*since)) {
            let operations = methods.iter().map(|(method, other)| (*method, Operation::Other(*other)));
            add((*path).to_owned(), operations.collect());
        }
        for section in SECTIONS.iter().filter(|section| has(section.since)) {
            let operation = |verb| Operation::Section(section, verb);
            let collection = format!("{CONFIGURATION}{}", section.path);
            match section.shape {
                Shape::Usual | Shape::NotReplaced => {
                    let mut all = vec![("GET", operation(Verb::List)), ("POST", operation(Verb::Create))];
                    if section.path == "defaults" {
                        // 3.0 has no way to create one but this.
                        all.insert(1, ("PUT", Operation::Other(Other::DefaultsReplace)));
                        all.retain(|(method, _)| *method != "POST" || dialect > Dialect::ALL[0]);
                    }
                    add(collection.clone(), all);
                    let mut one = vec![
                        ("GET", operation(Verb::Get)),
                        ("PUT", operation(Verb::Replace)),
                        ("DELETE", operation(Verb::Delete)),
                    ];
                    one.retain(|(method, _)| *method != "PUT" || section.shape == Shape::Usual);
                    add(format!("{collection}/{{name}}"), one);
                }
                Shape::One => {
                    add(collection, vec![("GET", operation(Verb::Get)), ("PUT", operation(Verb::Replace))]);
                }
                Shape::MayBe => add(
                    collection,
                    vec![
                        ("GET", operation(Verb::Get)),
                        ("PUT", operation(Verb::Replace)),
                        ("POST", operation(Verb::Create)),
                        ("DELETE", operation(Verb::Delete)),
                    ],
                ),
            }
        }
        for child in CHILDREN.iter().chain(IN_LISTENS.iter()).filter(|child| has(child.since)) {
            let operation = |verb| Operation::Child(child, verb);
            let collection = format!("{CONFIGURATION}{}", child.path);
            let (all, place, mut one) = match child.key {
                Key::Name(name) => (("POST", Verb::Create), name, vec![]),
                Key::Index => (("PUT", Verb::ReplaceAll), "index", vec![("POST", operation(Verb::CreateAt))]),
                Key::Appended => (("POST", Verb::Create), "index", vec![]),
            };
            add(collection.clone(), vec![("GET", operation(Verb::List)), (all.0, operation(all.1))]);
            one.splice(0..0, [("GET", operation(Verb::Get)), ("PUT", operation(Verb::Replace))]);
            one.push(("DELETE", operation(Verb::Delete)));
            add(format!("{collection}/{{{place}}}"), one);
        }
        Self { paths }
    }

    /// Finds what a request asks for.
    pub(crate) fn find(&self, request: &Request) -> Result<Found, Problem> {
        let not_found = || Problem::new(404, format!("path {} was not found", request.path));
        let segments = request.segments();
        let Some(("v3", rest)) = segments.split_first().map(|(first, rest)| (first.as_str(), rest)) else {
            return Err(not_found());
        };
        let empty = [String::new()];
        let rest = if rest.is_empty() { &empty[..] } else { rest };
        // Words before variables: `ssl_crt_lists/entries` is no list of that name.
        let matching = self.paths.iter().filter_map(|path| Some((path, path.matches(rest)?)));
        let Some((path, names)) = matching.min_by_key(|(_, names)| names.len()) else {
            return Err(not_found());
        };
        let method = request.method.as_str();
        match path.operations.iter().find(|(held, _)| *held == method) {
            Some((_, operation)) => Ok(Found { operation: *operation, names }),
            None => Err(not_allowed(request, path)),
        }
    }
}

fn not_allowed(request: &Request, path: &Path) -> Problem {
    let methods: Vec<&str> = path.operations.iter().map(|(method, _)| *method).collect();
    let method = request.method.as_str();
    if request.dialect.is_new() {
        let message = format!("method {method} is not allowed for path {}", request.path);
        Problem::new(405, message).with("allow", methods.join(", "))
    } else {
        let methods = methods.join(",");
        let message = format!("method {method} is not allowed, but [{methods}] are");
        Problem::new(405, message).with("allow", methods)
    }
}

impl Path {
    /// The variable parts, if the path fits.
    fn matches(&self, segments: &[String]) -> Option<Vec<String>> {
        if self.segments.len() != segments.len() {
            return None;
        }
        let mut names = Vec::new();
        for (part, segment) in self.segments.iter().zip(segments) {
            match part {
                Part::Word(word) if word == segment => {}
                Part::Word(_) => return None,
                Part::Variable if segment.is_empty() => return None,
                Part::Variable => names.push(segment.clone()),
            }
        }
        Some(names)
    }
}

/// The name of the parent, and which child, out of the variable parts of a path and the query.
pub(crate) fn parent_of<'r>(
    child: &Child,
    names: &'r [String],
    request: &'r Request,
) -> Result<(Option<&'r str>, Option<&'r str>), Problem> {
    let name = |at: usize| names.get(at).map(String::as_str);
    Ok(match child.parent {
        Parent::Path => (name(0), name(1)),
        Parent::Unnamed => (None, name(0)),
        Parent::Query(parameter) => (Some(request.required(parameter)?), name(0)),
    })
}
