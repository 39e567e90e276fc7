//! The recordings that are committed with the tests: no disagreement without a reason.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use setpoint_haproxy::conformance::Report;
use setpoint_haproxy::model::Version;
use setpoint_haproxy::table::directives;

pub(crate) fn recording(version: Version, kind: &str) -> String {
    let file = format!("tests/data/recordings/{version}.{kind}.jsonl.gz");
    let compressed = std::fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    text
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
}

#[test]
fn every_row_of_the_table_is_understood() {
    assert_eq!(directives().errors(), &[] as &[String]);
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
