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
    assert_eq!(kinds, ["server", "server", "http_request_rule", "backend", "listen", "server"]);
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
    sandbox.write("cache.cfg", "cache assets\n    total-max-size 4\n");
    let ran = sandbox.run(&["haproxy", "check", "--json", "cache.cfg", "wrong.cfg"]);
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

#[test]
fn files_that_are_checked_together_are_one_configuration() {
    let sandbox = sandbox();
    sandbox.write("front.cfg", "frontend www\n    bind :80\n    default_backend shop\n");
    sandbox.write("back.cfg", "backend shop\n    server s1 10.0.0.1:80\n");
    assert_eq!(sandbox.run(&["haproxy", "check", "front.cfg"]).code(), 1);
    let together = sandbox.ok(&["haproxy", "check", "front.cfg", "back.cfg"]);
    assert_eq!(together, "front.cfg: 1 section, nothing wrong.\nback.cfg: 1 section, nothing wrong.\n");
}

#[test]
fn check_knows_the_variables_that_it_is_told() {
    let sandbox = sandbox();
    let text =
        "frontend www\n    bind :80\n.if streq(\"$MODE\",prod)\n    default_backend \"${BACKEND}\"\n.endif\n";
    sandbox.write("env.cfg", text);
    let code = |env: &[&str]| {
        let args = ["haproxy", "check", "env.cfg"].into_iter().chain(env.iter().copied());
        sandbox.run(&args.collect::<Vec<_>>()).code()
    };
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--env", "MODE=prod", "--env", "BACKEND=nowhere"]), 1);
    assert_eq!(code(&["--env", "MODE=test", "--env", "BACKEND=nowhere"]), 0);
    assert_eq!(code(&["--env", "MODE"]), 64);
}

#[test]
fn check_shows_the_first_hundred_errors_of_a_file_and_all_if_asked() {
    let sandbox = sandbox();
    let lines = (0..300).map(|number| format!("    bogus{number}\n")).collect::<Vec<_>>().concat();
    sandbox.write("many.cfg", &format!("backend b\n{lines}"));
    let shown = |more: &[&str]| {
        let args = ["haproxy", "check", "many.cfg"].into_iter().chain(more.iter().copied());
        sandbox.run(&args.collect::<Vec<_>>()).out()
    };
    let some = shown(&[]);
    assert_eq!(some.matches("error: ").count(), 100);
    assert!(
        some.ends_with("200 more are not shown; `--all` shows them.\n\nmany.cfg: 1 section, 300 errors.\n"),
        "{some}"
    );
    assert_eq!(shown(&["--all"]).matches("error: ").count(), 300);
    let json: Value = serde_json::from_str(&shown(&["--json"])).unwrap();
    assert_eq!((&json["errors"], &json["omitted"]), (&300.into(), &200.into()));
    assert_eq!(json["diagnostics"].as_array().unwrap().len(), 100);
}

#[test]
fn a_line_of_many_words_is_shown_around_what_is_wrong_with_it() {
    let sandbox = sandbox();
    let words = (0..20_000).map(|number| format!(" no-such-option-{number}")).collect::<Vec<_>>().concat();
    sandbox.write("long.cfg", &format!("backend b\n    server s1 10.0.0.1:80{words}\n"));
    let out = sandbox.run(&["haproxy", "check", "--all", "long.cfg"]).out();
    assert!(out.len() < 100_000, "{} bytes", out.len());
    assert!(out.lines().all(|line| line.chars().count() < 400), "{out}");
}

#[test]
fn fmt_keeps_bytes_that_are_no_utf_8() {
    let sandbox = sandbox();
    let text = b"backend b\n  log-tag \xff\xfe # \x80\n";
    std::fs::write(sandbox.path("bytes.cfg"), text).unwrap();
    let mut command = sandbox.command(&["haproxy", "fmt", "-"]);
    command.stdin(std::fs::File::open(sandbox.path("bytes.cfg")).unwrap());
    let output = command.output().unwrap();
    assert_eq!(output.stdout, b"backend b\n    log-tag \xff\xfe # \x80\n");
    sandbox.ok(&["haproxy", "fmt", "bytes.cfg"]);
    assert_eq!(std::fs::read(sandbox.path("bytes.cfg")).unwrap(), output.stdout);
}

