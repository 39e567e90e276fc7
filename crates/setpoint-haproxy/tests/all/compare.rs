//! What leads from one configuration to another. The scenarios of the founding document bear its names.

use setpoint_haproxy::compare::{CompareError, Diff, Operation, Subject, compare};
use setpoint_haproxy::model::{Context, Version};
use setpoint_haproxy::text::Document;
use setpoint_plan::Action;

use crate::configurations::MIXED;

pub(crate) fn diff(current: &str, desired: &str) -> Diff {
    diff_for(Version::LATEST, current, desired)
}

fn diff_for(version: Version, current: &str, desired: &str) -> Diff {
    let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
    compare(&current, &desired, &Context::new(version)).unwrap()
}

/// The operations in a line each.
pub(crate) fn told(diff: &Diff) -> Vec<String> {
    diff.operations().iter().map(ToString::to_string).collect()
}

/// The document after all operations, in their order.
pub(crate) fn applied(current: &str, desired: &str) -> String {
    let cx = Context::default();
    let (current, desired) = (Document::parse(current.as_bytes()), Document::parse(desired.as_bytes()));
    let diff = compare(&current, &desired, &cx).unwrap();
    let mut document = current;
    for operation in diff.operations() {
        document = document.apply(operation, &cx).unwrap_or_else(|error| panic!("{operation}: {error}"));
    }
    String::from_utf8(document.print()).unwrap()
}

// Requirement: Fine-Grained Configuration Comparison

#[test]
fn single_attribute_change_produces_single_update_operation() {
    let diff = diff("backend b\n  balance roundrobin\n", "backend b\n  balance leastconn\n");
    assert_eq!(told(&diff), ["~ backend b"]);
    assert_eq!(diff.operations()[0].changes[0].to_string(), "balance.algorithm: roundrobin → leastconn");
}

#[test]
fn new_frontend_produces_create_operation() {
    let diff = diff("global\n", "global\nfrontend f\n  bind :80\n");
    assert_eq!(told(&diff)[0], "+ frontend f");
}

#[test]
fn removed_backend_produces_delete_operation() {
    let diff = diff("backend a\nbackend b\n  server s 10.0.0.1:80\n", "backend a\n");
    assert_eq!(told(&diff), ["- backend b"]);
}

#[test]
fn nil_configuration_rejected() {
    let (document, cx) = (Document::parse(b"global\n"), Context::default());
    assert_eq!(compare(None, &document, &cx), Err(CompareError::NoCurrent));
    assert_eq!(compare(&document, None, &cx), Err(CompareError::NoDesired));
    for nothing in ["", "# only a comment\n"] {
        let nothing = Document::parse(nothing.as_bytes());
        assert_eq!(compare(&document, &nothing, &cx), Err(CompareError::EmptyDesired));
    }
}

// Requirement: Operation Ordering

#[test]
fn delete_operations_precede_creates() {
    let diff = diff(
        "backend a\n  server s1 10.0.0.1:80\n  retries 2\nbackend old\n",
        "backend a\n  server s2 10.0.0.2:80\n  retries 3\nbackend new\n",
    );
    let actions: Vec<Action> = diff.operations().iter().map(|operation| operation.action).collect();
    let (create, delete) = (Action::Create, Action::Delete);
    assert_eq!(actions, [delete, delete, create, create, Action::Modify]);
    assert_eq!(
        told(&diff),
        ["- backend a: server s1", "- backend old", "+ backend new", "+ backend a: server s2", "~ backend a"]
    );
}

#[test]
fn parent_created_before_child() {
    let diff = diff(
        "global\n",
        "global\nfrontend f\n  bind :80 name b\n  acl a src 10.0.0.1\n  http-request deny if a\n",
    );
    let expected =
        ["+ frontend f", "+ frontend f: bind b", "+ frontend f: acl 0", "+ frontend f: http_request_rule 0"];
    assert_eq!(told(&diff), expected);
    assert!(diff.operations().is_sorted_by(|a, b| a.order <= b.order));
    let plan = diff.plan("x");
    assert!(plan.operations[1..].iter().all(|operation| operation.after == [0]));
}

// Requirement: DiffSummary

#[test]
fn has_changes_false_when_no_operations() {
    let diff = diff(MIXED, MIXED);
    assert!(!diff.summary().has_changes());
    assert!(diff.is_empty());
}

