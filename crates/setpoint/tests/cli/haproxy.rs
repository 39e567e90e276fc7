//! `setpoint haproxy`.

use serde_json::Value;

use crate::sandbox::Sandbox;

const CURRENT: &str = "\
defaults
    mode http
    timeout connect 5s
    timeout client  30s
    timeout server  30s

frontend www
    bind :80 name plain
    acl api path_beg /api
    http-request deny if { src 203.0.113.0/24 }
    use_backend api if api
    default_backend shop

backend shop
    balance roundrobin
    server s1 10.0.0.1:8080 weight 10 check
    server s2 10.0.0.2:8080 weight 10 check

backend api
    server a1 10.0.1.1:9000

listen stats
    bind 127.0.0.1:8404
    stats enable
";

const DESIRED: &str = "\
defaults
  mode http
  timeout connect 5000
  timeout client 30s
  timeout server 30s

frontend www
  bind :80 name plain
  acl api path_beg /api
  http-request set-header X-Request-Id %[uuid]
  http-request deny if { src 203.0.113.0/24 }
  use_backend api if api
  default_backend shop

backend shop
  balance leastconn
  server s1 10.0.0.1:8080 weight 20 check
  server s3 10.0.0.3:8080 weight 10 check

backend api
  server a1 10.0.1.1:9000

listen stats
  bind 127.0.0.1:8404
  stats enable
  stats uri /
";

const WRONG: &str = "\
frontend www
    bind :80
    acl api path_beg /api
    use_backend apis if api
    http-request deny if apl
    default_backend shpo
    http-request set-header X \"unclosed
    use_backend %[req.hdr(host),map(/nonexistent/hosts.map)]
\tmaxcon 5

backend shop
    server s1 10.0.0.1:8080 resolvers dns

bakend api
    server a1 10.0.1.1:9000

program watcher
    command /bin/true
";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new("");
    for (name, text) in [("current.cfg", CURRENT), ("desired.cfg", DESIRED), ("wrong.cfg", WRONG)] {
        sandbox.write(name, text);
    }
    sandbox
}

#[test]
fn diff_shows_the_operations_and_what_a_running_haproxy_can_be_told() {
    let sandbox = sandbox();
    insta::assert_snapshot!("diff", sandbox.ok(&["haproxy", "diff", "current.cfg", "desired.cfg"]));
    let same = sandbox.ok(&["haproxy", "diff", "current.cfg", "current.cfg"]);
    assert_eq!(same, "current.cfg: nothing to do.\n");
}

#[test]
fn diff_says_by_its_exit_code_whether_there_is_something_to_do_if_asked() {
    let sandbox = sandbox();
    let code = |desired: &str| {
        sandbox.run(&["haproxy", "diff", "--detailed-exitcode", "current.cfg", desired]).code()
    };
    assert_eq!((code("current.cfg"), code("desired.cfg"), code("missing.cfg")), (0, 2, 1));
}

#[test]
fn diff_as_json_is_the_plan_envelope() {
    let sandbox = sandbox();
    let printed = sandbox.ok(&["haproxy", "diff", "--json", "current.cfg", "desired.cfg"]);
    let plan: setpoint_plan::Plan = serde_json::from_str(&printed).unwrap();
    assert_eq!(plan.subject, "desired.cfg");
    let kinds: Vec<&str> = plan.operations.iter().map(|operation| operation.kind.as_str()).collect();
    assert_eq!(kinds, ["server", "server", "http_request_rule", "backend", "text", "server"]);
    let json: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(json["operations"][0]["runtime"], serde_json::json!({"possible": "yes"}));
    assert_eq!(json["operations"][2]["group"], "frontend www http_request_rule_list");
    assert_eq!(json["operations"][2]["runtime"]["possible"], "no");
}

#[test]
fn an_empty_desired_configuration_is_refused() {
    let sandbox = sandbox();
    sandbox.write("empty.cfg", "");
    let ran = sandbox.run(&["haproxy", "diff", "current.cfg", "empty.cfg"]);
    assert_eq!((ran.code(), ran.out()), (1, String::new()));
    assert_eq!(
        ran.err(),
        "error: the desired configuration has no section: that would delete everything\nhint: name the current file first, then the desired one; neither may be empty\n"
    );
}