#[test]
fn fmt_keeps_the_owner_of_a_file() {
    use std::os::unix::fs::MetadataExt;
    let sandbox = sandbox();
    let (path, other) = (sandbox.path("current.cfg"), sandbox.path("other.cfg"));
    // Who is not root can give nothing away.
    let _ = std::os::unix::fs::chown(&path, Some(1234), Some(1234));
    let owner = |path: &std::path::Path| {
        let found = std::fs::metadata(path).unwrap();
        (found.uid(), found.gid(), found.nlink())
    };
    let before = owner(&path);
    sandbox.ok(&["haproxy", "fmt", "current.cfg"]);
    assert_eq!(owner(&path), before);
    sandbox.write("current.cfg", CURRENT);
    std::fs::hard_link(&path, &other).unwrap();
    let before = owner(&path);
    sandbox.ok(&["haproxy", "fmt", "current.cfg"]);
    assert_eq!((owner(&path), sandbox.read("other.cfg")), (before, sandbox.read("current.cfg")));
}

#[test]
fn fmt_puts_a_whole_new_file_in_the_place_of_the_old_one() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let sandbox = sandbox();
    let path = sandbox.path("current.cfg");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("current.cfg", sandbox.path("link.cfg")).unwrap();
    let (before, reader) = (std::fs::metadata(&path).unwrap(), std::fs::File::open(&path).unwrap());
    sandbox.ok(&["haproxy", "fmt", "link.cfg"]);
    let after = std::fs::metadata(&path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!(after.permissions().mode() & 0o777, 0o640);
    assert!(std::fs::symlink_metadata(sandbox.path("link.cfg")).unwrap().is_symlink());
    assert_eq!(
        std::io::read_to_string(reader).unwrap(),
        CURRENT,
        "whoever reads the old file reads all of it"
    );
    assert_eq!(sandbox.tree(), ["current.cfg", "desired.cfg", "link.cfg", "wrong.cfg"]);
}

#[test]
fn fmt_goes_on_after_a_file_that_it_refuses() {
    let sandbox = sandbox();
    let ran = sandbox.run(&["haproxy", "fmt", "wrong.cfg", "missing.cfg", "desired.cfg"]);
    assert_eq!((ran.code(), ran.out().as_str()), (1, "desired.cfg: written anew\n"));
    assert!(ran.err().contains("wrong.cfg:7:31") && ran.err().contains("missing.cfg"), "{}", ran.err());
    let json = sandbox.run(&["haproxy", "fmt", "--json", "wrong.cfg", "desired.cfg"]).out();
    let files: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(files[0]["refused"].as_str().unwrap().contains("wrong.cfg:7:31"), "{json}");
    assert_eq!(files[1], serde_json::json!({"file": "desired.cfg", "changed": false}));
}

#[test]
fn fmt_adds_a_line_feed_that_is_missing_at_the_end() {
    let sandbox = sandbox();
    sandbox.write("cut.cfg", "global\n    daemon");
    assert_eq!(sandbox.ok(&["haproxy", "fmt", "cut.cfg"]), "cut.cfg: written anew\n");
    assert_eq!(sandbox.read("cut.cfg"), "global\n    daemon\n");
}

#[test]
fn fmt_is_done_after_once_whatever_ends_the_lines() {
    let sandbox = sandbox();
    sandbox.write("windows.cfg", "global\r\r\n  daemon \r\r\r\nbackend b\r\n  mode http\r\r\n");
    sandbox.ok(&["haproxy", "fmt", "windows.cfg"]);
    assert_eq!(sandbox.read("windows.cfg"), "global\n    daemon\n\nbackend b\n    mode http\n");
    assert_eq!(sandbox.ok(&["haproxy", "fmt", "--check", "windows.cfg"]), "");
}

