//! What the pages for people have for `cargo xtask`: tests hold it to the command lines that there are.

use std::fs;
use std::path::Path;

use clap::Parser;

/// The lines of all pages, each with the page: those of blocks of code, and those that stand in the text.
fn lines() -> Vec<(String, String)> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = package.ancestors().find(|folder| folder.join("tests.toml").exists()).unwrap();
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root.join(name));
    let mut lines = Vec::new();
    for path in docs.chain(top).filter(|path| path.extension().is_some_and(|ending| ending == "md")) {
        let page = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let (mut is_code, mut prose) = (false, String::new());
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if is_code {
                lines.push((page.clone(), line.split(" #").next().unwrap_or_default().to_owned()));
            } else {
                prose += line;
                prose.push(' ');
            }
        }
        lines.extend(prose.split('`').skip(1).step_by(2).map(|code| (page.clone(), code.to_owned())));
    }
    lines
}

/// Has a command line read every line that is one of some of its commands.
pub(crate) fn assert_all_are_understood<C: Parser>(is_own: impl Fn(&str) -> bool) {
    let mut count = 0;
    for (page, line) in lines() {
        let Some(words) = line.trim().strip_prefix("cargo xtask ") else { continue };
        let words: Vec<&str> = words.split_whitespace().collect();
        // A command that is only spoken of lacks what it is asked for, and a diagram is none.
        let is_named = |name: &str| C::command().get_subcommands().any(|known| known.get_name() == name);
        let [name, arguments @ ..] = words.as_slice() else { continue };
        if !is_own(name) || line.contains('─') {
            continue;
        }
        let wrong = C::try_parse_from(["cargo xtask"].iter().chain(&words)).err();
        // Help is shown as what ends a command line, too.
        let wrong = wrong.filter(|error| error.use_stderr() && !(arguments.is_empty() && is_named(name)));
        assert!(
            wrong.is_none(),
            "{page}: {line}: {}",
            wrong.map(|error| error.to_string()).unwrap_or_default()
        );
        count += 1;
    }
    assert!(count > 2, "the search finds only {count} lines");
}
