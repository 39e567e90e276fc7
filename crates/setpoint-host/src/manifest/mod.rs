//! Manifests: what a person declares, as YAML.
//!
//! ```text
//!  files ──▶ YAML with positions ──▶ fields checked against the table ──▶ references, templates ──▶ graph
//!                    └────────────────────────┴────────────── all errors ─────────┴──▶ diagnostics
//! ```
//!
//! ```yaml
#![doc = include_str!("example.yaml")]
//! ```
//!
//! Items are maps by name, one map for each kind, rather than one list with a `kind` in each entry: a name
//! can't be forgotten, twice the same name is visible at a glance, an editor completes the attributes of the
//! one kind it knows itself to be in, and a small set reads like a table of contents.
//!
//! **References.** `${kind.name.attribute}` in any text stands for an attribute of another item, which then
//! comes first. It is replaced in all attributes but `content`, which is taken as it is; in a `template`
//! before the template is rendered. `$${` is a plain `${`; and what does not begin with a word and a dot,
//! such as the shell's `${HOME}`, is not a reference at all. `path` is the absolute path.
//!
//! **Several files.** A directory is read as all `*.yaml` and `*.yml` files directly in it, hidden ones left
//! out, each with any number of documents. They declare one set together. A YAML file that the set itself declares
//! is not read as a manifest; if it is one, that is an error.

mod build;
mod copies;
mod diagnostic;
mod links;
mod markdown;
mod parents;
mod reference;
mod resolve;
mod schema;
mod spec;
mod table;
mod template;
mod values;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use setpoint_graph::{Graph, ItemRef, Name};

pub(crate) use build::Build;
use build::Built;
use diagnostic::{Diagnostics, ManifestFile, SourceLocation, nearest};
use links::Links;
use parents::Parents;
use spec::Declarations;
use table::TOP;
pub(crate) use table::{Section, Type, field, fields};
pub(crate) use yaml::{Data, Node};

use crate::configure::Accounts;
use crate::fs::FsError;
use crate::item::{RegularFile, RootPath};
use crate::kinds::{Process, on_disk, path_of};

pub use diagnostic::{Diagnostic, Origin};
pub use markdown::reference;
pub use schema::schema;
pub use spec::bad_name;

/// A set of items as one or more files declare it.
#[derive(Debug)]
pub struct Manifest {
    name: Name,
    root: PathBuf,
    graph: Graph,
    declared: BTreeMap<ItemRef, Declared>,
    parents: Parents,
    files: Vec<PathBuf>,
    foreign: Vec<PathBuf>,
    managed: Vec<PathBuf>,
}

/// Where an item was declared, and what else the manifest says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The file.
    pub file: Arc<Path>,
    /// The line of its name.
    pub line: usize,
    /// Whether no plan may delete it.
    pub prevent_destroy: bool,
    /// Whether it takes over what is already there.
    pub adopt: bool,
}

impl Manifest {
    /// What the set is called.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The directory that all paths are in: absolute, and there when the manifest was loaded.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The intended items.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Gives the intended items away.
    pub fn into_graph(self) -> Graph {
        self.graph
    }

    /// Where an item was declared.
    pub fn declared(&self, item: &ItemRef) -> Option<&Declared> {
        self.declared.get(item)
    }

    /// Where all items were declared, by reference.
    pub fn all_declared(&self) -> impl Iterator<Item = (&ItemRef, &Declared)> {
        self.declared.iter()
    }

