//! Makes the items of the intended graph, with all they depend on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustc_hash::FxHashMap;
use setpoint_graph::{Graph, ItemHandle, ItemRef, Name};

use super::diagnostic::{Diagnostics, Source};
use super::parents::Parents;
use super::resolve::Resolver;
use super::spec::Written;
use super::yaml::{Data, Node};
use super::{Contents, Declared};
use crate::host::path_of;
use crate::item::{
    Access, Address, AddressError, Because, Command, Content, Directory, File, Need, Process, Readiness,
    Ready, RootPath, Run, StopSignal, Symlink, Tie, Wait,
};

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
    written: &'a Written<'a>,
    sources: &'a [Source],
    variables: &[(String, String)],
    contents: Contents,
    report: &mut Diagnostics<'a>,
) -> Built {
    let mut resolver = Resolver::new(written, sources, root, variables, contents, report);
    let own: Vec<Option<PathBuf>> = sources.iter().map(|source| source.path.canonicalize().ok()).collect();
    let mut places: FxHashMap<RootPath, usize> = FxHashMap::default();
    let (mut files, mut declares_itself) = (Vec::new(), false);
    for (i, spec) in written.specs.iter().enumerate() {
        if !has_path(spec.section.kind) {
            continue;
        }
        let Some(path) = resolver.path(i) else { continue };
        let source = own.get(spec.place.source).and_then(Option::as_ref);
        if source.is_some_and(|own| own.ends_with(path.as_str()) && *own == path.in_root(&resolver.root)) {
            let message = format!("{} is at {path}, which is this manifest", resolver.reference(i));
            let hint = "a manifest can't declare itself; choose another path".to_owned();
            resolver.report.add(spec.place_of("path"), message, Some(hint));
            declares_itself = true;
        }
        if spec.section.kind == File::KIND_TEXT {
            files.push(path.clone());
        }
        if let Some(&first) = places.get(&path) {
            if resolver.reference(first) == resolver.reference(i) {
                // Twice the same name: that has been reported.
                continue;
            }
            let message =
                format!("{} and {} are both at {path}", resolver.reference(first), resolver.reference(i));
            let hint = format!("the first is in {}", resolver.report.words(written.specs[first].place));
            resolver.report.add(spec.place_of("path"), message, Some(hint));
        } else {
            places.insert(path, i);
        }
    }
    let mut graph = Graph::new(name);
    let mut declared = Vec::with_capacity(written.specs.len());
    for (i, spec) in written.specs.iter().enumerate() {
        let item = Build { resolver: &mut resolver, places: &places, i }.item();
        let Some(item) = item else { continue };
        let reference = item.reference().clone();
        let source = sources.get(spec.place.source);
        let file = source.map(|source| std::sync::Arc::clone(&source.path));
        let flags = Declared {
            file: file.unwrap_or_else(|| PathBuf::new().into()),
            line: spec.place.span.line as usize,
            prevent_destroy: spec.is_set("prevent_destroy"),
            adopt: spec.is_set("adopt"),
        };
        declared.push((reference, flags));
        if let Err(error) = graph.put_item(item) {
            resolver.report.add(spec.place, error.to_string(), None);
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
            resolver.report.add(spec.place, message, Some(hint));
        }
    }
    add_logs(&mut graph, &places, &resolver);
    let mut parents = Parents::default();
    for node in graph.items() {
        let item = node.item();
        let log = item.get::<Process>().and_then(|process| process.log.as_ref());
        if let Some(path) = path_of(item).or(log) {
            let declared = |path: &str| places.get(path).map(|&at| resolver.reference(at));
            parents.take_in(path, item.reference(), declared);
        }
    }
    let declared = declared.into_iter().collect();
    Built { graph, declared, read: resolver.read, files, parents, declares_itself }
}