#[test]
fn structural_operations_excludes_server_modifications() {
    let backend = |weights: [u8; 3], retries: u8, rules: u8| {
        let servers: String = (1..)
            .zip(weights)
            .map(|(n, weight)| format!("  server s{n} 10.0.0.{n}:80 weight {weight}\n"))
            .collect();
        let rules: String = (0..rules).map(|n| format!("  http-request set-header X-{n} y\n")).collect();
        format!("backend b\n  retries {retries}\n{rules}{servers}")
    };
    let diff = diff(&backend([1, 2, 3], 1, 0), &backend([4, 5, 6], 2, 6));
    let summary = diff.summary();
    assert_eq!(summary.total_operations(), 10);
    assert_eq!(summary.structural_operations(), 7);
    assert_eq!(summary.servers.modified["b"], ["s1", "s2", "s3"]);
    assert_eq!((summary.creates, summary.updates, summary.deletes), (6, 4, 0));
}

#[test]
fn the_summary_names_what_is_added_changed_and_deleted() {
    let diff = diff(
        "global\n  maxconn 1\ndefaults d\n  retries 1\nfrontend f1\n  bind :1\nfrontend f2\nbackend b1\n  server a 10.0.0.1:1\n  server b 10.0.0.1:2\nbackend b2\npeers p\n",
        "global\n  maxconn 2\ndefaults d\n  retries 2\nfrontend f1\n  bind :2\nfrontend f3\nbackend b1\n  server a 10.0.0.1:3\n  server c 10.0.0.1:4\nbackend b3\n  server n 10.0.0.1:5\nring r\n",
    );
    let summary = diff.summary();
    assert!(summary.global_changed && summary.defaults_changed);
    let names = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(" ");
    let (f, b) = (&summary.frontends, &summary.backends);
    assert_eq!([names(&f.added), names(&f.modified), names(&f.deleted)], ["f3", "f1", "f2"]);
    assert_eq!([names(&b.added), names(&b.modified), names(&b.deleted)], ["b3", "b1", "b2"]);
    assert_eq!([names(&summary.others.added), names(&summary.others.deleted)], ["ring r", "peers p"]);
    let servers = &summary.servers;
    assert_eq!(servers.added["b1"], ["c"]);
    assert_eq!(servers.added["b3"], ["n"]);
    assert_eq!(servers.modified["b1"], ["a"]);
    assert_eq!(servers.deleted["b1"], ["b"]);
}

// Lists

fn rules(names: &str) -> String {
    let rules: String = names.chars().map(|name| format!("  http-request set-header X-{name} y\n")).collect();
    format!("frontend f\n{rules}")
}

#[test]
fn a_rule_inserted_at_the_top_is_one_create() {
    let diff = diff(&rules("abcdef"), &rules("xabcdef"));
    assert_eq!(told(&diff), ["+ frontend f: http_request_rule 0"]);
}

#[test]
fn reordering_is_seen_and_a_move_is_a_delete_and_a_create() {
    let diff = diff(&rules("abcd"), &rules("bcda"));
    assert_eq!(told(&diff), ["- frontend f: http_request_rule 0", "+ frontend f: http_request_rule 3"]);
}

#[test]
fn a_changed_rule_between_equal_ones_is_an_update() {
    let diff = diff(&rules("abc"), &rules("axc"));
    assert_eq!(told(&diff), ["~ frontend f: http_request_rule 1"]);
    assert_eq!(diff.operations()[0].changes[0].to_string(), "hdr_name: X-b → X-x");
}

#[test]
fn deletes_go_from_the_end_and_creates_from_the_beginning() {
    let diff = diff(&rules("1a2b3"), &rules("ab456"));
    assert_eq!(told(&diff).first().unwrap(), "- frontend f: http_request_rule 2");
    assert_eq!(applied(&rules("1a2b3"), &rules("ab456")), rules("ab456"));
    let groups: std::collections::BTreeSet<_> = diff.operations().iter().map(Operation::group).collect();
    assert_eq!(groups, [Some("frontend f http_request_rule_list".to_owned())].into());
}