    /// Says what is wrong with items that are in a directory which is not theirs, such as the one of the state.
    ///
    /// Links on the way are followed, also those that are declared and not there yet.
    pub fn inside(&self, directory: &Path, what: &str) -> Vec<Diagnostic> {
        let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_path_buf());
        let directory = Links::default().follow(&absolute);
        let links = Links::declared(&self.graph, &self.root);
        // Most items share their directory with others.
        let mut followed: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut leads_inside = |path: &RootPath| {
            let path = path.in_root(&self.root);
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
            if !followed.contains_key(parent) {
                followed.insert(parent.to_path_buf(), links.follow(parent));
            }
            followed.get(parent).is_some_and(|parent| parent.join(name).starts_with(&directory))
        };
        let wrong = self.graph.items().filter_map(|node| {
            let item = node.item();
            let log = item.get::<Process>().and_then(|process| process.log.as_ref());
            let path = path_of(item).or(log)?;
            let declared = self.declared.get(item.reference())?;
            let message = format!("{} is at {path}, in the directory of {what}", item.reference());
            let hint = Some(format!("{} is Setpoint's own; choose another path", directory.display()));
            let mut wrong = whole(&declared.file, message, hint);
            wrong.line = declared.line;
            leads_inside(path).then_some(wrong)
        });
        wrong.collect()
    }

    /// The items whose owner or group is not known on this host, each with what is wrong.
    pub fn unknown_accounts(&self) -> Vec<(ItemRef, FsError)> {
        let accounts = Accounts::default();
        let items = self.graph.items().filter_map(|node| {
            let unknown = accounts.unknown(on_disk(node.item())?.access?)?;
            Some((node.reference().clone(), unknown))
        });
        items.collect()
    }

    /// Adds the directories that declared items are in, that nobody declared, and that are wanted: as items of their own,
    /// called after their path. Whoever wants none gets an error where one is missing. Returns whether any was added.
    ///
    /// ```
    /// let dir = tempfile::tempdir()?;
    /// std::fs::write(dir.path().join("site.yaml"), "files:\n  etc/app/app.conf: {content: hi}\n")?;
    /// let mut manifest = setpoint_host::load(dir.path()).expect("a good manifest");
    /// manifest.add_parents(|path| !dir.path().join(path.as_str()).is_dir());
    /// let items: Vec<String> = manifest.graph().items().map(|node| node.reference().to_string()).collect();
    /// assert_eq!(items, ["directory/etc/", "directory/etc/app/", "file/etc/app/app.conf"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn add_parents(&mut self, is_wanted: impl Fn(&RootPath) -> bool) -> bool {
        self.parents.add_to(&mut self.graph, is_wanted)
    }

    /// How many items are declared.
    pub fn len(&self) -> usize {
        self.declared.len()
    }

    /// Returns whether nothing is declared.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// YAML files beside the manifests that are something else, and were passed over.
    pub fn foreign(&self) -> &[PathBuf] {
        &self.foreign
    }

    /// YAML files beside the manifests that the set itself declares, and that were not read as manifests.
    pub fn managed(&self) -> &[PathBuf] {
        &self.managed
    }

    /// Every file that the set was read from, also those that items are copies of: a change of one is a change of the set.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Leaves out files that are none of the manifests.
    fn without(mut self, managed: Vec<PathBuf>) -> Self {
        self.files.retain(|file| !managed.contains(file) && !self.foreign.contains(file));
        self.managed = managed;
        self
    }
}

/// Loads a manifest from a file, or from the files of a directory.
///
/// Nothing is changed, and all that is wrong is found at once.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("site.yaml"), "files:\n  hello.txt: {content: hi}\n")?;
/// let manifest = setpoint_host::load(dir.path()).expect("a good manifest");
/// assert_eq!(manifest.graph().len(), 1);
///
/// std::fs::write(dir.path().join("site.yaml"), "files:\n  hello.txt: {contents: hi}\n")?;
/// let errors = setpoint_host::load(dir.path()).unwrap_err();
/// assert_eq!((errors[0].line, errors[0].column), (2, 15), "{errors:?}");
/// assert_eq!(errors[0].hint.as_deref(), Some("did you mean `content`?"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn load(path: &Path) -> Result<Manifest, Vec<Diagnostic>> {
    load_with(path, &[])
}

/// Like [`load`], with some of the set's values set to something else, by name. What is declared as text stays text;
/// anything else is read as if it stood in the manifest, and must be the same kind of value.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// let text = "values: {port: 80}\nfiles:\n  port: {template: '{{ port }}'}\n";
/// std::fs::write(dir.path().join("site.yaml"), text)?;
/// let variables = [("port".to_owned(), "8080".to_owned())];
/// assert!(setpoint_host::load_with(dir.path(), &variables).is_ok());
/// let variables = [("prot".to_owned(), "8080".to_owned())];
/// let errors = setpoint_host::load_with(dir.path(), &variables).unwrap_err();
/// assert_eq!(errors[0].hint.as_deref(), Some("did you mean `port`?"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn load_with(path: &Path, variables: &[(String, String)]) -> Result<Manifest, Vec<Diagnostic>> {
    load_contents(path, variables, Contents::Made)
}

/// Like [`load_with`], for whoever only removes what is declared: sources are not read and templates are not rendered, so that
/// they need not be there. Files whose content would come from one are empty.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("site.yaml"), "files:\n  f: {source: is/gone}\n")?;
/// assert!(setpoint_host::load(dir.path()).is_err());
/// assert!(setpoint_host::load_without_contents(dir.path(), &[]).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn load_without_contents(
    path: &Path,
    variables: &[(String, String)],
) -> Result<Manifest, Vec<Diagnostic>> {
    load_contents(path, variables, Contents::LeftOut)
}

