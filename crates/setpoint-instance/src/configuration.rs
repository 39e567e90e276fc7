//! The configuration of an instance: its files, each as a document that shares what did not change with other versions.
//!
//! ```text
//!  files ──read──▶ Configuration ──fork──▶ Configuration ──edit──▶ Configuration ──print──▶ bytes of the files that changed
//! ```
//!
//! An edit goes to the file that its section came from; a new section to the file that holds others of its kind. The version
//! stands in the first file.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use setpoint_haproxy::edit::{ChildKey, EditError, Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel};
use setpoint_haproxy::text::{Document, Section, SectionKind};

use crate::text::{self, VersionLine};

/// One file.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    line: VersionLine,
    editor: Editor<'static>,
}

/// All files of a configuration, in the order in which HAProxy reads them.
#[derive(Debug)]
pub struct Configuration {
    cx: &'static Context,
    parts: Vec<Part>,
    version: u64,
    /// Whether versions are counted from 1 again.
    reset: bool,
}

/// Why a configuration can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file can't be read.
    #[error("can't read the configuration {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is none.
    #[error("no configuration file was given")]
    None,
}

impl Configuration {
    /// Reads files. What a text means depends on the context, which stays for as long as the process does.
    pub fn read(files: &[PathBuf], cx: &'static Context) -> Result<Self, ReadError> {
        let read = |path: &PathBuf| {
            let bytes = fs::read(path).map_err(|source| ReadError::File { path: path.clone(), source })?;
            Ok((path.clone(), bytes))
        };
        let texts = files.iter().map(read).collect::<Result<Vec<_>, ReadError>>()?;
        Self::of(texts, cx).ok_or(ReadError::None)
    }

    /// Makes a configuration of the texts of its files; none if there is no file.
    pub fn of(texts: Vec<(PathBuf, Vec<u8>)>, cx: &'static Context) -> Option<Self> {
        let mut version = None;
        let parts: Vec<Part> = texts
            .into_iter()
            .enumerate()
            .map(|(number, (path, bytes))| {
                // Only the first file has a version.
                let (rest, line, found) =
                    if number == 0 { text::split(&bytes) } else { (bytes, VersionLine::default(), None) };
                version = version.or(found);
                Part { path, line, editor: Editor::new(Document::parse(&rest), cx) }
            })
            .collect();
        (!parts.is_empty()).then(|| Self { cx, parts, version: version.unwrap_or(1), reset: false })
    }