#[test]
fn a_list_of_thousands_keeps_its_order() {
    let list = |numbers: &mut dyn Iterator<Item = u32>| {
        let rules: String = numbers.map(|n| format!("  http-request set-header X-{n} y\n")).collect();
        format!("frontend f\n{rules}")
    };
    let diff = diff(&list(&mut (0..3000)), &list(&mut (1000..3000).chain(0..1000)));
    assert_eq!(diff.operations().len(), 2000);
    let deletes = diff.operations().iter().take(1000);
    let indices: Vec<String> = deletes.map(|operation| operation.to_plan().name).collect();
    assert_eq!((&*indices[0], &*indices[999]), ("999", "0"));
}

#[test]
fn a_renamed_acl_converges() {
    let (current, desired) = ("frontend f\n  acl old src 10.0.0.1\n", "frontend f\n  acl new src 10.0.0.1\n");
    assert_eq!(told(&diff(current, desired)), ["~ frontend f: acl 0"]);
    assert_eq!(applied(current, desired), desired);
}

#[test]
fn acls_of_the_same_name_stay_distinct() {
    let (current, desired) = (
        "frontend f\n  acl a src 10.0.0.1\n  acl a src 10.0.0.2\n  acl a src 10.0.0.3\n",
        "frontend f\n  acl a src 10.0.0.1\n  acl a src 10.0.0.3\n",
    );
    assert_eq!(told(&diff(current, desired)), ["- frontend f: acl 1"]);
    assert_eq!(applied(current, desired), desired);
}

// What is equal

#[test]
fn text_that_means_the_same_gives_no_operation() {
    for (a, b) in [
        ("backend b\n  timeout server 1s\n", "backend b\n\n\ttimeout   server 1000 \r\n"),
        ("backend b\n  option redispatch\n  retries 3\n", "backend b\n  retries 3\n  option redispatch\n"),
        (
            "backend b\n  server a 10.0.0.1:1\n  server b 10.0.0.2:2\n",
            "backend b\n  server b 10.0.0.2:2\n  server a 10.0.0.1:1\n",
        ),
        (
            "backend b\n  server a 10.0.0.1:1 check weight 2\n",
            "backend b\n  server a 10.0.0.1:1 weight 2 check\n",
        ),
        ("backend a\nbackend b\n", "\"backend\" b\n# above\nbackend a\n"),
        ("defaults d\n  retries 2\nbackend b\n", "defaults d\n  retries 2\nbackend b from d\n"),
        ("listen l\n  bind :80\n", "listen l  # comment\n\tbind   :80\n"),
        ("udp-lb u\n  a b\n", "udp-lb u\n  a   'b'\n"),
        ("global\n  daemon\n", "# first\n\nglobal\n  daemon\n"),
        ("backend b\n  server a [::1]:80\n", "backend b\n  server a [0:0::1]:80\n"),
        ("backend b\n  server a ipv6@[::1]:80\n", "backend b\n  server a ipv6@[0::0:1]:80\n"),
        ("frontend f\n  bind [::1]:80 name n\n", "frontend f\n  bind [0:0::1]:80 name n\n"),
    ] {
        assert_eq!(told(&diff(a, b)), [""; 0], "{a:?} {b:?}");
        assert_eq!(told(&diff(b, a)), [""; 0], "{b:?} {a:?}");
    }
}

#[test]
fn a_stated_default_is_as_good_as_none() {
    for (stated, silent) in [
        ("global\n  tune.bufsize 16384\n", "global\n"),
        ("backend b\n  no option redispatch\n  retries 3\n", "backend b\n"),
        (
            "backend b\n  server s 10.0.0.1:1 check weight 1 inter 2000 rise 2 fall 3 enabled\n",
            "backend b\n  server s 10.0.0.1:1 check\n",
        ),
        ("backend b\n  default-server inter 2s\n", "backend b\n"),
        ("backend b\n  balance random(2)\n", "backend b\n  balance random\n"),
        ("frontend f\n  http-request deny deny_status 403\n", "frontend f\n  http-request deny\n"),
        ("frontend f\n  http-request tarpit deny_status 500\n", "frontend f\n  http-request tarpit\n"),
        ("frontend f\n  http-response deny deny_status 502\n", "frontend f\n  http-response deny\n"),
        (
            "frontend f\n  http-request redirect location / code 302\n",
            "frontend f\n  http-request redirect location /\n",
        ),
    ] {
        assert_eq!(told(&diff(stated, silent)), [""; 0], "{stated:?}");
        assert_eq!(told(&diff(silent, stated)), [""; 0], "{stated:?}");
    }
}

