//! From entries to the payload: the cases of the original by their names, and what it left untested.

use setpoint_structure::{Entry, Issue, IssueKind, Payload, transform};

/// Entries below `composite/x/structure/`, each as `namespace/attribute=value`.
fn structure(lines: &[&str]) -> Vec<Entry> {
    let entry = |line: &&str| {
        let (key, value) = line.split_once('=').expect("a key and a value");
        Entry::new(format!("composite/x/structure/{key}"), value)
    };
    lines.iter().map(entry).collect()
}

/// The `composite` of the payload, and the kinds of all issues.
fn composite(entries: &[Entry], previous: Option<&str>) -> (String, Vec<IssueKind>) {
    let (json, issues) = whole(entries, previous);
    (json, issues.iter().map(|issue| issue.kind).collect())
}

fn whole(entries: &[Entry], previous: Option<&str>) -> (String, Vec<Issue>) {
    let previous =
        previous.map(|composite| format!(r#"{{"cloudProvider":"OnPrem","composite":{composite}}}"#));
    let previous = previous.map(|json| Payload::from_json(&json).expect("a payload"));
    let (payload, issues) = transform(entries, "OnPrem", previous.as_ref());
    let json = payload.to_json();
    let composite =
        json.strip_prefix(r#"{"cloudProvider":"OnPrem","composite":"#).expect("the provider first");
    (composite.strip_suffix('}').expect("an object").to_owned(), issues)
}

fn clean(lines: &[&str]) -> String {
    let (json, issues) = composite(&structure(lines), None);
    assert_eq!(issues, []);
    json
}

const BLUEGREEN_BASELINE: [&str; 8] = [
    "bs-controller/compositeRole=baseline",
    "bs-controller/bluegreenRole=controller",
    "bs-origin/compositeRole=baseline",
    "bs-origin/bluegreenRole=origin",
    "bs-origin/controllerNamespace=bs-controller",
    "bs-peer/compositeRole=baseline",
    "bs-peer/bluegreenRole=peer",
    "bs-peer/controllerNamespace=bs-controller",
];

fn bluegreen_satellite(name: &str) -> Vec<String> {
    ["controller", "origin", "peer"]
        .into_iter()
        .flat_map(|role| {
            let mut lines = vec![
                format!("{name}-{role}/compositeRole=satellite"),
                format!("{name}-{role}/bluegreenRole={role}"),
            ];
            if role != "controller" {
                lines.push(format!("{name}-{role}/controllerNamespace={name}-controller"));
            }
            lines
        })
        .collect()
}

fn with(base: &[&str], more: &[String]) -> Vec<Entry> {
    let lines: Vec<_> = base.iter().copied().chain(more.iter().map(String::as_str)).collect();
    structure(&lines)
}

#[test]
fn standalone() {
    assert_eq!(clean(&["bs/compositeRole=baseline"]), r#"{"baseline":{"origin":"bs"}}"#);
}

#[test]
fn blue_green() {
    assert_eq!(
        clean(&BLUEGREEN_BASELINE),
        r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"}}"#
    );
}

#[test]
fn composite_of_plain_namespaces() {
    assert_eq!(
        clean(&["bs/compositeRole=baseline", "st-1/compositeRole=satellite", "st-2/compositeRole=satellite"]),
        r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st-1"},{"origin":"st-2"}]}"#
    );
}

#[test]
fn composite_blue_green_all() {
    let satellites = [bluegreen_satellite("st-1"), bluegreen_satellite("st-2")].concat();
    let expected = concat!(
        r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"},"satellites":["#,
        r#"{"controller":"st-1-controller","origin":"st-1-origin","peer":"st-1-peer"},"#,
        r#"{"controller":"st-2-controller","origin":"st-2-origin","peer":"st-2-peer"}]}"#
    );
    assert_eq!(composite(&with(&BLUEGREEN_BASELINE, &satellites), None), (expected.to_owned(), vec![]));
}

#[test]
fn composite_blue_green_some() {
    let satellites =
        [bluegreen_satellite("st-1"), vec!["st-2-origin/compositeRole=satellite".to_owned()]].concat();
    let expected = concat!(
        r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"},"satellites":["#,
        r#"{"controller":"st-1-controller","origin":"st-1-origin","peer":"st-1-peer"},{"origin":"st-2-origin"}]}"#
    );
    assert_eq!(composite(&with(&BLUEGREEN_BASELINE, &satellites), None), (expected.to_owned(), vec![]));
}

#[test]
fn the_example_of_the_document() {
    let baseline: Vec<_> = BLUEGREEN_BASELINE.iter().map(|line| line.replace("bs-", "baseline-")).collect();
    let lines = [baseline, bluegreen_satellite("satellite")].concat();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let (payload, issues) = transform(&structure(&lines), "OnPrem", None);
    assert_eq!(issues, []);
    let expected = concat!(
        r#"{"cloudProvider":"OnPrem","composite":{"#,
        r#""baseline":{"controller":"baseline-controller","origin":"baseline-origin","peer":"baseline-peer"},"#,
        r#""satellites":[{"controller":"satellite-controller","origin":"satellite-origin","peer":"satellite-peer"}]}}"#
    );
    assert_eq!(payload.to_json(), expected);
}

#[test]
fn should_ignore_keys_not_matching_pattern() {
    let mut entries =
        structure(&["bs/compositeRole=baseline", "bs/color=green", "bs/deep/compositeRole=satellite"]);
    for key in [
        "composite/x/structure/",
        "composite/x/structure/bs/",
        "composite/x/structure/compositeRole",
        "composite//structure/bs/compositeRole",
        "composite/x/structure//compositeRole",
        "composite/x/config/bs/compositeRole",
        "config/bs/application/composite/structureRef",
        "a/composite/x/structure/bs/compositeRole",
    ] {
        entries.push(Entry::new(key, "nonsense"));
    }
    assert_eq!(composite(&entries, None), (r#"{"baseline":{"origin":"bs"}}"#.to_owned(), vec![]));
}

#[test]
fn should_throw_on_invalid_blue_green_role() {
    let lines = ["bs/compositeRole=baseline", "odd/compositeRole=satellite", "odd/bluegreenRole=green"];
    let (json, issues) = whole(&structure(&lines), None);
    assert_eq!(json, r#"{"baseline":{"origin":"bs"}}"#, "it does not become the origin by mistake");
    assert_eq!(issues[0].kind, IssueKind::UnknownBluegreenRole);
    assert_eq!(issues[0].subject, "composite/x/structure/odd/bluegreenRole");
    assert_eq!(
        issues[0].message,
        "`green` is none of `controller`, `origin`, `peer`; the namespace is left out"
    );
}

#[test]
fn should_throw_on_invalid_composite_role() {
    let (json, issues) =
        composite(&structure(&["bs/compositeRole=baseline", "odd/compositeRole=moon"]), None);
    assert_eq!(json, r#"{"baseline":{"origin":"bs"}}"#);
    assert_eq!(issues, [IssueKind::UnknownCompositeRole]);
}

#[test]
fn should_throw_on_several_namespaces_with_one_blue_green_role() {
    let more =
        ["bs-second/compositeRole=baseline", "bs-second/bluegreenRole=peer", "st/compositeRole=satellite"];
    let entries = structure(&[BLUEGREEN_BASELINE.as_slice(), &more].concat());
    let (json, issues) = whole(&entries, None);
    assert_eq!(json, r#"{"satellites":[{"origin":"st"}]}"#, "the rest goes on");
    assert_eq!((issues[0].kind, issues[0].subject.as_str()), (IssueKind::DuplicateRole, "baseline"));
    assert_eq!(issues[0].message, "`bs-peer`, `bs-second` are all `peer`; the group is left out");

    let before = r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"}}"#;
    let (json, issues) = whole(&entries, Some(before));
    assert_eq!(
        json,
        concat!(
            r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"},"#,
            r#""satellites":[{"origin":"st"}]}"#
        )
    );
    assert_eq!(issues[0].message, "`bs-peer`, `bs-second` are all `peer`; what was published before is kept");
}

#[test]
fn should_throw_on_several_namespaces_without_blue_green_role() {
    let entries = structure(&["a/compositeRole=baseline", "b/compositeRole=baseline"]);
    assert_eq!(composite(&entries, None), ("{}".to_owned(), vec![IssueKind::SeveralWithoutRole]));
    let before = r#"{"baseline":{"origin":"a"}}"#;
    assert_eq!(composite(&entries, Some(before)), (before.to_owned(), vec![IssueKind::SeveralWithoutRole]));
}

#[test]
fn an_empty_structure_is_an_empty_object() {
    let (payload, issues) = transform(&[], "OnPrem", None);
    assert_eq!(
        (payload.to_json().as_str(), issues),
        (r#"{"cloudProvider":"OnPrem","composite":{}}"#, vec![])
    );
}

#[test]
fn roles_are_read_in_any_case() {
    assert_eq!(
        clean(&["bs/compositeRole=BaseLine", "bs/bluegreenRole=ORIGIN", "st/compositeRole=SATELLITE"]),
        r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st"}]}"#
    );
}

#[test]
fn blank_roles_are_absent() {
    assert_eq!(
        clean(&[
            "bs/compositeRole=baseline",
            "bs/bluegreenRole=",
            "st/compositeRole=satellite",
            "st/bluegreenRole= ",
            "st/controllerNamespace= "
        ]),
        r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st"}]}"#
    );
}

#[test]
fn a_stray_space_leaves_out_one_entry_and_stops_nothing() {
    let lines = ["bs/compositeRole=baseline", "st/compositeRole= satellite", "st-2/compositeRole=satellite"];
    assert_eq!(
        composite(&structure(&lines), None),
        (
            r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st-2"}]}"#.to_owned(),
            vec![IssueKind::MalformedValue]
        )
    );
}

#[test]
fn a_value_that_is_null_counts_as_absent() {
    let mut entries = structure(&["bs/compositeRole=baseline", "st/compositeRole=satellite"]);
    let null = |key: &str| Entry { value: None, ..Entry::new(format!("composite/x/structure/{key}"), "") };
    entries.push(null("bs/bluegreenRole"));
    entries.push(null("st/color"));
    entries.push(null("gone/compositeRole"));
    assert_eq!(
        composite(&entries, None),
        (
            r#"{"baseline":{"origin":"bs"},"satellites":[{"origin":"st"}]}"#.to_owned(),
            vec![IssueKind::EmptyValue, IssueKind::EmptyValue]
        )
    );
}

#[test]
fn a_value_that_is_not_utf_8_is_left_out() {
    let mut entries = structure(&["bs/compositeRole=baseline"]);
    let key = "composite/x/structure/st/compositeRole";
    entries.push(Entry { value: Some(vec![0xff, 0xfe]), ..Entry::new(key, "") });
    let (json, issues) = whole(&entries, None);
    assert_eq!(json, r#"{"baseline":{"origin":"bs"}}"#);
    assert_eq!((issues[0].kind, issues[0].subject.as_str()), (IssueKind::MalformedValue, key));
}

#[test]
fn a_namespace_without_a_composite_role_is_left_out_and_reported() {
    let lines = ["bs/compositeRole=baseline", "odd/bluegreenRole=peer"];
    let (json, issues) = whole(&structure(&lines), None);
    assert_eq!(json, r#"{"baseline":{"origin":"bs"}}"#);
    assert_eq!((issues[0].kind, issues[0].subject.as_str()), (IssueKind::NoCompositeRole, "odd"));
}

#[test]
fn of_two_entries_with_the_same_key_the_last_counts() {
    assert_eq!(
        clean(&["bs/compositeRole=satellite", "bs/compositeRole=baseline"]),
        r#"{"baseline":{"origin":"bs"}}"#
    );
}

#[test]
fn groups_are_in_the_order_of_their_names() {
    assert_eq!(
        clean(&[
            "s-2/compositeRole=satellite",
            "s-10/compositeRole=satellite",
            "a-o/compositeRole=satellite",
            "a-o/controllerNamespace=z-c",
        ]),
        r#"{"satellites":[{"origin":"s-10"},{"origin":"s-2"},{"origin":"a-o"}]}"#
    );
}

#[test]
fn a_satellite_whose_controller_is_missing_has_the_other_two() {
    assert_eq!(
        clean(&[
            "o/compositeRole=satellite",
            "o/bluegreenRole=origin",
            "o/controllerNamespace=c",
            "p/compositeRole=satellite",
            "p/bluegreenRole=peer",
            "p/controllerNamespace=c",
        ]),
        r#"{"satellites":[{"origin":"o","peer":"p"}]}"#
    );
}

#[test]
fn a_namespace_without_a_role_has_no_place_beside_an_origin() {
    let lines = [BLUEGREEN_BASELINE.as_slice(), &["bs-extra/compositeRole=baseline"]].concat();
    let (json, issues) = whole(&structure(&lines), None);
    assert_eq!(json, r#"{"baseline":{"controller":"bs-controller","origin":"bs-origin","peer":"bs-peer"}}"#);
    assert_eq!((issues[0].kind, issues[0].subject.as_str()), (IssueKind::NoPlace, "bs-extra"));
}

#[test]
fn a_baselines_controller_namespace_is_not_looked_at() {
    let lines = [
        "o/compositeRole=baseline",
        "o/controllerNamespace= c",
        "c/compositeRole=baseline",
        "c/bluegreenRole=controller",
    ];
    assert_eq!(
        composite(&structure(&lines), None),
        (r#"{"baseline":{"controller":"c","origin":"o"}}"#.to_owned(), vec![IssueKind::MalformedValue])
    );
}

#[test]
fn an_ambiguous_satellite_keeps_its_value_and_its_place() {
    let lines = [
        "a/compositeRole=satellite",
        "m-o/compositeRole=satellite",
        "m-o/bluegreenRole=origin",
        "m-o/controllerNamespace=m-c",
        "m-x/compositeRole=satellite",
        "m-x/bluegreenRole=origin",
        "m-x/controllerNamespace=m-c",
        "z/compositeRole=satellite",
    ];
    let before = r#"{"satellites":[{"controller":"m-c","origin":"m-o","peer":"m-p"}]}"#;
    assert_eq!(
        composite(&structure(&lines), Some(before)),
        (
            r#"{"satellites":[{"origin":"a"},{"controller":"m-c","origin":"m-o","peer":"m-p"},{"origin":"z"}]}"#
                .to_owned(),
            vec![IssueKind::DuplicateRole]
        )
    );
}

#[test]
fn two_satellites_that_become_one_group_without_roles_are_kept_apart() {
    let lines = [
        "a/compositeRole=satellite",
        "a/controllerNamespace=c",
        "b/compositeRole=satellite",
        "b/controllerNamespace=c",
    ];
    let before = r#"{"satellites":[{"origin":"a"},{"origin":"b"}]}"#;
    assert_eq!(
        composite(&structure(&lines), Some(before)),
        (before.to_owned(), vec![IssueKind::SeveralWithoutRole])
    );
}

#[test]
fn what_was_published_is_not_kept_if_it_would_name_a_namespace_twice() {
    let lines = [
        "o/compositeRole=satellite",
        "p/compositeRole=satellite",
        "p/bluegreenRole=peer",
        "p/controllerNamespace=c",
        "q/compositeRole=satellite",
        "q/bluegreenRole=peer",
        "q/controllerNamespace=c",
    ];
    let before = r#"{"satellites":[{"controller":"c","origin":"o","peer":"p"}]}"#;
    assert_eq!(
        composite(&structure(&lines), Some(before)),
        (r#"{"satellites":[{"origin":"o"}]}"#.to_owned(), vec![IssueKind::DuplicateRole])
    );
}

#[test]
fn what_was_published_before_does_not_matter_where_nothing_is_ambiguous() {
    let before = r#"{"baseline":{"origin":"old"},"satellites":[{"origin":"older"}]}"#;
    assert_eq!(
        composite(&structure(&["bs/compositeRole=baseline"]), Some(before)),
        (r#"{"baseline":{"origin":"bs"}}"#.to_owned(), vec![])
    );
}

#[test]
fn a_payload_is_read_back_as_it_was_written() {
    let (payload, _) = transform(&structure(&BLUEGREEN_BASELINE), "GKE", None);
    assert_eq!(Payload::from_json(&payload.to_json()).expect("our own"), payload);
    let foreign = "{ \"cloudProvider\": \"EKS\", \"version\": 2,\n \"composite\": {\"baseline\": {\"origin\": \"a\", \"peer\": null}} }";
    assert_eq!(
        Payload::from_json(foreign).expect("the same terms").to_json(),
        r#"{"cloudProvider":"EKS","composite":{"baseline":{"origin":"a"}}}"#
    );
    assert!(Payload::from_json("{}").is_err());
}
