//! Makes the items of the intended graph, with all they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use setpoint_graph::{Graph, ItemHandle, ItemRef, Name};

use super::diagnostic::{Diagnostics, ManifestFile};
use super::links::{Identity, Links};
use super::parents::Parents;
use super::resolve::Resolver;
use super::spec::{Declarations, Spec};
use super::table::Section;
use super::yaml::{Data, Node};
use super::{Contents, Declared};
use crate::item::{Access, Because, Content, Dependence, Invocation, Need, RootPath, Wait, quoted};
use crate::kinds::{self, Command, File, Nature, Process, path_of};

/// What came of the manifests.
pub(crate) struct Built {
    pub(crate) graph: Graph,
    pub(crate) declared: BTreeMap<ItemRef, Declared>,
    /// Files beside the manifests that were read.
    pub(crate) read: Vec<PathBuf>,
    /// The paths of all declared files.
    pub(crate) files: Vec<RootPath>,
    /// Directories that nobody declared.
    pub(crate) parents: Parents,
    /// Whether a manifest declares itself, which is wrong.
    pub(crate) declares_itself: bool,
}

/// Makes the graph of all that was written.
pub(crate) fn build<'a>(
    name: &Name,
    root: PathBuf,
    written: &'a Declarations<'a>,
    sources: &'a [ManifestFile],
    variables: &[(String, String)],
    contents: Contents,
    report: &mut Diagnostics<'a>,
) -> Built {
    let mut resolver = Resolver::new(written, sources, root, variables, contents, report);
    let own: Vec<Option<PathBuf>> = sources.iter().map(|source| source.path.canonicalize().ok()).collect();
    let mut by_path: FxHashMap<RootPath, usize> = FxHashMap::default();
    let (mut files, mut declares_itself) = (Vec::new(), false);
    for (i, spec) in written.specs.iter().enumerate() {
        if !spec.section.has_path() {
            continue;
        }
        let Some(path) = resolver.path(i) else { continue };
        let source = own.get(spec.location.source).and_then(Option::as_ref);
        if source.is_some_and(|own| own.ends_with(path.as_str()) && *own == path.in_root(&resolver.root)) {
            let message = format!("{} is at {path}, which is this manifest", resolver.reference(i));
            let hint = "a manifest can't declare itself; choose another path".to_owned();
            resolver.report.add(spec.location_of("path"), message, Some(hint));
            declares_itself = true;
        }
        if spec.section.nature == Nature::Content {
            files.push(path.clone());
        }
        if let Some(&first) = by_path.get(&path) {
            if resolver.reference(first) == resolver.reference(i) {
                // Twice the same name: that has been reported.
                continue;
            }
            let message =
                format!("{} and {} are both at {path}", resolver.reference(first), resolver.reference(i));
            let hint = format!("the first is in {}", resolver.report.words(written.specs[first].location));
            resolver.report.add(spec.location_of("path"), message, Some(hint));
        } else {
            by_path.insert(path, i);
        }
    }
    let mut graph = Graph::new(name);
    let mut declared = Vec::with_capacity(written.specs.len());
    for (i, spec) in written.specs.iter().enumerate() {
        let item = Build { resolver: &mut resolver, by_path: &by_path, i }.item();
        let Some(item) = item else { continue };
        let reference = item.reference().clone();
        let source = sources.get(spec.location.source);
        let file = source.map(|source| std::sync::Arc::clone(&source.path));
        let flags = Declared {
            file: file.unwrap_or_else(|| PathBuf::new().into()),
            line: spec.location.span.line as usize,
            prevent_destroy: spec.is_set("prevent_destroy"),
            adopt: spec.is_set("adopt"),
        };
        declared.push((reference, flags));
        if let Err(error) = graph.put_item(item) {
            resolver.report.add(spec.location, error.to_string(), None);
        }
    }
    for cycle in graph.cycles() {
        let first = cycle.path().first().and_then(|first| {
            written
                .specs
                .iter()
                .find(|spec| spec.section.kind == first.kind().as_str() && spec.name == *first.name())
        });
        if let Some(spec) = first {
            let message = format!("these wait for each other: {cycle}");
            let hint = "remove one of the references, or an entry of `after`".to_owned();
            resolver.report.add(spec.location, message, Some(hint));
        }
    }
    report_same_paths(&graph, written, &mut resolver);
    report_logs_in_manifests(&graph, written, &own, &mut resolver);
    let adopting = adopting(written, &resolver);
    add_logs(&mut graph, &by_path, &adopting, written, &mut resolver);
    let mut parents = Parents::default();
    for node in graph.items() {
        let item = node.item();
        let process = item.get::<Process>();
        let declared = |path: &str| by_path.get(path).map(|&at| resolver.reference(at));
        if let Some(path) = path_of(item).or(process.and_then(|process| process.log.as_ref())) {
            parents.take_in(path, item.reference(), declared);
        }
        let command = item.get::<Command>().and_then(|command| command.cwd.as_ref());
        if let Some(directory) = command.or(process.and_then(|process| process.cwd.as_ref())) {
            parents.take_in_directory(directory, item.reference(), declared);
        }
    }
    let declared = declared.into_iter().collect();
    Built { graph, declared, read: resolver.read, files, parents, declares_itself }
}

