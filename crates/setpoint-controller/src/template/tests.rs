use minijinja::{Value, context};

use super::*;

fn try_with(format: Format, source: &str, context: Value) -> Result<String, TemplateError> {
    let sources = [("t".to_owned(), source.to_owned())].into();
    let templates = Templates::compile(&sources, Limits::default()).map_err(|mut errors| errors.remove(0))?;
    templates.render("t", format, context)
}

fn with(source: &str, context: Value) -> String {
    try_with(Format::Haproxy, source, context).unwrap()
}

fn error(source: &str) -> TemplateError {
    try_with(Format::Haproxy, source, context! {}).unwrap_err()
}

/// The words that HAProxy reads in the only line of a backend.
fn words(line: &str) -> Vec<String> {
    let text = format!("backend b\n{line}\n");
    let document = setpoint_haproxy::text::Document::parse(text.as_bytes());
    assert_eq!(document.sections().len(), 1, "{line}");
    let lines: Vec<_> = document.sections()[0].lines().collect();
    assert_eq!(lines.len(), 1, "{line}");
    lines[0].words().map(|word| word.to_str_lossy().into_owned()).collect()
}

#[test]
fn whatever_a_value_holds_it_is_one_word_of_haproxy() {
    for value in
        ["a b", "x # y", "\"", "'", "\\", "\\x41", "a\tb", "${HOME}", "$1", "%[env(HOME)]", "a\u{b}c", "ö ü"]
    {
        for (source, around) in [
            ("  description {{ v }}", ""),
            ("  description pre-{{ v }}", "pre-"),
            ("  description \"{{ v }}\"", ""),
        ] {
            let line = with(source, context! { v => value });
            assert_eq!(words(&line), ["description".to_owned(), format!("{around}{value}")], "{line}");
        }
    }
}

#[test]
fn a_value_that_ends_a_line_is_an_error_that_says_where() {
    for value in ["a\n  http-request deny", "a\r", "a\0b"] {
        let sources = [("t".to_owned(), "\n  server {{ v }}\n".to_owned())].into();
        let templates = Templates::compile(&sources, Limits::default()).unwrap();
        for format in [Format::Haproxy, Format::Lines] {
            let error = templates.render("t", format, context! { v => value }).unwrap_err();
            assert_eq!(
                (error.line, error.excerpt.as_deref()),
                (Some(2), Some("  server {{ v }}")),
                "{error}"
            );
            assert!(error.message.contains("lines of its own"), "{error}");
        }
        assert_eq!(
            templates.render("t", Format::Bytes, context! { v => value }).unwrap(),
            format!("\n  server {value}\n")
        );
    }
}

#[test]
fn only_what_is_said_to_be_raw_is_printed_as_it_is() {
    assert_eq!(with("{{ v|raw }} {{ v }}", context! { v => "a b" }), "a b a\\ b");
    assert_eq!(with("{{ v|raw }}", context! { v => "a\nb" }), "a\nb");
    for source in ["{{ v|safe }}", "{{ v|e }}", "{{ v|escape }}"] {
        assert!(try_with(Format::Haproxy, source, context! { v => "a b" }).is_err(), "{source}");
    }
    // Text that is made of a raw one and another is not raw.
    assert_eq!(with("{{ (v|raw) ~ ' ' ~ v }}", context! { v => "a b" }), "a\\ b\\ a\\ b");
}

#[test]
fn what_a_macro_or_a_block_has_printed_is_not_escaped_again() {
    let source = "{% macro server(name) %}server {{ name }} check{% endmacro %}{{ server(v) }}{% set x %}id {{ v }}{% endset %} {{ x }}";
    assert_eq!(with(source, context! { v => "a b" }), "server a\\ b check id a\\ b");
}

#[test]
fn a_snippet_is_written_as_the_output_that_includes_it() {
    let sources: Sources = [
        ("snippet".to_owned(), "{{ v }}".to_owned()),
        ("out".to_owned(), "{% include 'snippet' %}".to_owned()),
    ]
    .into();
    let templates = Templates::compile(&sources, Limits::default()).unwrap();
    let render = |format| templates.render("out", format, context! { v => "a b" }).unwrap();
    assert_eq!((render(Format::Haproxy), render(Format::Lines)), ("a\\ b".to_owned(), "a b".to_owned()));
}

#[test]
fn what_has_no_text_is_not_printed() {
    for (source, what) in [
        ("{{ none }}", "none has no text"),
        ("{{ [1] }}", "a sequence has no text"),
        ("{{ {} }}", "a map has no text"),
    ] {
        assert!(error(source).message.contains(what), "{}", error(source));
    }
    assert_eq!(with("{{ 1 }} {{ true }} {{ 1.5 }}{{ 'x' if false }}", context! {}), "1 true 1.5");
}

#[test]
fn errors_name_the_template_in_which_they_happen_with_its_line() {
    let sources: Sources = [
        ("inner".to_owned(), "one\n  {{ missing.name }}\n".to_owned()),
        ("outer".to_owned(), "\n\n{% include 'inner' %}".to_owned()),
    ]
    .into();
    let templates = Templates::compile(&sources, Limits::default()).unwrap();
    let error = templates.render("outer", Format::Haproxy, context! {}).unwrap_err();
    assert_eq!((error.template.as_str(), error.line), ("inner", Some(2)), "{error}");
    assert!(error.to_string().ends_with("\n    |   {{ missing.name }}"), "{error}");
    assert!(error.hint.is_some());
}

