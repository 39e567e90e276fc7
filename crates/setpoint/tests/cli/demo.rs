//! `setpoint demo`.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::{run, sandbox, setpoint, text};

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_demo_shows_each_step_with_its_plan_its_log_and_the_disk() {
    let output = run(&["demo"]);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    insta::assert_snapshot!("demo", sandbox::timeless(text(&output.stdout)));
}

#[test]
fn the_demo_removes_its_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let output = setpoint(temporary.path()).arg("demo").output().unwrap();
    assert!(output.status.success());
    assert_eq!(entries(temporary.path()), [""; 0]);
}

#[test]
fn the_demo_leaves_its_files_where_it_is_asked_to() {
    let temporary = tempfile::tempdir().unwrap();
    let kept = temporary.path().join("new/kept");
    let output = setpoint(temporary.path()).args(["demo", "--keep"]).arg(&kept).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(entries(temporary.path()), ["new"]);
    assert_eq!(entries(&kept), [".setpoint", "notes", "public", "site.yaml", "start.html"]);
    assert_eq!(fs::read_to_string(kept.join("start.html")).unwrap(), "<h1>Hello, world</h1>\n");
    assert!(text(&output.stdout).contains("== 5. Return"));
    let farewell = format!("The files are kept in {0}; `cd {0}` and go on from there.\n", kept.display());
    assert!(text(&output.stdout).ends_with(&farewell));
}

#[test]
fn a_directory_that_holds_something_is_refused_and_left_alone() {
    let taken = tempfile::tempdir().unwrap();
    fs::write(taken.path().join("mine.txt"), "precious").unwrap();
    let output = run(&["demo", "--keep", taken.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    assert_eq!(text(&output.stdout), "");
    let expected = format!(
        "error: {} is not empty\nhint: name a directory that does not exist yet, or an empty one\n",
        taken.path().display()
    );
    assert_eq!(text(&output.stderr), expected);
    assert_eq!(entries(taken.path()), ["mine.txt"]);
}

#[test]
fn a_file_in_the_place_of_the_directory_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("file");
    fs::write(&file, "precious").unwrap();
    let output = run(&["demo", "--keep", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("hint: name a directory that you may write to"));
    assert_eq!(fs::read_to_string(file).unwrap(), "precious");
}

#[test]
fn without_a_place_for_temporary_files_the_demo_says_what_to_do() {
    let output = setpoint(Path::new("/nonexistent")).arg("demo").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.starts_with("error: can't make a temporary directory"), "{message}");
    assert!(message.contains("hint: set TMPDIR"), "{message}");
}

#[test]
fn json_is_one_object_a_line_with_step_plan_and_log() {
    let output = run(&["demo", "--json"]);
    assert!(output.status.success());
    let steps: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let titles: Vec<&str> = steps.iter().map(|step| step["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["Create", "Change", "Repair", "Remove"]);
    for (number, step) in (1..).zip(&steps) {
        assert_eq!(step["step"], number);
        let planned = step["plan"]["operations"].as_array().unwrap();
        let logged = step["log"].as_array().unwrap();
        assert_eq!(planned.len(), logged.len(), "what was planned is what was done");
        for entry in logged {
            let same = |operation: &&Value| {
                ["kind", "name"].iter().all(|key| operation[key] == entry[key])
                    && operation["action"] == entry["operation"]
            };
            assert!(planned.iter().any(|operation| same(&operation)), "{entry}");
            assert!(entry.get("error").is_none());
        }
    }
    assert_eq!(steps[2]["drift"].as_array().unwrap().len(), 2);
    assert_eq!(steps[3]["disk"], serde_json::json!([]));
}

#[test]
fn colours_are_shown_only_where_they_are_wanted() {
    let temporary = tempfile::tempdir().unwrap();
    let coloured = |variables: &[(&str, &str)]| {
        let mut command = setpoint(temporary.path());
        let output = command.arg("demo").envs(variables.iter().copied()).output().unwrap();
        text(&output.stdout).contains('\x1b')
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn a_closed_output_ends_the_demo_quietly_and_cleanly() {
    for args in [&["demo"][..], &["demo", "--json"]] {
        let temporary = tempfile::tempdir().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = setpoint(temporary.path()).args(args).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{:?}", output.status);
        assert_eq!(text(&output.stderr), "");
        assert_eq!(entries(temporary.path()), [""; 0]);
    }
}

#[test]
fn an_unknown_argument_is_a_usage_error() {
    let output = run(&["demo", "--kepe", "x"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(text(&output.stderr).contains("--keep"), "it names what was meant");
}

#[test]
fn the_help_of_the_demo_says_what_it_does() {
    insta::assert_snapshot!("help_demo", text(&run(&["demo", "--help"]).stdout));
}
