//! What lines of a configuration name, and a running HAProxy therefore holds: servers that it does not delete, files that it has
//! loaded.

use std::cell::OnceCell;

use memchr::memmem;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::keywords::Argument;
use crate::table::Name;
use crate::table::calls::{calls, in_format};
use crate::table::facts::facts;
use crate::text::{Document, Section};

/// The servers that lines of either side name, as `backend/server`. Both documents are read once, when one is first asked for.
#[derive(Debug)]
pub(super) struct NamedServers<'a> {
    documents: [&'a Document; 2],
    found: OnceCell<Found>,
}

#[derive(Debug, Default)]
struct Found {
    /// The servers that words name, each with the word before it, such as `track`.
    servers: FxHashMap<String, &'static str>,
    in_expressions: FxHashSet<String>,
    /// The files that HAProxy loads when it starts.
    files: FxHashSet<String>,
    /// The values that no other may have in the whole configuration.
    distinct: FxHashSet<String>,
}

impl<'a> NamedServers<'a> {
    pub(super) fn new(documents: [&'a Document; 2]) -> Self {
        Self { documents, found: OnceCell::new() }
    }

    /// Returns the word by which a line names one, such as `track` or `use-server`.
    pub(super) fn named_by(&self, path: &str) -> Option<&'static str> {
        self.found().servers.get(path).copied()
    }

    /// Returns whether a fetch such as `srv_is_up(backend/server)` names one.
    pub(super) fn is_in_an_expression(&self, path: &str) -> bool {
        self.found().in_expressions.contains(path)
    }

    /// Returns whether the current configuration names a file of TLS, so that HAProxy has loaded it.
    pub(super) fn is_loaded(&self, file: &str) -> bool {
        self.found().files.contains(file)
    }

    /// Returns whether something of the current configuration has a value that no other may have.
    pub(super) fn is_taken(&self, value: &str) -> bool {
        self.found().distinct.contains(value)
    }

    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let mut found = Found::default();
            let before: Vec<_> = facts().before_servers().iter().map(memmem::Finder::new).collect();
            for section in self.documents[0].sections() {
                found.add_values(section);
            }
            for section in self.documents.iter().flat_map(|document| document.sections()) {
                let bytes = section.bytes();
                let names_server = before.iter().any(|word| word.find(&bytes).is_some());
                if names_server || memchr::memchr(b'(', &bytes).is_some() {
                    found.add(section);
                }
            }
            found
        })
    }
}

impl Found {
    fn add_values(&mut self, section: &Section) {
        let bytes = section.bytes();
        let (files, distinct) = (facts().before_files(), facts().before_distinct());
        if !files.iter().chain(distinct).any(|word| memmem::find(&bytes, word.as_bytes()).is_some()) {
            return;
        }
        for line in section.lines() {
            let (mut names_file, mut is_distinct) = (false, false);
            for word in line.words() {
                let text = word.to_str_lossy();
                if names_file {
                    self.files.insert(text.clone().into_owned());
                }
                if is_distinct {
                    self.distinct.insert(text.clone().into_owned());
                }
                (names_file, is_distinct) = (files.contains(&*text), distinct.contains(&*text));
            }
        }
    }

    fn add(&mut self, section: &Section) {
        let own = section.name().map(|name| String::from_utf8_lossy(&name).into_owned()).unwrap_or_default();
        // A server of the same section is named alone.
        let path = |name: &str| if name.contains('/') { name.to_owned() } else { format!("{own}/{name}") };
        for line in section.lines() {
            let mut before = None;
            for word in line.words() {
                let text = word.to_str_lossy();
                if let Some(before) = before {
                    self.servers.insert(path(&text), before);
                }
                before = facts().before_servers().get(&*text).copied();
                if text.contains('(') {
                    self.in_expressions.extend(servers(&text).iter().map(|name| path(name)));
                }
            }
        }
    }
}

/// The servers that the fetches of a word name: `srv_is_up(backend/server)`, as the list of fetches tells.
fn servers(text: &str) -> Vec<String> {
    let expressions = in_format(text).into_iter().chain([text.trim_start_matches('!')]);
    let mut names = Vec::new();
    for (call, signature) in expressions.flat_map(calls) {
        let arguments = signature.map(|signature| signature.arguments.as_slice()).unwrap_or_default();
        for (name, argument) in call.arguments().into_iter().zip(arguments) {
            if *argument == Argument::Named(Name::Server) {
                names.push(name);
            }
        }
    }
    names
}