#[test]
fn what_is_no_default_of_a_rule_counts() {
    for (stated, silent) in [
        ("http-request tarpit deny_status 403", "http-request tarpit"),
        ("http-response deny deny_status 403", "http-response deny"),
        ("http-request redirect location / code 301", "http-request redirect location /"),
        // A status alone answers with nothing, and the other with the error file of it.
        ("http-request deny status 403", "http-request deny"),
        ("http-request deny status 403", "http-request deny deny_status 403"),
    ] {
        let text = |rule: &str| format!("frontend f\n  {rule}\n");
        for (current, desired) in [(stated, silent), (silent, stated)] {
            let diff = diff(&text(current), &text(desired));
            assert_eq!(diff.operations().len(), 1, "{current} {desired}");
            assert!(!diff.operations()[0].changes.is_empty(), "{current} {desired}");
        }
    }
    let both =
        |rule: &str| format!("frontend f\n  http-request deny {rule} content-type text/plain string no\n");
    assert_eq!(told(&diff(&both("status 403"), &both("deny_status 403"))), [""; 0]);
}

#[test]
fn times_and_sizes_are_shown_with_their_units() {
    for (old, new, shown) in [
        (
            "backend b\n  timeout server 30000\n",
            "backend b\n  timeout server 5s\n",
            "server_timeout: 30s → 5s",
        ),
        (
            "backend b\n  timeout server 1500\n",
            "backend b\n  timeout server 1m\n",
            "server_timeout: 1500ms → 1m",
        ),
        (
            "global\n  tune.bufsize 32768\n",
            "global\n  tune.bufsize 65536\n",
            "tune_buffer_options.bufsize: 32k → 64k",
        ),
        (
            "backend b\n  server s 10.0.0.1:1 inter 3000\n",
            "backend b\n  server s 10.0.0.1:1 inter 4s\n",
            "inter: 3s → 4s",
        ),
    ] {
        assert_eq!(diff(old, new).operations()[0].changes[0].to_string(), shown);
    }
}

#[test]
fn a_stated_default_counts_where_something_else_would_hold_without_it() {
    for (stated, silent, told_of) in [
        (
            "backend b\n  default-server weight 5\n  server s 10.0.0.1:1 weight 1\n",
            "backend b\n  default-server weight 5\n  server s 10.0.0.1:1\n",
            "~ backend b: server s",
        ),
        (
            "defaults d\n  default-server weight 5\nbackend b from d\n  server s 10.0.0.1:1 weight 1\n",
            "defaults d\n  default-server weight 5\nbackend b from d\n  server s 10.0.0.1:1\n",
            "~ backend b: server s",
        ),
        (
            "defaults d\n  option srvtcpka\nbackend b from d\n  no option srvtcpka\n",
            "defaults d\n  option srvtcpka\nbackend b from d\n",
            "~ backend b",
        ),
        (
            "backend b\n  server s 10.0.0.1:1 weight 2\n",
            "backend b\n  server s 10.0.0.1:1\n",
            "~ backend b: server s",
        ),
    ] {
        assert_eq!(told(&diff(stated, silent)), [told_of], "{stated:?}");
        assert_eq!(told(&diff(silent, stated)), [told_of], "{stated:?}");
    }
    // From 3.3 on, `abortonclose` may be on by itself.
    let (stated, silent) = ("backend b\n  no option abortonclose\n", "backend b\n");
    assert_eq!(told(&diff_for(Version::V3_2, stated, silent)), [""; 0]);
    assert_eq!(told(&diff_for(Version::V3_4, stated, silent)), ["~ backend b"]);
}

#[test]
fn a_comment_counts_only_where_the_api_stores_it() {
    let (a, b) = ("frontend f\n  bind :80 name b\n", "frontend f\n  bind :80 name b # public\n");
    assert_eq!(told(&diff_for(Version::V3_0, a, b)), [""; 0]);
    assert_eq!(told(&diff_for(Version::V3_2, a, b)), ["~ frontend f: bind b"]);
}

