//! What the README and the pages in `docs/` show is what happens.
//!
//! Of each page's blocks, by language:
//!
//! - `console`: commands after `$ `, run by a shell one after the other, and what they print; those that take a HAProxy are
//!   run by `tests/serve/pages.rs`;
//! - `text` with what the demo prints, and `log` with what `watch` does;
//! - `yaml`, `haproxy` and `rust`: files that are used as they are.

use std::fs;
use std::path::Path;

use crate::sandbox::timeless;
use crate::shared::{self, blocks, page, shell, workspace};

/// Runs all that a page shows in its `console` blocks in a directory, and returns how many commands it shows.
fn follow(path: &str, dir: &Path) -> usize {
    shared::follow(path, |command| shell(command, dir), timeless)
}

#[test]
#[cfg(feature = "host")]
fn the_tours_show_what_the_demo_prints() {
    let output = crate::run(&["demo"]);
    let printed = crate::text(&output.stdout);
    for (path, steps) in [("README.md", 2), ("docs/host.md", 4)] {
        let shown = blocks(&page(path), "text");
        assert!(shown.len() >= steps, "the tour in {path} has a block for each step");
        for block in shown {
            assert!(printed.contains(&block), "{path}: the demo does not print:\n{block}");
        }
    }
}

#[test]
#[cfg(feature = "host")]
fn the_commands_of_a_host_print_what_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    assert!(follow("docs/host.md", dir.path()) >= 12);
    // What is shown last is removed, also of the set in a directory of its own.
    let left = |path: &str, shown: &[&str]| {
        let entries = fs::read_dir(dir.path().join(path)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != ".setpoint").collect();
        names.retain(|name| !shown.contains(&name.as_str()) && Path::new(name).extension().is_none());
        assert_eq!(names, [""; 0], "in {path:?}");
    };
    left("", &["app", "public"]);
    // Its process has made that by itself.
    left("app", &["up"]);
}

#[test]
#[cfg(feature = "host")]
fn the_log_of_watch_is_one_that_watch_writes() {
    let log = include_str!("snapshots/cli__transcript__what_watch_says.snap").replace("TIME ", "");
    for block in blocks(&page("docs/host.md"), "log") {
        assert!(log.contains(&block), "watch does not write:\n{block}");
    }
}

#[test]
#[cfg(feature = "host")]
fn the_library_example_is_shown_as_it_is_and_does_what_it_says() {
    #[path = "../../../setpoint-engine/examples/library.rs"]
    mod library;

    let code = include_str!("../../../setpoint-engine/examples/library.rs").trim_end();
    assert_eq!(blocks(&page("docs/engine.md"), "rust"), [code]);
    library::main().unwrap();
}