#[test]
fn all_templates_that_are_wrong_are_named_at_once() {
    let sources: Sources = [("a", "{% if %}"), ("b", "fine"), ("c", "x\n{{ 1 | nofilter }}"), ("d", "{{ ")]
        .map(|(name, text)| (name.into(), text.into()))
        .into();
    let errors = Templates::compile(&sources, Limits::default()).unwrap_err();
    let named: Vec<&str> = errors.iter().map(|error| error.template.as_str()).collect();
    assert_eq!(named, ["a", "d"], "a filter is looked for when it is used: {errors:?}");
}

#[test]
fn what_a_template_itself_refuses_is_told_from_what_is_wrong_with_it() {
    let error = error("{% if true %}{{ fail('no such class') }}{% endif %}");
    assert_eq!((error.message.as_str(), error.is_requested), ("no such class", true));
    assert!(!self::error("{{ 1 / 0 }}").is_requested);
}

#[test]
fn a_template_is_held_to_its_limits() {
    let sources: Sources = [
        ("bytes", "{% for i in range(9999) %}0123456789{% endfor %}"),
        ("fuel", "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}"),
        ("time", "{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}"),
        ("recursion", "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}"),
    ]
    .map(|(name, text)| (name.to_owned(), text.to_owned()))
    .into();
    let fails = |name: &str, limits: Limits| {
        Templates::compile(&sources, limits)
            .unwrap()
            .render(name, Format::Bytes, context! {})
            .unwrap_err()
            .message
    };
    let limits = Limits::default();
    assert_eq!(fails("bytes", Limits { bytes: 1000, ..limits }), "it gives more than 1000 bytes");
    assert!(fails("fuel", Limits { fuel: 100_000, ..limits }).contains("fuel"));
    let short = std::time::Duration::from_millis(20);
    assert_eq!(fails("time", Limits { time: short, ..limits }), "it takes longer than 20ms");
    assert!(fails("recursion", limits).contains("recursion"), "{}", fails("recursion", limits));
}

#[test]
fn functions_do_what_they_say() {
    let context = context! {
        list => [context! { n => "b", w => 2 }, context! { n => "a", w => 2 }, context! { n => "c" }],
        map => context! { b => 1, a => context! { x => "deep" } },
    };
    for (source, wanted) in [
        ("{{ 'aGk='|b64decode }}{{ 'hi'|b64encode }}", "hiaGk="),
        ("{{ ''|sha256 }}", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        ("{{ 'v1.25-x'|regex_search('v(\\\\d+)\\\\.', 1) }}", "1"),
        ("{{ 'abc'|regex_search('x') is none }}", "true"),
        ("{{ 'a.b.c'|regex_replace('[.]', '_') }}", "a_b_c"),
        ("{{ ('a.b'|regex_escape) == 'a\\\\.b' }}", "true"),
        ("{{ '50% %[src]'|logformat|raw }}", "50%% %%[src]"),
        ("{{ '/etc/ssl/a.pem'|basename }}", "a.pem"),
        (
            "{{ map|dig('a', 'x') }} {{ map|dig('a', 'y', default='no') }} {{ map|dig('z', 'y') is none }}",
            "deep no true",
        ),
        ("{{ (map|merge({'b': 2})).b }}{{ map.b }}", "21"),
        ("{{ map|keys|join(',') }}", "a,b"),
        (
            "{% for k, g in list|group_by('w') %}{{ k is none }}:{{ g|length }} {% endfor %}",
            "true:1 false:2 ",
        ),
        ("{{ list|unique_by('w')|map(attribute='n')|join(',') }}", "b,c"),
        ("{{ list|order_by('n')|map(attribute='n')|join(',') }}", "a,b,c"),
        ("{{ list|order_by('w:exists', 'n:desc')|map(attribute='n')|join(',') }}", "b,a,c"),
        ("{{ range(10)|shard(1, 3)|join(',') }} {{ range(2)|shard(0, 4)|length }}", "3,4,5 0"),
        ("{{ coalesce('', none, nothing, 'x') }}", "x"),
        (
            "{{ 'a-b' is matching('^a') }} {{ 'shop-api' is glob('shop-*i') }} {{ 'x' is glob('?') }} {{ 'aab' is glob('a*a') }}",
            "true true true false",
        ),
        ("{{ '12' is digits }} {{ '' is digits }} {{ '1a' is digits }}", "true false false"),
    ] {
        assert_eq!(with(source, context.clone()), wanted, "{source}");
    }
    for (source, why) in [
        ("{{ '%%%'|b64decode }}", "no base64"),
        ("{{ 'a'|regex_search('(') }}", "is no pattern"),
        ("{{ [1]|order_by('a:up') }}", "`up` is no way to sort"),
        ("{{ [1]|shard(3, 3) }}", "there are parts 0 to 2"),
        ("{{ [1]|shard(0, 0) }}", "at least one part"),
        ("{{ 1|keys }}", "is no map"),
        ("{{ {}|dig('a', deflt=1) }}", "deflt"),
    ] {
        assert!(error(source).message.contains(why), "{source}: {}", error(source));
    }
}