/// Whether sources are read, and templates rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Made,
    LeftOut,
}

fn load_contents(
    path: &Path,
    variables: &[(String, String)],
    contents: Contents,
) -> Result<Manifest, Vec<Diagnostic>> {
    let found = find(path)?;
    let mut sources = Vec::with_capacity(found.files.len());
    let mut unreadable = Vec::new();
    for file in &found.files {
        match read_regular(file) {
            Err(error) => unreadable.push(whole(file, format!("can't read the manifest: {error}"), None)),
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => sources.push(ManifestFile::new(file.as_path(), text)),
                Err(error) => unreadable.push(not_utf_8(file, &error)),
            },
        }
    }
    let mut skipped: BTreeSet<usize> = BTreeSet::new();
    loop {
        let loaded = load_sources(&found, &sources, &skipped, variables, contents);
        // A managed file that happens to be YAML and to be beside the manifests is none of them.
        let final_word = found.is_file || loaded.declares_itself;
        let managed = if final_word { Vec::new() } else { loaded.managed(&sources, &skipped) };
        // Passed over, it would seem to declare nothing any more.
        let manifests = managed.iter().filter(|source| loaded.declaring.contains(source));
        let manifests: Vec<Diagnostic> = manifests
            .filter_map(|&source| sources.get(source))
            .map(|source| {
                let message = "this manifest is declared as a file by the set that it belongs to".to_owned();
                let hint =
                    "choose another path for that file, or keep the manifests in a directory of their own";
                whole(&source.path, message, Some(hint.to_owned()))
            })
            .collect();
        if managed.is_empty() || !manifests.is_empty() {
            unreadable.extend(manifests);
            let left = sources.len() - skipped.len();
            if left > 0 && loaded.manifest.foreign.len() == left {
                let message = "no YAML file in this directory is a manifest of Setpoint".to_owned();
                let sections: Vec<&str> = Section::all().map(|section| section.key).collect();
                unreadable.push(whole(
                    path,
                    message,
                    Some(format!("a manifest has {}", sections.join(", "))),
                ));
            }
            unreadable.extend(loaded.wrong);
            unreadable.sort();
            if !unreadable.is_empty() {
                return Err(unreadable);
            }
            let skipped = skipped.iter().filter_map(|&source| sources.get(source));
            let managed = skipped.map(|source| source.path.to_path_buf()).collect();
            return Ok(loaded.manifest.without(managed));
        }
        skipped.extend(managed);
    }
}

/// Reads a manifest.
fn read_regular(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = RegularFile::open(file)?.read_whole()?;
    // Some editors begin a text with a mark that nobody sees.
    if bytes.starts_with("\u{feff}".as_bytes()) {
        bytes.drain(..3);
    }
    Ok(bytes)
}

/// The root that the manifests at a path probably have, found without understanding them: for whoever wants to
/// look at the host while they are still being loaded. It may be wrong, and there may be none.
pub fn probable_root(path: &Path) -> Option<PathBuf> {
    let found = find(path).ok()?;
    // That something is no manifest is said by who loads them.
    let read = |file: &PathBuf| RegularFile::open(file).and_then(RegularFile::read_whole).ok();
    let texts = found.files.iter().filter_map(|file| String::from_utf8(read(file)?).ok());
    let mut named = texts.filter_map(|text| {
        let rest = text.strip_prefix("root:").or_else(|| text.split_once("\nroot:").map(|(_, rest)| rest))?;
        Some(rest.lines().next()?.trim().trim_matches(['"', '\'']).to_owned())
    });
    fs::canonicalize(match named.next() {
        Some(root) => found.directory.join(root),
        None => found.directory,
    })
    .ok()
}

/// The files of a set.
struct FoundManifests {
    directory: PathBuf,
    is_file: bool,
    files: Vec<PathBuf>,
}