/// Adds the logs of processes that nobody declared as files: they are made, moved and removed like any other file, and what
/// they hold is left alone.
fn add_logs(graph: &mut Graph, places: &FxHashMap<RootPath, usize>, resolver: &Resolver<'_, '_>) {
    let processes = graph.items().filter_map(|node| node.item().get::<Process>().cloned());
    let with_log: Vec<(Process, RootPath)> =
        processes.filter_map(|process| process.log.clone().map(|log| (process, log))).collect();
    // Several processes may have one log.
    let mut logs: BTreeMap<RootPath, ItemRef> = BTreeMap::new();
    for (mut process, log) in with_log {
        let item = match places.get(&log) {
            Some(&at) => resolver.reference(at),
            None => match logs.get(&log) {
                Some(item) => item.clone(),
                None => ItemRef::of::<File>(format!("{}:log", process.name)),
            },
        };
        if !places.contains_key(&log) && !graph.contains(&item) {
            logs.insert(log.clone(), item.clone());
            let mut around =
                std::iter::successors(log.parent(), |path| path.rsplit_once('/').map(|(path, _)| path));
            let around = around.find_map(|path| places.get(path)).map(|&at| resolver.reference(at));
            let inside = around.map(|item| Need { item, because: Because::Inside, tie: Tie::Exists });
            let file = File {
                name: item.name().clone(),
                path: log,
                content: Content::from(""),
                sensitive: false,
                access: Access::default(),
                adopt: false,
                log: true,
                needs: inside.into_iter().collect(),
            };
            // Nothing else is called so.
            let _ = graph.put_item(ItemHandle::new(file));
        }
        process.needs.push(Need { item, because: Because::Log, tie: Tie::Follows });
        process.needs.sort();
        let _ = graph.put_item(ItemHandle::new(process));
    }
}

fn has_path(kind: &str) -> bool {
    [Directory::KIND_TEXT, File::KIND_TEXT, Symlink::KIND_TEXT].contains(&kind)
}

/// Makes one item. Errors are reported, and all of them.
struct Build<'b, 'a, 'r> {
    resolver: &'b mut Resolver<'a, 'r>,
    places: &'b FxHashMap<RootPath, usize>,
    i: usize,
}

impl<'a> Build<'_, 'a, '_> {
    fn item(&mut self) -> Option<ItemHandle> {
        let kind = self.resolver.specs[self.i].section.kind;
        let path = if has_path(kind) { self.resolver.path(self.i) } else { None };
        if let Some(path) = &path {
            self.needs_what_is_around(path, Because::Inside);
        }
        self.named("after", Because::After);
        self.named("restart_on", Because::RestartOn);
        self.named("redo_on", Because::RedoOn);
        match kind {
            Directory::KIND_TEXT => self.directory(path).map(ItemHandle::new),
            File::KIND_TEXT => self.file(path).map(ItemHandle::new),
            Symlink::KIND_TEXT => self.symlink(path).map(ItemHandle::new),
            Process::KIND_TEXT => self.process().map(ItemHandle::new),
            _ => self.command().map(ItemHandle::new),
        }
    }

    fn name(&self) -> Name {
        self.resolver.specs[self.i].name.clone()
    }

    fn is_set(&self, field: &str) -> bool {
        self.resolver.specs[self.i].is_set(field)
    }

    fn text(&mut self, field: &str) -> Option<String> {
        self.text_in(self.resolver.specs[self.i].node(field)?)
    }

    fn text_in(&mut self, node: &'a Node<'a>) -> Option<String> {
        self.resolver.text(self.i, node).map(std::borrow::Cow::into_owned)
    }

    fn directory(&mut self, path: Option<RootPath>) -> Option<Directory> {
        let access = self.access();
        let needs = self.resolver.take_needs(self.i);
        let adopt = self.is_set("adopt");
        Some(Directory { name: self.name(), path: path?, access, adopt, implicit: false, needs })
    }

    fn file(&mut self, path: Option<RootPath>) -> Option<File> {
        let content = self.resolver.content(self.i);
        let access = self.access();
        let needs = self.resolver.take_needs(self.i);
        let (sensitive, adopt) = (self.is_set("sensitive"), self.is_set("adopt"));
        let (name, log) = (self.name(), false);
        Some(File { name, path: path?, content: content?, sensitive, access, adopt, log, needs })
    }

