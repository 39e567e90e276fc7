//! The recordings that are committed with the tests: no disagreement without a reason.

use std::fmt::Write as _;

use setpoint_conformance::{Report, TextCase, recordings};
use setpoint_haproxy::model::{Context, ModelError, Version, section_model};
use setpoint_haproxy::table::directives;
use setpoint_haproxy::text::Document;

pub(crate) fn recording(version: Version, kind: &str) -> String {
    committed(&format!("{version}.{kind}"))
}

/// What the original refused, of all versions.
pub(crate) fn refusals() -> String {
    committed("refused")
}

fn committed(name: &str) -> String {
    recordings::read(&recordings::committed(), name).unwrap().unwrap()
}

fn agrees(version: Version) {
    let mut report = Report::default();
    report.replay(version, &recording(version, "model"), &recording(version, "text")).unwrap();
    let total = report.total();
    assert!(total.cases > 10_000, "only {} cases were replayed", total.cases);
    let mut differences = String::new();
    for difference in report.differences.iter().take(20) {
        writeln!(differences, "{difference:#?}").unwrap();
    }
    assert!(
        report.differences.is_empty(),
        "{} differences, such as\n{differences}",
        report.differences.len()
    );
    let written: Vec<&String> = report.refused.values().flat_map(|refused| &refused.unexplained).collect();
    let some: Vec<&str> = written.iter().take(20).map(|case| case.as_str()).collect();
    assert!(
        written.is_empty(),
        "{} objects are written and refused by HAProxy, such as\n{}",
        written.len(),
        some.join("\n")
    );
}

#[test]
fn every_row_of_the_table_is_understood() {
    assert_eq!(directives().errors(), &[] as &[String]);
}

/// Whatever the model covers as a whole says the same after it was written and read again.
#[test]
fn what_is_written_reads_back_the_same() {
    let (mut compared, mut failures) = (0, String::new());
    for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
        let cx = Context::new(version);
        for line in recording(version, "text").lines() {
            let case: TextCase = serde_json::from_str(line).unwrap();
            for section in Document::parse(case.config.as_bytes()).sections() {
                let model = section_model(section, &cx);
                if model.object.is_none() || !model.unmodelled.is_empty() {
                    continue;
                }
                let mut text = Vec::new();
                let written = model.write(&cx, &mut text);
                if matches!(written, Err(ModelError::Refused { .. })) && case.haproxy_ok != Some(true) {
                    continue;
                }
                if let Err(error) = written {
                    writeln!(failures, "{version} {}: {error}", case.case).unwrap();
                    continue;
                }
                let written = Document::parse(&text);
                let again = section_model(written.sections().first().unwrap(), &cx);
                let shown = String::from_utf8_lossy(&text);
                if again.to_json(&cx) != model.to_json(&cx) || !again.unmodelled.is_empty() {
                    writeln!(failures, "{version} {}: {shown}", case.case).unwrap();
                }
                compared += 1;
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(compared > 20_000, "only {compared} sections were compared");
}

#[test]
fn the_model_agrees_with_the_original_3_0() {
    agrees(Version::V3_0);
}

#[test]
fn the_model_agrees_with_the_original_3_1() {
    agrees(Version::V3_1);
}

#[test]
fn the_model_agrees_with_the_original_3_2() {
    agrees(Version::V3_2);
}

#[test]
fn the_model_agrees_with_the_original_3_3() {
    agrees(Version::V3_3);
}

#[test]
fn the_model_agrees_with_the_original_3_4() {
    agrees(Version::V3_4);
}