#[test]
fn a_comment_of_a_rule_leaves_the_rules_beside_it_alone() {
    let text = |rules: &[&str]| {
        let lines: String = rules.iter().map(|rule| format!("  http-request {rule}\n")).collect();
        format!("frontend f\n{lines}")
    };
    let (old, new) =
        (text(&["deny if a", "allow if b"]), text(&["auth if c", "deny if a # why", "allow if b"]));
    let rule = "frontend f: http_request_rule";
    assert_eq!(told(&diff(&old, &new)), [format!("+ {rule} 0"), format!("~ {rule} 1")]);
    let diff = diff(&old, &new);
    let comment = &diff.operations()[1];
    assert_eq!(
        comment.changes.iter().map(|change| change.attribute.as_str()).collect::<Vec<_>>(),
        ["metadata"]
    );
    assert!(comment.runtime.is_possible());
    for (current, desired) in [(&old, &new), (&new, &old)] {
        assert!(self::diff(&applied(current, desired), desired).is_empty());
    }
}

// Text operations

#[test]
fn what_no_model_carries_is_a_text_operation() {
    for (a, b, reason) in [
        ("waf-global\n  a\n", "waf-global\n  b\n", "there is no model of such a section"),
        (
            "backend b\n  novelty 1\n",
            "backend b\n  novelty 2\n",
            "lines that the model does not cover differ",
        ),
        (
            "backend b\n  .if 1\n  retries 1\n  .endif\n",
            "backend b\n  .if 1\n  retries 2\n  .endif\n",
            "a conditional stands in it or around it",
        ),
        (
            "backend b\n  acl a src \"$A\"\n",
            "backend b\n  acl a src \"$B\"\n",
            "lines that the model does not cover differ",
        ),
        (
            "backend b\n  default-server check\n  default-server inter 1s\n  server s 10.0.0.1:1\n",
            "backend b\n  default-server check\n  default-server inter 2s\n  server s 10.0.0.1:1\n",
            "the places of its `default-server` lines among its servers count",
        ),
        (
            "defaults\n  retries 1\nbackend b\ndefaults\n  retries 2\n",
            "defaults\n  retries 1\ndefaults\n  retries 2\nbackend b\n",
            "another `defaults` section governs it by its place",
        ),
    ] {
        let diff = diff(a, b);
        assert_eq!(diff.operations().len(), 1, "{a:?}: {:?}", told(&diff));
        let operation = &diff.operations()[0];
        assert!(operation.is_text() && !operation.runtime.is_possible());
        assert_eq!(operation.reason, reason);
        assert_eq!(diff.summary().texts, 1);
        assert_eq!(diff.summary().structural_operations(), 1);
        assert_eq!(told(&self::diff(&applied(a, b), b)), [""; 0], "{a:?}");
    }
}

#[test]
fn equal_unmodelled_lines_leave_the_rest_to_the_model() {
    let diff = diff("backend b\n  novelty 1\n  retries 1\n", "backend b\n  retries 2\n  novelty 1\n");
    assert_eq!(told(&diff), ["~ backend b"]);
}

#[test]
fn an_unmodelled_rule_among_modelled_ones_keeps_its_place_and_an_unmodelled_setting_has_none() {
    let (current, desired) = (
        "frontend f\n  http-request set-header X-A b\n  http-request novelty\n",
        "frontend f\n  http-request novelty\n  http-request set-header X-A b\n",
    );
    assert_eq!(told(&diff(current, desired)), ["~ text of frontend f"]);
    let (current, desired) =
        ("frontend f\n  novelty x\n  retries 2\n", "frontend f\n  retries 2\n  maxconn 1\n  novelty x\n");
    assert_eq!(told(&diff(current, desired)), ["~ frontend f"]);
}

// The verdict

fn verdict(version: Version, current: &str, desired: &str) -> Result<(), String> {
    let diff = diff_for(version, current, desired);
    assert_eq!(diff.operations().len(), 1, "{:?}", told(&diff));
    match &diff.operations()[0].runtime {
        setpoint_plan::Runtime::Yes => Ok(()),
        setpoint_plan::Runtime::No { why } => Err(why.clone()),
    }
}