    /// The version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What texts are read for.
    pub fn context(&self) -> &'static Context {
        self.cx
    }

    /// Its files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().map(|part| part.path.as_path())
    }

    /// A copy that can be changed by itself. What neither changes stays shared.
    #[must_use]
    pub fn fork(&self) -> Self {
        let parts = self.parts.iter().map(|part| Part {
            path: part.path.clone(),
            line: part.line.clone(),
            editor: part.editor.clone(),
        });
        Self { cx: self.cx, parts: parts.collect(), version: self.version, reset: false }
    }

    /// A copy that holds another text: its sections go to the files in which they are now, as far as the order of the text
    /// allows. A version line in it says nothing.
    #[must_use]
    pub fn with_text(&self, bytes: &[u8]) -> Self {
        let (rest, mut line, _) = text::split(bytes);
        line.set(self.version);
        let sections = Document::parse(&rest).sections().to_vec();
        let mut files = self.files_of(&sections).into_iter();
        let mut texts = vec![Vec::new(); self.parts.len()];
        for section in self.shared(sections) {
            if let Some(text) = files.next().and_then(|file| texts.get_mut(file)) {
                text.push(section);
            }
        }
        let mut copy = self.fork();
        let is_single = copy.parts.len() == 1;
        for (part, sections) in copy.parts.iter_mut().zip(texts) {
            let (document, held) = (Document::from_sections(sections), part.editor.document());
            // A file that stays as it is shares all it holds. Where a text is divided, comments may go with other sections.
            let stays = same(&document, held) || !is_single && document.print() == held.print();
            if !stays {
                part.editor = Editor::new(document, self.cx);
            }
        }
        if let Some(first) = copy.parts.first_mut() {
            first.line = line;
        }
        copy
    }

    /// The same sections; those that are here already are not held twice.
    fn shared(&self, sections: Vec<Arc<Section>>) -> impl Iterator<Item = Arc<Section>> {
        let own = self.parts.iter().flat_map(|part| part.editor.document().sections());
        let key = |section: &Section| (section.kind(), section.name().map(Cow::into_owned));
        let mut held: HashMap<_, Vec<&Arc<Section>>> = HashMap::new();
        for section in own {
            held.entry(key(section)).or_default().push(section);
        }
        sections.into_iter().map(move |section| {
            let same = held.get(&key(&section));
            let same = same.and_then(|same| same.iter().find(|one| one.same_bytes(&section)));
            same.map_or(section, |same| Arc::clone(same))
        })
    }

    /// The file for each section of a text. Files are read one after another, so that a later section can't stand in an
    /// earlier file: most stay where they are, and the others go with what stands before them.
    fn files_of(&self, sections: &[Arc<Section>]) -> Vec<usize> {
        if self.parts.len() == 1 {
            return vec![0; sections.len()];
        }
        // The n-th of several that share kind and name is that of the same number.
        let mut homes: HashMap<_, Vec<usize>> = HashMap::new();
        for (file, part) in self.parts.iter().enumerate() {
            for section in part.editor.document().sections() {
                homes.entry((section.kind(), section.name())).or_default().push(file);
            }
        }
        let mut seen: HashMap<_, usize> = HashMap::new();
        let home = |section: &Arc<Section>| {
            let key = (section.kind(), section.name().map(Cow::into_owned));
            let nth = seen.entry(key).or_default();
            *nth += 1;
            let files = homes.get(&(section.kind(), section.name()))?;
            files.get(*nth - 1).or(files.last()).copied()
        };
        let homes: Vec<Option<usize>> = sections.iter().map(home).collect();
        // For each file, the most sections that can stay if the last of them is in it, or before it.
        let mut best = vec![0_usize; self.parts.len()];
        let mut stays = Vec::new();
        for home in &homes {
            stays.push(home.map(|home| {
                let most = best.iter().take(home + 1).copied().max().unwrap_or(0) + 1;
                if let Some(best) = best.get_mut(home) {
                    *best = most;
                }
                most
            }));
        }
        let mut files = vec![0; sections.len()];
        let (mut left, mut last) = (best.iter().copied().max().unwrap_or(0), self.parts.len());
        for (index, (home, stays)) in homes.iter().zip(&stays).enumerate().rev() {
            if let (Some(home), Some(stays)) = (*home, *stays)
                && stays == left
                && left > 0
                && home <= last
            {
                (left, last) = (left - 1, home);
                if let Some(file) = files.get_mut(index) {
                    *file = home;
                }
            }
        }
        let mut before = 0;
        for file in &mut files {
            before = before.max(*file);
            *file = before;
        }
        files
    }

    /// Makes the first file say a version.
    pub fn set_version(&mut self, version: u64) {
        self.version = version;
        if let Some(first) = self.parts.first_mut() {
            first.line.set(version);
        }
    }

    /// Takes the text for another version than the file says, until it is written.
    pub(crate) fn raise_version(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// Has versions counted from 1 again when it is written.
    pub(crate) fn reset_version(&mut self) {
        self.reset = true;
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.reset
    }

    /// The text of the first file, or of all files one after the other.
    pub fn print(&self) -> Vec<u8> {
        self.parts.iter().flat_map(Part::print).collect()
    }

    /// Each file with its bytes.
    pub(crate) fn named_texts(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.parts.iter().map(|part| (part.path.clone(), part.print())).collect()
    }

    /// The bytes of each file.
    pub(crate) fn texts(&self) -> Vec<Vec<u8>> {
        self.parts.iter().map(Part::print).collect()
    }

    /// The files that are not written as in another configuration of the same files.
    fn parts_changed_since(&self, other: &Self) -> impl Iterator<Item = &Part> {
        let pairs = self.parts.iter().zip(&other.parts);
        let changed = pairs
            .filter(|(new, old)| new.line != old.line || !same(new.editor.document(), old.editor.document()));
        changed.map(|(part, _)| part)
    }

    /// Returns whether a file is not written as in another configuration of the same files.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        self.parts_changed_since(other).next().is_some()
    }

    /// The bytes of each file that is not written as in another configuration of the same files.
    pub(crate) fn changed_since(&self, other: &Self) -> Vec<(PathBuf, Vec<u8>)> {
        self.parts_changed_since(other).map(|part| (part.path.clone(), part.print())).collect()
    }

    /// All sections of all files, as one document.
    pub fn whole(&self) -> Cow<'_, Document> {
        match self.parts.as_slice() {
            [only] => Cow::Borrowed(only.editor.document()),
            parts => {
                let sections =
                    parts.iter().flat_map(|part| part.editor.document().sections().iter().cloned());
                Cow::Owned(Document::from_sections(sections.collect::<Vec<Arc<Section>>>()))
            }
        }
    }

    /// Lists the sections of a kind. Those that share a name are counted over all files.
    pub fn sections(&self, kind: SectionKind) -> Vec<SectionKey> {
        let mut keys: Vec<SectionKey> =
            self.parts.iter().flat_map(|part| part.editor.sections(kind)).collect();
        if self.parts.len() > 1 {
            let mut counts = HashMap::new();
            for key in &mut keys {
                let count = counts.entry(key.name.clone()).or_insert(0_u32);
                key.nth = *count;
                *count += 1;
            }
        }
        keys
    }

    /// The editor of the file that a section stands in; that of the last file if it stands in none.
    pub fn editor(&mut self, key: &SectionKey) -> FileEditor<'_> {
        let (mut index, mut nth) = (self.parts.len() - 1, key.nth);
        if index > 0 {
            let mut before = 0;
            for (at, part) in self.parts.iter().enumerate() {
                let same = part.editor.sections(key.kind).into_iter().filter(|held| held.name == key.name);
                let count = u32::try_from(same.count()).unwrap_or(u32::MAX);
                if key.nth < before + count {
                    (index, nth) = (at, key.nth - before);
                    break;
                }
                before += count;
            }
        }
        let part = self.parts.get_mut(index).unwrap_or_else(|| unreachable!("a configuration has a file"));
        FileEditor { editor: &mut part.editor, nth }
    }

    /// Creates a section: in the last file that has one of its kind, or in the last of all.
    pub fn create_section(&mut self, section: &SectionModel) -> Result<SectionKey, EditError> {
        let key = SectionKey { kind: section.kind, name: section.name.clone(), nth: 0 };
        let name = key.name.as_ref().map(|name| name.as_bytes());
        let mut documents = self.parts.iter().map(|part| part.editor.document());
        if self.parts.len() > 1
            && section.name.is_some()
            && documents.any(|document| document.find(key.kind, name).is_some())
        {
            return Err(EditError::Exists { what: key.to_string() });
        }
        let has_kind =
            |part: &Part| part.editor.document().sections().iter().any(|section| section.kind() == key.kind);
        let index = self.parts.iter().rposition(has_kind).unwrap_or(self.parts.len() - 1);
        match self.parts.get_mut(index) {
            Some(part) => part.editor.create_section(section),
            None => Err(EditError::NotFound { what: key.to_string() }),
        }
    }
}