#[test]
#[cfg(feature = "host")]
fn the_manifests_that_are_shown_are_applied_and_removed_without_a_trace() {
    let sandbox = crate::sandbox::Sandbox::new("");
    sandbox.write("token.txt", "secret");
    let sections = ["directories:", "files:", "symlinks:", "processes:", "commands:"];
    let is_manifest =
        |block: &String| block.lines().any(|line| sections.iter().any(|section| line.starts_with(section)));
    let pages = fs::read_dir(workspace().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let pages = pages.map(|name| format!("docs/{}", name.into_string().unwrap()));
    let is_page = |path: &String| Path::new(path).extension().is_some_and(|extension| extension == "md");
    let mut pages: Vec<String> = pages.filter(is_page).chain(["README.md".to_owned()]).collect();
    pages.sort();
    let manifests = pages.iter().flat_map(|path| blocks(&page(path), "yaml")).filter(is_manifest);
    let manifests: Vec<String> = manifests.collect();
    assert_eq!(manifests.len(), 2, "a small one, and one of everything; name the items of another one here");
    for (manifest, items) in manifests.iter().zip(["2 items", "8 items"]) {
        sandbox.write("site.yaml", &format!("{manifest}\n"));
        let output = sandbox.ok(&["validate"]);
        assert!(output.ends_with(&format!(": {items} declared, nothing wrong.\n")), "{output}");
        sandbox.ok(&["apply", "--yes", "--state", "kept"]);
        assert!(sandbox.ok(&["plan", "--state", "kept"]).ends_with(": nothing to do.\n"));
        sandbox.ok(&["destroy", "--yes", "--state", "kept"]);
        std::fs::remove_dir_all(sandbox.path("kept")).unwrap();
        assert_eq!(sandbox.tree(), ["token.txt"]);
    }
    // All the others are written by the commands that are shown, which are run as well, and the crate shows one of these.
    let crate_page = include_str!("../../../setpoint-host/src/manifest/mod.rs");
    assert!(
        crate_page.contains("#![doc = include_str!(\"example.yaml\")]") && !crate_page.contains("//! files:")
    );
}

#[test]
#[cfg(feature = "host")]
fn the_reference_of_manifests_is_what_the_table_gives() {
    let output = crate::run(&["schema", "--markdown"]);
    assert_eq!(
        page("docs/manifest.md"),
        crate::text(&output.stdout),
        "`setpoint schema --markdown > docs/manifest.md` writes it anew"
    );
}

/// What `watch` does, seen by somebody who removes a file meanwhile.
#[cfg(all(feature = "host", feature = "haproxy"))]
const WATCHED: &str = "
setpoint watch > watch.log &
timeout 300 sh -c 'until grep -q watching watch.log; do sleep 0.1; done'
rm public/about.html
timeout 300 sh -c 'until grep -q created watch.log; do sleep 0.1; done'
kill $!; wait; cat watch.log";

/// A run that is killed by what it runs, the next run, and what is known of the first.
#[cfg(all(feature = "host", feature = "haproxy"))]
const KILLED: &str = "echo 'commands: {job: {apply: mkdir x && kill -9 $PPID; true}}' >> site.yaml; setpoint apply --yes; \
                      setpoint apply --yes; setpoint show 6";
#[cfg(all(feature = "host", feature = "haproxy"))]
const DEMO: &str = "setpoint demo haproxy";

/// Each claim names a command: those about a host are tried where the demo ends, each in a directory of its own.
#[test]
#[cfg(all(feature = "host", feature = "haproxy"))]
fn the_commands_behind_the_readmes_claims_show_what_is_claimed() {
    let claims = [
        (
            "rm public/about.html; setpoint plan",
            "Drift: something else changed these since the last run.\n  - file/about is gone\n",
        ),
        (
            "sed -i s/public/www/ site.yaml; setpoint plan",
            "  ~ directory/site  its state differs from the intended one\n      path: public → www\n",
        ),
        (KILLED, "command/job, interrupted: its outcome is unknown"),
        ("sed -i /about/d site.yaml; setpoint plan", "  - file/about  it is not intended any more\n"),
        ("setpoint graph --format svg > graph.svg", ""),
        ("setpoint watch", "+ file/about created\n"),
        (
            "setpoint haproxy diff docs/examples/current.cfg docs/examples/desired.cfg",
            "3 could be done at runtime, 1 with a reload.\n",
        ),
        (DEMO, ""),
        ("setpoint haproxy check --for 3.4 docs/examples/wrong.cfg", "wrong.cfg: 3 sections, 6 errors.\n"),
    ];
    let readme = page("README.md");
    let (_, table) = readme.split_once("| rather than | because | see it |\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let commands: Vec<&str> =
        rows.filter_map(|row| Some(row.strip_suffix("` |")?.rsplit_once("| `")?.1)).collect();
    assert_eq!(commands, claims.map(|(command, _)| command), "every command in the table is tried here");
    for (command, claimed) in claims {
        let kept = tempfile::tempdir().unwrap();
        let dir = kept.path().join("site");
        assert!(crate::run(&["demo", "--keep", dir.to_str().unwrap()]).status.success());
        let printed = match command {
            // It takes a HAProxy: `tests/serve` runs it, and counts.
            DEMO => continue,
            "setpoint watch" => shell(WATCHED, &dir),
            _ if command.starts_with("setpoint haproxy") => shell(command, &workspace()),
            _ => shell(command, &dir),
        };
        assert!(printed.contains(claimed), "{command}:\n{printed}");
        if command.ends_with("graph.svg") {
            let drawn = fs::read_to_string(dir.join("graph.svg")).unwrap();
            assert!(drawn.starts_with("<svg") && drawn.contains("<title>file/front needs directory/site"));
        }
        if command.ends_with("wrong.cfg") {
            assert_eq!(printed.matches("hint: ").count(), 3, "{printed}");
        }
        if command == KILLED {
            // The run after it knows what the one before had begun, and then nothing is left.
            for known in ["a failed operation may have left parts of it", "\nRun 7: 1 made anew in "] {
                assert!(printed.contains(known), "{printed}");
            }
            assert!(shell("setpoint plan", &dir).ends_with("demo: nothing to do.\n"), "{printed}");
        }
    }
}

/// The files that are shown are those in the folder of examples, called as their first line says.
#[test]
#[cfg(feature = "haproxy")]
fn the_haproxy_commands_print_what_is_shown() {
    let sandbox = tempfile::tempdir().unwrap();
    let files = blocks(&page("docs/haproxy.md"), "haproxy");
    assert_eq!(files.len(), 3);
    for file in files {
        let name = file.lines().next().unwrap().trim_start_matches("# ");
        let file = format!("{file}\n");
        assert_eq!(page(&format!("docs/examples/{name}")), file, "{name} is shown as it is");
        fs::write(sandbox.path().join(name), file).unwrap();
    }
    assert!(follow("docs/haproxy.md", sandbox.path()) >= 4, "the page shows each command");
    assert_eq!(follow("README.md", &workspace()), 1);
}

#[test]
#[cfg(feature = "composite")]
fn the_composite_commands_that_need_no_cluster_print_what_is_shown() {
    assert_eq!(follow("docs/composite.md", &workspace().join("docs/examples")), 2);
}

/// Whoever adds a block adds who runs it.
#[test]
fn no_page_has_a_console_block_that_nobody_follows() {
    let mut with_commands = Vec::new();
    let docs = fs::read_dir(workspace().join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
    let docs = docs.map(|name| format!("docs/{}", name.to_string_lossy()));
    let others = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned);
    for path in docs.chain(others).filter(|path| Path::new(path).extension().is_some_and(|it| it == "md")) {
        let text = page(&path);
        let count = text.matches("```console").count();
        assert_eq!(blocks(&text, "console").len(), count, "{path}: a block that can't be told from the text");
        if count > 0 {
            with_commands.push(path);
        }
    }
    with_commands.sort();
    assert_eq!(with_commands, shared::FOLLOWED);
}

/// The numbers in what the README says of tests and of crates are those that there are.
#[test]
#[cfg(feature = "host")]
fn the_readme_counts_right() {
    let readme = page("README.md");
    assert!(readme.contains(&format!("tests kill {} runs.", crate::kills::IN_ALL)));
    let count = |features| crate::jobs::crates(features).len();
    let (alone, all) = (count("host"), count("default"));
    assert!(readme.contains("compiles a third of the crates") && alone * 3 <= all, "{alone} of {all}");
}

/// Each job is tried alone, by hand too.
#[test]
fn the_loop_over_jobs_names_each() {
    let manifest = include_str!("../../Cargo.toml");
    let (_, default) = manifest.split_once("\ndefault = [").unwrap();
    let jobs = default.split(']').next().unwrap().replace(['"', ','], "");
    let looped = format!("for job in {jobs}; do");
    assert!(page("CONTRIBUTING.md").contains(&looped), "{looped}");
}