    fn symlink(&mut self, path: Option<RootPath>) -> Option<Symlink> {
        let (path, target) = (path?, self.text("target")?);
        if target.is_empty() || target.contains('\0') {
            let place = self.resolver.specs[self.i].place_of("target");
            self.resolver.report.add(place, "a link points to something", None);
            return None;
        }
        let from_link = match path.parent() {
            Some(parent) if !target.starts_with('/') => format!("{parent}/{target}"),
            _ => target.clone(),
        };
        if let Ok(to) = RootPath::below(&self.resolver.root, &from_link) {
            match self.places.get(&to) {
                Some(&on) => self.resolver.need(self.i, on, Because::Target),
                None => self.needs_what_is_around(&to, Because::Target),
            }
        }
        let needs = self.resolver.take_needs(self.i);
        Some(Symlink { name: self.name(), path, target, adopt: self.is_set("adopt"), needs })
    }

    fn process(&mut self) -> Option<Process> {
        let command = self.run("command");
        let env = self.environment();
        let (cwd, log) = (self.resolver.path_field(self.i, "cwd"), self.resolver.path_field(self.i, "log"));
        self.needs_directory(cwd.as_ref());
        if let Some(log) = &log {
            self.needs_what_is_around(log, Because::Inside);
            if let Some(&on) = self.places.get(log) {
                let message =
                    format!("its log is at {log}, which is declared as {}", self.resolver.reference(on));
                let place = self.resolver.specs[self.i].place_of("log");
                self.resolver.report.add(place, message, Some("choose another path".to_owned()));
            }
        }
        let ready = self.ready();
        let spec = &self.resolver.specs[self.i];
        let stop_signal = spec.text("stop_signal").and_then(StopSignal::by_name).unwrap_or_default();
        let stop_timeout = self.wait("stop_timeout", Wait::from_millis(10_000));
        let sensitive = self.is_set("sensitive");
        let needs = self.resolver.take_needs(self.i);
        let (name, command) = (self.name(), command?);
        let runs_other = None;
        Some(Process {
            name,
            command,
            env,
            sensitive,
            cwd,
            log,
            ready,
            stop_signal,
            stop_timeout,
            runs_other,
            needs,
        })
    }

    /// What `ready` says: checked but for what its texts come to.
    fn ready(&mut self) -> Option<Ready> {
        let Data::Map(pairs) = &self.resolver.specs[self.i].node("ready")?.data else { return None };
        let mut timeout = Wait::from_millis(30_000);
        let mut condition = None;
        for (key, node) in pairs {
            match key.scalar()? {
                "port" => condition = self.port(node).map(Readiness::Port),
                "file" => condition = self.ready_file(node).map(Readiness::File),
                "command" => condition = self.run_in(node).map(Readiness::Command),
                "log" => condition = self.text_in(node).map(Readiness::Log),
                _ => timeout = node.scalar()?.parse().ok()?,
            }
        }
        Some(Ready { condition: condition?, timeout })
    }

    fn port(&mut self, node: &'a Node<'a>) -> Option<Address> {
        let text = self.text_in(node)?;
        let address: Result<Address, AddressError> = text.parse();
        if let Err(error) = &address {
            let place = self.resolver.specs[self.i].at(node.span);
            self.resolver.report.add(place, format!("{text:?}: {error}"), None);
        }
        address.ok()
    }

    fn ready_file(&mut self, node: &'a Node<'a>) -> Option<RootPath> {
        let text = self.text_in(node)?;
        let place = self.resolver.specs[self.i].at(node.span);
        let path = self.resolver.below(place, &text)?;
        self.needs_what_is_around(&path, Because::Inside);
        Some(path)
    }