/// Edits a section in the file that it stands in. What it is called is counted over all files.
#[derive(Debug)]
pub struct FileEditor<'c> {
    editor: &'c mut Editor<'static>,
    /// How many of the same kind and name stand before it in its file.
    nth: u32,
}

impl FileEditor<'_> {
    fn here(&self, key: &SectionKey) -> SectionKey {
        SectionKey { nth: self.nth, ..key.clone() }
    }

    /// Returns the section, as [`Editor::section`] does.
    pub fn section(self, key: &SectionKey) -> Result<Arc<SectionModel>, EditError> {
        let key = self.here(key);
        self.editor.section(&key)
    }

    /// Replaces the section, as [`Editor::replace_section`] does.
    pub fn replace_section(self, key: &SectionKey, section: &SectionModel) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.replace_section(&key, section)
    }

    /// Replaces the section's own settings, as [`Editor::replace_settings`] does.
    pub fn replace_settings(self, key: &SectionKey, new: &Object) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.replace_settings(&key, new)
    }

    /// Deletes the section, as [`Editor::delete_section`] does.
    pub fn delete_section(self, key: &SectionKey) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.delete_section(&key)
    }

    /// Returns a child of the section, as [`Editor::get`] does.
    pub fn get(self, key: &SectionKey, kind: ObjectKind, child: &ChildKey) -> Result<Object, EditError> {
        let key = self.here(key);
        self.editor.get(&key, kind, child)
    }

    /// Returns all children of a kind, as [`Editor::list`] does.
    pub fn list(self, key: &SectionKey, kind: ObjectKind) -> Result<Vec<Object>, EditError> {
        let key = self.here(key);
        self.editor.list(&key, kind)
    }

    /// Creates a child of the section, as [`Editor::create`] does.
    pub fn create(self, key: &SectionKey, object: &Object, place: Option<u32>) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.create(&key, object, place)
    }

    /// Replaces a child of the section, as [`Editor::replace`] does.
    pub fn replace(self, key: &SectionKey, child: &ChildKey, object: &Object) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.replace(&key, child, object)
    }

    /// Deletes a child of the section, as [`Editor::delete`] does.
    pub fn delete(self, key: &SectionKey, kind: ObjectKind, child: &ChildKey) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.delete(&key, kind, child)
    }

    /// Replaces all children of a kind, as [`Editor::replace_list`] does.
    pub fn replace_list(
        self,
        key: &SectionKey,
        kind: ObjectKind,
        objects: &[Object],
    ) -> Result<(), EditError> {
        let key = self.here(key);
        self.editor.replace_list(&key, kind, objects)
    }
}

