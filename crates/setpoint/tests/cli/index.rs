//! The documentation as a whole: what there is can be found, and what is pointed at is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::shared::{page, workspace};

/// The page of each job.
const PAGES: [(&str, &str); 5] = [
    ("host", "host.md"),
    ("haproxy", "haproxy.md"),
    ("dataplane", "dataplane-api.md"),
    ("sync", "haproxy-sync.md"),
    ("composite", "composite.md"),
];

/// All pages for people, below the workspace.
fn pages() -> Vec<String> {
    let docs = fs::read_dir(workspace().join("docs")).unwrap();
    let names = docs.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_string_lossy()));
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    names.chain(top).filter(|name| Path::new(name).extension().is_some_and(|it| it == "md")).collect()
}

/// What a page says in words: without blocks of code, and without code in a line.
fn prose(page: &str) -> String {
    let mut is_code = false;
    let lines = page.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    text.split('`').step_by(2).collect()
}

/// The places that a page points at.
fn links(page: &str) -> Vec<String> {
    prose(page).split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())).collect()
}

/// The names by which the headings of a page are pointed at.
fn anchors(page: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let headings = page.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ => c.is_alphanumeric().then(|| c.to_lowercase().next().unwrap_or(c)),
    };
    headings.map(|line| line.trim_start_matches('#').trim().chars().filter_map(kept).collect()).collect()
}

/// A path without the steps that lead upwards.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for step in path.components() {
        match step {
            Component::ParentDir => drop(plain.pop()),
            step => plain.push(step),
        }
    }
    plain
}

#[test]
fn what_pages_point_at_is_there() {
    let (mut all, mut broken) = (0, Vec::new());
    for name in pages() {
        let text = page(&name);
        for link in links(&text).into_iter().filter(|link| !link.contains("://")) {
            all += 1;
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() {
                PathBuf::from(&name)
            } else {
                plain(&Path::new(&name).parent().unwrap().join(path))
            };
            let is_there = workspace().join(&target).exists();
            let is_named = || anchor.is_empty() || anchors(&page(target.to_str().unwrap())).contains(anchor);
            if !(is_there && is_named()) {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    assert!(all > 50, "the search finds only {all} links");
    assert_eq!(broken, [""; 0]);
}

#[test]
fn a_link_to_what_is_not_there_is_noticed() {
    let text = "# A page: `x`, and more\n[one](two.md) `[no](link)`\n```sh\n[no](link)\n# no heading\n```\n";
    assert_eq!(links(text), ["two.md"]);
    assert_eq!(anchors(text), ["a-page-x-and-more".to_owned()].into());
    assert_eq!(plain(Path::new("docs/../README.md")), Path::new("README.md"));
}

#[test]
fn the_index_lists_every_page_and_each_job_has_one() {
    let index = page("docs/README.md");
    let listed: BTreeSet<String> = links(&index).into_iter().collect();
    let missing: Vec<String> = pages()
        .into_iter()
        .filter_map(|name| Some(name.strip_prefix("docs/")?.to_owned()))
        .filter(|name| name != "README.md" && !listed.contains(name))
        .collect();
    assert_eq!(missing, [""; 0], "docs/README.md does not list them");

    let manifest = include_str!("../../Cargo.toml");
    let (_, default) = manifest.split_once("\ndefault = [").unwrap();
    let jobs: Vec<&str> = default.split(']').next().unwrap().split('"').skip(1).step_by(2).collect();
    assert_eq!(PAGES.map(|(job, _)| job).as_slice(), jobs.as_slice(), "each job has a page");
    for (job, name) in PAGES {
        assert!(listed.contains(name), "{job}: docs/README.md does not list {name}");
        assert!(
            index.contains(&format!("\n| `{job}` | ")),
            "docs/README.md has no row for the feature {job}"
        );
    }
}

/// What it is, for whom, how it is tried, and why. At 250 words in a minute; commands are not read but run.
#[test]
fn the_readme_says_in_a_minute_what_it_is_and_why() {
    let readme = page("README.md");
    let (before, _) = readme.split_once("\n## The two commands, in full\n").unwrap();
    assert!(before.contains("\n## Why\n"));
    let text: String = before.split("](").enumerate().fold(String::new(), |text, (number, part)| {
        let part = if number == 0 { part } else { part.split_once(')').map_or(part, |(_, rest)| rest) };
        text + part
    });
    let text = prose(&text);
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    assert!(words <= 250, "{words} words");
}
