//! The table is held to the commands that there are.

use clap::CommandFactory;

use super::*;
use crate::cli::Cli;

/// Each command with the words that lead to it.
fn commands() -> Vec<(String, Command)> {
    let mut root = Cli::command();
    root.build();
    let mut found = vec![(String::new(), root)];
    let mut next = 0;
    while let Some((path, command)) = found.get(next).cloned() {
        let visible = command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
        found
            .extend(visible.map(|sub| (format!("{path} {}", sub.get_name()).trim().to_owned(), sub.clone())));
        next += 1;
    }
    found
}

#[test]
fn every_command_has_a_page_with_exit_status_files_and_examples() {
    for (path, command) in commands() {
        let page = String::from_utf8(page(&command, &path).unwrap()).unwrap();
        for section in ["SH NAME", "SH SYNOPSIS", "SH \"EXIT STATUS\"", "SH FILES", "SH EXAMPLES"] {
            let (_, below) =
                page.split_once(section).unwrap_or_else(|| panic!("setpoint {path}: no {section}"));
            let own = below.split(".SH ").next().unwrap_or_default();
            assert!(own.trim().len() > 10, "setpoint {path}: nothing in {section}");
        }
        assert!(page.contains(".TP\n\\fB141\\fR\nNobody reads its output any more."), "setpoint {path}");
        assert!(!page.contains('`') || !own_sections(page_of(&path).unwrap()).contains('`'), "{path}");
    }
}

#[test]
#[cfg(feature = "composite")]
fn variables_that_stand_for_options_are_listed() {
    let commands = commands();
    let page_of = |path: &str| {
        let (_, command) = commands.iter().find(|(other, _)| other == path).unwrap();
        String::from_utf8(page(command, path).unwrap()).unwrap()
    };
    let run = page_of("composite run");
    let (_, below) = run.split_once(".SH ENVIRONMENT\n").unwrap();
    assert!(
        below.contains("\\fBSETPOINT_COMPOSITE_LEASE_NAME\\fR\nStands for \\fB\\-\\-lease\\-name\\fR.\n"),
        "{below}"
    );
    assert!(!page_of("plan").contains("ENVIRONMENT"));
}

#[test]
fn the_version_of_a_page_is_one_line() {
    let page = String::from_utf8(page(&Cli::command(), "").unwrap()).unwrap();
    let (_, below) = page.split_once(".SH VERSION\n").unwrap();
    assert_eq!(below.trim(), concat!("v", env!("CARGO_PKG_VERSION")));
}

#[test]
fn no_two_rows_are_of_the_same_command() {
    for (number, page) in PAGES.iter().enumerate() {
        let again = PAGES.iter().skip(number + 1).any(|other| other.command == page.command);
        assert!(!again, "{}", page.command);
    }
}

/// Of a line with a pipe, the part that is ours; without what is redirected.
fn own_words(line: &str) -> Option<Vec<&str>> {
    let part = line.split(" | ").find(|part| part.starts_with("setpoint "))?;
    Some(part.split(" > ").next().unwrap_or_default().split_whitespace().collect())
}

#[test]
fn every_example_is_a_command_line_that_is_understood() {
    for (path, _) in commands() {
        let page = page_of(&path).unwrap();
        let mut own = 0;
        for Example(about, line) in page.examples {
            assert!(
                about.ends_with(':') && !about.contains('`') || path == "plan" || path == "man",
                "{about}"
            );
            let Some(words) = own_words(line) else {
                assert!(line.starts_with("systemctl "), "{line}");
                continue;
            };
            let parsed = Cli::command().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            let words = words[1..].join(" ");
            own += usize::from(path.is_empty() || words.starts_with(&path));
        }
        assert!(own > 0, "setpoint {path} has no example of its own");
    }
}

