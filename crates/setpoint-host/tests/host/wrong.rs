//! Wrong manifests: each error with its place and a hint, all of them at once.

use std::fs;

use setpoint_host::{Diagnostic, load};

/// The errors of a manifest that is the only file of its directory.
fn errors(yaml: &str) -> Vec<Diagnostic> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), yaml).unwrap();
    load(directory.path()).expect_err(yaml)
}

/// The only error of a manifest: its place, its words and its hint.
#[track_caller]
fn one(yaml: &str) -> (usize, usize, String, String) {
    let errors = errors(yaml);
    let [error] = errors.as_slice() else { panic!("{errors:#?}") };
    (error.line, error.column, error.message.clone(), error.hint.clone().unwrap_or_default())
}

#[track_caller]
fn is(yaml: &str, line: usize, column: usize, message: &str, hint: &str) {
    let found = one(yaml);
    assert_eq!((found.0, found.1), (line, column), "{found:?}");
    assert!(found.2.contains(message), "{found:?}");
    assert!(found.3.contains(hint), "{found:?}");
}

#[test]
fn syntax_that_is_no_yaml_is_shown_where_it_breaks() {
    let found = one("files:\n  a: {content: \"x}\n");
    assert!(found.2.starts_with("this is no YAML"), "{found:?}");
    let found = one("files:\n\ta: 1\n");
    assert_eq!(found.0, 2, "{found:?}");
    is("files: \u{1}\n", 1, 8, "control character", "text file");
    is("- a\n- b\n", 0, 0, "no YAML file in this directory is a manifest", "a manifest has directories");
    is("files: {}\n---\n- a\n", 3, 1, "a manifest is a map, and this is a list", "files:");
}

#[test]
fn unknown_fields_come_with_what_was_probably_meant() {
    is("file:\n  a: {content: x}\n", 1, 1, "no field `file`", "did you mean `files`?");
    is("derectories: {}\n", 1, 1, "no field `derectories`", "did you mean `directories`?");
    is(
        "files:\n  a: {content: x, mod: '0644'}\n",
        2,
        19,
        "a file has no attribute `mod`",
        "did you mean `mode`?",
    );
    is(
        "symlinks:\n  a: {target: x, mode: '0644'}\n",
        2,
        18,
        "a symlink has no attribute `mode`",
        "there are path",
    );
    is("files:\n  a: {<<: {content: x}, content: y}\n", 2, 7, "`<<`", "merge keys");
}

#[test]
fn a_value_of_the_wrong_type_is_named_for_what_it_is() {
    is("files: [a]\n", 1, 8, "`files` is a map of items by name, and this is a list", "");
    is("files:\n  a: text\n", 2, 6, "attributes of a file are a map, and this is text", "");
    is("files:\n  a: {content: 12}\n", 2, 16, "`content` is text, and this is a number", "quotes");
    is("files:\n  a: {content: }\n", 2, 14, "`content` is text, and this is nothing", "\"\"");
    is("files:\n  a: {content: x, sensitive: yes}\n", 2, 30, "true or false", "");
    is("files:\n  a: {content: x, after: file.b}\n", 2, 26, "a list of items", "file.config");
    is("files:\n  a: {content: !!binary 'ß'}\n", 2, 25, "no base64", "");
    is("processes:\n  a: {command: []}\n", 2, 16, "`command` is empty", "");
    is("processes:\n  a: {command: {x: y}}\n", 2, 16, "as a list, or a line for the shell", "");
    is("processes:\n  a: {command: x, stop_signal: STOP}\n", 2, 32, "no signal \"STOP\"", "TERM");
    is("processes:\n  a: {command: x, stop_timeout: soon}\n", 2, 33, "a time is", "");
    is("processes:\n  a: {command: x, env: {A: [1]}}\n", 2, 28, "a variable is text", "");
    is("processes:\n  a: {command: x, env: {SETPOINT_PROCESS: y}}\n", 2, 25, "Setpoint sets this", "");
    is(
        "processes:\n  a: {command: x, ready: 80}\n",
        2,
        26,
        "`ready` is a map, and this is a number",
        "port: 8080",
    );
    is("values: 3\n", 1, 9, "a map of values", "");
}

