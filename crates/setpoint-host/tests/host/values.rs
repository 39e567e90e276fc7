//! Values: what they mean in a manifest, and how they are set from outside.

use std::fs;

use setpoint_host::{Diagnostic, File, load_with};

/// What the file `f` of a manifest holds, with some values set from outside.
fn rendered(yaml: &str, variables: &[&str]) -> Result<String, Vec<Diagnostic>> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), yaml).unwrap();
    let variables: Vec<(String, String)> = variables
        .iter()
        .map(|variable| variable.split_once('=').expect("NAME=VALUE"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let manifest = load_with(directory.path(), &variables)?;
    let file: &File = manifest.graph().item(&("file", "f").into()).unwrap().get().unwrap();
    let mut bytes = Vec::new();
    let read = file.content.for_each_chunk(|chunk| {
        bytes.extend_from_slice(chunk);
        Ok(())
    });
    read.unwrap();
    Ok(String::from_utf8(bytes).unwrap())
}

/// A manifest with values, and a file made of them.
fn with(values: &str, template: &str) -> String {
    format!("values: {{{values}}}\nfiles:\n  f: {{template: '{template}'}}\n")
}

#[track_caller]
fn is(yaml: &str, variables: &[&str], message: &str, hint: &str) -> Diagnostic {
    let mut errors = rendered(yaml, variables).expect_err(yaml);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    let error = errors.remove(0);
    assert!(error.message.contains(message), "{error:?}");
    assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{error:?}");
    error
}

#[test]
fn booleans_may_begin_with_a_capital_or_be_all_of_them() {
    for (written, expected) in
        [("true", "T"), ("True", "T"), ("TRUE", "T"), ("false", "F"), ("False", "F"), ("FALSE", "F")]
    {
        let template = "{% if on %}T{% else %}F{% endif %}";
        assert_eq!(rendered(&with(&format!("on: {written}"), template), &[]).unwrap(), expected, "{written}");
        let variable = format!("on={written}");
        assert_eq!(rendered(&with("on: true", template), &[&variable]).unwrap(), expected, "{written}");
    }
    assert_eq!(rendered(&with("on: \"False\"", "{{ on }}"), &[]).unwrap(), "False", "in quotes it is text");
    let error = is(&with("on: Null", "{{ on }}"), &[], "values that nobody gives: on", "--var on=VALUE");
    assert_eq!(error.line, 3);
    // Attributes know the same.
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("set.yaml"), "files:\n  f: {content: x, adopt: True}\n").unwrap();
    let manifest = setpoint_host::load(directory.path()).unwrap();
    assert!(manifest.declared(&("file", "f").into()).unwrap().adopt);
}

#[test]
fn a_word_that_others_read_as_a_boolean_is_refused_unless_it_is_in_quotes() {
    for (word, boolean) in [("yes", "true"), ("No", "false"), ("on", "true"), ("OFF", "false")] {
        let error = is(
            &with(&format!("a: [1, {{b: {word}}}]"), "x"),
            &[],
            &format!("`{word}` may be meant as text or as a boolean"),
            &format!("write {boolean}, or \"{word}\""),
        );
        assert_eq!((error.line, error.column), (1, 21), "{error:?}");
        let own = format!("files:\n  f: {{template: x, values: {{a: {word}}}}}\n");
        is(&own, &[], "may be meant as text", boolean);
        let quoted = with(&format!("a: \"{word}\""), "{{ a }}");
        assert_eq!(rendered(&quoted, &[]).unwrap(), word);
        // What is declared as text stays text.
        assert_eq!(rendered(&quoted, &[&format!("a={word}")]).unwrap(), word);
        is(&with("a: ", "{{ a }}"), &[&format!("a={word}")], "may be meant as text", boolean);
    }
}

#[test]
fn a_number_to_another_base_is_refused_unless_it_is_in_quotes() {
    for (written, number) in [("0x10", 16), ("0o17", 15), ("0b11", 3)] {
        let error = is(
            &with(&format!("a: {written}"), "x"),
            &[],
            &format!("`{written}` may be meant as text or as a number"),
            &format!("write {number}, or \"{written}\""),
        );
        assert_eq!((error.line, error.column), (1, 13), "{error:?}");
        assert_eq!(rendered(&with(&format!("a: '{written}'"), "{{ a }}"), &[]).unwrap(), written);
    }
    for text in ["0xfg", "0o8", "0x", "0x+1", "0755"] {
        assert_eq!(rendered(&with(&format!("a: {text}"), "{{ a }}"), &[]).unwrap(), text);
    }
}