fn find(path: &Path) -> Result<FoundManifests, Vec<Diagnostic>> {
    let failed = |error: &dyn std::fmt::Display, hint: Option<&str>| {
        vec![whole(path, error.to_string(), hint.map(ToOwned::to_owned))]
    };
    let is_file = match fs::metadata(path) {
        Ok(metadata) => !metadata.is_dir(),
        Err(error) => return Err(failed(&format_args!("can't read the manifest: {error}"), None)),
    };
    let directory = if is_file { path.parent().unwrap_or(Path::new("")) } else { path };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let absolute = fs::canonicalize(directory);
    let directory =
        absolute.map_err(|error| failed(&format_args!("can't find its directory: {error}"), None))?;
    if is_file {
        return Ok(FoundManifests { directory, is_file, files: vec![path.to_path_buf()] });
    }
    let entries = fs::read_dir(path)
        .map_err(|error| failed(&format_args!("can't read the directory: {error}"), None))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry =
            entry.map_err(|error| failed(&format_args!("can't read the directory: {error}"), None))?;
        let name = entry.file_name();
        let extension = Path::new(&name).extension();
        let is_manifest = extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
            && !name.as_encoded_bytes().starts_with(b".");
        // A directory may be called anything; a link to nothing was meant to be a manifest.
        if is_manifest && !entry.path().is_dir() {
            files.push(if path == Path::new(".") { PathBuf::from(name) } else { entry.path() });
        }
    }
    files.sort();
    if files.is_empty() {
        let hint = "write one, such as site.yaml, or name another place";
        return Err(failed(&"there is no manifest (*.yaml or *.yml) in this directory", Some(hint)));
    }
    Ok(FoundManifests { directory, is_file, files })
}

fn whole(file: &Path, message: String, hint: Option<String>) -> Diagnostic {
    let (file, text, origin) = (file.to_path_buf(), String::new(), Origin::Manifest);
    Diagnostic { file, line: 0, column: 0, length: 0, text, message, hint, origin }
}

/// The error of a manifest that is no text, at its first byte that belongs to none.
fn not_utf_8(file: &Path, error: &FromUtf8Error) -> Diagnostic {
    let (bytes, valid) = (error.as_bytes(), error.utf8_error().valid_up_to());
    let before = String::from_utf8_lossy(bytes.get(..valid).unwrap_or(bytes));
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = bytes.get(start..).unwrap_or_default().split(|&byte| byte == b'\n').next().unwrap_or_default();
    let hint = Some("save it as UTF-8".to_owned());
    Diagnostic {
        line: before.matches('\n').count() + 1,
        column: before.get(start..).unwrap_or_default().chars().count() + 1,
        length: 1,
        text: String::from_utf8_lossy(line).trim_end().to_owned(),
        ..whole(file, "the manifest is no UTF-8 text".to_owned(), hint)
    }
}

/// What came of some files, right or wrong.
struct Loaded {
    manifest: Manifest,
    managed: Vec<PathBuf>,
    /// The sources that declare anything.
    declaring: BTreeSet<usize>,
    declares_itself: bool,
    wrong: Vec<Diagnostic>,
}

impl Loaded {
    /// The sources that are declared as files themselves.
    fn managed(&self, sources: &[ManifestFile], skipped: &BTreeSet<usize>) -> Vec<usize> {
        let sources = sources.iter().enumerate().filter(|(i, _)| !skipped.contains(i));
        let managed = sources.filter(|(_, source)| {
            fs::canonicalize(&source.path).is_ok_and(|path| self.managed.contains(&path))
        });
        managed.map(|(i, _)| i).collect()
    }
}

fn load_sources(
    found: &FoundManifests,
    sources: &[ManifestFile],
    skipped: &BTreeSet<usize>,
    variables: &[(String, String)],
    contents: Contents,
) -> Loaded {
    let mut report = Diagnostics::new(sources);
    let (mut documents, mut foreign) = (Vec::new(), Vec::new());
    for (source, text) in sources.iter().enumerate().filter(|(i, _)| !skipped.contains(i)) {
        let parsed = yaml::parse(&text.text);
        if !found.is_file && is_foreign_text(&text.text, parsed.as_deref().ok()) {
            foreign.push(text.path.to_path_buf());
            continue;
        }
        match parsed {
            Ok(nodes) => documents.extend(nodes.into_iter().map(|node| (source, node))),
            Err(wrong) => {
                let location = SourceLocation { source, span: wrong.span };
                report.add(location, wrong.message, wrong.hint.map(ToOwned::to_owned));
            }
        }
    }
    let copies = copies::report(&documents, sources, &mut report);
    documents.retain(|(source, _)| !copies.contains(source));
    let mut written = Declarations::default();
    for (source, document) in &documents {
        written.document(*source, document, &mut report);
    }
    let root = root(found, &written, sources, &mut report);
    let name = match written.name {
        Some((name, _)) => Name::new(name),
        None => Name::new(found.directory.file_name().map_or("root".into(), |name| name.to_string_lossy())),
    };
    let Built { graph, declared, read, files, parents, declares_itself } =
        build::build(&name, root.clone(), &written, sources, variables, contents, &mut report);
    let mut all: BTreeSet<PathBuf> = found.files.iter().cloned().collect();
    all.extend(read);
    // Only files directly beside the manifests can be mistaken for one.
    let managed = files.iter().map(|path| path.in_root(&root));
    let managed = managed.filter(|path| path.parent() == Some(&found.directory)).collect();
    let files = all.into_iter().collect();
    let manifest = Manifest { name, root, graph, declared, parents, files, foreign, managed: Vec::new() };
    debug_assert!(!report.is_empty() || manifest.graph.len() >= written.specs.len());
    let declaring = written.specs.iter().map(|spec| spec.location.source);
    let declaring = declaring.chain(copies).collect();
    Loaded { manifest, managed, declaring, declares_itself, wrong: report.finish() }
}