/// Reports items that are at one place by two paths, as links or mounts on the way lead to one directory.
fn report_same_paths(graph: &Graph, written: &Declarations<'_>, resolver: &mut Resolver<'_, '_>) {
    let links = Links::declared(graph, &resolver.root);
    let items: Vec<(usize, RootPath)> = (0..written.specs.len())
        .filter_map(|i| Some((i, path_of(graph.item(&resolver.reference(i))?)?.clone())))
        .collect();
    // Most items share their directory with others.
    let mut leads_to: FxHashMap<&str, Identity> = FxHashMap::default();
    for (_, path) in &items {
        let around = path.parent().unwrap_or_default();
        leads_to.entry(around).or_insert_with(|| Identity::of(links.follow(&resolver.root.join(around))));
    }
    let directories: BTreeSet<&Identity> = leads_to.values().collect();
    if directories.len() == leads_to.len() {
        return;
    }
    let mut by_path: FxHashMap<(&Identity, &str), (usize, &RootPath)> = FxHashMap::default();
    for (i, path) in &items {
        let Some(around) = leads_to.get(path.parent().unwrap_or_default()) else { continue };
        let (first, first_path) = *by_path.entry((around, path.file_name())).or_insert((*i, path));
        if first == *i || first_path == path {
            continue;
        }
        let (one, other) = (resolver.reference(first), resolver.reference(*i));
        let message = format!(
            "{one} and {other} are both at {first_path}: a link or a mount on the way of {path} leads there"
        );
        let hint = format!("the first is in {}", resolver.report.words(written.specs[first].location));
        resolver.report.add(written.specs[*i].location_of("path"), message, Some(hint));
    }
}

/// The items that take over what is there already.
fn adopting(written: &Declarations<'_>, resolver: &Resolver<'_, '_>) -> BTreeSet<ItemRef> {
    let specs = written.specs.iter().enumerate().filter(|(_, spec)| spec.is_set("adopt"));
    specs.map(|(i, _)| resolver.reference(i)).collect()
}

/// Reports processes that would write into a manifest.
fn report_logs_in_manifests(
    graph: &Graph,
    written: &Declarations<'_>,
    own: &[Option<PathBuf>],
    resolver: &mut Resolver<'_, '_>,
) {
    let links = Links::declared(graph, &resolver.root);
    for (i, spec) in written.specs.iter().enumerate() {
        let reference = resolver.reference(i);
        let process = graph.item(&reference).and_then(|item| item.get::<Process>());
        let Some(log) = process.and_then(|process| process.log.as_ref()) else { continue };
        let location = links.follow(&log.in_root(&resolver.root));
        if own.iter().flatten().any(|own| *own == location) {
            let message = format!("{reference} has the log {log}, which is a manifest of this set");
            resolver.report.add(spec.location_of("log"), message, Some("choose another path".to_owned()));
        }
    }
}

/// Adds the logs of processes that nobody declared as files: they are made, moved and removed like any other file, and what
/// they hold is left alone.
fn add_logs(
    graph: &mut Graph,
    by_path: &FxHashMap<RootPath, usize>,
    adopting: &BTreeSet<ItemRef>,
    written: &Declarations<'_>,
    resolver: &mut Resolver<'_, '_>,
) {
    let processes = graph.items().filter_map(|node| node.item().get::<Process>().cloned());
    let with_log: Vec<(Process, RootPath)> =
        processes.filter_map(|process| process.log.clone().map(|log| (process, log))).collect();
    // Several processes may have one log.
    let mut logs: BTreeMap<RootPath, ItemRef> = BTreeMap::new();
    for (mut process, log) in with_log {
        let item = match by_path.get(&log) {
            Some(&at) => resolver.reference(at),
            None => match logs.get(&log) {
                Some(item) => item.clone(),
                None => ItemRef::of::<File>(format!("{}:log", process.name)),
            },
        };
        let is_declared = |item: &ItemRef| !logs.values().any(|log| log == item) && graph.contains(item);
        if !by_path.contains_key(&log) && is_declared(&item) {
            report_name_of_log(&item, &process, &log, written, resolver);
            continue;
        }
        if !by_path.contains_key(&log) && !graph.contains(&item) {
            logs.insert(log.clone(), item.clone());
            let mut around =
                std::iter::successors(log.parent(), |path| path.rsplit_once('/').map(|(path, _)| path));
            let around = around.find_map(|path| by_path.get(path)).map(|&at| resolver.reference(at));
            let inside =
                around.map(|item| Need { item, because: Because::Inside, dependence: Dependence::Requires });
            let file = File {
                name: item.name().clone(),
                path: log,
                content: Content::from(""),
                sensitive: false,
                access: Access::default(),
                adopt: adopting.contains(&ItemRef::of::<Process>(process.name.clone())),
                log: true,
                needs: inside.into_iter().collect(),
            };
            // Nothing else is called so.
            let _ = graph.put_item(ItemHandle::new(file));
        }
        process.needs.push(Need { item, because: Because::Log, dependence: Dependence::After });
        process.needs.sort();
        let _ = graph.put_item(ItemHandle::new(process));
    }
}

