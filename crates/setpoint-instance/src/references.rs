//! Where a configuration, and the lists of certificates that it names, name a file; and copies of them that name another one.
//!
//! ```text
//!  lines ──▶ words ──▶ paths: absolute, or relative to the working directory, to a file of the configuration, `crt-base` …
//! ```
//!
//! A file that is about to be replaced is checked by HAProxy before it stands in its place. A folder is made aside in which it
//! has its name, with links to all files that stand beside it now, and HAProxy is asked about a copy of the configuration in
//! which that folder is named.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

/// Words behind which a folder stands that relative paths begin in.
const BASES: [&str; 4] = ["crt-base", "ca-base", "key-base", "origin"];
/// Words behind which a folder may stand.
const WITH_FOLDERS: [&str; 6] = ["crt", "ca-file", "ca-verify-file", "crt-base", "ca-base", "key-base"];
/// What ends a word of a line, beside blanks: paths stand in brackets and behind prefixes, too.
const ENDS: [char; 8] = ['"', '\'', '(', ')', ',', '=', '@', '#'];

/// A file, as texts may name it.
#[derive(Debug)]
pub(crate) struct Named {
    /// Where it is, with all links followed.
    path: PathBuf,
    /// The folder that it is in.
    folder: PathBuf,
    /// The same as it was given.
    folder_as_given: String,
    name: String,
    /// Where relative paths may begin.
    bases: Vec<PathBuf>,
}

/// A line that names a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamingLine {
    /// The list that it stands in; none if it stands in the configuration.
    pub(crate) list: Option<PathBuf>,
    /// Counted from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
}

/// The texts of a configuration, each with its file.
pub(crate) type Texts = [(PathBuf, Vec<u8>)];

impl Named {
    /// A file in a folder, as these texts may name it.
    pub(crate) fn new(folder: &Path, name: &str, texts: &Texts, working_directory: &Path) -> Self {
        let real = real(folder);
        let mut bases = vec![working_directory.to_owned()];
        for (file, _) in texts {
            bases.extend(file.ancestors().skip(1).take(2).map(Path::to_owned));
        }
        for (_, text) in texts {
            for line in String::from_utf8_lossy(text).lines() {
                let mut words = words(line).map(|(_, word)| word);
                while let Some(word) = words.next() {
                    if BASES.contains(&word) {
                        bases.extend(words.next().map(|base| working_directory.join(base)));
                    }
                }
            }
        }
        bases.dedup();
        Self {
            path: real.join(name),
            folder: real,
            folder_as_given: folder.to_string_lossy().into_owned(),
            name: name.to_owned(),
            bases,
        }
    }

    /// Returns whether a word may be a path to the file.
    fn is_file(&self, word: &str) -> bool {
        word.ends_with(&self.name) && self.is_at(word, &self.path)
    }

    fn is_folder(&self, word: &str) -> bool {
        let last =
            self.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        (word.trim_end_matches('/').ends_with(&last) || word == self.folder_as_given)
            && self.is_at(word, &self.folder)
    }

    fn is_at(&self, word: &str, path: &Path) -> bool {
        let leads = |base: &Path| {
            let found = base.join(word);
            plain(&found) == path || real(&found) == path
        };
        if Path::new(word).is_absolute() {
            return leads(Path::new("/"));
        }
        self.bases.iter().any(|base| leads(base))
    }

    /// The first line that names the file, in the configuration or in a list of certificates that it names.
    pub(crate) fn find(&self, texts: &Texts, working_directory: &Path) -> Option<NamingLine> {
        let mut all = Vec::new();
        for (_, text) in texts {
            all.extend_from_slice(text);
        }
        let in_text = |list: Option<PathBuf>, text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            let mut lines = text.lines().enumerate();
            let found = lines.find(|(_, line)| words(line).any(|(_, word)| self.is_file(word)));
            found.map(|(number, line)| NamingLine { list, number: number + 1, text: line.trim().to_owned() })
        };
        in_text(None, &all).or_else(|| {
            lists(texts, working_directory).into_iter().find_map(|list| {
                let text = fs::read(&list).ok()?;
                in_text(Some(list), &text)
            })
        })
    }

    /// A text in which other paths stand for the file and its folder, and for other files; none if it names none of them.
    fn renamed(&self, text: &[u8], to: &Path, others: &[(PathBuf, PathBuf)]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(text);
        let mut out = String::with_capacity(text.len());
        let mut changed = false;
        for line in text.split_inclusive('\n') {
            let (mut end, mut before) = (0, "");
            for (at, word) in words(line) {
                let new = self.renamed_word(word, std::mem::replace(&mut before, word), to, others);
                let Some(new) = new else { continue };
                out.push_str(line.get(end..at).unwrap_or_default());
                out.push_str(&new);
                end = at + word.len();
                changed = true;
            }
            out.push_str(line.get(end..).unwrap_or_default());
        }
        changed.then(|| out.into_bytes())
    }

    fn renamed_word(
        &self,
        word: &str,
        before: &str,
        to: &Path,
        others: &[(PathBuf, PathBuf)],
    ) -> Option<String> {
        if self.is_file(word) {
            return Some(to.join(&self.name).display().to_string());
        }
        // The word `ssl` may be a folder of that name, and is an option nearly everywhere.
        if (Path::new(word).is_absolute() || WITH_FOLDERS.contains(&before)) && self.is_folder(word) {
            return Some(to.display().to_string());
        }
        let given = Path::new(word).strip_prefix(&self.folder_as_given).ok();
        if let Some(rest) = given.or_else(|| Path::new(word).strip_prefix(&self.folder).ok()) {
            return Some(to.join(rest).display().to_string());
        }
        let other = others.iter().find(|(from, _)| {
            let name = from.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            word.ends_with(name.as_ref()) && self.is_at(word, from)
        });
        other.map(|(_, to)| to.display().to_string())
    }
}

