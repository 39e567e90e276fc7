//! The measurements as `cargo xtask bench` runs them, at a size that is over at once.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_setpoint-bench")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn json_is_one_object_a_line_with_all_figures() {
    let output = bench(&["engine", "create-all", "no-op", "build-random", "--json", "--scale", "0.001"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ran: Vec<(&str, u64)> =
        lines.iter().map(|line| (line["case"].as_str().unwrap(), line["n"].as_u64().unwrap())).collect();
    assert_eq!(
        ran,
        [
            ("create-all", 100),
            ("create-all", 300),
            ("create-all", 1000),
            ("no-op", 300),
            ("build-random", 1000)
        ]
    );
    for line in &lines {
        let keys: BTreeSet<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        let figures = ["seconds", "floor_seconds", "ratio", "growth", "peak_rss_bytes"];
        assert_eq!(keys, figures.into_iter().chain(["bench", "case", "n"]).collect());
        assert!(figures.iter().all(|key| line[key].as_f64().unwrap() > 0.0), "{line}");
    }
}

#[test]
fn the_table_names_the_case_its_size_and_its_figures() {
    let output = bench(&["engine", "fan-in", "--scale", "0.001"]);
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    let [head, line] = lines[..] else { panic!("{lines:?}") };
    assert!(head.starts_with("case ") && head.ends_with("peak"), "{head}");
    assert!(line.starts_with("fan-in ") && line.ends_with("MiB"), "{line}");
}

#[test]
fn an_unknown_case_is_refused_with_the_known_ones() {
    let output = bench(&["engine", "create-none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("create-all"), "{}", text(&output.stderr));
}

#[test]
fn a_size_that_is_no_number_above_zero_is_refused() {
    let output = bench(&["engine", "no-op", "--scale", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "error: --scale must be a number above 0\n");
}
