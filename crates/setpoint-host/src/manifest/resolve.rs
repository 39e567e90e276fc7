//! Turns what was written into values: references replaced, templates rendered, paths checked.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use setpoint_graph::ItemRef;

use super::Contents;
use super::diagnostic::{Diagnostics, ManifestFile, Place, SourceLocation, Span, did_you_mean, nearest};
use super::reference::{Part, attribute, split};
use super::spec::{Declarations, Spec, decode};
use super::table::Section;
use super::template::{TemplateError, Templates};
use super::values;
use super::yaml::{Data, Node, Style};
use crate::item::{Because, Content, Dependence, Need, PathError, RegularFile, RootPath, quoted};

/// A value that is found out when someone asks for it.
#[derive(Clone, Debug, Default)]
enum Memo<T> {
    #[default]
    Open,
    /// Being found out: whoever asks now asks for something that rests on the answer.
    Busy,
    /// Found out; none if that failed, which has been reported.
    Done(Option<T>),
}

/// Resolves the attributes of all items.
pub(crate) struct Resolver<'a, 'r> {
    pub(crate) specs: &'a [Spec<'a>],
    pub(crate) root: PathBuf,
    pub(crate) report: &'r mut Diagnostics<'a>,
    sources: &'a [ManifestFile],
    index: FxHashMap<(&'static str, &'a str), usize>,
    values: serde_json::Value,
    templates: Templates,
    paths: Vec<Memo<RootPath>>,
    /// Whether sources are read, and templates rendered.
    made: Contents,
    contents: Vec<Memo<Content>>,
    needs: Vec<Vec<Need>>,
    /// Files beside the manifests that were read.
    pub(crate) read: Vec<PathBuf>,
}

impl<'a, 'r> Resolver<'a, 'r> {
    pub(crate) fn new(
        written: &'a Declarations<'a>,
        sources: &'a [ManifestFile],
        root: PathBuf,
        variables: &[(String, String)],
        made: Contents,
        report: &'r mut Diagnostics<'a>,
    ) -> Self {
        let specs = written.specs.as_slice();
        let mut index: FxHashMap<(&'static str, &'a str), usize> = FxHashMap::default();
        index.reserve(specs.len());
        for (i, spec) in specs.iter().enumerate() {
            match index.entry((spec.section.kind, spec.name.as_str())) {
                std::collections::hash_map::Entry::Vacant(entry) => drop(entry.insert(i)),
                std::collections::hash_map::Entry::Occupied(entry) => {
                    let first = report.words(specs[*entry.get()].location);
                    let message = format!("there are two {} `{}`", spec.section.key, spec.name);
                    report.add(spec.location, message, Some(format!("the first is in {first}")));
                }
            }
        }
        let mut values = serde_json::Map::new();
        for &(node, source) in &written.values {
            let Data::Map(pairs) = &node.data else { continue };
            for (key, value) in pairs {
                let Some(name) = key.scalar() else { continue };
                if values.insert(name.to_owned(), values::value(value)).is_some() {
                    let message = format!("there are two values `{name}` for all templates");
                    report.add(SourceLocation { source, span: key.span }, message, None);
                }
            }
        }
        for (name, text) in variables {
            values::set(&mut values, name, text, report);
        }
        Self {
            specs,
            root,
            sources,
            index,
            values: values.into(),
            templates: Templates::new(),
            paths: vec![Memo::Open; specs.len()],
            made,
            contents: vec![Memo::Open; specs.len()],
            needs: vec![Vec::new(); specs.len()],
            read: Vec::new(),
            report,
        }
    }

    pub(crate) fn reference(&self, i: usize) -> ItemRef {
        let spec = &self.specs[i];
        ItemRef::new(spec.section.kind, &spec.name)
    }

    /// What the item needs, in order.
    pub(crate) fn take_needs(&mut self, i: usize) -> Vec<Need> {
        let mut needs = std::mem::take(&mut self.needs[i]);
        needs.sort();
        let required: Vec<ItemRef> = needs
            .iter()
            .filter(|need| need.dependence == Dependence::Requires)
            .map(|need| need.item.clone())
            .collect();
        // What can't be there without another comes after it anyway.
        needs.retain(|need| need.dependence != Dependence::After || !required.contains(&need.item));
        needs
    }