#[test]
fn what_is_empty_is_said_to_be_empty() {
    let command = |command: &str| format!("processes:\n  a: {{command: {command}}}\n");
    is(&command("''"), 2, 16, "`command` is empty", "");
    is(&command("' '"), 2, 16, "`command` is empty", "");
    is(&command("['']"), 2, 17, "the program of `command` is empty", "");
    is(&command("[' ', x]"), 2, 17, "the program of `command` is empty", "");
    is(&command("true"), 2, 16, "and this is a boolean", "put it in quotes");
    is(&command("7"), 2, 16, "and this is a number", "put it in quotes");
    let env = |key: &str| format!("processes:\n  a: {{command: x, env: {{{key}: y}}}}\n");
    is(&env("''"), 2, 25, "the name of a variable is empty", "");
    is(&env("a=b"), 2, 25, "the name of a variable must not contain `=`", "");
    is(&env("[a]"), 2, 25, "the name of a variable is text, and this is a list", "");
}

#[test]
fn a_time_is_longer_than_nothing_and_no_longer_than_a_week() {
    let time = |field: &str, time: &str| format!("commands:\n  a: {{apply: x, {field}: {time}}}\n");
    for long in ["169h", "99999999999999999999h", "99999999999999999999"] {
        is(&time("apply_timeout", long), 2, 32, "a time is at most a week (168h)", "");
    }
    for field in ["apply_timeout", "undo_timeout", "check_timeout"] {
        for none in ["0", "0s", "000ms"] {
            let found = one(&time(field, none));
            assert_eq!(found.2, format!("`{field}` must be longer than 0"), "{found:?}");
            assert!(found.3.contains("leave it out"), "{found:?}");
        }
    }
    is(
        "processes:\n  a: {command: x, ready: {port: 80, timeout: 0}}\n",
        2,
        46,
        "`timeout` must be longer than 0",
        "leave it out",
    );
    // A process that has no time to end is killed at once.
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), "processes: {a: {command: x, stop_timeout: 0}}\n").unwrap();
    assert!(load(directory.path()).is_ok());
}

#[test]
fn what_shows_that_a_process_is_ready_is_one_thing() {
    let ready = |ready: &str| format!("processes:\n  a: {{command: x, ready: {ready}}}\n");
    is(&ready("{}"), 2, 26, "`ready` has none of `port`, `file`, `command`, `log`", "such as");
    is(&ready("{timeout: 5s}"), 2, 26, "`ready` has none of", "");
    is(&ready("{port: 80, log: up}"), 2, 37, "`ready` has both `port` and `log`", "keep one of");
    is(&ready("{prot: 80}"), 2, 27, "`ready` has no attribute `prot`", "did you mean `port`?");
    for port in ["0", "65536", "http", "'db:'", "'a:b:80'"] {
        is(&ready(&format!("{{port: {port}}}")), 2, 33, "a port is a number from 1 to 65535", "");
    }
    is(&ready("{port: [80]}"), 2, 33, "`port` is the number of a port", "such as 8080");
    is(&ready("{file: /etc/passwd}"), 2, 33, "leads out of the root", "all paths are below");
    is(&ready("{log: ''}"), 2, 32, "`log` is empty", "");
    is(&ready("{command: []}"), 2, 36, "`command` is empty", "");
    is(&ready("{port: 80, timeout: soon}"), 2, 46, "a time is", "");
    is(&ready("{command: 'test -e ${file.b.path}'}"), 2, 45, "there is no file `b`", "");
}

#[test]
fn all_that_is_wrong_with_the_readiness_of_a_process_is_said_at_once() {
    let errors =
        errors("processes:\n  a: {command: x, ready: {port: 99999, timeout: soon}, stop_timeout: later}\n");
    let places: Vec<usize> = errors.iter().map(|error| error.column).collect();
    assert_eq!(places, [33, 49, 70], "{errors:#?}");
    assert!(errors[0].message.contains("a port is a number"), "{errors:#?}");
    // What a reference stands for is known later.
    is(
        "values: {port: 99999}\nprocesses:\n  a: {command: x, ready: {port: '${values.port}'}}\n",
        3,
        33,
        "\"99999\": a port is a number",
        "",
    );
}