/// Reports a file that has the name of the log of a process, and is at another path.
fn report_name_of_log(
    file: &ItemRef,
    process: &Process,
    log: &RootPath,
    written: &Declarations<'_>,
    resolver: &mut Resolver<'_, '_>,
) {
    let mut specs = written.specs.iter().enumerate();
    let Some((_, spec)) = specs.find(|(i, _)| resolver.reference(*i) == *file) else { return };
    let name = file.name();
    let message =
        format!("{name} is the name of the log {log} of process.{}, which is another file", process.name);
    resolver.report.add(spec.location, message, Some("call this file something else".to_owned()));
}

/// A command, of which each text is read by `text`.
fn invocation<'a>(
    node: &'a Node<'a>,
    mut text: impl FnMut(&'a Node<'a>) -> Option<String>,
) -> Option<Invocation> {
    match &node.data {
        Data::List(nodes) => {
            // All are looked at, so that all errors are found.
            let texts: Vec<Option<String>> = nodes.iter().map(text).collect();
            texts.into_iter().collect::<Option<Vec<String>>>().map(Invocation::Program)
        }
        _ => text(node).map(Invocation::Shell),
    }
}

/// One item that is made of what a manifest says: its fields, read, and all that is wrong with them, reported.
pub(crate) struct Build<'b, 'a, 'r> {
    resolver: &'b mut Resolver<'a, 'r>,
    by_path: &'b FxHashMap<RootPath, usize>,
    i: usize,
}

impl<'a> Build<'_, 'a, '_> {
    fn item(&mut self) -> Option<ItemHandle> {
        let section = self.spec().section;
        let path = if section.has_path() { self.resolver.path(self.i) } else { None };
        if let Some(path) = &path {
            self.needs_what_is_around(path, Because::Inside);
        }
        self.named("after", Because::After);
        self.named("restart_on", Because::RestartOn);
        self.named("redo_on", Because::RedoOn);
        let kind = kinds::entry(section.kind)?;
        (kind.declare)(self, path)
    }

    fn spec(&self) -> &'a Spec<'a> {
        &self.resolver.specs[self.i]
    }

    /// What the item is called.
    pub(crate) fn name(&self) -> Name {
        self.spec().name.clone()
    }

    /// The root that all paths are below.
    pub(crate) fn root(&self) -> &Path {
        &self.resolver.root
    }

    /// What the item depends on, by what was asked for until now.
    pub(crate) fn take_needs(&mut self) -> Vec<Need> {
        self.resolver.take_needs(self.i)
    }

    /// Returns whether a field is `true`.
    pub(crate) fn is_set(&self, field: &str) -> bool {
        self.spec().is_set(field)
    }

    /// The value of a field as it is written.
    pub(crate) fn node(&self, field: &str) -> Option<&'a Node<'a>> {
        self.spec().node(field)
    }