    /// Notes that one item needs another.
    pub(crate) fn need(&mut self, i: usize, on: usize, because: Because) {
        if i == on {
            return;
        }
        let (section, of) = (self.specs[i].section, self.specs[on].section);
        let dependence = match because {
            // What it has read, it knows only as it was when it started; nothing else is to be read again.
            Because::Reference if of.nature.is_read() => section.references,
            Because::Inside => Dependence::Requires,
            // A link may point to nothing for a while, and what was referred to is written down.
            Because::After | Because::Log | Because::Target | Because::Reference => Dependence::After,
            Because::RestartOn | Because::RedoOn => Dependence::RepeatsAfter,
        };
        let item = self.reference(on);
        if !self.needs[i].iter().any(|need| need.item == item && need.dependence == dependence) {
            self.needs[i].push(Need { item, because, dependence });
        }
    }

    /// The path of a directory, file or link.
    pub(crate) fn path(&mut self, i: usize) -> Option<RootPath> {
        match &self.paths[i] {
            Memo::Done(path) => return path.clone(),
            Memo::Busy => return self.rests_on_itself(i),
            Memo::Open => self.paths[i] = Memo::Busy,
        }
        let spec = &self.specs[i];
        let path = match spec.node("path") {
            Some(node) => self.text(i, node).and_then(|text| self.below(spec.at(node.span), &text)),
            None => self.below(spec.location, spec.name.as_str()),
        };
        self.paths[i] = Memo::Done(path.clone());
        path
    }

    /// A path in another field.
    pub(crate) fn path_field(&mut self, i: usize, field: &str) -> Option<RootPath> {
        let node = self.specs[i].node(field)?;
        let text = self.text(i, node)?;
        if field == "cwd" && self.is_root(&text) {
            return None;
        }
        self.below(self.specs[i].at(node.span), &text)
    }

    fn is_root(&self, text: &str) -> bool {
        RootPath::below(&self.root, text) == Err(PathError::Root)
    }

    pub(crate) fn below(&mut self, location: SourceLocation, text: &str) -> Option<RootPath> {
        match RootPath::below(&self.root, text) {
            Ok(path) => Some(path),
            Err(error) => {
                let hint = match error {
                    PathError::Outside => Some(format!("all paths are below {}", self.root.display())),
                    PathError::Root => Some("the root itself is not managed".to_owned()),
                    _ => None,
                };
                self.report.add(location, format!("{}: {error}", quoted(text)), hint);
                None
            }
        }
    }

    /// What a file holds.
    pub(crate) fn content(&mut self, i: usize) -> Option<Content> {
        match &self.contents[i] {
            Memo::Done(content) => return content.clone(),
            Memo::Busy => return self.rests_on_itself(i),
            Memo::Open => self.contents[i] = Memo::Busy,
        }
        let content = self.make_content(i);
        self.contents[i] = Memo::Done(content.clone());
        content
    }