#[test]
fn what_the_system_would_cut_off_is_no_text_for_it() {
    for yaml in [
        "commands: {a: {apply: \"a\\0b\"}}\n",
        "commands: {a: {apply: [a, \"b\\0\"]}}\n",
        "commands: {a: {apply: x, env: {A: \"b\\0\"}}}\n",
        "processes: {a: {command: \"a\\0b\"}}\n",
        "processes: {a: {command: x, ready: {command: \"a\\0b\"}}}\n",
        "symlinks: {a: {target: \"a\\0b\"}}\n",
        "files: {a: {content: x, owner: \"a\\0b\"}}\n",
        "values: {v: \"a\\0b\"}\ncommands: {a: {apply: 'echo ${values.v}'}}\n",
    ] {
        let found = one(yaml);
        assert_eq!(
            (found.2.as_str(), found.3.as_str()),
            ("a NUL character can't be in here", "leave out the `\\0`"),
            "{yaml}"
        );
    }
    let found = one("commands: {a: {apply: x, env: {\"A\\0\": b}}}\n");
    assert_eq!(found.2, "the name of a variable has no NUL character in it");
    // What a file holds may be anything.
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), "files: {a: {content: \"a\\0b\"}}\n").unwrap();
    assert!(load(directory.path()).is_ok());
}

#[test]
fn the_name_of_a_set_is_in_a_line() {
    for name in ["\"a\\nb\"", "\"a\\e[1m\"", "\"a\\0\""] {
        is(
            &format!("name: {name}\nfiles: {{a: {{content: x}}}}\n"),
            1,
            7,
            "`name` holds a character that can't be shown",
            "",
        );
    }
}

#[test]
fn what_is_said_and_empty_is_to_be_left_out_where_it_can_be() {
    for field in ["name", "root"] {
        is(&format!("{field}: ''\nfiles: {{}}\n"), 1, field.len() + 3, "is empty", "leave it out");
        let found = one(&format!("{field}:\nfiles: {{}}\n"));
        assert!(
            found.2.contains("is text, and this is nothing") && found.3.contains("or leave it out"),
            "{found:?}"
        );
    }
    assert_eq!(one("files: {a: {content: }}\n").3, "write \"\" for an empty text");
}

#[test]
fn a_reference_in_a_template_is_shown_with_its_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
    write("set.yaml", "files:\n  a: {template_source: t}\n  b: {content: x}\n");
    write("t", "one\n${file.c.path} ${values.port}\n\n${file.b.pth}\n${file.b\n");
    let errors = load(directory.path()).unwrap_err();
    let template = directory.path().join("t").display().to_string();
    let messages: Vec<&str> =
        errors.iter().map(|error| error.message.strip_prefix(&template).unwrap_or(&error.message)).collect();
    assert_eq!(
        messages,
        [
            ":2: there is no file `c`",
            ":2: there is no value `port`",
            ":4: a file has no `pth` to refer to",
            ":5: this reference has no end",
        ],
        "{errors:#?}"
    );
    assert!(
        errors.iter().all(|error| (error.line, error.column) == (2, 7 + "template_source: ".len())),
        "{errors:#?}"
    );
}

#[test]
fn a_bad_mode_is_told_what_modes_look_like() {
    is("files:\n  a: {content: x, mode: rw-r--r--}\n", 2, 25, "octal digits", "");
    is("directories:\n  a: {mode: 0888}\n", 2, 13, "octal digits", "");
    is("directories:\n  a: {mode: '17777'}\n", 2, 13, "with or without a 0 before them", "");
}