#[test]
fn diff_never_prints_a_password() {
    let sandbox = sandbox();
    let text = |secret: &str| {
        format!(
            "global\n    setenv DB_PASSWORD {secret}\n\nuserlist people\n    user ann insecure-password {secret}\n    user bob password {secret}\n\nfrontend www\n    bind :443 ssl crt x ca-sign-pass {secret}\n    stats auth admin:{secret}\n    http-request set-header Authorization \"Basic {secret}\"\n\nbackend shop\n    dynamic-cookie-key {secret}\n\nlisten both\n    bind :80\n    stats auth admin:{secret}\n\n.if defined(X)\nuserlist others\n    user eve insecure-password {secret}\n.endif\n"
        )
    };
    sandbox.write("old.cfg", &text("s3cret-before"));
    sandbox.write("new.cfg", &text("s3cret-after"));
    for args in [
        &["haproxy", "diff", "old.cfg", "new.cfg"][..],
        &["haproxy", "diff", "--json", "old.cfg", "new.cfg"],
        &["haproxy", "diff", "desired.cfg", "new.cfg"],
        &["haproxy", "diff", "--json", "desired.cfg", "new.cfg"],
        &["haproxy", "diff", "--json", "new.cfg", "desired.cfg"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert!(!ran.out().contains("s3cret"), "{args:?}: {}", ran.out());
    }
}

/// Runs a command with some text as its standard input.
fn with_input(sandbox: &Sandbox, arguments: &[&str], text: &str) -> std::process::Output {
    sandbox.write("input.cfg", text);
    let mut command = sandbox.command(arguments);
    command.stdin(std::fs::File::open(sandbox.path("input.cfg")).unwrap());
    command.output().unwrap()
}

#[test]
fn the_standard_input_is_read_once() {
    let sandbox = sandbox();
    for command in ["diff", "check"] {
        let ran = with_input(&sandbox, &["haproxy", command, "-", "-"], "backend b\n");
        assert_eq!(ran.status.code(), Some(1), "{command}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "", "{command}");
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(said.contains("the standard input can be read once"), "{said}");
    }
}

#[test]
fn a_desired_configuration_whose_first_line_is_wrong_is_refused_for_that_line() {
    let sandbox = sandbox();
    sandbox.write("loud.cfg", "BACKEND a\n");
    let ran = sandbox.run(&["haproxy", "diff", "current.cfg", "loud.cfg"]);
    assert_eq!((ran.code(), ran.out()), (1, String::new()));
    assert!(
        ran.err().starts_with("error: loud.cfg:1:1: `BACKEND` stands before the first section\n"),
        "{}",
        ran.err()
    );
}

#[test]
fn what_is_printed_as_json_is_json_whatever_is_read() {
    let sandbox = sandbox();
    let ran = with_input(&sandbox, &["haproxy", "fmt", "--json", "-"], "backend b\n mode http\n");
    let json: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(json["text"], "backend b\n    mode http\n");
    let ran = sandbox.run(&["haproxy", "check", "--json", "nowhere.cfg"]);
    assert_eq!(ran.code(), 1);
    let json: Value = serde_json::from_str(&ran.out()).unwrap();
    assert_eq!((&json["file"], &json["valid"]), (&"nowhere.cfg".into(), &Value::Bool(false)));
    assert!(json["refused"].as_str().unwrap().starts_with("can't read nowhere.cfg"), "{json}");
}

#[test]
fn diff_as_json_counts_what_needs_a_reload() {
    let sandbox = sandbox();
    let printed = sandbox.ok(&["haproxy", "diff", "--json", "current.cfg", "desired.cfg"]);
    let json: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&json["at_runtime"], &json["with_reload"]), (&3.into(), &3.into()));
}

#[test]
fn a_folder_is_no_file() {
    let sandbox = sandbox();
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    let ran = sandbox.run(&["haproxy", "check", "folder"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("hint: name the files in it"), "{}", ran.err());
}
