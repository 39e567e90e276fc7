//! A directory as it really is on disk, for people and for programs.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    name: String,
    #[serde(flatten)]
    what: What,
}

/// What an entry is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum What {
    /// A directory with its entries by name.
    Directory(Vec<Entry>),
    /// A file with its text.
    File(String),
    /// A symbolic link with what it points to.
    Link(String),
    /// Something else.
    Other,
}

/// The entries of a directory by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Tree(Vec<Entry>);

impl Tree {
    /// Reads a directory with all that is in it but for manifests and the state. Links are not followed.
    pub(crate) fn read(directory: &Path) -> io::Result<Self> {
        let mut entries = entries(directory)?;
        entries.retain(|entry| entry.name != ".setpoint" && entry.name != "site.yaml");
        Ok(Self(entries))
    }
}

fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        let what = if kind.is_dir() {
            What::Directory(self::entries(&path)?)
        } else if kind.is_symlink() {
            What::Link(fs::read_link(path)?.to_string_lossy().into_owned())
        } else if kind.is_file() {
            What::File(String::from_utf8_lossy(&fs::read(path)?).into_owned())
        } else {
            What::Other
        };
        entries.push(Entry { name: entry.file_name().to_string_lossy().into_owned(), what });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

impl fmt::Display for Tree {
    /// Draws the tree, a line for each entry.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("(empty)\n");
        }
        draw(f, &self.0, "")
    }
}

fn draw(f: &mut fmt::Formatter<'_>, entries: &[Entry], indent: &str) -> fmt::Result {
    for (position, entry) in entries.iter().enumerate() {
        let last = position + 1 == entries.len();
        write!(f, "{indent}{}{}", if last { "└── " } else { "├── " }, entry.name)?;
        match &entry.what {
            What::Directory(inside) => {
                f.write_str("/\n")?;
                draw(f, inside, &format!("{indent}{}", if last { "    " } else { "│   " }))?;
            }
            What::File(text) => writeln!(f, ": {}", text.lines().next().unwrap_or_default())?,
            What::Link(target) => writeln!(f, " -> {target}")?,
            What::Other => writeln!(f)?,
        }
    }
    Ok(())
}