#[test]
fn each_operation_says_whether_a_running_haproxy_can_be_told() {
    let backend = |balance: &str, servers: &str| format!("backend b\n  balance {balance}\n{servers}");
    let s1 = "  server s1 10.0.0.1:80\n";
    let change =
        |balance: &str, to: &str| verdict(Version::V3_4, &backend(balance, s1), &backend(balance, to));
    let add = |version, balance: &str, server: &str| {
        verdict(version, &backend(balance, s1), &backend(balance, &format!("{s1}  server {server}\n")))
    };
    for server in ["s1 10.0.0.2:80", "s1 10.0.0.1:81", "s1 10.0.0.1:80 weight 7", "s1 10.0.0.1:80 disabled"] {
        assert_eq!(change("roundrobin", &format!("  server {server}\n")), Ok(()), "{server}");
    }
    assert_eq!(
        change("static-rr", "  server s1 10.0.0.1:80 weight 7\n"),
        Err("`balance static-rr` is static".into())
    );
    assert_eq!(change("source", "  server s1 10.0.0.2:80\n"), Ok(()), "an address is no weight");
    assert!(change("source", "  server s1 10.0.0.1:80 weight 7\n").is_err());
    assert!(change("source\n  hash-type consistent", "  server s1 10.0.0.1:80 weight 7\n").is_ok());
    assert_eq!(
        change("roundrobin", "  server s1 10.0.0.1:80 check\n"),
        Err("`check` of a server is changed by a reload".into())
    );
    assert_eq!(add(Version::V2_6, "roundrobin", "s2 10.0.0.2:80 check"), Ok(()));
    assert!(add(Version::V2_6, "static-rr", "s2 10.0.0.2:80").is_err());
    assert!(add(Version::V3_4, "roundrobin", "s2 name.example.test:80").is_err());
    assert!(add(Version::V3_4, "roundrobin", "s2 10.0.0.2:80 init-addr none").is_err());
    assert!(add(Version::V3_4, "roundrobin", "s2 10.0.0.2:80 resolvers dns").is_err());
    assert!(add(Version::V2_6, "roundrobin", "s2 10.0.0.2:80 cookie c").is_err());
    assert_eq!(add(Version::V3_0, "roundrobin", "s2 10.0.0.2:80 cookie c"), Ok(()));
    let remove = |rest: &str| {
        let more = format!("{s1}  server s2 10.0.0.2:80\n");
        let with = |servers: &str| format!("{}{rest}", backend("roundrobin", servers));
        verdict(Version::V3_4, &with(&more), &with(s1))
    };
    assert_eq!(remove(""), Ok(()));
    assert_eq!(remove("  use-server s2 if TRUE\n"), Err("`use-server` names it in another line".into()));
    assert_eq!(
        remove("backend c\n  server x 10.0.0.1:80 track b/s2\n"),
        Err("`track` names it in another line".into())
    );
    let new = |version, backend: &str| {
        let base = "defaults d\n  mode http\n";
        verdict(version, base, &format!("{base}backend {backend}"))
    };
    assert_eq!(new(Version::V3_4, "n from d\n  mode http\n"), Ok(()));
    assert!(new(Version::V3_2, "n from d\n").is_err());
    assert!(new(Version::V3_4, "n from d\n  retries 3\n").is_err());
    assert!(verdict(Version::V3_4, "frontend f\n", "frontend f\n  maxconn 3\n").is_err());
}

#[test]
fn a_setting_of_the_governing_defaults_counts_for_the_verdict() {
    let text = |weight: u8| {
        format!("defaults\n  balance static-rr\nbackend b\n  server s 10.0.0.1:1 weight {weight}\n")
    };
    assert!(verdict(Version::V3_4, &text(1), &text(2)).is_err());
    let text = |servers: &str| format!("backend b\n  default-server init-addr none\n{servers}");
    assert!(verdict(Version::V3_4, &text(""), &text("  server s 10.0.0.1:1\n")).is_err());
}

#[test]
fn a_target_may_narrow_the_verdict() {
    let mut diff =
        diff("backend b\n  server s 10.0.0.1:1 weight 1\n", "backend b\n  server s 10.0.0.1:1 weight 2\n");
    assert!(diff.is_possible_at_runtime());
    diff.narrow(|operation| operation.is_server_modification().then(|| "it is asleep".to_owned()));
    assert_eq!(diff.operations()[0].runtime, setpoint_plan::Runtime::no("it is asleep"));
}

// In place