#[test]
fn what_is_missing_is_named_with_its_meaning() {
    is("symlinks:\n  a: {path: b}\n", 2, 3, "symlink.a has no `target`", "say `target`: What it points to");
    is("commands:\n  a:\n", 2, 3, "command.a has no `apply`", "say `apply`: Brings the state about");
    let check = "commands:\n  a: {check: test -e x}\n";
    is(check, 2, 3, "command.a has no `apply`", "say `apply`: Brings the state about");
    is("files:\n  a: {mode: '0644'}\n", 2, 3, "file.a has none of `content`", "content: \"\"");
}

#[test]
fn a_file_has_one_origin() {
    is("files:\n  a: {content: x, source: y}\n", 2, 27, "both `content` and `source`", "keep one");
    is("files:\n  a: {content: x, values: {b: 1}}\n", 2, 27, "no template to use them", "");
    is("files:\n  a: {source: nowhere}\n", 2, 15, "can't read", "from the manifest's directory");
    for field in ["source", "template_source"] {
        let found = one(&format!("files:\n  a: {{{field}: .}}\n"));
        assert!(found.2.contains("it is no regular file"), "{found:?}");
        assert!(found.3.contains("name a file"), "{found:?}");
    }
}

#[test]
fn a_template_is_not_read_from_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, directory.path().join("pipe"), mode).unwrap();
    fs::write(directory.path().join("set.yaml"), "files: {f: {template_source: pipe}}\n").unwrap();
    let (done, loaded) = std::sync::mpsc::channel();
    let path = directory.path().to_path_buf();
    std::thread::spawn(move || done.send(load(&path).map(drop)));
    let errors = loaded.recv_timeout(std::time::Duration::from_mins(5)).expect("nobody waits for it");
    assert!(errors.as_ref().unwrap_err()[0].message.contains("it is no regular file"), "{errors:?}");
}

#[test]
fn text_that_is_not_utf_8_is_shown_where_it_is() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), b"# one\nfiles: # \xc3\xa4 \xe4\n  a: {}\n").unwrap();
    let errors = load(directory.path()).unwrap_err();
    let [error] = errors.as_slice() else { panic!("{errors:#?}") };
    assert_eq!((error.line, error.column, error.length), (2, 12, 1), "{error:?}");
    assert_eq!(error.text, "files: # ä \u{fffd}");
    assert_eq!(error.message, "the manifest is no UTF-8 text");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("save it as UTF-8")), "{error:?}");
    fs::write(directory.path().join("set.yaml"), "files: {a: {template_source: t}}\n").unwrap();
    fs::write(directory.path().join("t"), b"x\n\xff").unwrap();
    let errors = load(directory.path()).unwrap_err();
    assert!(errors[0].message.ends_with("t:2: this is no UTF-8 text"), "{errors:?}");
}

#[test]
fn names_and_paths_are_unique() {
    is("files:\n  a: {content: x}\n  a: {content: y}\n", 3, 3, "two files `a`", "set.yaml:2");
    is("files:\n  a: {content: x, content: y}\n", 2, 19, "`content` is there twice", "keep one");
    is(
        "files:\n  a: {content: x, path: p/../q}\nsymlinks:\n  b: {target: x, path: q}\n",
        4,
        24,
        "file/a and symlink/b are both at q",
        "set.yaml:2",
    );
    is("name: a\n---\nname: b\n", 3, 7, "`name` is said twice", "once");
    is("values: {a: 1}\n---\nvalues: {a: 2}\n", 3, 10, "two values `a`", "");
    is("files:\n  a b: {content: x}\n", 2, 3, "is no name", "");
}

#[test]
fn a_reference_to_nothing_is_found_wherever_it_is() {
    let with = |reference: &str| {
        format!("files:\n  conf: {{content: x}}\n  b: {{content: y, after: [{reference}]}}\n")
    };
    is(&with("file.cnof"), 3, 27, "no file `cnof`", "did you mean `conf`?");
    is(&with("files.conf"), 3, 27, "no kind of item `files`", "did you mean `file`?");
    is(&with("conf"), 3, 27, "names no item", "kind.name");
    is(&with("file.b"), 3, 27, "can't come after itself", "");
    is(
        "files:\n  conf: {content: x}\nprocesses:\n  p:\n    command: |\n      run\n      run ${file.conf.pth}\n",
        7,
        11,
        "no `pth` to refer to",
        "did you mean `path`?",
    );
    is("symlinks:\n  a: {target: '${file.x.path}'}\n", 2, 16, "no file `x`", "declare it in `files`");
    is("symlinks:\n  a: {target: '${file.x}'}\n", 2, 16, "`file.x` is no reference", "$${");
    is("symlinks:\n  a: {target: '${file.x'}\n", 2, 16, "has no end", "close it");
    is(
        "processes:\n  p: {command: x}\n  q: {command: 'y ${process.p.log}'}\n",
        3,
        19,
        "no log file",
        "say `log`",
    );
}