#[test]
fn check_shows_all_that_is_wrong_with_its_place_and_a_hint() {
    let sandbox = sandbox();
    let ran = sandbox.run(&["haproxy", "check", "--for", "3.4", "wrong.cfg"]);
    assert_eq!(ran.code(), 1);
    insta::assert_snapshot!("check", ran.out());
    let fine = sandbox.ok(&["haproxy", "check", "current.cfg"]);
    assert_eq!(fine, "current.cfg: 5 sections, nothing wrong.\n");
}

#[test]
fn check_as_json_is_one_object_a_file() {
    let sandbox = sandbox();
    let ran = sandbox.run(&["haproxy", "check", "--json", "current.cfg", "wrong.cfg"]);
    assert_eq!(ran.code(), 1);
    let found: Vec<Value> = ran.out().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&found[0]["valid"], &found[1]["valid"]), (&Value::Bool(true), &Value::Bool(false)));
    let first = &found[1]["diagnostics"][0];
    assert_eq!((&first["line"], &first["column"], &first["text"]), (&4.into(), &17.into(), &"apis".into()));
    assert_eq!(first["problem"], "unknown-reference");
}

#[test]
fn fmt_writes_one_style_and_says_so() {
    let sandbox = sandbox();
    let check = sandbox.run(&["haproxy", "fmt", "--check", "current.cfg", "desired.cfg"]);
    assert_eq!(check.code(), 1);
    assert_eq!(sandbox.read("desired.cfg"), DESIRED);
    let printed = sandbox.ok(&["haproxy", "fmt", "current.cfg", "desired.cfg"]);
    assert_eq!(printed, "current.cfg: written anew\ndesired.cfg: written anew\n");
    assert_eq!(sandbox.read("desired.cfg"), DESIRED.replace("\n  ", "\n    "));
    assert_eq!(sandbox.ok(&["haproxy", "fmt", "--check", "current.cfg", "desired.cfg"]), "");
    sandbox.write("before.cfg", CURRENT);
    let diff = sandbox.ok(&["haproxy", "diff", "before.cfg", "current.cfg"]);
    assert_eq!(diff, "current.cfg: nothing to do.\n", "formatting never changes what is meant");
}

#[test]
fn fmt_leaves_a_broken_file_alone() {
    let sandbox = sandbox();
    let ran = sandbox.run(&["haproxy", "fmt", "wrong.cfg"]);
    assert_eq!(ran.code(), 1);
    assert!(
        ran.err()
            .starts_with("error: wrong.cfg:7:31: a quote that is not closed; it is left as it is\nhint: "),
        "{}",
        ran.err()
    );
    assert_eq!(sandbox.read("wrong.cfg"), WRONG);
}

#[test]
fn a_version_that_nobody_knows_is_a_usage_error() {
    let sandbox = sandbox();
    let ran = sandbox.run(&["haproxy", "check", "--for", "9.9", "current.cfg"]);
    assert_eq!(ran.code(), 64);
    assert!(ran.err().contains("2.6 to 3.4"), "{}", ran.err());
}

#[test]
fn coverage_of_a_file_counts_its_lines() {
    let sandbox = sandbox();
    insta::assert_snapshot!("coverage_file", sandbox.ok(&["haproxy", "coverage", "current.cfg"]));
}

#[test]
fn coverage_counts_the_keywords_of_each_section_and_version() {
    let sandbox = sandbox();
    let table = sandbox.ok(&["haproxy", "coverage"]);
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["section", "2.6", "3.0", "3.2", "3.4"]);
    let rows = sandbox.ok(&["haproxy", "coverage", "--json", "--for", "3.4"]);
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.len() >= 19, "{rows:?}");
    for row in &rows {
        let missing = row["missing"].as_array().unwrap().len() as u64;
        assert_eq!(row["modelled"].as_u64().unwrap() + missing, row["keywords"].as_u64().unwrap(), "{row}");
    }
    let mailers = rows.iter().find(|row| row["section"] == "mailers").unwrap();
    assert_eq!((&mailers["keywords"], &mailers["modelled"]), (&2.into(), &2.into()));
}
