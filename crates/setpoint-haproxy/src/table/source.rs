//! The text of the table: the files of `rows/`.
//!
//! With the feature `mutants`, which only `cargo xtask mutants` turns on, a file of the folder in `SETPOINT_ROWS` stands in
//! for the file of the same name, so that tests run on a table that was changed on purpose.

/// A file of rows.
#[derive(Clone, Copy, Debug)]
struct File {
    #[cfg_attr(
        not(feature = "mutants"),
        expect(dead_code, reason = "only a changed file is looked for by name")
    )]
    name: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(File { name: $name, text: include_str!(concat!("rows/", $name)) }),*]
    };
}

/// What the schema has a place for.
const SCHEMA: [File; 8] = files![
    "words.txt",
    "global.txt",
    "proxies.txt",
    "servers.txt",
    "binds.txt",
    "rules.txt",
    "checks.txt",
    "sections.txt",
];

/// What HAProxy accepts and the schema has no place for: forms of lines, options, and values that it does not look at.
const BESIDE: [File; 2] = files!["text.txt", "tolerated.txt"];

/// Returns the rows of what the schema has a place for, by file.
pub(super) fn schema() -> Vec<&'static str> {
    SCHEMA.iter().map(File::rows).collect()
}

/// Returns the rows of what HAProxy accepts beside it, by file.
pub(super) fn beside() -> Vec<&'static str> {
    BESIDE.iter().map(File::rows).collect()
}

impl File {
    #[cfg(not(feature = "mutants"))]
    fn rows(&self) -> &'static str {
        self.text
    }

    #[cfg(feature = "mutants")]
    fn rows(&self) -> &'static str {
        let folder = std::env::var_os("SETPOINT_ROWS").map(std::path::PathBuf::from);
        let changed = folder.and_then(|folder| std::fs::read_to_string(folder.join(self.name)).ok());
        changed.map_or(self.text, |text| Box::leak(text.into_boxed_str()))
    }
}