#[test]
fn names_that_repeat_are_compared_as_text_and_only_if_they_differ() {
    let text = |port: u16| format!("frontend f\n  bind :80 name p\n  bind :{port} name p\n");
    assert_eq!(told(&diff(&text(81), &text(81).replace("  ", "\t"))), [""; 0]);
    assert_eq!(told(&diff(&text(81), &text(82))), ["~ text of frontend f"]);
}

#[test]
fn a_default_stated_or_not_is_the_same_unless_defaults_say_otherwise() {
    let (stated, silent) = ("backend b\n  balance roundrobin\n", "backend b\n");
    assert_eq!(told(&diff_for(Version::V3_2, stated, silent)), [""; 0]);
    // From 3.3 on another algorithm is the default.
    assert_eq!(told(&diff_for(Version::V3_4, stated, silent)), ["~ backend b"]);
    let governed = |text: &str| format!("defaults\n  balance source\n{text}");
    assert_eq!(told(&diff_for(Version::V3_2, &governed(stated), &governed(silent))), ["~ backend b"]);
}

// Properties

#[test]
fn operations_carry_the_objects_of_the_api() {
    let diff = diff("backend b\n", "backend b\n  server s 10.0.0.1:80 weight 5\n");
    let Subject::Child { new: Some(new), .. } = &diff.operations()[0].subject else { panic!("not a child") };
    assert_eq!(
        new.to_json(),
        serde_json::json!({"name": "s", "address": "10.0.0.1", "port": 80, "weight": 5})
    );
}

#[test]
fn a_listen_is_compared_as_a_frontend_and_a_backend() {
    let text = |weight: u32, port: u32| {
        format!(
            "listen l\n  bind :{port} name b\n  balance roundrobin\n  server s 10.0.0.1:80 weight {weight}\n"
        )
    };
    let found = diff(&text(1, 80), &text(2, 80));
    assert_eq!(told(&found), ["~ listen l: server s"]);
    assert!(found.is_possible_at_runtime());
    let found = diff(&text(1, 80), &text(1, 81));
    assert_eq!(told(&found), ["~ listen l: bind b"]);
    assert!(!found.is_possible_at_runtime());
    assert_eq!(applied(&text(1, 80), &text(1, 81)), text(1, 81));
}

#[test]
fn a_line_with_an_unknown_variable_is_text_for_itself_alone() {
    let text = |weight: u32, timeout: &str| {
        format!(
            "backend b\n  timeout server \"${{T}}\"\n{timeout}  server a \"${{A}}\":80\n  server s 10.0.0.1:80 weight {weight}\n"
        )
    };
    let found = diff(&text(1, ""), &text(2, ""));
    assert_eq!(told(&found), ["~ backend b: server s"]);
    assert!(!found.is_possible_at_runtime(), "what the variables say may keep HAProxy from it");
    // Which of two lines holds is told by their places.
    let found = diff(&text(1, ""), &text(1, "  timeout server 5s\n"));
    assert!(found.operations()[0].is_text(), "{:?}", told(&found));
}

#[test]
fn a_difference_never_shows_a_secret() {
    for (section, line) in [
        ("userlist u", "user ann insecure-password XX"),
        ("userlist u", "user ann password XX groups a"),
        ("backend b", "stats auth ann:XX"),
        ("listen l", "stats auth ann:XX"),
        ("listen l", "bind :80 ssl crt a.pem ca-sign-pass XX"),
        ("global", "cluster-secret XX"),
        ("backend b", "dynamic-cookie-key XX"),
        ("frontend f", "bind :80 name a ca-sign-pass \"XX\""),
        ("backend b", "server s 10.0.0.1:1 tcp-md5sig XX"),
    ] {
        for wrap in ["L", ".if 1\n  L\n  .endif"] {
            let text =
                |secret: &str| format!("{section}\n  {}\n", wrap.replace('L', &line.replace("XX", secret)));
            let found = diff(&text("hunter1"), &text("hunter2"));
            assert!(!found.is_empty(), "{line}");
            let plan = found.plan("x");
            let shown = format!("{} {:?} {}", plan, plan, serde_json::to_string(&plan).unwrap());
            assert!(!shown.contains("hunter"), "{shown}");
            assert!(shown.contains("secret"), "{shown}");
            let whole = diff("global\n", &format!("global\n{}", text("hunter1")));
            assert!(!format!("{:?}", whole.plan("x")).contains("hunter"), "{line}");
        }
    }
}