/// What is checked in the place of what is there.
#[derive(Debug)]
pub(crate) struct Aside {
    /// It is removed with everything in it when this is dropped.
    folder: PathBuf,
    /// The files of the configuration that are others, with what they hold.
    pub(crate) texts: Vec<(PathBuf, Vec<u8>)>,
    /// Paths aside, and those that they stand for.
    paths: Vec<(String, String)>,
}

impl Aside {
    /// Makes a folder, which is not there yet, in which a file holds something else; none if no text names the file.
    pub(crate) fn make(
        named: &Named,
        bytes: &[u8],
        texts: &Texts,
        working_directory: &Path,
        folder: PathBuf,
    ) -> io::Result<Option<Self>> {
        // Of one that was killed.
        let _ = fs::remove_dir_all(&folder);
        let mirror = folder.join("files");
        let mut others = Vec::new();
        let mut lists_in_folder = Vec::new();
        for (number, list) in lists(texts, working_directory).into_iter().enumerate() {
            let is_new = list == named.path;
            let text = if is_new { bytes.to_vec() } else { fs::read(&list).unwrap_or_default() };
            let Some(renamed) = named.renamed(&text, &mirror, &[]) else { continue };
            if list.parent() == Some(&named.folder) {
                lists_in_folder.push((list, renamed));
            } else {
                let copy = folder.join(format!("list-{number}"));
                others.push((list, copy, renamed));
            }
        }
        let renames: Vec<(PathBuf, PathBuf)> =
            others.iter().map(|(list, copy, _)| (list.clone(), copy.clone())).collect();
        let renamed = texts
            .iter()
            .filter_map(|(file, text)| Some((file.clone(), named.renamed(text, &mirror, &renames)?)));
        let renamed: Vec<_> = renamed.collect();
        if renamed.is_empty() {
            return Ok(None);
        }
        let mut paths = vec![(mirror.display().to_string(), named.folder_as_given.clone())];
        paths.extend(renames.iter().map(|(from, to)| (to.display().to_string(), from.display().to_string())));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&mirror)?;
        let aside = Self { folder, texts: renamed, paths };
        for (_, copy, text) in &others {
            write_private(copy, text)?;
        }
        for (list, text) in &lists_in_folder {
            write_private(&mirror.join(list.file_name().unwrap_or_default()), text)?;
        }
        let new = mirror.join(&named.name);
        if !new.exists() {
            write_private(&new, bytes)?;
        }
        for entry in fs::read_dir(&named.folder)? {
            let entry = entry?;
            let place = mirror.join(entry.file_name());
            if !place.exists() {
                symlink(named.folder.join(entry.file_name()), place)?;
            }
        }
        Ok(Some(aside))
    }

    /// What HAProxy said, with the paths that are meant.
    pub(crate) fn meant(&self, messages: &str) -> String {
        self.paths.iter().fold(messages.to_owned(), |text, (aside, meant)| text.replace(aside, meant))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The next one removes it.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The lists of certificates that a configuration names, with all links followed.
fn lists(texts: &Texts, working_directory: &Path) -> Vec<PathBuf> {
    let mut lists = Vec::new();
    for (_, text) in texts {
        for line in String::from_utf8_lossy(text).lines().filter(|line| line.contains("crt-list")) {
            let mut words = words(line).map(|(_, word)| word);
            while let Some(word) = words.next() {
                if word == "crt-list" {
                    lists.extend(words.next().map(|list| real(&working_directory.join(list))));
                }
            }
        }
    }
    lists.sort();
    lists.dedup();
    lists
}

/// The words of a line that may be paths, each with its place. A comment has none.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let line = match line.find('#') {
        Some(0) => "",
        Some(at) if line.as_bytes().get(at - 1).is_some_and(u8::is_ascii_whitespace) => {
            line.get(..at).unwrap_or(line)
        }
        _ => line,
    };
    let mut at = 0;
    line.split(|letter: char| letter.is_whitespace() || ENDS.contains(&letter)).filter_map(move |word| {
        let start = at;
        // Each end is one byte, but for blanks that nobody writes.
        at = start + word.len() + line.get(start + word.len()..)?.chars().next().map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

/// A path with all links followed, also if nothing is there.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => plain(path).into_owned(),
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> Cow<'_, Path> {
    if !path.components().any(|part| part == Component::ParentDir) {
        return Cow::Owned(path.components().collect());
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part != Component::ParentDir {
            plain.push(part);
        } else if !plain.pop() {
            break;
        }
    }
    Cow::Owned(plain)
}

/// Writes a file that only its owner can read: it may be a private key.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::File::options().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("ssl")).unwrap();
            for name in ["site.pem", "other.pem"] {
                fs::write(folder.path().join("ssl").join(name), "old").unwrap();
            }
            Self(folder)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn texts(&self, text: &str) -> Vec<(PathBuf, Vec<u8>)> {
            let folder = self.at("");
            vec![(self.at("haproxy.cfg"), text.replace("$D/", &folder.display().to_string()).into_bytes())]
        }

        fn find(&self, text: &str) -> Option<NamingLine> {
            let texts = self.texts(text);
            Named::new(&self.at("ssl"), "site.pem", &texts, &self.at("")).find(&texts, &self.at(""))
        }
    }

    #[test]
    fn a_file_is_named_by_its_path_a_relative_one_below_a_base_and_through_lists() {
        let world = World::new();
        symlink(world.at("ssl"), world.at("linked")).unwrap();
        fs::write(world.at("list"), "# site.pem\nssl/other.pem\nssl/site.pem [alpn h2] a.test\n").unwrap();
        for text in [
            "bind :443 ssl crt $D/ssl/site.pem",
            "bind :443 ssl crt $D/linked/site.pem",
            "bind :443 ssl crt $D/ssl/../ssl/site.pem",
            "bind :443 ssl crt ssl/site.pem",
            "crt-base $D/ssl\nbind :443 ssl crt site.pem",
            "http-request set-header a %[path,map($D/ssl/site.pem,x)]",
            "acl a path -f \"$D/ssl/site.pem\"",
        ] {
            let found = world.find(text);
            assert_eq!(found.map(|line| line.number), Some(text.lines().count()), "{text}");
        }
        let listed = world.find("bind :443 ssl crt-list $D/list").unwrap();
        assert_eq!((listed.list, listed.number), (Some(world.at("list")), 3));
        for text in [
            "bind :443 ssl crt $D/ssl/site.pem.other",
            "bind :443 ssl crt $D/ssl/other.pem",
            "# crt $D/ssl/site.pem",
            "bind :443 # crt $D/ssl/site.pem",
            "use_backend mysite.pem",
            "",
        ] {
            assert_eq!(world.find(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_checked_names_a_folder_aside_in_which_all_else_is_as_it_was() {
        let world = World::new();
        fs::write(world.at("list"), "ssl/site.pem\n").unwrap();
        let text = "bind :1 ssl crt $D/ssl/site.pem crt ssl crt-list $D/list\nuse_backend a\n";
        let texts = world.texts(text);
        let named = Named::new(&world.at("ssl"), "site.pem", &texts, &world.at(""));
        let aside = Aside::make(&named, b"new", &texts, &world.at(""), world.at("aside")).unwrap().unwrap();
        let new = String::from_utf8(aside.texts[0].1.clone()).unwrap();
        let path = |name: &str| world.at("aside").join(name).display().to_string();
        let expected = format!(
            "bind :1 ssl crt {} crt {} crt-list {}\nuse_backend a\n",
            path("files/site.pem"),
            path("files"),
            path("list-0")
        );
        assert_eq!(new, expected);
        let read = |name: &str| fs::read_to_string(world.at("aside").join(name)).unwrap();
        assert_eq!((read("files/site.pem"), read("files/other.pem")), ("new".into(), "old".into()));
        assert_eq!(read("list-0"), format!("{}\n", path("files/site.pem")));
        assert_eq!(fs::read_to_string(world.at("ssl/site.pem")).unwrap(), "old");
        let meant = aside.meant(&format!("can't read {}", path("files/site.pem")));
        assert_eq!(meant, format!("can't read {}", world.at("ssl/site.pem").display()));
        drop(aside);
        assert!(!world.at("aside").exists());
        let texts = world.texts("bind :1\n");
        assert!(Aside::make(&named, b"new", &texts, &world.at(""), world.at("aside")).unwrap().is_none());
    }
}