    fn command(&mut self) -> Option<Command> {
        let (check, apply, undo) = (self.run("check"), self.run("apply"), self.run("undo"));
        let env = self.environment();
        let cwd = self.resolver.path_field(self.i, "cwd");
        self.needs_directory(cwd.as_ref());
        Some(Command {
            name: self.name(),
            check,
            apply: apply?,
            undo,
            env,
            sensitive: self.is_set("sensitive"),
            cwd,
            check_timeout: self.wait("check_timeout", Wait::from_millis(30_000)),
            apply_timeout: self.wait("apply_timeout", Wait::from_millis(300_000)),
            undo_timeout: self.wait("undo_timeout", Wait::from_millis(300_000)),
            needs: self.resolver.take_needs(self.i),
        })
    }

    fn access(&mut self) -> Access {
        let mode = self.resolver.specs[self.i].text("mode").and_then(|mode| mode.parse().ok());
        Access { mode, owner: self.text("owner"), group: self.text("group") }
    }

    fn wait(&self, field: &str, default: Wait) -> Wait {
        self.resolver.specs[self.i].text(field).and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    fn run(&mut self, field: &str) -> Option<Run> {
        self.run_in(self.resolver.specs[self.i].node(field)?)
    }

    fn run_in(&mut self, node: &'a Node<'a>) -> Option<Run> {
        match &node.data {
            Data::List(nodes) => {
                let texts: Vec<Option<String>> =
                    nodes.iter().map(|node| Some(self.resolver.text(self.i, node)?.into_owned())).collect();
                texts.into_iter().collect::<Option<Vec<String>>>().map(Run::Program)
            }
            _ => self.resolver.text(self.i, node).map(|line| Run::Shell(line.into_owned())),
        }
    }

    fn environment(&mut self) -> BTreeMap<String, String> {
        let Some(Data::Map(pairs)) = self.resolver.specs[self.i].node("env").map(|node| &node.data) else {
            return BTreeMap::new();
        };
        let pairs = pairs.iter().filter_map(|(key, value)| {
            Some((key.scalar()?.to_owned(), self.resolver.text(self.i, value)?.into_owned()))
        });
        pairs.collect()
    }

    /// Depends on the items that a field names.
    fn named(&mut self, field: &str, because: Because) {
        let spec = &self.resolver.specs[self.i];
        let Some(Data::List(nodes)) = spec.node(field).map(|node| &node.data) else { return };
        for node in nodes {
            let Some(text) = node.scalar() else { continue };
            let place = spec.at(node.span);
            let Some((kind, name)) = text.split_once('.') else {
                let hint = Some("write `kind.name`, such as file.config".to_owned());
                self.resolver.report.add(place, format!("{text:?} names no item"), hint);
                continue;
            };
            if let Some(on) = self.resolver.find(kind, name, place) {
                if on == self.i {
                    self.resolver.report.add(place, "an item can't come after itself", None);
                }
                self.resolver.need(self.i, on, because);
            }
        }
    }

    fn needs_directory(&mut self, cwd: Option<&RootPath>) {
        let Some(cwd) = cwd else { return };
        match self.places.get(cwd) {
            Some(&on) => self.resolver.need(self.i, on, Because::Inside),
            None => self.needs_what_is_around(cwd, Because::Inside),
        }
    }

    /// Depends on the nearest declared directory, or link to one, on the way to a path.
    fn needs_what_is_around(&mut self, path: &RootPath, because: Because) {
        let mut around = path.parent();
        while let Some(parent) = around {
            if let Some(&on) = self.places.get(parent) {
                let spec = &self.resolver.specs[on];
                if spec.section.kind == File::KIND_TEXT {
                    let message = format!("{path} is inside of {parent}, which is declared as a file");
                    let hint = format!("the file is declared in {}", self.resolver.report.words(spec.place));
                    let place = self.resolver.specs[self.i].place;
                    self.resolver.report.add(place, message, Some(hint));
                } else {
                    self.resolver.need(self.i, on, because);
                }
                return;
            }
            around = parent.rsplit_once('/').map(|(parent, _)| parent);
        }
    }
}