#[test]
fn a_value_that_is_set_is_of_the_kind_that_is_declared() {
    let yaml =
        with("on: true, port: 80, l: [1], m: {a: 1}", "{{ on|tojson }} {{ port }} {{ l|tojson }} {{ m.a }}");
    for (variable, message) in [
        ("on=no", "the value `on` is a boolean, and `no` is text"),
        ("on=1", "the value `on` is a boolean, and `1` is a number"),
        ("port=abc", "the value `port` is a number, and `abc` is text"),
        ("port=", "the value `port` is a number, and `` is text"),
        ("port=0755", "the value `port` is a number, and `0755` is text"),
        ("port=true", "the value `port` is a number, and `true` is a boolean"),
        ("l=x", "the value `l` is a list, and `x` is text"),
        ("l={a: 1}", "the value `l` is a list, and `{a: 1}` is a map"),
        ("m=[1]", "the value `m` is a map, and `[1]` is a list"),
        ("m={a", "the value `m` is a map, and `{a` is no YAML"),
    ] {
        let error = is(&yaml, &[variable], message, "--var '");
        assert_eq!(error.origin, setpoint_host::Origin::Variable);
    }
    is(&yaml, &["l=[a, off]"], "`off` may be meant as text or as a boolean", "\"off\"");
    is(&yaml, &["m={a: 99999999999999999999}"], "99999999999999999999", "quotes");
    assert_eq!(
        rendered(&yaml, &["on=false", "port=8.5", "l=[a, 2]", "m={a: b}"]).unwrap(),
        "false 8.5 [\"a\", 2] b",
        "as in the manifest"
    );
    assert_eq!(rendered(&yaml, &["l=[\"a\"]", "m={\"a\":3}"]).unwrap(), "true 80 [\"a\"] 3", "JSON is YAML");
}

#[test]
fn a_part_of_a_value_is_set_with_all_of_it() {
    let yaml = with("m: {a: 1}, l: [1]", "{{ m.a }}");
    is(
        &yaml,
        &["m.a=2"],
        "there is no value `m.a` to be set",
        "`m` is a map: set all of it; write it as in the manifest, such as --var 'm={a: 1}'",
    );
    is(&yaml, &["l.0=2"], "there is no value `l.0` to be set", "`l` is a list: set all of it");
    is(&yaml, &["x.a=2"], "there is no value `x.a` to be set", "declare `x.a`");
}

#[test]
fn whole_numbers_are_kept_exactly_or_refused() {
    for number in ["9223372036854775807", "-9223372036854775808", "18446744073709551615"] {
        assert_eq!(rendered(&with(&format!("n: {number}"), "{{ n }}"), &[]).unwrap(), number);
    }
    for number in ["18446744073709551616", "-9223372036854775809", "12345678901234567890123", "1e999"] {
        let error = is(
            &with(&format!("n: {number}"), "{{ n }}"),
            &[],
            &format!("the number {number} is too large"),
            "put it in quotes",
        );
        assert_eq!((error.line, error.column), (1, 13));
        is(
            &with("n: 1", "{{ n }}"),
            &[&format!("n={number}")],
            &format!("the number {number} is too large"),
            "declare it as text",
        );
    }
    let quoted = with("n: \"12345678901234567890123\"", "{{ n }}");
    assert_eq!(rendered(&quoted, &[]).unwrap(), "12345678901234567890123");
}

#[test]
fn a_value_that_is_declared_empty_is_to_be_given() {
    let yaml = with("greeting: ", "{{ greeting }}");
    is(&yaml, &[], "values that nobody gives: greeting", "give it with `--var greeting=VALUE`");
    assert_eq!(rendered(&yaml, &["greeting=hi"]).unwrap(), "hi");
    // One of a file's own can't be.
    let own = "files:\n  f: {template: '{{ greeting }}', values: {greeting: }}\n";
    let error = is(own, &[], "values that nobody gives: greeting", "write it in the `values` of the file");
    assert!(!error.hint.unwrap().contains("--var"));
    // Nor a part of one.
    let error = is(&with("m: {a: }", "${values.m.a}"), &[], "the value `m.a` is empty", "write it");
    assert!(!error.hint.unwrap().contains("--var"));
}