    /// The text of a field in which there are no references.
    pub(crate) fn plain(&self, field: &str) -> Option<&'a str> {
        self.spec().text(field)
    }

    /// The text of a field, with its references replaced.
    pub(crate) fn text(&mut self, field: &str) -> Option<String> {
        self.text_in(self.node(field)?)
    }

    /// A text with its references replaced. The system takes it up to the first NUL character, so that there is none.
    pub(crate) fn text_in(&mut self, node: &'a Node<'a>) -> Option<String> {
        let text = self.resolver.text(self.i, node)?.into_owned();
        if text.contains('\0') {
            self.report_at(node, "a NUL character can't be in here", Some("leave out the `\\0`"));
            return None;
        }
        Some(text)
    }

    /// What a file holds.
    pub(crate) fn content(&mut self) -> Option<Content> {
        self.resolver.content(self.i)
    }

    /// A path below the root in a field.
    pub(crate) fn path_field(&mut self, field: &str) -> Option<RootPath> {
        self.resolver.path_field(self.i, field)
    }

    /// The path below the root that a text is.
    pub(crate) fn path_in(&mut self, node: &'a Node<'a>, text: &str) -> Option<RootPath> {
        let location = self.spec().at(node.span);
        self.resolver.below(location, text)
    }

    /// The item that is declared at a path.
    pub(crate) fn declared_at(&self, path: &RootPath) -> Option<ItemRef> {
        self.by_path.get(path).map(|&at| self.resolver.reference(at))
    }

    /// Reports what is wrong with a field.
    pub(crate) fn report(&mut self, field: &str, message: &str, hint: Option<&str>) {
        let location = self.spec().location_of(field);
        self.resolver.report.add(location, message, hint.map(ToOwned::to_owned));
    }

    /// Reports what is wrong with a value.
    pub(crate) fn report_at(&mut self, node: &'a Node<'a>, message: &str, hint: Option<&str>) {
        let location = self.spec().at(node.span);
        self.resolver.report.add(location, message, hint.map(ToOwned::to_owned));
    }

    /// What its fields say about permissions.
    pub(crate) fn access(&mut self) -> Access {
        let mode = self.resolver.specs[self.i].text("mode").and_then(|mode| mode.parse().ok());
        Access { mode, owner: self.text("owner"), group: self.text("group") }
    }

    /// The time in a field.
    pub(crate) fn wait(&self, field: &str, default: Wait) -> Wait {
        self.resolver.specs[self.i].text(field).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// The command in a field.
    pub(crate) fn run(&mut self, field: &str) -> Option<Invocation> {
        self.run_in(self.resolver.specs[self.i].node(field)?)
    }

    /// A command.
    pub(crate) fn run_in(&mut self, node: &'a Node<'a>) -> Option<Invocation> {
        invocation(node, |node| self.text_in(node))
    }

    /// A command that was read, with its references to items as they are written; none if it has none.
    pub(crate) fn run_as_written(&mut self, field: &str, read: Option<&Invocation>) -> Option<Invocation> {
        let node = self.resolver.specs[self.i].node(field).filter(|_| read.is_some())?;
        let written = invocation(node, |node| self.resolver.text_as_written(self.i, node));
        written.filter(|written| Some(written) != read)
    }

    /// The variables that are added to the environment.
    pub(crate) fn environment(&mut self) -> BTreeMap<String, String> {
        let Some(Data::Map(pairs)) = self.resolver.specs[self.i].node("env").map(|node| &node.data) else {
            return BTreeMap::new();
        };
        let pairs =
            pairs.iter().filter_map(|(key, value)| Some((key.scalar()?.to_owned(), self.text_in(value)?)));
        pairs.collect()
    }

    /// Depends on the items that a field names.
    fn named(&mut self, field: &str, because: Because) {
        let spec = &self.resolver.specs[self.i];
        let Some(Data::List(nodes)) = spec.node(field).map(|node| &node.data) else { return };
        for node in nodes {
            let Some(text) = node.scalar() else { continue };
            let location = spec.at(node.span);
            let Some((kind, name)) = text.split_once('.') else {
                // As plans write it.
                let written = text.split_once('/').filter(|(kind, name)| {
                    Section::all().any(|section| section.kind == *kind) && !name.is_empty()
                });
                let hint = Some(match written {
                    Some((kind, name)) => format!("write {kind}.{name}"),
                    None => "write `kind.name`, such as file.config".to_owned(),
                });
                self.resolver.report.add(location, format!("{} names no item", quoted(text)), hint);
                continue;
            };
            if let Some(on) = self.resolver.find(self.i, kind, name, location.into()) {
                if on == self.i {
                    self.resolver.report.add(location, "an item can't come after itself", None);
                }
                self.resolver.need(self.i, on, because);
            }
        }
    }

    /// Depends on what is declared at a path, or around it.
    pub(crate) fn needs_at(&mut self, path: &RootPath, because: Because) {
        match self.by_path.get(path) {
            Some(&on) => self.resolver.need(self.i, on, because),
            None => self.needs_what_is_around(path, because),
        }
    }

    /// Depends on the nearest declared directory, or link to one, on the way to a path.
    pub(crate) fn needs_what_is_around(&mut self, path: &RootPath, because: Because) {
        let mut around = path.parent();
        while let Some(parent) = around {
            if let Some(&on) = self.by_path.get(parent) {
                let spec = &self.resolver.specs[on];
                if spec.section.nature == Nature::Content {
                    let message = format!("{path} is inside of {parent}, which is declared as a file");
                    let hint =
                        format!("the file is declared in {}", self.resolver.report.words(spec.location));
                    let location = self.resolver.specs[self.i].location;
                    self.resolver.report.add(location, message, Some(hint));
                } else {
                    self.resolver.need(self.i, on, because);
                }
                return;
            }
            around = parent.rsplit_once('/').map(|(parent, _)| parent);
        }
    }
}