/// Returns whether a YAML file is something else than a manifest, and would be passed over beside manifests. What can't be read
/// is taken for a manifest.
///
/// ```
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("metrics.yaml"), "requests: 12\n")?;
/// std::fs::write(dir.path().join("site.yaml"), "files:\n  hello.txt: {content: hi}\n")?;
/// assert!(setpoint_host::is_foreign_file(&dir.path().join("metrics.yaml")));
/// assert!(!setpoint_host::is_foreign_file(&dir.path().join("site.yaml")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_foreign_file(file: &Path) -> bool {
    let text = read_regular(file).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_some_and(|text| is_foreign_text(&text, yaml::parse(&text).as_deref().ok()))
}

/// Returns whether a text is something else than a manifest, whether or not it is YAML and has documents.
fn is_foreign_text(text: &str, documents: Option<&[Node<'_>]>) -> bool {
    documents.map_or_else(|| !mentions_section(text), is_foreign)
}

/// Returns whether documents are something else than a manifest: some of their fields are unknown, and none is, or is nearly, one
/// that only manifests have.
fn is_foreign(documents: &[Node<'_>]) -> bool {
    let documents: Vec<&Node<'_>> = documents.iter().filter(|document| !document.is_null()).collect();
    let keys = |document: &Node<'_>| -> Vec<String> {
        let Data::Map(pairs) = &document.data else { return Vec::new() };
        pairs.iter().filter_map(|(key, _)| key.scalar().map(ToOwned::to_owned)).collect()
    };
    let is_ours = |key: &String| {
        let sections = || Section::all().map(|section| section.key);
        let key = &key.to_lowercase();
        key == "root"
            || key == "values"
            || nearest(key, sections()).is_some()
            || Section::all().any(|section| section.kind == key)
    };
    let is_known = |key: &String| TOP.iter().any(|field| field.name == key);
    let all: Vec<String> = documents.iter().flat_map(|document| keys(document)).collect();
    let is_other = all.iter().any(|key| !is_known(key))
        || documents.iter().any(|document| !matches!(document.data, Data::Map(_)));
    is_other && !all.iter().any(is_ours)
}

/// Returns whether a text that is no YAML was meant as a manifest.
fn mentions_section(text: &str) -> bool {
    text.lines().filter_map(|line| line.split_once(':')).any(|(key, _)| {
        let key = key.trim_end().trim_matches(['"', '\'']);
        Section::all().any(|section| section.key == key) || key == "root" || key == "values"
    })
}

/// The directory that all paths are in.
fn root(
    found: &FoundManifests,
    written: &Declarations<'_>,
    sources: &[ManifestFile],
    report: &mut Diagnostics<'_>,
) -> PathBuf {
    let Some((text, location)) = written.root else { return found.directory.clone() };
    let manifest = sources.get(location.source).and_then(|source| source.path.parent());
    let beside = manifest.and_then(|parent| {
        fs::canonicalize(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }).ok()
    });
    let root = beside.unwrap_or_else(|| found.directory.clone()).join(text);
    match fs::canonicalize(&root) {
        Ok(real) if real.is_dir() => return real,
        Ok(_) => report.add(location, format!("the root {} is no directory", root.display()), None),
        Err(error) => {
            let hint = Some("the root must be there; what is in it is managed".to_owned());
            report.add(location, format!("the root {}: {error}", root.display()), hint);
        }
    }
    root
}