#[test]
fn only_what_may_be_meant_is_suggested() {
    let target = |target: &str| format!("files:\n  ab: {{content: x}}\n  a: {{template: '{target}'}}\n");
    is(&target("${file.b.path}"), 3, 18, "no file `b`", "declare it in `files`");
    is(&target("${file.xy.path}"), 3, 18, "no file `xy`", "declare it in `files`");
    let itself = "files:\n  config: {template: '${file.confg.path}'}\n";
    is(itself, 2, 23, "no file `confg`", "declare it in `files`");
    let four = "files:\n  motd: {content: x}\n  b: {content: y, after: [file.mops]}\n";
    is(four, 3, 27, "no file `mops`", "declare it in `files`");
    let value = "values: {app: {name: x}}\nfiles:\n  f: {template: '${values.app.nme}'}\n";
    is(value, 3, 18, "there is no value `app.nme`", "did you mean `app.name`?");
}

/// Looking for it in many names takes its time.
#[test]
fn what_was_probably_meant_is_said_of_the_first_hundred_errors() {
    let files =
        (0..150).map(|i| format!("  file-{i}: {{content: x, after: [file.fle-{}]}}\n", (i + 1) % 150));
    let errors = errors(&format!("files:\n{}", files.collect::<String>()));
    let is_suggested =
        |error: &&Diagnostic| error.hint.as_deref().is_some_and(|hint| hint.starts_with("did you mean"));
    assert_eq!((errors.len(), errors.iter().filter(is_suggested).count()), (150, 100));
    let last = errors.last().unwrap();
    assert_eq!((last.line, last.hint.as_deref()), (151, Some("declare it in `files`, or correct the name")));
}

#[test]
fn a_copy_of_a_manifest_is_one_error() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
    let web = "name: a\nroot: .\nvalues: {v: 1}\nfiles:\n  a: {content: x}\n  b: {content: x}\n";
    write("web.yaml", web);
    write("good.yaml", web);
    let only = || {
        let mut errors = load(directory.path()).unwrap_err();
        assert_eq!(errors.len(), 1, "{errors:#?}");
        let error = errors.remove(0);
        let file = error.file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(error.message.contains("is one a copy of the other?"), "{error:?}");
        assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("`--file`")), "{error:?}");
        (file, error.message)
    };
    let (file, message) = only();
    assert_eq!(file, "web.yaml");
    assert!(
        message.starts_with("all 2 items of this manifest are declared in ") && message.contains("good.yaml")
    );
    // Something was added to one of them since.
    write("web.yaml", &format!("{web}  c: {{content: x}}\n"));
    assert_eq!(only().0, "good.yaml");
    // One name that two manifests have is no copy.
    write("good.yaml", "files:\n  a: {content: x}\n  other: {content: x}\n");
    let errors = load(directory.path()).unwrap_err();
    assert!(errors[0].message.contains("there are two files `a`"), "{errors:?}");
}

#[test]
fn items_that_wait_for_each_other_are_named_in_a_circle() {
    is(
        "files:\n  a: {content: x, after: [file.b]}\n  b: {content: x, after: [file.a]}\n",
        2,
        3,
        "wait for each other: file/a → file/b → file/a",
        "remove one",
    );
    is(
        "files:\n  a: {content: x, path: '${file.b.path}1'}\n  b: {content: x, path: '${file.a.path}1'}\n",
        2,
        3,
        "refers to itself",
        "write one",
    );
}

