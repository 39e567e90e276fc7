//! What the README and the pages in `docs/` show is what happens.
//!
//! Of each page's blocks, by language:
//!
//! - `console`: commands after `$ `, run by a shell one after the other, and what they print;
//! - `text` with what the demo prints, and `log` with what `watch` does;
//! - `yaml`, `haproxy` and `rust`: files that are used as they are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sandbox::timeless;

/// The folder of the workspace.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn page(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

/// The code blocks of one language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let block = |part: &str| Some(part.split_once(&opening)?.1.to_owned());
    format!("\n{page}").split("\n```\n").filter_map(block).collect()
}

/// Runs a line as a person at a shell would, with the command that is tested on the PATH. What it prints to both outputs
/// is returned.
fn shell(line: &str, dir: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_setpoint")).parent().unwrap().to_path_buf();
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others))).unwrap();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("exec 2>&1\n{line}"))
        .current_dir(dir)
        .env("PATH", path)
        .stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The commands in a `console` block, each with what it is shown to print.
fn sessions(block: &str) -> Vec<(String, String)> {
    let (mut sessions, mut is_input) = (Vec::<(String, String)>::new(), false);
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            is_input = command.ends_with("<<'END'");
            sessions.push((format!("{command}\n"), String::new()));
            continue;
        }
        let (command, shown) = sessions.last_mut().unwrap();
        let text = if is_input { command } else { shown };
        text.extend([line, "\n"]);
        is_input &= line != "END";
    }
    sessions
}

/// Runs all that a page shows in its `console` blocks, and returns how many commands it shows.
fn follow(path: &str, dir: &Path) -> usize {
    let mut count = 0;
    for (command, shown) in blocks(&page(path), "console").iter().flat_map(|block| sessions(block)) {
        let printed = timeless(&shell(&command, dir));
        assert_eq!(printed.trim_end(), timeless(&shown).trim_end(), "{path}: {command}");
        count += 1;
    }
    count
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
    let manifests = blocks(&page("docs/manifest.md"), "yaml");
    assert_eq!(manifests.len(), 2, "a small one, and one of everything");
    for (manifest, items) in manifests.iter().zip(["2 items", "8 items"]) {
        sandbox.write("site.yaml", &format!("{manifest}\n"));
        let said = sandbox.ok(&["validate"]);
        assert!(said.ends_with(&format!(": {items} declared, nothing wrong.\n")), "{said}");
        sandbox.ok(&["apply", "--yes", "--state", "kept"]);
        assert!(sandbox.ok(&["plan", "--state", "kept"]).ends_with(": nothing to do.\n"));
        sandbox.ok(&["destroy", "--yes", "--state", "kept"]);
        std::fs::remove_dir_all(sandbox.path("kept")).unwrap();
        assert_eq!(sandbox.tree(), ["token.txt"]);
    }
    // All the others are written by the commands that are shown, which are run as well.
    for page_with in ["README.md", "docs/host.md", "docs/README.md"] {
        assert!(blocks(&page(page_with), "yaml").is_empty(), "{page_with}");
    }
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
until grep -q watching watch.log; do sleep 0.1; done
rm public/about.html
until grep -q created watch.log; do sleep 0.1; done
kill $!; wait; cat watch.log";

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
        (
            "setpoint apply --yes & sleep 0.01; kill -9 $!; wait; setpoint apply --yes",
            "demo: nothing to do.\n",
        ),
        ("sed -i /about/d site.yaml; setpoint plan", "  - file/about  it is not intended any more\n"),
        ("setpoint graph --format svg > graph.svg", ""),
        ("setpoint watch", "+ file/about created\n"),
        (
            "setpoint haproxy diff docs/examples/current.cfg docs/examples/desired.cfg",
            "3 could be done at runtime, 1 with a reload.\n",
        ),
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
            "setpoint watch" => shell(WATCHED, &dir),
            _ if command.starts_with("setpoint haproxy") => shell(command, &workspace()),
            _ => shell(command, &dir),
        };
        assert!(printed.contains(claimed), "{command}:\n{printed}");
        if command.ends_with("graph.svg") {
            assert!(fs::read_to_string(dir.join("graph.svg")).unwrap().starts_with("<svg"));
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
    assert_eq!(follow("docs/composite.md", &workspace().join("docs/examples")), 1);
}

/// The first thing a person reads has to be short.
#[test]
fn the_readme_is_read_in_a_minute() {
    assert!(page("README.md").lines().count() <= 150);
}