impl Part {
    fn print(&self) -> Vec<u8> {
        self.line.put_back(self.editor.document().print())
    }
}

/// Returns whether two documents print the same bytes. Shared sections are not looked at.
pub(crate) fn same(a: &Document, b: &Document) -> bool {
    a.sections().len() == b.sections().len()
        && a.sections().iter().zip(b.sections()).all(|(a, b)| Arc::ptr_eq(a, b) || a.same_bytes(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> &'static Context {
        Box::leak(Box::default())
    }

    fn configuration(texts: &[&str]) -> Configuration {
        let texts = texts.iter().enumerate();
        let texts = texts.map(|(n, text)| (PathBuf::from(format!("{n}.cfg")), text.as_bytes().to_vec()));
        Configuration::of(texts.collect(), context()).unwrap()
    }

    fn changed(new: &Configuration, old: &Configuration) -> Vec<(String, String)> {
        let changes = new.changed_since(old).into_iter();
        changes.map(|(path, bytes)| (path.display().to_string(), String::from_utf8(bytes).unwrap())).collect()
    }

    #[test]
    fn an_edit_goes_back_to_the_file_it_came_from_and_the_version_to_the_first() {
        let old = configuration(&["global\n", "backend a\n  server s 192.0.2.1:80\n", "backend b\n"]);
        let mut new = old.fork();
        let key = SectionKey::named(SectionKind::Backend, "a");
        new.editor(&key).delete(&key, ObjectKind::Server, &ChildKey::Name("s".into())).unwrap();
        assert_eq!(changed(&new, &old), [("1.cfg".into(), "backend a\n".into())]);
        new.set_version(2);
        assert_eq!(changed(&new, &old)[0], ("0.cfg".into(), "# _version=2\nglobal\n".into()));
        assert_eq!((old.version(), new.version()), (1, 2));
    }

    #[test]
    fn sections_without_a_name_are_counted_over_all_files_and_go_back_to_their_own() {
        let texts = ["defaults\n  mode http\n", "defaults\n  mode tcp\nbackend b\n"];
        let mut old = configuration(&texts);
        let keys = old.sections(SectionKind::Defaults);
        assert_eq!(keys.iter().map(|key| key.nth).collect::<Vec<_>>(), [0, 1]);
        let modes: Vec<_> = keys
            .iter()
            .map(|key| {
                let section = old.editor(key).section(key).unwrap();
                section.object.as_ref().unwrap().to_json()["mode"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(modes, ["http", "tcp"]);
        let mut new = old.fork();
        new.editor(&keys[1]).delete_section(&keys[1]).unwrap();
        assert_eq!(changed(&new, &old), [("1.cfg".into(), "backend b\n".into())]);
        // What was read as a whole and is pushed as it was stays where it is.
        let pushed = old.with_text(texts.concat().as_bytes());
        let held: Vec<_> = pushed.texts().into_iter().map(|text| String::from_utf8(text).unwrap()).collect();
        assert_eq!(held[1], texts[1]);
    }

    #[test]
    fn a_new_section_stands_in_the_file_of_its_kind() {
        let old = configuration(&["global\n", "backend a\n", "frontend f\n"]);
        let mut new = old.fork();
        let json = serde_json::json!({ "name": "b" });
        let (section, _) = SectionModel::from_json(ObjectKind::Backend, &json, context()).unwrap();
        new.create_section(&section).unwrap();
        assert_eq!(changed(&new, &old)[0].0, "1.cfg");
        assert!(matches!(new.create_section(&section), Err(EditError::Exists { .. })));
        let (object, _) = Object::from_json(ObjectKind::Backend, &json, context()).unwrap();
        assert_eq!(object.name(), Some("b"));
    }

    #[test]
    fn a_pushed_text_takes_the_place_of_all_and_its_version_line_says_nothing() {
        let old = configuration(&["# _version=4\nglobal\n"]);
        let new = old.with_text(b"# _version=77\n# mine\nglobal\n  daemon\n");
        assert_eq!(new.print(), b"# _version=4\n# mine\nglobal\n  daemon\n");
    }

    #[test]
    fn a_pushed_text_shares_the_sections_that_did_not_change() {
        let old = configuration(&["global\n\nbackend a\n  mode tcp\n\nbackend b\n"]);
        let new =
            old.with_text(b"# _version=4\nglobal\n\nbackend c\n\nbackend a\n  mode http\n\nbackend b\n");
        let held = |configuration: &Configuration| configuration.whole().sections().to_vec();
        let shared = |one: &Arc<Section>| held(&old).iter().any(|other| Arc::ptr_eq(one, other));
        let names: Vec<_> = held(&new).iter().filter(|one| shared(one)).map(|one| one.kind()).collect();
        assert_eq!(names, [SectionKind::Global, SectionKind::Backend]);
    }

    #[test]
    fn a_pushed_text_goes_back_to_the_files_its_sections_came_from() {
        let old = configuration(&[
            "# _version=4\nglobal\n",
            "# of a\nbackend a\n\nbackend b\n",
            "# of f\nfrontend f\n  default_backend a\n",
        ]);
        let push = |text: &[u8]| {
            let new = old.with_text(text);
            // Whatever goes where: read one after another, the files are the text.
            let (rest, ..) = text::split(text);
            assert_eq!(text::split(&new.print()).0, rest);
            changed(&new, &old)
        };
        assert_eq!(push(&old.print()), []);
        let text = String::from_utf8(old.print()).unwrap();
        let added = text.replace("backend b\n", "backend b\n  server s 192.0.2.1:80\nbackend c\n");
        assert_eq!(
            push(added.as_bytes()),
            [("1.cfg".into(), "# of a\nbackend a\n\nbackend b\n  server s 192.0.2.1:80\nbackend c\n".into())]
        );
        // One that moves to the front goes to an earlier file; all others stay.
        let moved =
            "# _version=4\n# of f\nfrontend f\n  default_backend a\nglobal\n# of a\nbackend a\n\nbackend b\n";
        assert_eq!(
            push(moved.as_bytes()),
            [
                ("0.cfg".into(), "# _version=4\n# of f\nfrontend f\n  default_backend a\nglobal\n".into()),
                ("2.cfg".into(), String::new())
            ]
        );
        assert_eq!(push(b"backend b\n").len(), 3);
    }

    #[test]
    fn what_was_not_changed_prints_as_it_was() {
        let text = "\n# _md5hash=x\n# _version=3\n\nglobal # c\n\tdaemon\n\n\nbackend b";
        let old = configuration(&[text]);
        assert_eq!(old.fork().print(), text.as_bytes());
        assert!(!old.fork().differs_from(&old));
    }
}
