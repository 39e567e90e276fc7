//! No link inside of the Markdown files is dead: the file is there, and so is the heading.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All Markdown files but those that are built or hidden.
fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() && !path.is_symlink() {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are neither in a block of code nor a comment.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// A line without what is between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// What the links of a page point to.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        let line = without_code(line);
        for part in line.split("](").skip(1) {
            found.push(part.split(')').next().unwrap().to_owned());
        }
    }
    found
}

/// What the headings of a page are called in links, as GitHub makes it of them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = seen.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    };
    headings.map(anchor).collect()
}

#[test]
fn no_link_in_the_documentation_is_dead() {
    let mut found = Vec::new();
    pages(&workspace(), &mut found);
    assert!(found.len() >= 10, "{found:?}");
    let mut dead = Vec::new();
    for page in &found {
        let text = fs::read_to_string(page).unwrap();
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let is_there = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).unwrap()).contains(anchor));
            if !is_there {
                dead.push(format!("{}: {link}", page.strip_prefix(workspace()).unwrap().display()));
            }
        }
    }
    assert_eq!(dead, [""; 0]);
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(workspace().join("docs/README.md")).unwrap();
    for entry in fs::read_dir(workspace().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") || path.ends_with("README.md") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(index.contains(&format!("]({name})")), "{name} is not in docs/README.md");
    }
}

#[test]
fn links_and_headings_are_told_from_code() {
    let text = "# Two `words`\n\nA [link](a.md#b) and `[none](c.md)`.\n\n```sh\n# no heading\n[none](d)\n```\n\n## A, b\n## A b\n";
    assert_eq!(links(text), ["a.md#b"]);
    let anchors: Vec<String> = anchors(text).into_iter().collect();
    assert_eq!(anchors, ["a-b", "a-b-1", "two-words"]);
}