    fn make_content(&mut self, i: usize) -> Option<Content> {
        let spec = &self.specs[i];
        if let Some(node) = spec.node("content") {
            return match &node.data {
                Data::Scalar { text, style: Style::Binary } => decode(text).map(Content::from),
                Data::Scalar { text, .. } => Some(Content::from(&**text)),
                _ => None,
            };
        }
        if self.made == Contents::LeftOut {
            return Some(Content::from(""));
        }
        if spec.node("source").is_some() {
            return self.read_beside(i, "source", Content::from_file).map(|(content, _)| content);
        }
        if let Some(node) = spec.node("template") {
            let text = self.text(i, node)?;
            let rendered = self.templates.render(&text, &self.values_for(i));
            return rendered
                .map(|text| Content::from(text.into_bytes()))
                .map_err(|mut error| {
                    let location = spec.at(line_of(node, error.line));
                    let hint = self.hint_of(i, &mut error);
                    self.report.add(location, error.message, hint);
                })
                .ok();
        }
        let (bytes, path) =
            self.read_beside(i, "template_source", |path| RegularFile::open(path)?.read_whole())?;
        let location = spec.location_of("template_source");
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
                let line = valid.filter(|&&byte| byte == b'\n').count() + 1;
                let hint = Some("save it as UTF-8".to_owned());
                self.report.add(location.within(&path, line), "this is no UTF-8 text", hint);
                return None;
            }
        };
        let text = self.replace(i, &text, |_, line| location.within(&path, line + 1))?;
        match self.templates.render(&text, &self.values_for(i)) {
            Ok(text) => Some(Content::from(text.into_bytes())),
            Err(mut error) => {
                let hint = self.hint_of(i, &mut error);
                if let Some(line) = error.line {
                    self.report.add(location.within(&path, line), error.message, hint);
                } else {
                    let message = format!("{}: {}", path.display(), error.message);
                    self.report.add(location, message, hint);
                }
                None
            }
        }
    }

    /// How a value that is declared empty is given: only all of one of the set can be from outside.
    fn how_to_give(&self, i: usize, path: &str) -> String {
        let own = self.specs[i].node("values").map(values::value);
        let name = path.split('.').next().unwrap_or(path);
        if own.is_some_and(|own| own.get(name).is_some()) {
            "write it in the `values` of the file".to_owned()
        } else if name != path {
            "write it in the `values` of the set".to_owned()
        } else {
            format!("write it in the `values` of the set, or give it with `--var {path}=VALUE`")
        }
    }

    /// The hint that comes with the error of a template.
    fn hint_of(&self, i: usize, error: &mut TemplateError) -> Option<String> {
        error.hint.take().or_else(|| Some(self.how_to_give(i, error.empty.as_deref()?)))
    }

    fn values_for(&self, i: usize) -> Cow<'_, serde_json::Value> {
        let Some(own) = self.specs[i].node("values").map(values::value) else {
            return Cow::Borrowed(&self.values);
        };
        let mut values = self.values.clone();
        if let (Some(all), serde_json::Value::Object(own)) = (values.as_object_mut(), own) {
            all.extend(own);
        }
        Cow::Owned(values)
    }

    /// Reads a file that a field names, seen from the manifest.
    fn read_beside<T>(
        &mut self,
        i: usize,
        field: &str,
        read: impl Fn(&Path) -> std::io::Result<T>,
    ) -> Option<(T, PathBuf)> {
        let spec = &self.specs[i];
        let node = spec.node(field)?;
        let text = self.text(i, node)?.into_owned();
        let manifest = self.sources.get(spec.location.source).map(|source| &*source.path);
        let path = manifest.and_then(Path::parent).unwrap_or(Path::new("")).join(text);
        self.read.push(path.clone());
        match read(&path) {
            Ok(read) => Some((read, path)),
            Err(error) => {
                let message = format!("can't read {}: {error}", path.display());
                let hint = match error.kind() {
                    ErrorKind::NotFound => Some("it is looked for from the manifest's directory"),
                    ErrorKind::InvalidInput => Some("name a file"),
                    ErrorKind::PermissionDenied => Some("whoever runs Setpoint must be allowed to read it"),
                    _ => None,
                };
                self.report.add(spec.at(node.span), message, hint.map(ToOwned::to_owned));
                None
            }
        }
    }

    /// A text with all references replaced.
    pub(crate) fn text(&mut self, i: usize, node: &'a Node<'a>) -> Option<Cow<'a, str>> {
        let text = node.scalar()?;
        let spec = &self.specs[i];
        let sources = self.sources;
        self.replace(i, text, |needle, sources_line| {
            let source = sources.get(spec.location.source);
            let span = source.map_or(node.span, |source| locate(source, node.span, needle, sources_line));
            spec.at(span).into()
        })
    }

    /// A text that was read before, with its references to items as they are written.
    pub(crate) fn text_as_written(&mut self, i: usize, node: &'a Node<'a>) -> Option<String> {
        let text = node.scalar()?;
        let location = self.specs[i].at(node.span);
        let parts = split(text).unwrap_or_else(|| vec![Part::Plain(text)]);
        let parts = parts.into_iter().map(|part| match part {
            Part::Plain(text) => Some(text.to_owned()),
            Part::Reference(inside, _) => match inside.strip_prefix("values.") {
                Some(path) => self.value(i, path, location.into()),
                None => Some(format!("${{{inside}}}")),
            },
            Part::Open(_) => None,
        });
        parts.collect()
    }

    /// Replaces the references in a text; `place` says where one is, given it and its line in the text.
    fn replace<'t, 'p>(
        &mut self,
        i: usize,
        text: &'t str,
        place: impl Fn(&str, usize) -> Place<'p>,
    ) -> Option<Cow<'t, str>> {
        let Some(parts) = split(text) else { return Some(Cow::Borrowed(text)) };
        let line = |at: usize| text.get(..at).map_or(0, |before| before.matches('\n').count());
        let mut whole = Some(String::with_capacity(text.len()));
        for part in parts {
            let value = match part {
                Part::Plain(text) => Some(Cow::Borrowed(text)),
                Part::Reference(inside, at) => {
                    let place = place(&format!("${{{inside}}}"), line(at));
                    self.attribute(i, inside, place).map(Cow::Owned)
                }
                Part::Open(at) => {
                    let hint = "close it with `}`, or write `$${` for a plain `${`".to_owned();
                    self.report.add(place("${", line(at)), "this reference has no end", Some(hint));
                    None
                }
            };
            // All references are looked at, so that all errors are found.
            whole = whole.zip(value).map(|(whole, value)| whole + &value);
        }
        whole.map(Cow::Owned)
    }

    /// The text of a value, given the dotted path to it.
    fn value(&mut self, i: usize, path: &str, place: Place<'_>) -> Option<String> {
        use serde_json::Value;
        let values = self.values_for(i);
        let (mut found, mut walked) = (&*values, Vec::new());
        for key in path.split('.') {
            let inner = match found {
                Value::Object(map) => map.get(key),
                Value::Array(list) => key.parse().ok().and_then(|at: usize| list.get(at)),
                _ => None,
            };
            let Some(inner) = inner else {
                let known = found.as_object().into_iter().flat_map(|map| map.keys().map(String::as_str));
                let hint = match nearest(key, known) {
                    Some(key) => format!("did you mean `{}`?", [&walked[..], &[key]].concat().join(".")),
                    None => format!("add `{path}` to the `values` of the set"),
                };
                self.report.add(place, format!("there is no value `{path}`"), Some(hint));
                return None;
            };
            found = inner;
            walked.push(key);
        }
        let text = match found {
            Value::String(text) => text.clone(),
            Value::Bool(_) | Value::Number(_) => found.to_string(),
            Value::Null => {
                let hint = self.how_to_give(i, path);
                self.report.add(place, format!("the value `{path}` is empty"), Some(hint));
                return None;
            }
            Value::Array(_) | Value::Object(_) => {
                let hint = Some("name one of the values in it, or use a template".to_owned());
                self.report.add(place, format!("the value `{path}` is not a single one"), hint);
                return None;
            }
        };
        Some(text)
    }

    /// The value of `kind.name.attribute`, which the item then needs, or of `values.name`.
    fn attribute(&mut self, i: usize, inside: &str, place: Place<'_>) -> Option<String> {
        if let Some(path) = inside.strip_prefix("values.") {
            return self.value(i, path, place);
        }
        let Some((kind, name, attribute)) = attribute(inside) else {
            let hint = "write `${kind.name.attribute}`, or `$${` for a plain `${`".to_owned();
            self.report.add(place, format!("`{inside}` is no reference"), Some(hint));
            return None;
        };
        let on = self.find(i, kind, name, place)?;
        let section = self.specs[on].section;
        if !section.referable.contains(&attribute) {
            let all = section.referable.join(", ");
            let hint = did_you_mean(attribute, section.referable.iter().copied())
                .unwrap_or_else(|| format!("there are {all}"));
            let message = format!("a {kind} has no `{attribute}` to refer to");
            self.report.add(place, message, Some(hint));
            return None;
        }
        self.need(i, on, Because::Reference);
        match attribute {
            "path" => Some(self.path(on)?.in_root(&self.root).display().to_string()),
            "sha256" => Some(self.content(on)?.sha256()),
            "target" => {
                let node = self.specs[on].node("target")?;
                Some(self.text(on, node)?.into_owned())
            }
            "log" if self.specs[on].node("log").is_some() => {
                Some(self.path_field(on, "log")?.in_root(&self.root).display().to_string())
            }
            "log" => {
                let hint = Some("say `log` there".to_owned());
                self.report.add(place, format!("{kind}.{name} has no log file of its own"), hint);
                None
            }
            _ => Some(name.to_owned()),
        }
    }

    /// The item that is called so, for one that names it; complains where there is none.
    pub(crate) fn find(&mut self, i: usize, kind: &str, name: &str, place: Place<'_>) -> Option<usize> {
        let Some(section) = Section::of_kind(kind) else {
            let known = Section::all().map(|section| section.kind);
            let all: Vec<&str> = known.clone().collect();
            let plural = Section::all().find(|section| section.key == kind);
            let hint = plural.map(|section| format!("did you mean `{}`?", section.kind));
            let hint = hint
                .or_else(|| did_you_mean(kind, known))
                .unwrap_or_else(|| format!("there are {}", all.join(", ")));
            self.report.add(place, format!("there is no kind of item `{kind}`"), Some(hint));
            return None;
        };
        if let Some(&found) = self.index.get(&(section.kind, name)) {
            return Some(found);
        }
        let meant = if self.report.suggests() { self.meant(i, section.kind, name) } else { None };
        let hint = meant.unwrap_or_else(|| format!("declare it in `{}`, or correct the name", section.key));
        self.report.add(place, format!("there is no {kind} `{name}`"), Some(hint));
        None
    }

    /// The hint for a name that no item of a kind has. Nobody means the item that says it.
    fn meant(&self, i: usize, kind: &str, name: &str) -> Option<String> {
        let others = self.index.iter().filter(|(_, other)| **other != i).map(|(known, _)| known);
        let mut known: Vec<&str> =
            others.filter(|(other, _)| *other == kind).map(|&(_, name)| name).collect();
        known.sort_unstable();
        did_you_mean(name, known)
    }

    /// Reports that an attribute of an item can't be known before itself.
    fn rests_on_itself<T>(&mut self, i: usize) -> Option<T> {
        let spec = &self.specs[i];
        let message =
            format!("{}.{} refers to itself, directly or through others", spec.section.kind, spec.name);
        self.report.add(spec.location, message, Some("write one of them out".to_owned()));
        None
    }
}

/// Where a reference is within a scalar: it is looked for in the lines that the scalar was written in.
fn locate(source: &ManifestFile, span: Span, needle: &str, line_in_text: usize) -> Span {
    let first = span.line as usize - 1;
    let lines = (first..).zip(source.lines_from(first)).take(line_in_text + 3);
    let mut found = lines.filter_map(|(line, text)| {
        let at = text.find(needle)?;
        let (line, column) = (line + 1, text.get(..at)?.chars().count() + 1);
        Some(Span {
            line: u32::try_from(line).ok()?,
            column: u32::try_from(column).ok()?,
            length: u32::try_from(needle.chars().count()).ok()?,
        })
    });
    found.next().unwrap_or(span)
}

/// The span of a line of a template.
fn line_of(node: &Node<'_>, line: Option<usize>) -> Span {
    let Data::Scalar { style: Style::Block, .. } = &node.data else { return node.span };
    let line = line.and_then(|line| u32::try_from(line).ok());
    line.map_or(node.span, |line| Span {
        line: (node.span.line + line).saturating_sub(1),
        column: 1,
        length: u32::MAX,
    })
}