/// What a person may copy from a page into a shell. A line that ends with a backslash goes on.
#[test]
#[cfg(all(feature = "haproxy", feature = "dataplane", feature = "sync", feature = "composite"))]
fn every_line_that_the_pages_have_for_a_shell_is_understood() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages: Vec<_> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| workspace.join(name)).into();
    for entry in std::fs::read_dir(workspace.join("docs")).unwrap() {
        pages.push(entry.unwrap().path());
    }
    pages.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    let mut count = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let blocks = text.split("\n```").filter_map(|block| block.strip_prefix("sh\n"));
        let lines = blocks.map(|block| block.replace("\\\n", " ")).collect::<Vec<_>>().join("\n");
        for line in lines.lines() {
            let own = line.split(" #").next().unwrap_or_default().trim().trim_end_matches('&');
            let Some(words) = own_words(own) else { continue };
            let parsed = Cli::command().try_get_matches_from(&words);
            assert!(parsed.is_ok(), "{}: {line}: {}", page.display(), parsed.unwrap_err());
            count += 1;
        }
    }
    assert!(count >= 4, "{count} lines were found");
}

#[test]
fn every_unit_is_in_the_manual_and_in_the_page_about_the_package() {
    let workspace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = std::fs::read_to_string(workspace.join("docs/release.md")).unwrap();
    let units = std::fs::read_dir(workspace.join("deploy/systemd")).unwrap();
    for path in units.map(|entry| entry.unwrap().path()) {
        let file = path.file_name().unwrap().to_str().unwrap();
        let unit = std::fs::read_to_string(&path).unwrap();
        let (_, started) = unit.split_once("\nExecStart=/usr/bin/setpoint ").unwrap();
        let command = started.split(" --").next().unwrap();
        let page = page_of(command).unwrap();
        for page in [page, page_of("").unwrap()] {
            let named = page.files.iter().any(|File(path, _)| path.ends_with(&format!("/system/{file}")));
            assert!(named, "{file} is not in FILES of `setpoint {}`", page.command);
        }
        let name = file.trim_end_matches(".service");
        let enables = format!("systemctl enable --now {name}");
        assert!(page.examples.iter().any(|Example(_, line)| line.starts_with(&enables)), "{enables}");
        // Where its settings are.
        let (_, place) = unit.split_once("\nConditionPath").unwrap();
        let place = place.lines().next().unwrap().split_once('=').unwrap().1.replace("%i", "NAME");
        assert!(page.files.iter().any(|File(path, _)| path.trim_end_matches('/') == place), "{place}");
        let row = package.lines().find(|line| line.starts_with(&format!("| `{name}")));
        assert!(row.is_some_and(|row| row.contains(&place)), "docs/release.md has {name} with {place}");
    }
}

#[test]
fn every_command_says_when_it_exits_with_what_and_only_details_are_2() {
    for page in PAGES {
        let codes: Vec<u8> = page.exit.iter().map(|Exit(code, _)| *code).collect();
        let details =
            page.exit.iter().any(|Exit(_, meaning)| meaning.starts_with("With `--detailed-exitcode`"));
        let expected = if details { &[0, 1, 2, 64][..] } else { &[0, 1, 64] };
        assert_eq!(codes, expected, "{}", page.command);
    }
}

#[test]
fn examples_are_at_the_end_of_the_help() {
    let mut command = with_examples(Cli::command());
    let plan = command.find_subcommand_mut("plan").unwrap();
    let help = plan.render_long_help().to_string();
    assert!(
        help.contains("Examples:\n  Show what `setpoint apply` would do here:\n    $ setpoint plan\n"),
        "{help}"
    );
    assert!(!plan.render_help().to_string().contains("Examples:"), "the summary stays short");
}

#[test]
fn examples_of_absent_jobs_are_left_out() {
    const SOME: &[Job] = &[
        Job { name: "host", about: "", commands: &["demo", "plan", "apply", "watch"], present: false },
        Job { name: "haproxy", about: "", commands: &["haproxy"], present: true },
    ];
    let root = page_of("").unwrap();
    assert_eq!(
        help(root, SOME),
        "Examples:\n  Look for mistakes in a configuration of HAProxy:\n    $ setpoint haproxy check haproxy.cfg"
    );
    let plan = page_of("haproxy plan").unwrap();
    let without_sync = [Job { name: "sync", about: "", commands: &["haproxy plan"], present: false }];
    assert_eq!(help(plan, &without_sync), "");
}

#[test]
fn what_roff_reads_as_its_own_is_escaped() {
    assert_eq!(roff(".setpoint/"), "\\&.setpoint/");
    assert_eq!(roff("say `--yes`, or don't"), "say \\fB\\-\\-yes\\fR, or don\\(aqt");
    assert_eq!(roff("a\\b ~/c"), "a\\eb \\(ti/c");
}