#[test]
fn no_path_is_outside_of_the_root() {
    is("files:\n  a: {content: x, path: ../b}\n", 2, 25, "leads out of the root", "all paths are below");
    is(
        "files:\n  a: {content: x, path: /etc/passwd}\n",
        2,
        25,
        "leads out of the root",
        "all paths are below",
    );
    is("directories:\n  a: {path: .}\n", 2, 13, "names the root itself", "not managed");
    is("processes:\n  a: {command: x, log: ../b}\n", 2, 24, "leads out of the root", "");
    is("root: /nowhere/at/all\n", 1, 7, "the root /nowhere/at/all", "must be there");
    is(
        "files:\n  a: {content: x}\n  a/b: {content: x}\n",
        3,
        3,
        "a/b is inside of a, which is declared as a file",
        "set.yaml:2",
    );
}

#[test]
fn a_wrong_template_is_shown_at_its_line() {
    is(
        "values: {port: 1}\nfiles:\n  a:\n    template: |\n      one\n      two {{ prot }}\n",
        6,
        1,
        "values that nobody gives: prot",
        "did you mean `port`?",
    );
    let found = one("files:\n  a:\n    template: |\n      {% if %}\n");
    assert_eq!(found.0, 4, "{found:?}");
}

#[test]
fn all_errors_of_all_files_are_found_at_once_in_order() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("b.yaml"), "files:\n  x: {content: 1}\n  y: {mode: 9}\n").unwrap();
    fs::write(directory.path().join("a.yml"), "nonsense: 1\nsymlinks: {l: {}}\n").unwrap();
    fs::write(directory.path().join("c.yaml"), "files: [\n").unwrap();
    fs::write(directory.path().join("d.yaml"), b"\xff").unwrap();
    let errors = load(directory.path()).unwrap_err();
    let places: Vec<(String, usize)> = errors
        .iter()
        .map(|error| (error.file.file_name().unwrap().to_string_lossy().into_owned(), error.line))
        .collect();
    let expected = [
        ("a.yml", 1),
        ("a.yml", 2),
        ("b.yaml", 2),
        ("b.yaml", 3),
        ("b.yaml", 3),
        ("c.yaml", 2),
        ("d.yaml", 1),
    ];
    let expected: Vec<(String, usize)> =
        expected.iter().map(|(file, line)| ((*file).to_owned(), *line)).collect();
    assert_eq!(places, expected, "{errors:#?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4, "nothing was changed");
}

#[test]
fn an_error_is_printed_with_its_line_and_a_caret() {
    let mut error = errors("files:\n  a:\n    content: x\n    mod: \"0644\"\n").remove(0);
    error.file = "set.yaml".into();
    let expected = "error: a file has no attribute `mod`
 --> set.yaml:4:5
  |
4 |     mod: \"0644\"
  |     ^^^
  = hint: did you mean `mode`?";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_place_without_manifests_is_an_error_too() {
    let directory = tempfile::tempdir().unwrap();
    let errors = load(directory.path()).unwrap_err();
    assert!(errors[0].to_string().contains("no manifest"), "{errors:?}");
    let errors = load(&directory.path().join("nowhere.yaml")).unwrap_err();
    assert_eq!((errors.len(), errors[0].line), (1, 0), "{errors:?}");
}

#[test]
fn texts_are_shown_as_a_manifest_writes_them() {
    for yaml in [
        "files: {a: {path: \"../\\e\", content: x}}\n",
        "files: {a: {content: x, after: [\"\\e\"]}}\n",
        "processes: {a: {command: x, stop_signal: \"\\e\"}}\n",
        "processes: {a: {command: x, ready: {port: \"\\e\"}}}\n",
    ] {
        let found = one(yaml);
        assert!(found.2.contains("\\u001b\""), "{found:?}");
    }
}

#[test]
fn a_file_that_has_the_name_of_the_log_of_a_process_is_refused() {
    is(
        "processes:\n  p: {command: x, log: p.log}\nfiles:\n  'p:log': {path: other, content: x}\n",
        4,
        3,
        "p:log is the name of the log p.log of process.p, which is another file",
        "call this file something else",
    );
}
